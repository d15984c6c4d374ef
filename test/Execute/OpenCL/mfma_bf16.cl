// Matrix cores, bf16.
#define ELEMENT short
#define KERNEL16 mfma16_bf16
#define KERNEL32 mfma32_bf16
#define MFMA16 __builtin_amdgcn_mfma_f32_16x16x16bf16_1k
#define MFMA32 __builtin_amdgcn_mfma_f32_32x32x8bf16_1k
#include "mfma.h"

// Matrix cores, fp16.
#define ELEMENT half
#define KERNEL16 mfma16_f16
#define KERNEL32 mfma32_f16
#define MFMA16 __builtin_amdgcn_mfma_f32_16x16x16f16
#define MFMA32 __builtin_amdgcn_mfma_f32_32x32x8f16
#include "mfma.h"

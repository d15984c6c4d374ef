//===- Layout.cpp - prints the layout of the interface's types ------------===//
//
// Sizes and places of all members that clients compile in, and the values of
// all constants, as the headers have them. What AOTriton's own headers give is
// in interface/layout-<version>.txt; a test compares.
//
//===----------------------------------------------------------------------===//

#include <aotriton/flash.h>
#include <cstddef>
#include <cstdio>
#include <cstring>

using namespace aotriton;
namespace flash = aotriton::v3::flash;

namespace {

void size(const char *type, size_t bytes, size_t alignment) {
  std::printf("%s: %zu bytes, aligned to %zu\n", type, bytes, alignment);
}
void member(const char *name, size_t offset) {
  std::printf("  %s at %zu\n", name, offset);
}
void value(const char *name, long long number) {
  std::printf("%s = %lld\n", name, number);
}

#define SIZE(type) size(#type, sizeof(type), alignof(type))
#define MEMBER(name) member(#name, offsetof(Type, name))
#define VALUE(constant) value(#constant, static_cast<long long>(constant))

template <int Rank>
TensorView<Rank> makeView() {
  std::array<uint64_t, Rank> sizes, strides;
  for (size_t i = 0; i < Rank; ++i) {
    sizes[i] = i + 1;
    strides[i] = i + 11;
  }
  return TensorView<Rank>(99, sizes, strides, kInt8);
}
template <>
TensorView<0> makeView() {
  return TensorView<0>(99, kInt8);
}

/// The members of a view are private; their values show where they are.
template <int Rank>
void printView() {
  const TensorView<Rank> view = makeView<Rank>();
  uint64_t words[sizeof(view) / 8];
  std::memcpy(words, &view, sizeof(view));
  uint32_t type;
  std::memcpy(&type, &words[sizeof(view) / 8 - 1], sizeof(type));
  std::printf("TensorView<%d>: %zu bytes, aligned to %zu:", Rank, sizeof(view),
              alignof(TensorView<Rank>));
  for (size_t i = 0; i + 1 < sizeof(view) / 8; ++i)
    std::printf(" %llu", static_cast<unsigned long long>(words[i]));
  std::printf(" %u\n", type);
}

#if AOTRITON_VERSION_MINOR >= 11
template <int Rank>
void printLazy() {
  using Type = LazyTensor<Rank>;
  std::printf("LazyTensor<%d>\n", Rank);
  SIZE(Type);
  MEMBER(cookie);
  MEMBER(acquire);
  MEMBER(dispose);
#if AOTRITON_VERSION_MINOR >= 12
  MEMBER(eager);
#endif
}
#endif

/// What forward and backward parameters have under the same names.
template <typename Type>
void printCommon() {
  VALUE(Type::kVersion);
  SIZE(Type);
  MEMBER(Q);
  MEMBER(K);
  MEMBER(V);
  MEMBER(B);
  MEMBER(Sm_scale);
  MEMBER(Out);
  MEMBER(L);
#if AOTRITON_VERSION_MINOR >= 14
  MEMBER(seqinfo_q0);
  MEMBER(seqinfo_k0);
  MEMBER(seqinfo_q1);
  MEMBER(seqinfo_k1);
  MEMBER(varlen_bits);
#else
  MEMBER(cu_seqlens_q);
  MEMBER(cu_seqlens_k);
  MEMBER(varlen_type);
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
  MEMBER(seq_strides_q);
  MEMBER(seq_strides_k);
#endif
  MEMBER(Max_seqlen_q);
  MEMBER(Max_seqlen_k);
  MEMBER(dropout_p);
  MEMBER(philox_seed_ptr);
  MEMBER(philox_offset1);
  MEMBER(philox_offset2);
  MEMBER(causal_type);
  MEMBER(window_left);
  MEMBER(window_right);
}

void printForward() {
  using Type = flash::attn_fwd_params;
  std::puts("attn_fwd_params");
  printCommon<Type>();
  MEMBER(A);
  MEMBER(philox_seed_output);
  MEMBER(philox_offset_output);
  MEMBER(encoded_softmax);
  MEMBER(persistent_atomic_counter);
}

void printBackward() {
  using Type = flash::attn_bwd_params;
  std::puts("attn_bwd_params");
  printCommon<Type>();
  MEMBER(DO);
  MEMBER(DK);
  MEMBER(DV);
  MEMBER(DQ);
  MEMBER(DB);
  MEMBER(D);
#if AOTRITON_VERSION_MINOR >= 11
  MEMBER(DQ_ACC);
#endif
}

void printOptions() {
  using Type = flash::attn_options;
  std::puts("attn_options");
  SIZE(Type);
#if AOTRITON_VERSION_MINOR >= 11
  MEMBER(force_backend_index);
  VALUE(Type().force_backend_index);
#endif
#if AOTRITON_VERSION_MINOR >= 12
  MEMBER(deterministic);
  VALUE(Type().deterministic);
#endif
}

void printConstants() {
  VALUE(flash::CausalType::None);
  VALUE(flash::CausalType::WindowedAttention);
  VALUE(flash::WindowValue::TopLeftAligned);
  VALUE(flash::WindowValue::BottomRightAligned);
#if AOTRITON_VERSION_MINOR >= 14
  SIZE(flash::VarlenMode);
  SIZE(flash::VarlenBits);
  VALUE(flash::VarlenStacked::THD);
  VALUE(flash::VarlenLength::MAX);
  VALUE(flash::VarlenLength::CUMULATIVE);
  VALUE(flash::VarlenLength::INDIVIDUAL);
  VALUE(flash::VarlenPosition::IMPLIED);
  VALUE(flash::VarlenPosition::REUSE);
  VALUE(flash::VarlenPosition::ARRAY);
  VALUE(flash::VarlenLseLayout::HT);
  VALUE(flash::VarlenLseLayout::TH);
#else
  VALUE(flash::VarlenType::None);
  VALUE(flash::VarlenType::CompactVarlen);
  VALUE(flash::VarlenType::PaddedVarlen);
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
  VALUE(flash::VarlenType::StridedVarlen);
#endif
  SIZE(DType);
  VALUE(kUnknown);
  VALUE(kFloat32);
  VALUE(kFloat16);
  VALUE(kBFloat16);
  VALUE(kInt8);
  VALUE(kInt16);
  VALUE(kInt32);
  VALUE(kInt64);
  VALUE(kUInt8);
  VALUE(kUInt16);
  VALUE(kUInt32);
  VALUE(kUInt64);
  SIZE(Gpu);
  VALUE(GPU_ARCH_UNKNOWN);
  VALUE(GPU_AMD_ARCH_GFX90A_MOD0);
  VALUE(GPU_AMD_ARCH_GFX942_MOD0);
  VALUE(GPU_AMD_ARCH_GFX942_MOD1);
  VALUE(GPU_AMD_ARCH_GFX942_MOD2);
  VALUE(GPU_AMD_ARCH_GFX950_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1100_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1101_MOD0);
#if AOTRITON_VERSION_MINOR >= 11
  VALUE(GPU_AMD_ARCH_GFX1102_MOD0);
#endif
  VALUE(GPU_AMD_ARCH_GFX1150_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1151_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1200_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1201_MOD0);
  VALUE(GPU_AMD_ARCH_GFX1250_MOD0);
  VALUE(Gpu2VendorArch(GPU_AMD_ARCH_GFX942_MOD1));
}

} // namespace

int main() {
  printView<0>();
  printView<1>();
  printView<2>();
  printView<3>();
  printView<4>();
  SIZE(Stream);
#if AOTRITON_VERSION_MINOR >= 11
  printLazy<2>();
  printLazy<4>();
#endif
  printOptions();
  printForward();
  printBackward();
  printConstants();
}

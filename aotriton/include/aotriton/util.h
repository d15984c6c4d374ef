//===- util.h - tensors and devices of the interface ------------*- C++ -*-===//
//
// TensorView, which points at a tensor without owning it; LazyTensor, a tensor
// that the client allocates when it is asked to; and what may be asked about a
// stream's device.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_AOTRITON_UTIL_H
#define FOVEA_AOTRITON_UTIL_H

#include <aotriton/config.h>
#include <aotriton/dtypes.h>
#include <aotriton/runtime.h>
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace AOTRITON_NS {

/// Numbers side by side, the first one highest.
constexpr uint64_t CAT64(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}
constexpr uint32_t CAT32(uint16_t high, uint16_t low) {
  return uint32_t{high} << 16 | low;
}
constexpr uint64_t TRICAT(uint16_t high, uint16_t mid, uint16_t low) {
  return CAT64(high, CAT32(mid, low));
}

/// Division of positive integers, rounded up.
template <typename T>
T AOTRITON_API cdiv(T numerator, T denominator) {
  return (numerator + denominator - 1) / denominator;
}

/// PCI's numbers.
enum AOTRITON_API GpuVendor : uint16_t {
  kAMD = 0x1002,
  kNVIDIA = 0x10de,
  kINTEL = 0x8086,
};

/// A device's chip: vendor, the digits of its gfx name, and a variant. The
/// library gives these numbers for every gfx name, also for those without an
/// enumerator.
enum AOTRITON_API Gpu : uint64_t {
  GPU_ARCH_UNKNOWN = 0,
  GPU_AMD_ARCH_GFX90A_MOD0 = TRICAT(kAMD, 0x90a, 0),
  GPU_AMD_ARCH_GFX942_MOD0 = TRICAT(kAMD, 0x942, 0),
  GPU_AMD_ARCH_GFX942_MOD1 = TRICAT(kAMD, 0x942, 1),
  GPU_AMD_ARCH_GFX942_MOD2 = TRICAT(kAMD, 0x942, 2),
  GPU_AMD_ARCH_GFX950_MOD0 = TRICAT(kAMD, 0x950, 0),
  GPU_AMD_ARCH_GFX1100_MOD0 = TRICAT(kAMD, 0x1100, 0),
  GPU_AMD_ARCH_GFX1101_MOD0 = TRICAT(kAMD, 0x1101, 0),
  GPU_AMD_ARCH_GFX1102_MOD0 = TRICAT(kAMD, 0x1102, 0),
  GPU_AMD_ARCH_GFX1103_MOD0 = TRICAT(kAMD, 0x1103, 0),
  GPU_AMD_ARCH_GFX1150_MOD0 = TRICAT(kAMD, 0x1150, 0),
  GPU_AMD_ARCH_GFX1151_MOD0 = TRICAT(kAMD, 0x1151, 0),
  GPU_AMD_ARCH_GFX1152_MOD0 = TRICAT(kAMD, 0x1152, 0),
  GPU_AMD_ARCH_GFX1153_MOD0 = TRICAT(kAMD, 0x1153, 0),
  GPU_AMD_ARCH_GFX1200_MOD0 = TRICAT(kAMD, 0x1200, 0),
  GPU_AMD_ARCH_GFX1201_MOD0 = TRICAT(kAMD, 0x1201, 0),
  GPU_AMD_ARCH_GFX1250_MOD0 = TRICAT(kAMD, 0x1250, 0),
};

/// Vendor and chip without the variant, as CAT32 of the two.
inline uint32_t Gpu2VendorArch(uint64_t gpu) { return uint32_t(gpu >> 16); }

/// A tensor in the client's memory. Strides in elements; false without data.
/// The order of the data members is part of the binary interface.
template <int Rank>
class AOTRITON_API TensorView {
public:
  TensorView() {}

  TensorView(intptr_t base, std::array<uint64_t, Rank> sizes,
             std::array<uint64_t, Rank> strides, DType dtype)
      : base(reinterpret_cast<void *>(base)), extents(sizes), steps(strides),
        type(dtype) {}

  /// Of a class with data_ptr(), size(i) and stride(i).
  template <typename Tensor>
  TensorView(const Tensor &tensor,
             std::function<DType(const Tensor &)> dtype_extractor)
      : base(tensor.data_ptr()), type(dtype_extractor(tensor)) {
    for (int i = 0; i < Rank; ++i) {
      extents[i] = uint64_t(tensor.size(i));
      steps[i] = uint64_t(tensor.stride(i));
    }
  }

  operator bool() const { return base != nullptr; }
  uint64_t size(int i) const { return extents[i]; }
  uint64_t stride(int i) const { return steps[i]; }
  std::array<uint64_t, Rank> sizes() const { return extents; }
  std::array<uint64_t, Rank> strides() const { return steps; }
#if AOTRITON_VERSION_MINOR >= 11
  const uint64_t *size_ptr() const { return extents.data(); }
  const uint64_t *stride_ptr() const { return steps.data(); }
#endif
  void *data_ptr() const { return base; }
  DType dtype() const { return type; }

  /// Addresses of the members, for arrays of kernel arguments.
  void *kparam_data_ptr() const { return const_cast<void **>(&base); }
  void *kparam_stride(int i) const { return const_cast<uint64_t *>(&steps[i]); }

  static TensorView<Rank> get_null_tensor(DType dtype) {
    return TensorView<Rank>(0, {}, {}, dtype);
  }

private:
  void *base = nullptr;
  std::array<uint64_t, Rank> extents = {};
  std::array<uint64_t, Rank> steps = {};
  DType type = kUnknown;
};

/// One value in device memory.
template <>
class AOTRITON_API TensorView<0> {
public:
  TensorView() {}
  TensorView(intptr_t base, DType dtype)
      : base(reinterpret_cast<void *>(base)), type(dtype) {}

  operator bool() const { return base != nullptr; }
  uint64_t size(int i) const { return i == 0; }
  uint64_t stride(int i) const { return i == 0; }
  std::array<uint64_t, 0> sizes() const { return {}; }
  std::array<uint64_t, 0> strides() const { return {}; }
  void *data_ptr() const { return base; }
  DType dtype() const { return type; }
  void *kparam_data_ptr() const { return const_cast<void **>(&base); }

  static TensorView<0> get_null_tensor(DType dtype) { return {0, dtype}; }

private:
  void *base = nullptr;
  DType type = kUnknown;
};

#ifndef FOVEA_AOTRITON_BUILD
extern template class TensorView<1>;
extern template class TensorView<2>;
extern template class TensorView<3>;
extern template class TensorView<4>;
#endif

#if AOTRITON_VERSION_MINOR >= 11
/// A tensor that the client allocates when `acquire` is called, which happens
/// only if it is needed. `cookie` is the client's. The order of the members is
/// part of the binary interface.
template <int Rank>
struct LazyTensor {
#if AOTRITON_VERSION_MINOR >= 12
  using Self = LazyTensor *;
#else
  using Self = void *; // the cookie
#endif
  void *cookie = nullptr;
  TensorView<Rank> (*acquire)(Self) = nullptr;
  /// Frees what `acquire` allocated, if anything.
  void (*dispose)(Self) = nullptr;

#if AOTRITON_VERSION_MINOR >= 12
  /// With data: the tensor, which is there already.
  TensorView<Rank> eager;

  operator bool() const { return eager || cookie || acquire || dispose; }
  void free() { release(this); }
#else
  operator bool() const { return cookie || acquire || dispose; }
  void free() { release(cookie); }
#endif

private:
  void release(Self self) {
    if (!dispose || !cookie)
      return;
    dispose(self);
    cookie = nullptr;
  }
};
#endif

/// The chip of a stream's device; GPU_ARCH_UNKNOWN if that cannot be found out.
Gpu AOTRITON_API getGpuFromStream(hipStream_t stream);
/// False: no chip's kernels are of a lesser grade than another's. Where another
/// library serves the device in Fovea's place, what that says.
bool AOTRITON_API isArchExperimentallySupported(hipStream_t stream);
/// Compute units of a stream's device; 0 if that cannot be found out.
int AOTRITON_API getMultiProcessorCount(hipStream_t stream);
#if AOTRITON_VERSION_MINOR >= 12
/// As isArchExperimentallySupported().
bool AOTRITON_API isArchTechPreview(hipStream_t stream);
#endif

} // namespace AOTRITON_NS

#endif // FOVEA_AOTRITON_UTIL_H

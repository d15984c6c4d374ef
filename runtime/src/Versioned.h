//===- Versioned.h - structures of other versions ---------------*- C++ -*-===//
//
// Reading and writing the C interface's structures by their struct_size, so
// that a caller built against another version of the header is served or
// refused, never misread.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_VERSIONED_H
#define FOVEA_RUNTIME_SRC_VERSIONED_H

#include "Result.h"

#include <algorithm>
#include <cstring>

namespace fovea::rt {

// Sizes of the structures' first version: part of the binary interface, and
// what a caller of any version has at least. A structure that grows keeps its
// number here, and its assertion becomes one of the new size.
inline constexpr uint32_t kContextOptionsFirstSize = 40, kHipInfoFirstSize = 32,
                          kDeviceInfoFirstSize = 16, kKernelInfoFirstSize = 104,
                          kForwardParamsFirstSize = 224,
                          kForwardPlanFirstSize = 28,
                          kBackwardParamsFirstSize = 376,
                          kBackwardPlanFirstSize = 88, kCandidateFirstSize = 32,
                          kWindowFirstSize = 40, kDlseFirstSize = 40,
                          kSinksFirstSize = 32, kDsinksFirstSize = 48,
                          kScoreFirstSize = 40, kCaptureFirstSize = 128,
                          kBlocksFirstSize = 288, kVarlenFirstSize = 96,
                          kDropoutFirstSize = 72, kHeadDimsFirstSize = 24,
                          kDropoutMaskParamsFirstSize = 88;
static_assert(sizeof(fovea_context_options_t) == 48);
static_assert(sizeof(fovea_hip_library_info_t) == kHipInfoFirstSize);
static_assert(sizeof(fovea_device_info_t) == kDeviceInfoFirstSize);
static_assert(sizeof(fovea_kernel_info_t) == 112);
static_assert(sizeof(fovea_forward_params_t) == 264);
static_assert(sizeof(fovea_forward_plan_t) == 56);
static_assert(sizeof(fovea_backward_params_t) == 400);
static_assert(sizeof(fovea_backward_plan_t) == 96);
static_assert(sizeof(fovea_window_t) == kWindowFirstSize);
static_assert(sizeof(fovea_dlse_t) == kDlseFirstSize);
static_assert(sizeof(fovea_sinks_t) == kSinksFirstSize);
static_assert(sizeof(fovea_dsinks_t) == kDsinksFirstSize);
static_assert(sizeof(fovea_score_t) == 56);
static_assert(sizeof(fovea_capture_t) == kCaptureFirstSize);
static_assert(sizeof(fovea_blocks_t) == kBlocksFirstSize);
static_assert(sizeof(fovea_varlen_t) == kVarlenFirstSize);
static_assert(sizeof(fovea_dropout_t) == kDropoutFirstSize);
static_assert(sizeof(fovea_head_dims_t) == kHeadDimsFirstSize);
static_assert(sizeof(fovea_dropout_mask_params_t) == 96);
static_assert(sizeof(fovea_candidate_t) == kCandidateFirstSize);

/// Checks that a caller's structure is there and of some version's size.
template <typename T>
Result checkSize(const char *name, const T *given, uint32_t firstSize) {
  if (!given)
    return invalid(std::string(name) + " is NULL");
  uint32_t size;
  std::memcpy(&size, given, sizeof(size));
  if (size < firstSize || size > 65536)
    return invalid(std::string(name) + ".struct_size is " +
                   std::to_string(size) + "; set it to sizeof (" +
                   std::to_string(sizeof(T)) + " in this version)");
  return Result();
}

/// Copies a caller's structure into `known`. Fields that the caller's version
/// lacks become zero; fields that this version lacks must be zero.
template <typename T>
Result readVersioned(const char *name, const T *given, uint32_t firstSize,
                     T &known) {
  if (Result result = checkSize(name, given, firstSize); !result.ok())
    return result;
  uint32_t size;
  std::memcpy(&size, given, sizeof(size));
  known = T();
  std::memcpy(&known, given, std::min<size_t>(size, sizeof(T)));
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  if (std::any_of(bytes + std::min<size_t>(size, sizeof(T)), bytes + size,
                  [](unsigned char byte) { return byte != 0; }))
    return Result(FOVEA_STATUS_INCOMPATIBLE,
                  std::string(name) +
                      " uses fields of a later version of fovea.h than this "
                      "library's (" +
                      std::to_string(FOVEA_VERSION) + "); update libfovea");
  return Result();
}

/// Fills in a caller's structure as far as both versions know it.
template <typename T>
void writeVersioned(T *given, const T &filled) {
  uint32_t size;
  std::memcpy(&size, given, sizeof(size));
  T copy = filled;
  copy.struct_size = size;
  std::memcpy(given, &copy, std::min<size_t>(size, sizeof(T)));
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_VERSIONED_H

//===- Keys.h - what a kernel computes and how ------------------*- C++ -*-===//
//
// ProblemKey names a kernel's mathematical contract and has one canonical text,
// e.g. `forward;dtype=bf16;head_dim=128;window=1`. Features at their default
// are left out of the text, so a feature added later leaves the keys of earlier
// packages as they are; feature groups (OperationSpec.h) are named with their
// version, so that a change of one leaves kernels without it as they are.
// A schedule's key is opaque here: the compiler's canonical text. TargetId is a
// chip with its two code features.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_KEYS_H
#define FOVEA_PACKAGE_KEYS_H

#include "fovea/Package/DataTypes.h"
#include "fovea/Package/Status.h"
#include "fovea/Package/Visibility.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fovea {

enum class OpKind { Forward, Backward, DropoutMask };
/// Smallest, largest and step of the head dimensions that a key may have.
/// V's are no larger than kMaxHeadDimV.
inline constexpr int32_t kMinHeadDim = 8, kMaxHeadDim = 576, kMaxHeadDimV = 512,
                         kHeadDimStep = 8;
/// Kernels of so many columns or fewer, 16-bit ones that cut rows, read an
/// element at a time; others a word, which the shortest rows may lack.
inline constexpr int32_t kElementwiseColumns = 16;

/// Canonical spellings: "forward", "backward", "dropout_mask"; "fp16", "bf16";
/// "none", "causal_top_left", "causal_bottom_right".
const char *toString(OpKind op);
inline const char *toString(DataType type) { return dataTypeInfo(type).name; }
inline const char *toString(MaskKind mask) { return maskInfo(mask).name; }

/// More feature groups than this there are not.
inline constexpr size_t kMaxGroups = 16;
/// A number for each of them, by their rows in spec::featureGroups().
using GroupVersions = std::array<int32_t, kMaxGroups>;
/// The row of spec::featureGroups() that holds a window's numbers.
inline constexpr size_t kWindowGroup = 0;
/// And its version.
inline constexpr int32_t kWindowVersion = 1;
/// The row that says how many elements rows have, and its version.
inline constexpr size_t kHeadDimsGroup = 7;
inline constexpr int32_t kHeadDimsVersion = 2;

/// A score program's digest as 16 hexadecimal digits, and back: only what is
/// printed so, and not that of 0, which stands for no program.
std::string scoreDigits(uint64_t score);
std::optional<uint64_t> parseScoreDigits(std::string_view text);

/// A set of captures of a score program, by their numbers as bits, as "0+2",
/// and back: only what is printed so; the empty set is the empty text.
std::string captureNumbers(uint8_t captures);
std::optional<uint8_t> parseCaptureNumbers(std::string_view text);

/// One kernel's mathematical contract. Lengths, heads, strides and scale are
/// known only at launch and so are no part of it.
struct ProblemKey {
  OpKind op = OpKind::Forward;
  DataType dtype = DataType::F16;
  int32_t headDim = 0; ///< columns; 8 to 576 in steps of 8. Of attention
  /// Compiled in: the kernel knows no other.
  MaskKind mask = MaskKind::None;
  /// Of the feature groups whose arguments its kernels have; 0: not those.
  GroupVersions groups{};
  /// Digest of the score program's canonical text (docs/ScorePrograms.md), of
  /// which a package holds name and text; 0: the kernels have none.
  uint64_t score = 0;
  /// What the program captures that its kernels give the gradients of, by
  /// number as bits; of Backward alone.
  uint8_t scoreGradients = 0;
  /// Of these the ones that are stored, in the capture's type, and not added to
  /// memory in f32.
  uint8_t storedGradients = 0;
  /// Columns of v and out where they are not headDim, 8 to 512; 0: they are.
  int32_t headDimV = 0;

  /// Its kernels take any window at run time, and have no mask compiled in.
  bool takesWindow() const { return groups[kWindowGroup] != 0; }
  /// Columns of v and out.
  int32_t dimOfV() const { return headDimV ? headDimV : headDim; }
  /// Gives it both.
  void setHeadDims(int32_t ofQk, int32_t ofV) {
    headDim = ofQk;
    headDimV = ofV == ofQk ? 0 : ofV;
  }
  /// They take rows of fewer elements than they have columns.
  bool cutsColumns() const { return groups[kHeadDimsGroup] != 0; }

  /// The same without mask and feature groups: kernels that may serve a problem
  /// differ from it in these alone. So they have its score program, or none if
  /// it has none, and give the gradients of the same captures.
  ProblemKey base() const {
    ProblemKey key = *this;
    key.mask = MaskKind::None;
    key.groups = {};
    return key;
  }

  /// The base without score program and gradients of what it captures.
  ProblemKey withoutScore() const {
    ProblemKey key = base();
    key.score = 0;
    key.scoreGradients = key.storedGradients = 0;
    return key;
  }

  /// Canonical text: the operation, then `;key=value` with the keys in
  /// alphabetical order; `mask=none` and groups that are not there are defaults
  /// and left out.
  std::string str() const;

  /// Reads canonical or uncanonical text (keys in any order, defaults spelled
  /// out). InvalidArgument on an unknown operation, key or value, a key given
  /// twice, a missing dtype or head_dim, a window beside a mask, gradients of
  /// captures without a score program or of Forward, or what its operation does
  /// not have.
  static Expected<ProblemKey> parse(std::string_view text);

  friend bool operator==(const ProblemKey &a, const ProblemKey &b) {
    return a.op == b.op && a.dtype == b.dtype && a.headDim == b.headDim &&
           a.headDimV == b.headDimV && a.mask == b.mask && a.groups == b.groups && a.score == b.score &&
           a.scoreGradients == b.scoreGradients &&
           a.storedGradients == b.storedGradients;
  }
  friend bool operator!=(const ProblemKey &a, const ProblemKey &b) {
    return !(a == b);
  }
};

/// State of a target feature: of code, what it needs of the device (Any: runs
/// with either); of a device, what it has (Any: not stated).
enum class FeatureState { Any, Off, On };

/// "any", "off", "on".
const char *toString(FeatureState state);
Expected<FeatureState> parseFeatureState(std::string_view text);

/// A chip, or a generic target, and its code features (Chips.h has the table).
struct TargetId {
  std::string arch; ///< e.g. "gfx942", "gfx9-4-generic"
  FeatureState xnack = FeatureState::Any;
  FeatureState sramecc = FeatureState::Any;

  /// HIP's spelling, e.g. "gfx942:sramecc+:xnack-"; Any is left out.
  std::string str() const;

  /// Reads HIP's spelling; InvalidArgument on anything else.
  static Expected<TargetId> parse(std::string_view text);

  friend bool operator==(const TargetId &a, const TargetId &b) {
    return a.arch == b.arch && a.xnack == b.xnack && a.sramecc == b.sramecc;
  }
  friend bool operator!=(const TargetId &a, const TargetId &b) {
    return !(a == b);
  }
};

/// Ok when there is such a chip or generic target and it has the features that
/// are given; else InvalidArgument with what is known.
Status checkTarget(const TargetId &target);

/// Ok when code for `code` runs on `device`: the same chip, or a generic target
/// of which the device is a member; and of each feature that the code gives,
/// the device has that state. Else Incompatible with the code's target, the
/// device, the feature and the remedy.
Status checkTargetRunsOn(const TargetId &code, const TargetId &device);

/// How closely code that runs on `device` is made for it, larger for closer:
/// that of the chip itself before that of its generic target, and of each the
/// one that gives more features.
int targetFit(const TargetId &code, const TargetId &device);

} // namespace fovea

#endif // FOVEA_PACKAGE_KEYS_H

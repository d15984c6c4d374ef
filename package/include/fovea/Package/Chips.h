//===- Chips.h - processors that code objects name --------------*- C++ -*-===//
//
// One row a processor of LLVM's AMDGPU backend from GFX9 on: its number in
// e_flags, the generic family whose code it runs, and the code features that it
// can have on or off. What is decided by these rows: whether code may run on a
// device (checkTargetRunsOn). What the compiler knows of a chip is elsewhere
// (lib/Target).
//
// Source: LLVM, "User Guide for AMDGPU Backend", Processors, Generic
// Processors, and ELF header e_flags of code object V6.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_CHIPS_H
#define FOVEA_PACKAGE_CHIPS_H

#include "fovea/Package/DataTypes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fovea {

/// A chip, or a generic target: a family of chips for which LLVM makes code
/// that each of them runs.
struct Chip {
  std::string_view name; ///< "gfx942", "gfx9-4-generic"
  uint32_t mach;         ///< EF_AMDGPU_MACH
  /// The generic target of which the chip is a member; empty when there is
  /// none, and for a generic target itself.
  std::string_view family;
  bool xnack, sramecc; ///< code may ask for them on or off

  bool isGeneric() const;
};

/// Generic code is versioned, and a chip runs the versions from the one on in
/// which it joined its family. All chips here were there in the first.
inline constexpr int32_t kFirstGenericVersion = 1;
/// Generic code needs this code object version, whose e_flags hold its version.
inline constexpr int32_t kGenericCodeObjectVersion = 6;

/// All rows, chips before generic targets.
struct ChipTable {
  const Chip *first, *last;
  const Chip *begin() const { return first; }
  const Chip *end() const { return last; }
  size_t size() const { return size_t(last - first); }
};
ChipTable allChips();

/// The row of a name or of an EF_AMDGPU_MACH number; null when not known.
const Chip *findChip(std::string_view name);
const Chip *findChip(uint32_t mach);

/// A chip that runs code of `target`, which may name features
/// ("gfx942:xnack+"): itself, or the first member of a generic target.
std::string simulatedChipFor(std::string_view target);

/// The chips that run a generic target's code, for messages: "gfx942, gfx950".
std::string membersOf(std::string_view family);

/// Whether matrix instructions of a chip ("gfx90a:xnack-") take subnormal
/// operands of a type for zeros. Those of fp32 do not.
/// Sources: AMD, "PyTorch numerical accuracy", "Reduced precision (fp16 and
/// bf16) GEMMs and convolutions on AMD Instinct MI200"; docs/Simulator.md.
bool flushesSubnormals(std::string_view chip, DataType type);

} // namespace fovea

#endif // FOVEA_PACKAGE_CHIPS_H

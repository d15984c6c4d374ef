//===- Probes.h - small kernels that hardware is compared with --*- C++ -*-===//
//
// Each probe runs one instruction, or a few, over many operands. Its code is
// compiled for every chip when the project is built (BuildProbes.cpp) and is
// part of the program, so that a machine with a GPU needs no compiler.
//
// A probe takes the addresses of what it reads and of what it writes. Where it
// is no product, work-item i reads `inWords` words of 32 bits and writes
// `outWords`. A product's workgroup is one wave; it reads A [m, k], B [k, n] and
// C [m, n] of its own, dense and one after the other, and writes D [m, n].
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTQUALIFY_PROBES_H
#define FOVEA_TOOLS_AOTQUALIFY_PROBES_H

#include <cstddef>
#include <cstdint>

namespace fovea::qualify {

/// What is probed, and with it how hardware and simulator must agree: bit for
/// bit but for the last two, which are counted in units in the last place.
enum class ProbeKind {
  Copy,
  Convert,
  Integer,
  Mask,
  Arithmetic,
  Exponential,
  Product,
};
inline constexpr const char *kProbeKinds[] = {
    "copy",       "conversion",  "integer", "mask",
    "arithmetic", "exponential", "product"};

/// What the words that a probe reads hold.
///   Bits     anything; among it what goes wrong first of floats and integers
///   Halves   every number of 16 bits
///   Exp      -150 to 130, and the edges
///   Positive normal floats above 0, and the edges
///   F32 to Bf8   a product's factors, of that type
enum class ProbeFill { Bits, Halves, Exp, Positive, F32, F16, BF16, Fp8, Fp8Fnuz, Bf8 };

/// What the words hold that it writes: to tell which of two differ by a NaN's
/// bits alone.
enum class ProbeResult { Bits, F32, F16, BF16 };

struct Probe {
  const char *name; ///< of the kernel
  ProbeKind kind;
  ProbeFill fill;
  ProbeResult result;
  const char *what; ///< for the reader
  uint32_t inWords, outWords;
  uint32_t m, n, k; ///< of a product
};

struct ChipProbes {
  const char *chip;
  const uint64_t *image; ///< a code object
  size_t imageBytes;
  const Probe *probes;
  size_t count;
};

/// Null: there are none for the chip ("gfx942").
const ChipProbes *probesOf(const char *chip);

/// Work-items of a workgroup that is no product's.
inline constexpr uint32_t kProbeThreads = 64;

} // namespace fovea::qualify

#endif // FOVEA_TOOLS_AOTQUALIFY_PROBES_H

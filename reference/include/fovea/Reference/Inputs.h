//===- Inputs.h - seeded test inputs ----------------------------*- C++ -*-===//
//
// Generators of attention inputs. The same seed gives the same bits on every
// host: the random numbers and the distributions are written here, since the
// C++ library's distributions differ between implementations.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_REFERENCE_INPUTS_H
#define FOVEA_REFERENCE_INPUTS_H

#include "fovea/Reference/Attention.h"

#include <string>
#include <vector>

namespace fovea::reference {

/// What q, k and v are filled with.
///   Uniform   all in [0, 1)
///   Normal    all standard normal
///   Large     normal, q and k enlarged so that logits reach about +-1e4
///   OnesV     normal q and k, v all 1: every output is exactly 1
///   Spike     normal, and for each query head one key that dominates: k[j] is
///             8 times a row of q, at a place that moves with the head
///   Zeros     q and k 0, v normal: every output is the mean of visible values
///   Masked    normal, and keys that no query sees hold infinities and NaN, in
///             k and in v; with mask none the same as Normal
///   Leader    one key, in the middle, has a logit of 9.8 and all others 0, v
///             normal: the probabilities of 18 000 others weigh as much as the
///             leader's, and each is below 2^-14 of it
///   Huge      normal, q and k enlarged so that logits reach about +-1e12
///   (fp16:
///             +-4e8), of which fp32 holds no digit behind the point
///   Equal     q and k all 133 120 (fp16: 60 000), v normal: logits beyond
///   2^30,
///             outputs are means
///   Rising    normal, and keys grow with their number: the first 64 are as
///             they are, then 64 each are 4, 16 and 64 times as large; then
///             they begin again. Queries are 8 times as large and an eighth in
///             turn, so that half of the logits pass 2^10 with the last ones
enum class InputKind {
  Uniform,
  Normal,
  Large,
  OnesV,
  Spike,
  Zeros,
  Masked,
  Leader,
  Huge,
  Equal,
  Rising
};

/// All of them, with the names that options take.
struct InputKindRow {
  const char *name;
  InputKind kind;
};
const std::vector<InputKindRow> &inputKinds();

/// "uniform", "normal", "large", "ones-v", "spike", "zeros", "masked",
/// "leader", "huge", "equal", "rising".
const char *inputKindName(InputKind kind);
/// The kind of that name; false when there is none.
bool parseInputKind(const std::string &name, InputKind &kind);

/// splitmix64: one 64-bit state, any seed good. Source: Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  double uniform(); ///< [0, 1), 53 bits
  double normal();  ///< mean 0, standard deviation 1

private:
  uint64_t state;
};

/// Fills the problem's tensors, whose `data` must be set, row by row in the
/// order of (batch, head, sequence, dim) whatever their layout; gaps between
/// rows are not written.
void fillInputs(ForwardProblem &problem, InputKind kind, uint64_t seed);

} // namespace fovea::reference

#endif // FOVEA_REFERENCE_INPUTS_H

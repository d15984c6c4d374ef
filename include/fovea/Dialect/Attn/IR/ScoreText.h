//===- ScoreText.h - the name of a score program ----------------*- C++ -*-===//
//
// Packages and their users name a score program by the digest of its canonical
// text (docs/ScorePrograms.md). Spellings that are the same arithmetic have one
// text.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_DIALECT_ATTN_IR_SCORETEXT_H
#define FOVEA_DIALECT_ATTN_IR_SCORETEXT_H

#include "mlir/IR/Region.h"

#include <cstdint>
#include <string>

namespace fovea::attn {

struct ScoreText {
  /// Lines, the first with the version of this form; none ends the text.
  std::string text;
  /// The first 16 hexadecimal digits of its SHA-256: ProblemKey::score.
  uint64_t digest = 0;
};

/// Of a program that its op's verifier accepts; it may not be empty.
/// Derivatives that it yields count where they are not what the rules of
/// derivatives come to.
ScoreText canonicalScore(mlir::Region &program);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_SCORETEXT_H

//===- SourceCheck.h - text that MLIR's parser does not survive -*- C++ -*-===//
//
// MLIR's parser follows brackets by recursion and believes any extent, so a
// text can end the process: nesting fills the stack, the operands of an op on a
// huge vector the memory. Every tool passes what it reads through here first.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PIPELINES_SOURCECHECK_H
#define FOVEA_PIPELINES_SOURCECHECK_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace fovea {

/// Levels of brackets that a text may have. Passes and printers recurse too, so
/// it is far below what fills the stack of the parser alone, some 3000.
inline constexpr unsigned kMaxNesting = 256;

/// Elements that a vector or a tensor may have, beside dynamic extents. Tiles
/// have some hundred thousand.
inline constexpr uint64_t kMaxElements = 1 << 24;

/// Fails, with the place in front, if a text nests brackets or minus signs
/// deeper, or names a larger vector or tensor. Bytecode is not looked at.
/// \param splitMarker  where it stands a text of its own begins; empty: nowhere
llvm::Error checkSource(llvm::MemoryBufferRef source,
                        llvm::StringRef splitMarker = "");

} // namespace fovea

#endif // FOVEA_PIPELINES_SOURCECHECK_H

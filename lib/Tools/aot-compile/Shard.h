//===- Shard.h - a library in parts, for several machines -------*- C++ -*-===//
//
// Which kernels of a plan a machine compiles, so that the packages of all of them
// are merged to that of one machine (docs/KernelLibraries.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_SHARD_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_SHARD_H

#include "Request.h"
#include "llvm/Support/Error.h"

namespace fovea::tools {

/// Reads "2/8". Fails with what is wrong with it.
llvm::Expected<Shard> parseShard(llvm::StringRef text);

/// Keeps the part of the planned jobs, and of the tuning rows, that is the
/// request's shard, and the names of the whole. All schedules of a problem stay
/// together, and the parts cost about as much by Cost.h: each machine comes to the
/// same division. Fails where there are more shards than problems.
llvm::Error takeShard(Request &request);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_SHARD_H

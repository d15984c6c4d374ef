//===- Children.h - work in processes of its own ----------------*- C++ -*-===//
//
// Each piece of work runs in a child of this process: predictions want the same
// addresses each time and share what they fill memory with, so they do not go
// beside each other in one process, and a kernel that brings the compiler or a
// HIP library down ends its child alone.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_SUPPORT_CHILDREN_H
#define FOVEA_TOOLS_SUPPORT_CHILDREN_H

#include <functional>
#include <string>
#include <vector>

namespace fovea::tool {

/// What a child said, or how it ended.
struct ChildResult {
  std::string output;
  std::string failure; ///< not empty: it ended before it had said all
};

/// Runs each function in a child, so many at a time, in their order. `done` is
/// called here with the place and what the child's function returned. No more
/// are begun once `stops` says so; where `kills` does, those that run are ended
/// too. This process must have one thread.
void runChildren(const std::vector<std::function<std::string()>> &work,
                 unsigned atATime,
                 const std::function<void(size_t, ChildResult)> &done,
                 const std::function<bool()> &stops,
                 const std::function<bool()> &kills);

} // namespace fovea::tool

#endif // FOVEA_TOOLS_SUPPORT_CHILDREN_H

//===- BackendMessages.h - what LLVM's backend says -------------*- C++ -*-===//
//
// Errors that the backend reports to its context, such as too much LDS, would
// by default be printed and end the process. Here they become values.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TARGET_HSACO_BACKENDMESSAGES_H
#define FOVEA_TARGET_HSACO_BACKENDMESSAGES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class DiagnosticInfo;
class LLVMContext;
} // namespace llvm

namespace fovea::hsaco {

/// Collects what is reported to a context, from its construction on. Outlives
/// all that is compiled in the context.
class BackendMessages {
public:
  explicit BackendMessages(llvm::LLVMContext &context);
  BackendMessages(const BackendMessages &) = delete;
  BackendMessages &operator=(const BackendMessages &) = delete;

  /// `error`, or the errors reported so far as one.
  llvm::Error check(llvm::Error error) const;

  /// Warnings but those of missesOccupancy().
  llvm::ArrayRef<std::string> warnings() const { return allWarnings; }

  /// Whether fewer waves of the kernel fit a SIMD than its waves_per_simd asks
  /// for.
  bool missesOccupancy(llvm::StringRef kernel) const {
    return missed.contains(kernel);
  }

private:
  void add(const llvm::DiagnosticInfo &info);

  llvm::SmallVector<std::string, 0> allErrors, allWarnings;
  llvm::StringSet<> missed;
};

} // namespace fovea::hsaco

#endif // FOVEA_TARGET_HSACO_BACKENDMESSAGES_H

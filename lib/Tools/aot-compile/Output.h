//===- Output.h - where kernels go ------------------------------*- C++ -*-===//
//
// A file, a folder of files, or a package a chip. Everything appears whole or
// not at all: files are renamed into place, packages are written in
// transactions, so a killed run leaves nothing half done.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_OUTPUT_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_OUTPUT_H

#include "KernelCompiler.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace fovea::tools {

class Output {
public:
  virtual ~Output() = default;

  /// Whether the job's kernel is there already, from the same build; `kernel`
  /// then takes the figures that are known of it, and the job its schedule.
  virtual llvm::Expected<bool> isCurrent(Job &job, CompiledKernel &kernel) {
    return false;
  }
  /// Stores one kernel. Called from several threads.
  virtual llvm::Error store(const Job &job, const CompiledKernel &kernel) = 0;
  /// After the last kernel; `all`: none failed. \return what to tell the user,
  /// or "".
  virtual llvm::Expected<std::string> finish(bool all) { return std::string(); }
};

/// The output of a request. Fails if it cannot be written; nothing is compiled
/// then.
llvm::Expected<std::unique_ptr<Output>> makeOutput(const Request &request);

/// As makeOutput, for Emit::Package.
llvm::Expected<std::unique_ptr<Output>>
makePackageOutput(const Request &request);

/// Writes a file whole or not at all; "-" is standard output.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef content);

/// Fails if `path` can not become a file: its folder is missing or may not be
/// written, or it is a folder itself.
llvm::Error checkWritable(llvm::StringRef path);

/// Makes a folder and those above it; fails if it can't be written.
llvm::Error makeFolder(llvm::StringRef path);

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_OUTPUT_H

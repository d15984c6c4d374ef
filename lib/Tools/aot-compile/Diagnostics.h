//===- Diagnostics.h - what MLIR and LLVM say of one kernel -----*- C++ -*-===//
//
// Kernels are compiled in parallel, so what is said of one is collected and
// shown in one piece.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_DIAGNOSTICS_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_DIAGNOSTICS_H

#include "Request.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace fovea::tools {

/// Takes all diagnostics of a context as long as it lives.
class DiagnosticCollector {
public:
  /// \param name   stands where there is no location
  /// \param input  the file that locations are in, or null
  DiagnosticCollector(mlir::MLIRContext &context, llvm::StringRef name,
                      const InputFile *input);

  /// What was said so far, as an error.
  llvm::Error takeError();
  /// What was said so far: remarks and warnings, if nothing failed.
  std::string takeText();

private:
  std::string text;
  llvm::raw_string_ostream os{text};
  llvm::SourceMgr sources;
  std::optional<mlir::SourceMgrDiagnosticHandler> located;
  std::optional<mlir::ScopedDiagnosticHandler> plain;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_DIAGNOSTICS_H

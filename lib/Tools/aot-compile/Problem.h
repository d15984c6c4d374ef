//===- Problem.h - attention problems as IR ---------------------*- C++ -*-===//
//
// Where a compilation starts: the attention op built in memory from a problem
// key, or taken from a function of an input file.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_PROBLEM_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_PROBLEM_H

#include "Axes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace fovea::tools {

/// A module with one function, named job.symbol, that holds the job's problem.
/// With an input file it is that file's function. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp>
makeProblem(mlir::MLIRContext &context, const Job &job,
            const std::optional<InputFile> &input);

/// What a package says of a program.
struct NamedScore {
  uint64_t digest = 0;
  ScoreRecord record;
  std::vector<spec::CaptureSpec> captures;
  uint8_t gradients = 0; ///< of them, as in a key
  uint8_t stored = 0;    ///< of these, likewise
};
/// Of a choice, for problems of a type; fails where a verifier refuses it.
/// \param gradients  that kernels are to give; empty: none
/// \param stored     of captures whose gradients they store, likewise
llvm::Expected<NamedScore> nameScore(const ScoreChoice &choice, DataType dtype,
                                     const Item &gradients, const Item &stored,
                                     Complaints &complaints);

/// One job for each function of the file. Targets are those named, or, if there
/// are none, each function's own attn.target.
llvm::Expected<std::vector<Job>>
readProblems(const InputFile &input,
             llvm::ArrayRef<const target::TargetInfo *> targets,
             const ScheduleOverrides &overrides);

/// The dialects that a compilation needs; made once.
const mlir::DialectRegistry &compilerDialects();

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_PROBLEM_H

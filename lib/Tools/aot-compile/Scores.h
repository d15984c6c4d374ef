//===- Scores.h - score programs by name ------------------------*- C++ -*-===//
//
// Programs are functions of MLIR text, those of kernels/scores.mlir or of a
// file of the user's; one that kernels are asked to have is several of them,
// each computing on with what the one before it gives (docs/ScorePrograms.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_SCORES_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_SCORES_H

#include "Axes.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace fovea::tools {

/// What kernels are asked for.
struct ScoreChoice {
  struct Function {
    std::shared_ptr<const InputFile> file;
    std::string name;
  };
  std::string name; ///< "softcap,alibi"
  std::vector<Function> functions;
  /// Of what all of them capture, in their order; empty: it has none.
  std::vector<std::string> captureNames;
};

/// What calls give to a program. Dimensions have no index, and the last is a
/// unit where its stride is 1 and several elements may be read at once.
struct GivenCaptures {
  std::vector<spec::CaptureSpec> captures;
  DataType dtype; ///< of the problem
};

/// Finds the programs of a list, "softcap,alibi", in the library and a file of
/// one's own; of an empty list the file's only one. Null after complaints.
/// \param where  of the list, for messages
/// \param notes  takes a line where the order is not the usual one
/// \param given  what is captured, if that is known
std::shared_ptr<const ScoreChoice>
chooseScores(llvm::StringRef list, std::shared_ptr<const InputFile> own,
             llvm::StringRef where, Complaints &complaints, std::string &notes,
             const GivenCaptures *given = nullptr);

/// The captures that a list asks for the gradients of, "bias,slopes", "all" or
/// "none", by their names or numbers, as a set. None after complaints.
/// \param where  of the list, for messages
std::optional<uint8_t> chooseGradients(
    llvm::StringRef list, llvm::StringRef where, const ScoreChoice &choice,
    const std::vector<spec::CaptureSpec> &captures, Complaints &complaints);

/// The library, for people.
std::string listScores();

/// A choice in a context, for a problem's type.
class LoadedScores {
public:
  LoadedScores(mlir::MLIRContext &context, const ScoreChoice &choice,
               DataType dtype);
  /// Types of what all of them capture, in their order.
  llvm::ArrayRef<mlir::Type> captures() const { return types; }
  /// Fills an op's empty region.
  void fill(mlir::Region &program) const;

private:
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  llvm::SmallVector<mlir::Operation *> functions;
  llvm::SmallVector<mlir::Type> types;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_SCORES_H

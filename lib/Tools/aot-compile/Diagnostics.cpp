//===- Diagnostics.cpp - what MLIR and LLVM say of one kernel -------------===//

#include "Diagnostics.h"

using namespace fovea::tools;

static llvm::StringLiteral severityName(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Note:
    return "note";
  case mlir::DiagnosticSeverity::Warning:
    return "warning";
  case mlir::DiagnosticSeverity::Error:
    return "error";
  case mlir::DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("all severities are listed");
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext &context,
                                         llvm::StringRef name,
                                         const InputFile *input) {
  if (input) {
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer(input->text, input->name), {});
    located.emplace(sources, &context, os);
    return;
  }
  plain.emplace(&context, [this, name = name.str()](mlir::Diagnostic &said) {
    // Whoever shows an error says that it is one.
    os << name << ": ";
    if (said.getSeverity() != mlir::DiagnosticSeverity::Error)
      os << severityName(said.getSeverity()) << ": ";
    os << said << "\n";
    for (mlir::Diagnostic &note : said.getNotes())
      os << name << ": note: " << note << "\n";
    return mlir::success();
  });
}

llvm::Error DiagnosticCollector::takeError() {
  std::string said = takeText();
  return llvm::createStringError(said.empty() ? "failed without a message"
                                              : llvm::StringRef(said).rtrim());
}

std::string DiagnosticCollector::takeText() {
  std::string said = std::move(text);
  text.clear();
  return said;
}

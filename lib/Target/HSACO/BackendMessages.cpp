//===- BackendMessages.cpp ------------------------------------------------===//

#include "fovea/Target/HSACO/BackendMessages.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"

using namespace fovea::hsaco;

BackendMessages::BackendMessages(llvm::LLVMContext &context) {
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *into) {
        static_cast<BackendMessages *>(into)->add(*info);
      },
      this);
}

void BackendMessages::add(const llvm::DiagnosticInfo &info) {
  const llvm::DiagnosticSeverity severity = info.getSeverity();
  if (severity == llvm::DS_Remark || severity == llvm::DS_Note)
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DiagnosticPrinterRawOStream printer(os);
  info.print(printer);
  // It speaks of attributes and of no place; ours comes from the schedule.
  if (info.getKind() == llvm::DK_OptimizationFailure &&
      llvm::StringRef(text).contains("occupancy")) {
    missed.insert(llvm::cast<llvm::DiagnosticInfoOptimizationBase>(info)
                      .getFunction()
                      .getName());
    return;
  }
  (severity == llvm::DS_Error ? allErrors : allWarnings)
      .push_back(llvm::StringRef(text).rtrim().str());
}

llvm::Error BackendMessages::check(llvm::Error error) const {
  if (error || allErrors.empty())
    return error;
  std::string text = "LLVM: " + llvm::join(allErrors, "; ");
  // No instruction takes a scalar from lanes, unless they are known to agree.
  if (llvm::StringRef(text).contains("illegal VGPR to SGPR copy"))
    text += "; inline assembly or a call takes as a scalar what vector "
            "instructions compute: compute it by what scalar ones can (a "
            "saturating difference is none), or read its first lane";
  return llvm::createStringError(text);
}

//===- FuzzMlir.cpp - any text as attention IR ----------------------------===//
//
// What is parsed and verified is printed and read back the same, and goes
// through the stages that it can; what is refused is refused with a message.
// The text of a first line "// gfx950" names the chip.
//
// MLIR itself is not instrumented: its parser is driven, not watched.
//
//===----------------------------------------------------------------------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Pipelines/SourceCheck.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <random>
#include <string_view>

using namespace mlir;
using namespace fovea;

// MLIR's allocators do not tell AddressSanitizer what they hand out, and those
// that are inlined here would.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

static const DialectRegistry &dialects() {
  static const DialectRegistry *registry = [] {
    auto *made = new DialectRegistry;
    made->insert<attn::AttnDialect, amdgpu::AMDGPUDialect, arith::ArithDialect,
                 func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                 math::MathDialect, memref::MemRefDialect, ROCDL::ROCDLDialect,
                 scf::SCFDialect, tensor::TensorDialect,
                 vector::VectorDialect>();
    return made;
  }();
  return *registry;
}

/// The chip that the text names, or the default.
static std::string chipOf(StringRef text) {
  StringRef first = text.split('\n').first;
  if (first.consume_front("// ") && target::lookupTarget(first))
    return first.str();
  return target::kDefaultTarget.str();
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/// The numbers and words of a text.
static std::vector<std::string_view> tokensOf(std::string_view text) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  std::vector<std::string_view> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isWord(text[end]))
      ++end;
    if (end != at)
      tokens.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return tokens;
}

/// Bytes alone seldom make another text that parses: mostly a token takes the
/// place of another, or a line is left out or repeated.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  static constexpr std::string_view kNumbers[] = {
      "0",  "1",  "2",   "3",   "7",    "8",     "16",         "31",
      "32", "64", "255", "256", "4096", "65536", "2147483647", "4294967296"};
  std::minstd_rand random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  const std::vector<std::string_view> tokens = tokensOf(text);
  const unsigned kind = random() % 8;
  if (kind == 0 || tokens.empty())
    return LLVMFuzzerMutate(data, size, most);
  std::string changed;
  if (kind == 1) {
    const size_t begin = text.rfind('\n', random() % size) + 1;
    const size_t length =
        std::min(text.find('\n', begin), size - 1) + 1 - begin;
    changed = text;
    if (random() % 2)
      changed.erase(begin, length);
    else
      changed.insert(begin, text.substr(begin, length));
  } else {
    const std::string_view old = tokens[random() % tokens.size()];
    const bool isNumber = llvm::isDigit(old[0]);
    std::string_view by = tokens[random() % tokens.size()];
    if (isNumber && random() % 2)
      by = kNumbers[random() % std::size(kNumbers)];
    const size_t at = size_t(old.data() - text.data());
    changed =
        text.substr(0, at) + std::string(by) + text.substr(at + old.size());
  }
  if (changed.size() > most)
    return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  if (llvm::Error bad = checkSource({text, "fuzz"})) {
    if (!StringRef(llvm::toString(std::move(bad))).contains(": error: "))
      __builtin_trap();
    return 0;
  }
  MLIRContext context(dialects(), MLIRContext::Threading::DISABLED);
  size_t errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &said) {
    errors += said.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  const ParserConfig config(&context);
  // The text, and what was parsed: both are read and verified.
  auto parse = [&](StringRef source) {
    errors = 0;
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(source, config, "fuzz");
    if (!module && errors == 0)
      __builtin_trap();
    return module;
  };
  auto roundTrip = [&](ModuleOp module) {
    const std::string once = print(module);
    OwningOpRef<ModuleOp> again = parse(once);
    if (!again || print(*again) != once)
      __builtin_trap();
  };
  OwningOpRef<ModuleOp> module = parse(text);
  if (!module)
    return 0;
  roundTrip(*module);
  ScheduleOptions options;
  options.chip = chipOf(text);
  for (Stage stage : {Stage::Scheduled, Stage::Tiles, Stage::Layouts,
                      Stage::Lanes, Stage::MatrixCore}) {
    PassManager manager(&context);
    populateStage(manager, stage, options);
    errors = 0;
    if (failed(manager.run(*module))) {
      if (errors == 0)
        __builtin_trap();
      return 0;
    }
    if (stage <= Stage::Layouts)
      roundTrip(*module);
  }
  return 0;
}

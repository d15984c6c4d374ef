//===- Scores.cpp - score programs by name --------------------------------===//

#include "Scores.h"
#include "Diagnostics.h"
#include "Problem.h"
#include "ScoreLibrary.h.inc"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tools;

/// The usual order of composition.
static constexpr llvm::StringLiteral kKinds[] = {"cap", "bias", "other",
                                                 "mask"};

static std::shared_ptr<const InputFile> library() {
  static const auto file =
      std::make_shared<const InputFile>(InputFile{"scores.mlir", kLibrary});
  return file;
}

static OwningOpRef<ModuleOp> parse(MLIRContext &context,
                                   const InputFile &file) {
  return parseSourceString<ModuleOp>(file.text, ParserConfig(&context),
                                     file.name);
}

/// The place in the usual order; none without `attn.kind`.
static std::optional<size_t> rankOf(func::FuncOp function) {
  auto kind = function->getAttrOfType<StringAttr>(attn::kScoreKindAttrName);
  const auto *row = kind ? llvm::find(kKinds, kind.getValue()) : nullptr;
  if (!kind || row == std::end(kKinds))
    return std::nullopt;
  return size_t(row - std::begin(kKinds));
}

/// "cap: f32".
static std::string parameterOf(func::FuncOp function, unsigned number) {
  auto name =
      function.getArgAttrOfType<StringAttr>(number, attn::kCaptureNameAttrName);
  auto element = function.getArgAttrOfType<StringAttr>(
      number, attn::kCaptureElementAttrName);
  Type type = function.getArgumentTypes()[number];
  std::string text = name ? name.str() + ": " : "";
  auto tensor = dyn_cast<MemRefType>(type);
  if (!tensor)
    return text + debugString(type);
  text += element ? std::string("the problem's type")
                  : debugString(tensor.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(tensor.getStridesAndOffset(strides, offset)))
    return text + " " + debugString(type);
  return text + "[" +
         llvm::join(llvm::map_range(strides,
                                    [](int64_t stride) {
                                      return ShapedType::isDynamic(stride)
                                                 ? std::string("?")
                                                 : std::to_string(stride);
                                    }),
                    ", ") +
         "]";
}

std::string fovea::tools::listScores() {
  MLIRContext context(compilerDialects(), MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parse(context, *library());
  std::string text;
  for (auto function : module->getOps<func::FuncOp>()) {
    SmallVector<std::string> parameters;
    for (unsigned i = attn::kScoreArguments; i < function.getNumArguments();
         ++i)
      parameters.push_back(parameterOf(function, i));
    text +=
        function.getName().str() + "(" + llvm::join(parameters, ", ") + ")\n";
    if (auto summary =
            function->getAttrOfType<StringAttr>(attn::kScoreSummaryAttrName))
      text += "    " + summary.str() + "\n";
  }
  return text;
}

/// Why a function is no program; empty: it is one. What is captured, and ops
/// one by one, are for the verifier of the op that gets it.
/// \param at  becomes the place of an op that is at fault
static std::string checkProgram(func::FuncOp function, Location &at) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return "is not one block, and a program is a straight line";
  TypeRange arguments = function.getArgumentTypes();
  bool fits = arguments.size() >= attn::kScoreArguments;
  for (auto [number, type] :
       llvm::enumerate(arguments.take_front(attn::kScoreArguments)))
    fits &= number == 0 ? type.isF32() : type.isInteger(32);
  if (!fits)
    return "takes the score (f32) and batch, head, query, key, seqlen_q and "
           "seqlen_k (i32), then what is captured, found (" +
           llvm::join(
               llvm::map_range(arguments,
                               [](Type type) { return debugString(type); }),
               ", ") +
           ")";
  for (Type type : arguments.drop_front(attn::kScoreArguments))
    if (!type.isF32() && !type.isInteger(32) && !isa<MemRefType>(type))
      return "captures " + debugString(type) +
             "; it may capture f32, i32 and memrefs";
  for (unsigned i = attn::kScoreArguments; i < arguments.size(); ++i)
    if (Attribute element =
            function.getArgAttr(i, attn::kCaptureElementAttrName);
        element &&
        (!isa<MemRefType>(arguments[i]) ||
         element != StringAttr::get(element.getContext(), "problem")))
      return "has attn.element = " + debugString(element) + " on " +
             debugString(arguments[i]) + "; it is \"problem\", on a memref";
  if (Attribute kind = function->getAttr(attn::kScoreKindAttrName);
      kind && !rankOf(function))
    return "has attn.kind = " + debugString(kind) +
           "; known: " + llvm::join(llvm::ArrayRef(kKinds), ", ");
  TypeRange results = function.getResultTypes();
  const bool isMask = results.size() == 1 && results[0].isInteger(1),
             hasScore = !results.empty() && results[0].isF32(),
             hasMask = results.size() == 2 && results[1].isInteger(1);
  if (!isMask && !(hasScore && (results.size() == 1 || hasMask)))
    return "must give the score (f32), whether it is seen (i1), or both, found "
           "(" +
           llvm::join(llvm::map_range(
                          results, [](Type type) { return debugString(type); }),
                      ", ") +
           ")";
  for (mlir::Operation &op : function.getBody().front().without_terminator())
    if (!attn::lookupScoreOp(&op)) {
      at = op.getLoc();
      return "has " + op.getName().getStringRef().str() +
             ", which no program may hold; docs/ScorePrograms.md lists those "
             "that may be";
    }
  return "";
}

/// " (scores.mlir:3:5)", where it is known.
static std::string placeOf(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return "";
  return " (" + place.getFilename().str() + ":" +
         std::to_string(place.getLine()) + ":" +
         std::to_string(place.getColumn()) + ")";
}

/// Whether what is given is of the types of what a function captures.
static bool fits(func::FuncOp function, llvm::ArrayRef<spec::CaptureSpec> given,
                 DataType dtype) {
  TypeRange types =
      function.getArgumentTypes().drop_front(attn::kScoreArguments);
  if (given.size() < types.size())
    return false;
  for (auto [number, type] : llvm::enumerate(types)) {
    const spec::CaptureSpec &capture = given[number];
    const llvm::StringRef name = spec::infoOf(capture.element).name;
    auto tensor = dyn_cast<MemRefType>(type);
    if (!tensor) {
      if (!capture.isScalar() || debugString(type) != name)
        return false;
      continue;
    }
    const bool isProblems =
        bool(function.getArgAttr(attn::kScoreArguments + unsigned(number),
                                 attn::kCaptureElementAttrName));
    const std::string wanted = isProblems
                                   ? std::string(dataTypeInfo(dtype).ir)
                                   : debugString(tensor.getElementType());
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (capture.isScalar() || wanted != name ||
        int64_t(capture.dims.size()) != tensor.getRank() ||
        failed(tensor.getStridesAndOffset(strides, offset)) ||
        (strides.back() == 1 && !capture.dims.back().isUnit))
      return false;
  }
  return true;
}

/// "bias: bf16[?, ?, ?, 1]", what a function captures.
static std::string parametersOf(func::FuncOp function) {
  SmallVector<std::string> parameters;
  for (unsigned i = attn::kScoreArguments; i < function.getNumArguments(); ++i)
    parameters.push_back(parameterOf(function, i));
  return parameters.empty() ? "nothing" : llvm::join(parameters, ", ");
}

std::shared_ptr<const ScoreChoice>
fovea::tools::chooseScores(llvm::StringRef list,
                           std::shared_ptr<const InputFile> own,
                           llvm::StringRef where, Complaints &complaints,
                           std::string &notes, const GivenCaptures *given) {
  MLIRContext context(compilerDialects(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  OwningOpRef<ModuleOp> known = parse(context, *library()), ownModule;
  if (own) {
    DiagnosticCollector diagnostics(context, own->name, own.get());
    ownModule = parse(context, *own);
    if (!ownModule) {
      complaints.add(where, llvm::toString(diagnostics.takeError()));
      return nullptr;
    }
  }
  auto namesOf = [](ModuleOp module) {
    SmallVector<std::string> names;
    for (auto function : module.getOps<func::FuncOp>())
      names.push_back(function.getName().str());
    return names;
  };
  SmallVector<std::string> names;
  for (llvm::StringRef name : llvm::split(list, ','))
    if (!list.empty())
      names.push_back(name.str());
  if (names.empty() && own) {
    names = namesOf(*ownModule);
    if (names.size() != 1) {
      complaints.add(where, "'" + own->name + "' has " +
                                llvm::Twine(names.size()) +
                                " functions; name programs of it with --score "
                                "or \"score\": " +
                                llvm::join(names, ", "));
      return nullptr;
    }
  }
  if (names.empty()) {
    complaints.add(where, "names no score program; --list-scores shows them");
    return nullptr;
  }
  auto choice = std::make_shared<ScoreChoice>();
  choice->name = llvm::join(names, ",");
  std::pair<size_t, std::string> last = {0, ""};
  llvm::ArrayRef<spec::CaptureSpec> left; // of what is given
  if (given)
    left = given->captures;
  bool sound = true;
  auto wrong = [&](const llvm::Twine &message) {
    complaints.add(where, message);
    sound = false;
  };
  for (const std::string &name : names) {
    auto ofOwn = ownModule ? ownModule->lookupSymbol<func::FuncOp>(name)
                           : func::FuncOp();
    auto ofLibrary = known->lookupSymbol<func::FuncOp>(name);
    if (ofOwn && ofLibrary) {
      wrong("score program '" + name + "' is in '" + own->name +
            "' and in the library; give it another name");
      continue;
    }
    func::FuncOp function = ofOwn ? ofOwn : ofLibrary;
    if (!function) {
      wrong("unknown score program '" + name + "'; known: " +
            (own ? llvm::join(namesOf(*ownModule), ", ") + " of '" + own->name +
                       "', "
                 : std::string()) +
            llvm::join(namesOf(*known), ", "));
      continue;
    }
    Location at = function.getLoc();
    if (std::string why = checkProgram(function, at); !why.empty()) {
      wrong("score program '" + name + "' " + why + (ofOwn ? placeOf(at) : ""));
      continue;
    }
    if (given) {
      // The program itself, or that of its variants that takes what is next.
      SmallVector<func::FuncOp> variants = {function};
      for (auto other : known->getOps<func::FuncOp>())
        if (auto of =
                other->getAttrOfType<StringAttr>(attn::kScoreVariantAttrName);
            ofLibrary && of && of.getValue() == name)
          variants.push_back(other);
      const auto *fitting = llvm::find_if(variants, [&](func::FuncOp variant) {
        return fits(variant, left, given->dtype);
      });
      if (fitting == variants.end()) {
        std::string takes;
        for (func::FuncOp variant : variants)
          takes += (takes.empty() ? "" : "; ") + variant.getName().str() +
                   " captures " + parametersOf(variant);
        wrong("no score program '" + name + "' takes " +
              (left.empty() ? "nothing" : spec::toString(left.vec())) +
              " from the call on: " + takes);
        return nullptr;
      }
      function = *fitting;
      left =
          left.drop_front(function.getNumArguments() - attn::kScoreArguments);
    }
    choice->functions.push_back(
        {ofOwn ? own : library(), function.getName().str()});
    for (unsigned i = attn::kScoreArguments; i < function.getNumArguments();
         ++i) {
      auto capture =
          function.getArgAttrOfType<StringAttr>(i, attn::kCaptureNameAttrName);
      choice->captureNames.push_back(capture ? capture.str() : "");
    }
    if (std::optional<size_t> rank = rankOf(function)) {
      if (*rank < last.first)
        notes += "aot-compile: note: '" + choice->name + "' computes '" + name +
                 "' after '" + last.second +
                 "', where caps usually come first, then biases, then masks\n";
      else
        last = {*rank, name};
    }
  }
  if (sound && !left.empty())
    wrong("'" + choice->name + "' captures " +
          llvm::Twine(given->captures.size() - left.size()) +
          " things, and the call gives " + llvm::Twine(given->captures.size()) +
          "; beyond its own " + spec::toString(left.vec()));
  return sound ? choice : nullptr;
}

std::optional<uint8_t> fovea::tools::chooseGradients(
    llvm::StringRef list, llvm::StringRef where, const ScoreChoice &choice,
    const std::vector<spec::CaptureSpec> &captures, Complaints &complaints) {
  const size_t said = complaints.str().size();
  auto wrong = [&](const llvm::Twine &message) {
    complaints.add(where, message);
  };
  /// "capture 1, 'slopes', f32[batch:?, head:?]".
  auto describe = [&](size_t number) {
    std::string text = std::to_string(number);
    if (!choice.captureNames[number].empty())
      text += ", '" + choice.captureNames[number] + "'";
    return text + ", " + captures[number].str();
  };
  uint8_t chosen = 0;
  if (list == "none")
    return chosen;
  if (list == "all") {
    for (auto [number, capture] : llvm::enumerate(captures))
      if (capture.isFloat())
        chosen |= uint8_t(1 << number);
    if (chosen == 0)
      wrong("'" + choice.name +
            "' captures nothing of f32, fp16 or bf16, which alone has a "
            "gradient");
    return chosen ? std::optional<uint8_t>(chosen) : std::nullopt;
  }
  for (llvm::StringRef name : llvm::split(list, ',')) {
    SmallVector<size_t> found;
    size_t number = 0;
    if (!name.getAsInteger(10, number) && number < captures.size())
      found.push_back(number);
    else if (!name.empty())
      for (auto [i, own] : llvm::enumerate(choice.captureNames))
        if (name == own)
          found.push_back(i);
    if (found.empty()) {
      std::string known;
      for (size_t i = 0; i != captures.size(); ++i)
        known += (i ? "; " : "") + describe(i);
      wrong("'" + choice.name + "' captures no '" + name +
            "'; known: " + (known.empty() ? "none" : known + "; all; none"));
    } else if (found.size() > 1) {
      wrong("'" + name + "' are several that '" + choice.name +
            "' captures; give the number of one: " + describe(found[0]) + "; " +
            describe(found[1]));
    } else if (!captures[found[0]].isFloat()) {
      wrong("capture " + describe(found[0]) +
            ", has no gradient; f32, fp16 and bf16 have one");
    } else if (chosen >> found[0] & 1) {
      wrong("capture " + describe(found[0]) + ", is in the list twice");
    } else {
      chosen |= uint8_t(1 << found[0]);
    }
  }
  return said == complaints.str().size() ? std::optional<uint8_t>(chosen)
                                         : std::nullopt;
}

LoadedScores::LoadedScores(MLIRContext &context, const ScoreChoice &choice,
                           DataType dtype) {
  llvm::DenseMap<const InputFile *, ModuleOp> parsed;
  Type element = parseType(dataTypeInfo(dtype).ir, &context);
  for (const ScoreChoice::Function &wanted : choice.functions) {
    ModuleOp &module = parsed[wanted.file.get()];
    if (!module) {
      modules.push_back(parse(context, *wanted.file));
      module = *modules.back();
    }
    auto function = module.lookupSymbol<func::FuncOp>(wanted.name);
    functions.push_back(function);
    for (unsigned i = attn::kScoreArguments; i < function.getNumArguments();
         ++i) {
      Type type = function.getArgumentTypes()[i];
      if (auto tensor = dyn_cast<MemRefType>(type);
          tensor && function.getArgAttr(i, attn::kCaptureElementAttrName))
        type = MemRefType::Builder(tensor).setElementType(element);
      types.push_back(type);
    }
  }
}

void LoadedScores::fill(Region &program) const {
  Location loc = program.getLoc();
  OpBuilder b(program.getContext());
  Block *block = b.createBlock(&program);
  block->addArgument(b.getF32Type(), loc);
  for (unsigned i = 1; i != attn::kScoreArguments; ++i)
    block->addArgument(b.getI32Type(), loc);
  for (Type type : types)
    block->addArgument(type, loc);
  Value score = block->getArgument(0), seen;
  unsigned next = attn::kScoreArguments;
  for (mlir::Operation *op : functions) {
    auto function = cast<func::FuncOp>(op);
    IRMapping map;
    for (BlockArgument argument : function.getArguments()) {
      const unsigned number = argument.getArgNumber();
      map.map(argument, number == 0 ? score
                        : number < attn::kScoreArguments
                            ? Value(block->getArgument(number))
                            : Value(block->getArgument(next++)));
    }
    Block &body = function.getBody().front();
    for (mlir::Operation &inner : body.without_terminator())
      b.clone(inner, map);
    for (Value result : body.getTerminator()->getOperands()) {
      Value made = map.lookup(result);
      if (made.getType().isF32())
        score = made;
      else
        seen =
            seen ? arith::AndIOp::create(b, loc, seen, made).getResult() : made;
    }
  }
  SmallVector<Value> yielded = {score};
  if (seen)
    yielded.push_back(seen);
  attn::YieldOp::create(b, loc, yielded);
}

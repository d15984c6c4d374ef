//===- Problem.cpp - attention problems as IR -----------------------------===//

#include "Problem.h"
#include "Diagnostics.h"
#include "Groups.h"
#include "Scores.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Dialect/Attn/IR/ScoreProgram.h"
#include "fovea/Dialect/Attn/IR/ScoreText.h"
#include "fovea/Pipelines/SourceCheck.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::tools;

const DialectRegistry &fovea::tools::compilerDialects() {
  static const DialectRegistry *registry = [] {
    auto *dialects = new DialectRegistry;
    registerFoveaDialects(*dialects);
    return dialects;
  }();
  return *registry;
}

/// The parts of what a problem's queries see; null: all keys.
static ArrayAttr visibilityOf(MLIRContext &context, const ProblemKey &problem) {
  SmallVector<Attribute> parts;
  for (const GroupPart &group : groupParts())
    if (problem.groups[spec::findGroup(group.name)])
      parts.push_back(group.part(context));
  if (problem.mask == MaskKind::CausalTopLeft)
    parts.push_back(attn::CausalAttr::get(&context, attn::Alignment::TopLeft));
  if (problem.mask == MaskKind::CausalBottomRight)
    parts.push_back(
        attn::CausalAttr::get(&context, attn::Alignment::BottomRight));
  return parts.empty() ? ArrayAttr() : ArrayAttr::get(&context, parts);
}

/// All extents and strides dynamic but those of the head dimension. The op's
/// operands are the function's arguments, in the op's order.
static OwningOpRef<ModuleOp> buildProblem(MLIRContext &context,
                                          const Job &job) {
  context.loadDialect<attn::AttnDialect, func::FuncDialect,
                      memref::MemRefDialect>();
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  ImplicitLocOpBuilder b(loc, module->getBodyRegion());
  constexpr int64_t dynamic = ShapedType::kDynamic;
  const Type element = parseType(dataTypeInfo(job.problem.dtype).ir, &context);
  auto rows = [&](int64_t columns) {
    return MemRefType::get(
        {dynamic, dynamic, dynamic, columns}, element,
        StridedLayoutAttr::get(&context, 0, {dynamic, dynamic, dynamic, 1}));
  };
  auto lse = MemRefType::get(
      {dynamic, dynamic, dynamic}, b.getF32Type(),
      StridedLayoutAttr::get(&context, 0, {dynamic, dynamic, 1}));
  auto heads = MemRefType::get({dynamic}, b.getF32Type(),
                               StridedLayoutAttr::get(&context, 0, {dynamic}));
  auto workspace = MemRefType::get({dynamic}, b.getI8Type());
  auto listType = [&](int64_t rank) {
    SmallVector<int64_t> shape(rank, dynamic), strides = shape;
    strides.back() = 1;
    return MemRefType::get(shape, b.getI32Type(),
                           StridedLayoutAttr::get(&context, 0, strides));
  };
  auto typeOf = [&](const spec::TensorSpec &info) -> Type {
    switch (info.shape) {
    case spec::Shape::Rows:
      return rows(info.columns == spec::Extent::HeadDimV
                      ? job.problem.dimOfV()
                      : job.problem.headDim);
    case spec::Shape::Vector:
      return lse;
    case spec::Shape::Heads:
      return heads;
    case spec::Shape::Bytes:
      return workspace;
    case spec::Shape::BlockCounts:
      return listType(3);
    case spec::Shape::BlockLists:
      return listType(4);
    case spec::Shape::Sequences:
      return listType(1);
    case spec::Shape::Number:
      return MemRefType::get({1}, b.getI64Type());
    case spec::Shape::Places:
      return rows(dynamic);
    }
    llvm_unreachable("all shapes are listed");
  };
  const spec::GroupSpec &base = spec::specOf(job.problem.op).base;
  SmallVector<Type> types = llvm::map_to_vector(base.tensors, typeOf);
  if (spec::specOf(job.problem.op).isAttention)
    types.push_back(b.getF32Type()); // the scale
  const size_t firstBound = types.size();
  ArrayAttr visibility = visibilityOf(context, job.problem);
  if (visibility)
    for (Attribute part : visibility)
      types.append(
          attn::boundsOf(cast<attn::VisibilityAttrInterface>(part).getGroup())
              .size(),
          b.getI32Type());
  const size_t bounds = types.size() - firstBound;
  llvm::StringMap<unsigned> ofGroups; // numbers of their tensors
  // Of groups whose operands are together: where they are.
  llvm::StringMap<std::pair<size_t, size_t>> together;
  for (const spec::GroupSpec *group : spec::groupsOf(job.problem)) {
    if (group == &base)
      continue;
    for (const spec::TensorSpec &info : group->tensors) {
      ofGroups[info.name] = types.size();
      types.push_back(typeOf(info));
    }
    // Scalars of groups that are parts of visibility are bounds.
    if (attn::findOperandGroup(group->name)) {
      together[group->name] = {types.size() - group->tensors.size(),
                               group->tensors.size() + group->scalars.size()};
      for (const spec::ScalarSpec &scalar : group->scalars)
        types.push_back(attn::scalarType(&context, scalar.kind));
    }
  }
  const size_t captured = types.size();
  std::optional<LoadedScores> scores;
  if (job.scores)
    llvm::append_range(
        types,
        scores.emplace(context, *job.scores, job.problem.dtype).captures());
  const size_t firstGradient = types.size();
  SmallVector<int32_t> gradients;
  for (int32_t number = 0; number != int32_t(spec::kMaxCaptures); ++number) {
    if (!(job.problem.scoreGradients >> number & 1))
      continue;
    gradients.push_back(number);
    auto capture = dyn_cast<MemRefType>(types[captured + number]);
    SmallVector<int64_t> any(capture ? capture.getRank() : 0, dynamic);
    const bool isStored = job.problem.storedGradients >> number & 1;
    types.push_back(
        capture ? MemRefType::get(
                      any, isStored ? capture.getElementType() : b.getF32Type(),
                      StridedLayoutAttr::get(&context, 0, any))
                : MemRefType::get({}, b.getF32Type()));
  }
  auto func = func::FuncOp::create(b, job.symbol, b.getFunctionType(types, {}));
  b.setInsertionPointToStart(func.addEntryBlock());
  // The op's operands are in the order of the operation's table.
  ValueRange args = func.getArguments();
  ValueRange captures = args.slice(captured, firstGradient - captured);
  auto boundsFrom = [&](size_t first) { return args.slice(first, bounds); };
  auto ofGroup = [&](StringRef name) -> Value {
    auto found = ofGroups.find(name);
    return found == ofGroups.end() ? Value() : args[found->second];
  };
  auto operandsOf = [&](StringRef name) {
    auto [first, count] = together.lookup(name);
    return args.slice(first, count);
  };
  attn::AttentionOpInterface op;
  switch (job.problem.op) {
  case fovea::OpKind::Forward:
    op = attn::ForwardOp::create(
        b, args[0], args[1], args[2], args[3], args[4], args[5], boundsFrom(6),
        ofGroup("sinks"), operandsOf("blocks"), operandsOf("varlen"),
        operandsOf("dropout"), operandsOf("head_dims"), captures, visibility,
        /*schedule=*/nullptr, /*combine=*/nullptr);
    break;
  case fovea::OpKind::Backward:
    op = attn::BackwardOp::create(
        b, args[0], args[1], args[2], args[3], args[4], args[5], args[6],
        args[7], args[8], args[9], args[10], boundsFrom(11), ofGroup("dlse"),
        ofGroup("sinks"), ofGroup("dsinks"), operandsOf("blocks"),
        operandsOf("varlen"), operandsOf("dropout"), operandsOf("head_dims"),
        captures, args.drop_front(firstGradient),
        gradients.empty() ? DenseI32ArrayAttr()
                          : b.getDenseI32ArrayAttr(gradients),
        visibility, /*schedule=*/nullptr);
    break;
  case fovea::OpKind::DropoutMask:
    op = attn::DropoutMaskOp::create(b, args[0], operandsOf("dropout"),
                                     /*schedule=*/nullptr);
    break;
  }
  if (scores)
    scores->fill(op.getScore());
  func::ReturnOp::create(b);
  return module;
}

/// The module whose functions are kernels: the one in the file that says so,
/// beside whatever calls them, or else the file's.
static ModuleOp kernelModule(ModuleOp file) {
  for (auto module : file.getOps<ModuleOp>())
    if (module->hasAttr(attn::kKernelsAttrName))
      return module;
  return file;
}

llvm::Expected<NamedScore> fovea::tools::nameScore(const ScoreChoice &choice,
                                                   DataType dtype,
                                                   const Item &gradients,
                                                   const Item &stored,
                                                   Complaints &complaints) {
  MLIRContext context(compilerDialects(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  DiagnosticCollector diagnostics(context, choice.name, nullptr);
  Job job;
  job.symbol = "program";
  job.problem.dtype = dtype;
  job.problem.headDim = kMinHeadDim;
  // No deleter: the choice is the caller's.
  job.scores = std::shared_ptr<const ScoreChoice>(&choice, [](const auto *) {});
  OwningOpRef<ModuleOp> module = buildProblem(context, job);
  if (failed(verify(*module)))
    return diagnostics.takeError();
  NamedScore named;
  module->walk([&](attn::AttentionOpInterface op) {
    attn::ScoreText text = attn::canonicalScore(op.getScore());
    named = {text.digest,
             {choice.name, std::move(text.text)},
             attn::capturesOf(op.getScore())};
  });
  for (auto [list, set] :
       {std::pair(&gradients, &named.gradients), {&stored, &named.stored}}) {
    if (list->text.empty())
      continue;
    std::optional<uint8_t> chosen = chooseGradients(
        list->text, list->where, choice, named.captures, complaints);
    if (!chosen)
      return named;
    *set = *chosen;
  }
  named.gradients |= named.stored;
  if (!named.gradients)
    return named;
  for (auto [number, capture] : llvm::enumerate(named.captures))
    if ((named.stored >> number & 1) &&
        (spec::infoOf(capture.element).bytes != 2 ||
         !capture.hasElementOfEach())) {
      complaints.add(stored.where,
                     "the gradient of capture " + llvm::Twine(number) + ", " +
                         capture.str() +
                         ", is none to be stored: it is of 16 bits, and batch, "
                         "head, query and key index it as they are; "
                         "--score-gradients adds it up in f32");
      return named;
    }
  job.problem.op = fovea::OpKind::Backward;
  job.problem.scoreGradients = named.gradients;
  job.problem.storedGradients = named.stored;
  module = buildProblem(context, job);
  if (failed(verify(*module)))
    return diagnostics.takeError();
  return named;
}

OwningOpRef<ModuleOp>
fovea::tools::makeProblem(MLIRContext &context, const Job &job,
                          const std::optional<InputFile> &input) {
  if (!input) {
    OwningOpRef<ModuleOp> module = buildProblem(context, job);
    if (failed(verify(*module)))
      return nullptr;
    return module;
  }
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      input->text, ParserConfig(&context), input->name);
  if (!module)
    return nullptr;
  if (ModuleOp kernels = kernelModule(*module); kernels != *module) {
    kernels->remove();
    module = kernels;
  }
  for (auto func : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if (func.getName() != job.symbol)
      func.erase();
  return module;
}

/// The problem of a function of an input file.
static FailureOr<attn::AttentionOpInterface> problemOf(func::FuncOp func) {
  SmallVector<attn::AttentionOpInterface> ops;
  func.walk([&](attn::AttentionOpInterface op) { ops.push_back(op); });
  if (ops.size() != 1)
    return func.emitError()
           << "function '" << func.getName() << "' holds " << ops.size()
           << " attn.forward, attn.backward and attn.dropout_mask ops; each "
              "function is a kernel "
              "and holds one";
  // The name becomes a symbol, a key and the name of a file.
  if (func.getName().find_if_not([](char c) {
        return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' || c == '-';
      }) != StringRef::npos)
    return func.emitError()
           << "function '" << func.getName()
           << "' cannot name a kernel; letters, digits, '_', '.', '$' and '-' "
              "can";
  return ops.front();
}

/// The chips to compile a function for: those asked for, or its own.
static LogicalResult
targetsOf(func::FuncOp func, ArrayRef<const target::TargetInfo *> asked,
          SmallVectorImpl<const target::TargetInfo *> &targets) {
  targets.assign(asked.begin(), asked.end());
  auto own = func->getAttrOfType<attn::TargetAttr>(attn::kTargetAttrName);
  if (!own) {
    if (asked.empty())
      return func.emitError()
             << "function '" << func.getName()
             << "' has no attn.target and no --target is given; known: "
             << target::targetNames();
    return success();
  }
  for (const target::TargetInfo *target : asked)
    if (target != &own.getInfo())
      return func.emitError()
             << "function '" << func.getName() << "' is for "
             << own.getInfo().name << " by its attn.target, but --target names "
             << target->name;
  targets.assign(1, &own.getInfo());
  return success();
}

llvm::Expected<std::vector<Job>>
fovea::tools::readProblems(const InputFile &input,
                           ArrayRef<const target::TargetInfo *> targets,
                           const ScheduleOverrides &overrides) {
  if (llvm::Error error = checkSource({input.text, input.name}))
    return error;
  MLIRContext context(compilerDialects(), MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  DiagnosticCollector diagnostics(context, input.name, &input);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      input.text, ParserConfig(&context), input.name);
  if (!module)
    return diagnostics.takeError();
  std::vector<Job> jobs;
  for (mlir::Operation &op : *kernelModule(*module).getBody()) {
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func) {
      op.emitError()
          << "aot-compile takes functions with attn.forward, attn.backward "
             "or attn.dropout_mask and nothing else; aot-opt starts from any "
             "stage";
      return diagnostics.takeError();
    }
    FailureOr<attn::AttentionOpInterface> problem = problemOf(func);
    SmallVector<const target::TargetInfo *> chips;
    if (failed(problem) || failed(targetsOf(func, targets, chips)))
      return diagnostics.takeError();
    FailureOr<ProblemKey> key = attn::keyOf(*problem);
    if (failed(key))
      return diagnostics.takeError();
    for (const target::TargetInfo *chip : chips) {
      Job &job = jobs.emplace_back();
      job.target = chip;
      job.problem = *key;
      if (std::vector<const spec::TensorSpec *> tensors =
              attn::tensorsOf(*problem);
          !spec::isStandard(job.problem, tensors))
        job.tensors = std::move(tensors);
      if (key->score)
        job.score = {func.getName().str(),
                     attn::canonicalScore(problem->getScore()).text};
      job.captures = attn::capturesOf(problem->getScore());
      job.overrides = overrides;
      job.symbol = func.getName().str();
    }
  }
  if (jobs.empty())
    return llvm::createStringError(input.name +
                                   ": no function with attn.forward, "
                                   "attn.backward or attn.dropout_mask");
  return jobs;
}

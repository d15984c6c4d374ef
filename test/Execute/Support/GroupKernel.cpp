//===- GroupKernel.cpp - kernels with feature groups ----------------------===//

#include "GroupKernel.h"
#include "Groups.h"
#include "fovea/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fovea;
using namespace fovea::test;

std::vector<GroupKernel> fovea::test::withGroup(const char *group,
                                                ArrayRef<GroupKernel> kernels) {
  std::vector<GroupKernel> all = kernels.vec();
  for (GroupKernel &kernel : all)
    kernel.groups.push_back(group);
  return all;
}

void fovea::test::PrintTo(const GroupKernel &kernel, std::ostream *os) {
  *os << kernel.name;
}
std::string
fovea::test::nameOf(const testing::TestParamInfo<GroupKernel> &info) {
  return info.param.name;
}

static std::string typeOf(const spec::TensorSpec &tensor) {
  switch (tensor.shape) {
  case spec::Shape::Rows:
    return "!t";
  case spec::Shape::Vector:
    return "!rows";
  case spec::Shape::Heads:
    return "memref<?xf32, strided<[?]>>";
  case spec::Shape::BlockCounts:
    return "memref<?x?x?xi32, strided<[?, ?, 1]>>";
  case spec::Shape::BlockLists:
    return "memref<?x?x?x?xi32, strided<[?, ?, ?, 1]>>";
  case spec::Shape::Sequences:
    return "memref<?xi32>";
  case spec::Shape::Number:
    return "memref<1xi64>";
  case spec::Shape::Bytes:
    return "memref<?xi8>";
  case spec::Shape::Places: // of none of these operations
    break;
  }
  llvm_unreachable("all shapes are listed");
}

static const char *typeOf(spec::ArgKind kind) {
  switch (kind) {
  case spec::ArgKind::I32:
    return "i32";
  case spec::ArgKind::I64:
    return "i64";
  case spec::ArgKind::F32:
    return "f32";
  case spec::ArgKind::Pointer:
    return "!llvm.ptr<1>";
  }
  llvm_unreachable("all kinds are listed");
}

/// Under what name an op takes all that a group has; empty: each tensor under
/// its own, and no scalars.
static StringRef clauseOf(StringRef group) {
  const attn::OperandGroup *together = attn::findOperandGroup(group);
  return together ? together->clause : "";
}

/// A function that is the kernel's op.
static std::string functionOf(const GroupKernel &kernel, fovea::OpKind op) {
  std::string arguments, ofTensors, ofGroups;
  for (const spec::GroupSpec &group : spec::featureGroups()) {
    if (!kernel.has(group.name))
      continue;
    std::string names, types;
    auto add = [&](const std::string &name, const std::string &type) {
      arguments += ", %" + name + ": " + type;
      names += (names.empty() ? "%" : ", %") + name;
      types += (types.empty() ? "" : ", ") + type;
    };
    const StringRef clause = clauseOf(group.name);
    for (const spec::TensorSpec &tensor : group.tensors) {
      add(tensor.name, typeOf(tensor));
      if (clause.empty())
        ofTensors +=
            llvm::formatv("{0}(%{0} : {1}) ", tensor.name, typeOf(tensor));
    }
    if (clause.empty())
      continue;
    for (const spec::ScalarSpec &scalar : group.scalars)
      add(scalar.name, typeOf(scalar.kind));
    if (group.tensors.empty()) // of one type
      ofGroups += llvm::formatv("{0}({1}) ", clause, names);
    else
      ofGroups += llvm::formatv("{0}({1} : {2}) ", clause, names, types);
  }
  if (*kernel.captured) {
    arguments += llvm::formatv(", %captured: {0}", kernel.captured);
    ofGroups += llvm::formatv("captures(%captured : {0}) ", kernel.captured);
  }
  if (op == fovea::OpKind::Backward && *kernel.gradient) {
    arguments += llvm::formatv(", %gradient: {0}", kernel.gradient);
    ofGroups +=
        llvm::formatv("gradients(0 = %gradient : {0}) ", kernel.gradient);
  }
  const std::string head =
      llvm::formatv("!t = memref<?x?x?x{0}x{2}, strided<[?, ?, ?, 1]>>\n"
                    "!v = memref<?x?x?x{1}x{2}, strided<[?, ?, ?, 1]>>\n"
                    "!rows = memref<?x?x?xf32, strided<[?, ?, 1]>>\n"
                    "func.func @kernel(%q: !t, %k: !t, %v: !v, %out: !v, ",
                    kernel.headDim, kernel.dimOfV(), kernel.dtype);
  const std::string scalars =
      "%scale: f32, %l: i32, %r: i32, %a: i32" + arguments + ") {\n";
  const std::string operands = "scale(%scale) " + ofTensors +
                               "visible [#attn.window] (%l, %r, %a) " +
                               ofGroups + kernel.score;
  return op == fovea::OpKind::Forward
             ? head + "%lse: !rows, " + scalars +
                   "attn.forward %q, %k, %v, %out lse(%lse) " + operands +
                   ": !t, !t, !v, !v, !rows\nreturn\n}"
             : head +
                   "%dout: !v, %lse: !rows, %dq: !t, %dk: !t, %dv: !v, "
                   "%w: memref<?xi8>, " +
                   scalars +
                   "attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, "
                   "%dv workspace(%w) " +
                   operands +
                   ": !t, !t, !v, !v, !v, !rows -> !t, !t, !v, memref<?xi8>\n"
                   "return\n}";
}

reference::ElemType GroupKernelTest::type() const {
  return findDataType(kernel().dtype)->type;
}

run::ForwardCase GroupKernelTest::makeCase(int64_t batch, int64_t seqQ,
                                           int64_t seqK, Window mask) const {
  run::ForwardCase c;
  c.type = type();
  c.headDim = kernel().headDim;
  c.headDimV = kernel().headDimV;
  c.mask = mask;
  c.batch = batch;
  c.heads = 4;
  c.headsK = 2;
  c.seqQ = seqQ;
  c.seqK = seqK;
  return c;
}

void GroupKernelTest::fill(run::ForwardCase &c, const char *sequences,
                           bool isBackward, double part) {
  if (kernel().has("sinks") || kernel().has("dsinks"))
    c.groups.push_back({run::findOption("sinks"), {0.5, -1.0}});
  if (isBackward && kernel().has("dlse"))
    c.groups.push_back({run::findOption("dlse"), {0.5}});
  if (sequences)
    memory.addSequences(*session, sequences, c);
  fillScore(c);
  if (kernel().has("blocks")) {
    run::BlocksFill fill;
    fill.part = part;
    memory.addBlocks(*session, fill, c);
  }
}

void GroupKernelTest::fillScore(run::ForwardCase &c) {
  if (*kernel().score)
    memory.addScore(*session, compiled.score(), {}, c, gradients(),
                    storedGradients());
}

std::string GroupKernelTest::scheduleOf(fovea::OpKind op) {
  return CompiledKernel::scheduleOf(functionOf(kernel(), op), kernel().chip,
                                    kernel().schedule);
}

void GroupKernelTest::compile(fovea::OpKind op) {
  CompiledKernel::Request request = {kernel().chip,     {}, {},
                                     kernel().schedule, {}, {}};
  request.function = functionOf(kernel(), op);
  request.change = change;
  ProblemKey &problem = request.record.problem;
  problem.op = op;
  if (op == fovea::OpKind::Backward) {
    problem.scoreGradients = gradients();
    problem.storedGradients = storedGradients();
  }
  problem.setHeadDims(kernel().headDim, kernel().dimOfV());
  problem.dtype = type();
  problem.groups[kWindowGroup] = kWindowVersion;
  for (const char *name : kernel().groups) {
    const auto row = size_t(spec::findGroup(name));
    problem.groups[row] = spec::featureGroups()[row].version;
  }
  request.record.abiVersion = fovea::abiVersionOf(op);
  request.look = [&](ModuleOp module) {
    module.walk([&](attn::AttentionOpInterface op) {
      FailureOr<ProblemKey> key = attn::keyOf(op);
      ASSERT_TRUE(succeeded(key));
      key->score = 0; // CompiledKernel has it
      EXPECT_EQ(key->str(), problem.str());
    });
  };
  ASSERT_EQ(compiled.compile(request), "");
  std::string error;
  session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  if (kernel().algorithm() == "split")
    options.splits = 3;
  if (op == fovea::OpKind::Backward) {
    options.deterministic = kernel().algorithm().empty();
    options.narrowSums = kernel().algorithm() == "atomic16";
  }
}

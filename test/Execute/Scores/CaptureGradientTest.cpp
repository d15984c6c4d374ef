//===- CaptureGradientTest.cpp - gradients of what programs capture -------===//
//
// Compiles backward kernels that give gradients of captures, launches them on
// simulated devices as a launcher would, by their signature, and holds every
// element of those gradients to the fp64 reference, and what lies between them
// to what it was. Each has an allocation that ends with it.
//
//===----------------------------------------------------------------------===//

#include "../OpenCL/HipProgram.h"
#include "CompiledKernel.h"
#include "Scores.h"
#include "fovea/Package/PackageReader.h"
#include "fovea/Reference/Backward.h"
#include "fovea/Reference/Inputs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <cmath>
#include <map>

using namespace fovea;
using namespace fovea::test;
using llvm::formatv;

static constexpr int32_t kInfinite = std::numeric_limits<int32_t>::max();

namespace {

/// How the gradient of a capture lies in memory.
struct Wanted {
  int capture;
  unsigned broadcast = 0; ///< dimensions with a stride of 0
  bool isReversed = false;
  bool isNull = false; ///< passed as not wanted
};

/// A program and what it captures, as ScoreTest has them: a type a capture.
struct Program {
  const char *name, *text;
  std::vector<const char *> types; ///< of tensors memrefs, but for "memref"
  std::vector<run::CaptureFill> fills;
  /// Of one kernel, whose launches differ in how they pass the same gradients.
  std::vector<std::vector<Wanted>> launches;
  const char *yields = "%s : f32";

  const std::vector<Wanted> &gradients() const { return launches.front(); }
};

struct Kernel {
  const char *chip, *dtype;
  int headDim;
  std::map<std::string, std::string> schedule; ///< with the algorithm
  bool isOnce = false; ///< one launch of the first sizes will do
  /// Compiled in or, of Window, passed: all of a causal one, bottom right.
  enum Mask { Causal, None, Window } mask = Causal;

  const std::string &algorithm() const { return schedule.at("algorithm"); }
};

run::CaptureFill fillOf(double most) {
  run::CaptureFill fill;
  fill.most = most;
  fill.extent = 60;
  fill.poison = true;
  return fill;
}

const Program kPrograms[] = {
    // As many elements as places; one for all batches, heads or queries.
    {"Bias",
     R"(
      %b = attn.at %c0[%batch, %head, %query, %key] : !c0
      %s = arith.addf %x, %b : f32)",
     {"<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>"},
     {fillOf(3)},
     {{{0}}, {{0, 1}}, {{0, 2, true}}, {{0, 4}}}},
    // Softcap, ALiBi and a bias of the key, of which the cap's is not wanted.
    {"Composed",
     R"(
      %small = arith.divf %x, %c0 : f32
      %bounded = math.tanh %small : f32
      %capped = arith.mulf %bounded, %c0 : f32
      %behind = arith.subi %seqlen_k, %seqlen_q : i32
      %end = arith.addi %query, %behind : i32
      %distance = arith.subi %end, %key : i32
      %far = arith.sitofp %distance : i32 to f32
      %size = math.absf %far : f32
      %slope = attn.at %c1[%batch, %head] : !c1
      %slow = arith.mulf %size, %slope : f32
      %biased = arith.subf %capped, %slow : f32
      %b = attn.at %c2[%batch, %key] : !c2
      %s = arith.addf %biased, %b : f32)",
     {"f32", "<?x?xf32, strided<[?, ?]>>", "<?x?xf16, strided<[?, ?]>>"},
     {fillOf(5), fillOf(0.05), fillOf(2)},
     {{{0, 0, false, true}, {1, 0, true}, {2}}}},
    // The cap's, and that of a bias of the query.
    {"Softcap",
     R"(
      %small = arith.divf %x, %c0 : f32
      %bounded = math.tanh %small : f32
      %capped = arith.mulf %bounded, %c0 : f32
      %b = attn.at %c1[%head, %query] : !c1
      %s = arith.addf %capped, %b : f32)",
     {"f32", "<?x?xf32, strided<[?, ?]>>"},
     {fillOf(2), fillOf(1)},
     {{{0}, {1, 0, true}}}},
    // A factor: what it multiplies has the scale in it.
    {"Factor",
     R"(
      %factor = attn.at %c0[%head] : !c0
      %s = arith.mulf %x, %factor : f32)",
     {"<?xf32, strided<[?]>>"},
     {fillOf(2)},
     {{{0}}}},
    // What the table does not have reads 0, and nothing is added to it.
    {"Relative",
     R"(
      %half = arith.constant 30 : i32
      %distance = arith.subi %query, %key : i32
      %place = arith.addi %distance, %half : i32
      %b = attn.at %c0[%head, %place] : !c0
      %double = arith.addf %b, %b : f32
      %s = arith.addf %x, %double : f32)",
     {"<?x?xf32, strided<[?, ?]>>"},
     {fillOf(2)},
     {{{0}}}},
    // Of hidden places nothing is a number.
    {"Hidden",
     R"(
      %behind = arith.subi %seqlen_k, %seqlen_q : i32
      %end = arith.addi %query, %behind : i32
      %distance = arith.subi %end, %key : i32
      %one = arith.constant 1 : i32
      %positive = arith.addi %distance, %one : i32
      %real = arith.sitofp %positive : i32 to f32
      %root = math.sqrt %real : f32
      %a = attn.at %c0[%batch, %head] : !c0
      %b = attn.at %c1[%key] : !c1
      %y = math.fma %a, %root, %x : f32
      %z = arith.mulf %b, %root : f32
      %s = arith.addf %y, %z : f32)",
     {"<?x?xf32, strided<[?, ?]>>", "<?xf32, strided<[?]>>"},
     {fillOf(0.1), fillOf(0.1)},
     {{{0}, {1}}}},
    // Nor of those that the program's own predicate hides, in any block.
    {"Unseen",
     R"(
      %most = arith.constant 30 : i32
      %end = arith.addi %key, %most : i32
      %seen = arith.cmpi slt, %query, %end : i32
      %distance = arith.subi %end, %query : i32
      %real = arith.sitofp %distance : i32 to f32
      %root = math.sqrt %real : f32
      %a = attn.at %c0[%batch, %head] : !c0
      %b = attn.at %c1[%key] : !c1
      %c = attn.at %c2[%query, %key] : !c2
      %y = math.fma %a, %root, %x : f32
      %z = arith.mulf %b, %root : f32
      %u = math.fma %c, %root, %z : f32
      %s = arith.addf %y, %u : f32)",
     {"<?x?xf32, strided<[?, ?]>>", "<?xf32, strided<[?]>>",
      "<?x?xf32, strided<[?, ?]>>"},
     {fillOf(0.1), fillOf(0.1), fillOf(0.1)},
     {{{0}, {1}, {2}}},
     "%s, %seen : f32, i1"},
};

using Parameters = std::pair<Program, Kernel>;

const Kernel kKernels[] = {
    {"gfx942", "bf16", 128, {{"algorithm", "atomic"}}, true},
    {"gfx942",
     "bf16",
     64,
     {{"algorithm", "deterministic"}, {"stages", "2"}, {"block-m", "64"}},
     true,
     Kernel::None},
    {"gfx950",
     "f16",
     128,
     {{"algorithm", "deterministic"}},
     true,
     Kernel::None},
    {"gfx908", "f16", 32, {{"algorithm", "atomic"}}, true},
    {"gfx1100", "bf16", 64, {{"algorithm", "atomic"}}, true, Kernel::Window},
};
/// Of small blocks, so that some are seen whole.
const Kernel kSmall = {
    "gfx942",
    "f16",
    32,
    {{"algorithm", "atomic"}, {"block-m", "64"}, {"stages", "1"}}};
const Kernel kSmallRdna = {
    "gfx1201", "bf16", 32, {{"algorithm", "atomic"}, {"block-m", "64"}}, true};

/// All programs on a small kernel, some on others, a bias on each family.
std::vector<Parameters> allParameters() {
  std::vector<Parameters> all;
  for (const Kernel &kernel : kKernels)
    all.emplace_back(kPrograms[0], kernel);
  for (const Program &program : kPrograms)
    all.emplace_back(program, kSmall);
  for (const Program &program : llvm::ArrayRef(kPrograms).take_front(3))
    all.emplace_back(program, kSmallRdna);
  all.emplace_back(kPrograms[1], Kernel{"gfx942",
                                        "bf16",
                                        32,
                                        {{"algorithm", "atomic16"}},
                                        true,
                                        Kernel::None});
  return all;
}

std::string nameOf(const testing::TestParamInfo<Parameters> &info) {
  const auto &[program, kernel] = info.param;
  return formatv("{0}_{1}_{2}_d{3}", program.name, kernel.chip,
                 kernel.algorithm(), kernel.headDim);
}

/// A gradient in memory, which begins as numbers by chance.
struct GradientMemory {
  std::vector<int64_t> extents, strides;
  std::vector<float> before;
  std::unique_ptr<Buffer<float>> device;

  GradientMemory(const reference::CapturedValues &capture, const Wanted &wanted,
                 uint64_t seed)
      : extents(capture.extents), strides(capture.extents.size()) {
    int64_t next = 1, size = 1;
    for (size_t i = 0; i != extents.size(); ++i) {
      const size_t dim = wanted.isReversed ? i : extents.size() - 1 - i;
      if (wanted.broadcast >> dim & 1)
        continue;
      strides[dim] = next;
      size += (extents[dim] - 1) * next;
      next = next * extents[dim] + 3; // a gap between rows
    }
    reference::Random random(seed);
    before.resize(size_t(size));
    for (float &value : before)
      value = float(random.normal());
    device = std::make_unique<Buffer<float>>(before);
  }
  /// Where an element lies.
  int64_t placeOf(int64_t element) const {
    int64_t place = 0;
    for (size_t dim = extents.size(); dim-- != 0; element /= extents[dim])
      place += element % extents[dim] * strides[dim];
    return place;
  }
  int64_t count() const {
    int64_t all = 1;
    for (int64_t extent : extents)
      all *= extent;
    return all;
  }
};

class CaptureGradientTest : public testing::TestWithParam<Parameters> {
protected:
  const Program &program() const { return GetParam().first; }
  const Kernel &kernel() const { return GetParam().second; }

  void SetUp() override {
    ASSERT_HIP(hipInit(0));
    ASSERT_HIP(hipSetDevice(
        int(llvm::find(kChips, llvm::StringRef(kernel().chip)) - kChips)));
  }
  void TearDown() override {
    if (HasFailure())
      (void)hipDeviceReset();
  }

  std::string function() const;
  void compile();
  void fill(int64_t seqQ, int64_t seqK, int64_t group);
  void launch();
  void expectGradients();

  CompiledKernel compiled;
  std::optional<PackageReader> package;
  std::unique_ptr<run::Session> session; ///< captures lie in its memory
  run::ForwardCase sizes;
  std::unique_ptr<run::CaseScore> captures;
  const std::vector<Wanted> *given = nullptr;
  std::vector<std::unique_ptr<GradientMemory>> gradients; ///< null: not wanted
  reference::BackwardProblem problem;
  std::map<std::string, std::vector<uint16_t>> hosts;
  std::vector<double> out;
  std::vector<float> lse;
};

std::string CaptureGradientTest::function() const {
  const std::string tensor =
      formatv("memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>", kernel().headDim,
              kernel().dtype);
  std::string aliases, names, types, arguments, inner, to, toNames, toTypes;
  for (auto [i, text] : llvm::enumerate(program().types)) {
    const bool isTensor = text[0] == '<';
    std::string type = text;
    if (isTensor) {
      aliases += formatv("!c{0} = memref{1}\n", i, text);
      type = formatv("!c{0}", i);
    }
    const char *comma = i ? ", " : "";
    names += formatv("{0}%g{1}", comma, i);
    types += comma + type;
    arguments += formatv(", %g{0}: {1}", i, type);
    inner += formatv(", %c{0}: {1}", i, type);
  }
  for (const Wanted &wanted : program().gradients()) {
    llvm::StringRef capture = program().types[size_t(wanted.capture)];
    const size_t rank = capture.count("?x");
    std::string type = "memref<f32>";
    if (capture.front() == '<')
      type = formatv("memref<{0}f32, strided<[{1}]>>",
                     llvm::join(std::vector<std::string>(rank, "?x"), ""),
                     llvm::join(std::vector<std::string>(rank, "?"), ", "));
    const char *comma = toTypes.empty() ? "" : ", ";
    to += formatv(", %d{0}: {1}", wanted.capture, type);
    toNames += formatv("{0}{1} = %d{1}", comma, wanted.capture);
    toTypes += comma + type;
  }
  return formatv(
      "{0}!t = {1}\n!l = memref<?x?x?xf32, strided<[?, ?, 1]>>\n"
      "func.func @kernel(%q: !t, %k: !t, %v: !t, %out: !t, %dout: !t, %lse: !l,"
      " %dq: !t, %dk: !t, %dv: !t, %w: memref<?xi8>, %scale: f32{11}{2}{3}) "
      "{{\n"
      "attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, %dv "
      "workspace(%w) scale(%scale) {10} "
      "captures({4} : {5}) gradients({6} : {7}) score {{ ^bb0(%x: f32, "
      "%batch: i32, %head: i32, %query: i32, %key: i32, %seqlen_q: i32, "
      "%seqlen_k: i32{8}): {9}\nattn.yield {12} } : "
      "!t, !t, !t, !t, !t, !l -> !t, !t, !t, memref<?xi8>\nreturn\n}",
      aliases, tensor, arguments, to, names, types, toNames, toTypes, inner,
      program().text,
      kernel().mask == Kernel::Window
          ? "visible [#attn.window] (%left, %right, %alignment)"
      : kernel().mask == Kernel::Causal ? "visible [#attn.causal<bottom_right>]"
                                        : "",
      kernel().mask == Kernel::Window
          ? ", %left: i32, %right: i32, %alignment: i32"
          : "",
      program().yields);
}

void CaptureGradientTest::compile() {
  CompiledKernel::Request request = {kernel().chip,     function(), {},
                                     kernel().schedule, {},         {}};
  ProblemKey &key = request.record.problem;
  key.op = OpKind::Backward;
  key.headDim = kernel().headDim;
  key.dtype =
      llvm::StringRef(kernel().dtype) == "f16" ? DataType::F16 : DataType::BF16;
  if (kernel().mask == Kernel::Window)
    key.groups[kWindowGroup] = kWindowVersion;
  else if (kernel().mask == Kernel::Causal)
    key.mask = MaskKind::CausalBottomRight;
  for (const Wanted &wanted : program().gradients())
    key.scoreGradients |= uint8_t(1 << wanted.capture);
  request.record.abiVersion = abiVersionOf(key.op);
  ASSERT_EQ(compiled.compile(request), "");
  auto opened = PackageReader::open(compiled.package());
  ASSERT_TRUE(opened) << opened.status().message();
  package = std::move(*opened);
}

/// Makes a problem, its tensors and those of its gradients.
void CaptureGradientTest::fill(int64_t seqQ, int64_t seqK, int64_t group) {
  sizes.type = package->kernels()[0].problem.dtype;
  sizes.headDim = kernel().headDim;
  sizes.mask = kernel().mask == Kernel::None
                   ? reference::Mask::None
                   : reference::Mask::CausalBottomRight;
  sizes.batch = sizes.heads = 2;
  sizes.headsK = sizes.heads / group;
  sizes.seqQ = seqQ;
  sizes.seqK = seqK;
  sizes.scale = 0.2f;
  auto tensor = [&](const char *name, bool isOfQueries) {
    reference::Tensor t =
        reference::describe(sizes.type, reference::Layout::BHSD, sizes.batch,
                            isOfQueries ? sizes.heads : sizes.headsK,
                            isOfQueries ? seqQ : seqK, sizes.headDim);
    hosts[name].resize(size_t(t.span()));
    t.data = hosts[name].data();
    return t;
  };
  problem.forward.q = tensor("q", true);
  problem.forward.k = tensor("k", false);
  problem.forward.v = tensor("v", false);
  problem.dout = tensor("dout", true);
  problem.forward.mask = sizes.mask;
  problem.forward.scale = *sizes.scale;
  reference::fillInputs(problem.forward, reference::InputKind::Normal, 17);
  reference::Random random(99);
  for (uint16_t &element : hosts["dout"])
    element = reference::encode(sizes.type, random.normal());

  captures = std::make_unique<run::CaseScore>(
      compiled.score().name, compiled.captures(), program().fills, sizes);
  std::string error;
  problem.forward.score = reference::readScoreProgram(
      compiled.score().text, captures->values(), error);
  ASSERT_TRUE(problem.forward.score) << error;
  reference::ForwardResult forward =
      reference::attentionForwardF64(problem.forward);
  hosts["out"].clear();
  out.clear();
  for (double value : forward.out) {
    hosts["out"].push_back(reference::encode(sizes.type, value));
    out.push_back(reference::decode(sizes.type, hosts["out"].back()));
  }
  lse.assign(forward.lse.begin(), forward.lse.end());
  gradients.clear();
  for (const Wanted &wanted : *given)
    gradients.push_back(wanted.isNull
                            ? nullptr
                            : std::make_unique<GradientMemory>(
                                  captures->values()[size_t(wanted.capture)],
                                  wanted, uint64_t(wanted.capture) + 5));
}

/// Fills the arguments by the signature and launches all kernels.
void CaptureGradientTest::launch() {
  const KernelRecord &record = package->kernels()[0];
  const spec::OperationSpec &operation = spec::specOf(OpKind::Backward);
  const spec::AlgorithmSpec &algorithm =
      *operation.findAlgorithm(kernel().algorithm());
  const spec::Signature signature =
      spec::signatureOf(record.problem, &algorithm, compiled.captures());
  std::map<std::string, std::unique_ptr<Buffer<uint16_t>>> tensors;
  for (const char *name : {"q", "k", "v", "out", "dout"})
    tensors[name] = std::make_unique<Buffer<uint16_t>>(hosts[name]);
  tensors["dq"] = std::make_unique<Buffer<uint16_t>>(hosts["q"].size());
  tensors["dk"] = std::make_unique<Buffer<uint16_t>>(hosts["k"].size());
  tensors["dv"] = std::make_unique<Buffer<uint16_t>>(hosts["k"].size());
  const Buffer<float> lseOnDevice(lse);
  const Buffer<char> workspace(size_t(algorithm.workspace.bytes(
      sizes.batch, sizes.heads, sizes.seqQ, sizes.headDim)));
  // Captures, on the device.
  const auto &score =
      *reinterpret_cast<const fovea_score_t *>(captures->group());
  std::vector<unsigned char> segment(signature.bytes);
  for (const spec::Argument &argument : signature.arguments) {
    auto put = [&](auto value) {
      ASSERT_EQ(sizeof(value), spec::sizeOf(argument.kind)) << argument.name;
      std::memcpy(segment.data() + argument.offset, &value, sizeof(value));
    };
    auto address = [&](const void *pointer) { put(uint64_t(pointer)); };
    const GradientMemory *gradient = nullptr;
    for (auto [i, wanted] : llvm::enumerate(*given))
      if (wanted.capture == argument.index)
        gradient = gradients[i].get();
    const fovea_capture_t *capture = score.captures + argument.index;
    switch (argument.source) {
    case spec::Source::Address: {
      auto found = tensors.find(argument.name);
      address(found != tensors.end()   ? (void *)found->second->device()
              : argument.name == "lse" ? (void *)lseOnDevice.device()
                                       : (void *)workspace.device());
      break;
    }
    case spec::Source::StrideBatch:
    case spec::Source::StrideHead:
    case spec::Source::StrideSeq: {
      const spec::TensorSpec &tensor = *signature.tensors[argument.index];
      const bool isOfKeys = tensor.heads == spec::Extent::HeadsK;
      const int64_t seq =
                        tensor.shape == spec::Shape::Vector ? 1 : sizes.headDim,
                    head = seq * (isOfKeys ? sizes.seqK : sizes.seqQ),
                    batch = head * (isOfKeys ? sizes.headsK : sizes.heads);
      put(argument.source == spec::Source::StrideSeq    ? seq
          : argument.source == spec::Source::StrideHead ? head
                                                        : batch);
      break;
    }
    case spec::Source::Scalar:
      switch (spec::Scalar(argument.index)) {
      case spec::Scalar::SeqlenQ:
        put(int32_t(sizes.seqQ));
        break;
      case spec::Scalar::SeqlenK:
        put(int32_t(sizes.seqK));
        break;
      case spec::Scalar::HeadsQ:
        put(int32_t(sizes.heads));
        break;
      case spec::Scalar::GroupSize:
        put(int32_t(sizes.heads / sizes.headsK));
        break;
      case spec::Scalar::Scale:
        put(problem.forward.scale);
        break;
      case spec::Scalar::Splits:
      case spec::Scalar::PackedHeads:
        FAIL() << "of forward kernels";
      }
      break;
    case spec::Source::Feature: // of the window: left, right, both bottom right
      put(std::array{kInfinite, 0, 3}[argument.index]);
      break;
    case spec::Source::Capture:
      if (argument.kind == spec::ArgKind::F32)
        put(float(capture->value));
      else if (argument.kind == spec::ArgKind::I32)
        put(int32_t(capture->value));
      else
        address(capture->data);
      break;
    case spec::Source::CaptureStride:
      put(int64_t(capture->strides[argument.dim]));
      break;
    case spec::Source::CaptureExtent:
      put(int32_t(capture->extents[argument.dim]));
      break;
    case spec::Source::CaptureGradient:
      address(gradient ? gradient->device->device() : nullptr);
      break;
    case spec::Source::CaptureGradientStride:
      put(gradient ? gradient->strides[argument.dim] : int64_t(0));
      break;
    }
  }

  auto image = package->loadImage(record);
  ASSERT_TRUE(image) << image.status().message();
  hipModule_t module = nullptr;
  ASSERT_HIP(hipModuleLoadData(&module, image->data()));
  size_t bytes = segment.size();
  void *config[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, segment.data(),
                    HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
  for (const LaunchRecord &launch : record.launches) {
    const spec::LaunchSpec &row = *operation.findLaunch(launch.suffix).launch;
    hipFunction_t function = nullptr;
    ASSERT_HIP(hipModuleGetFunction(
        &function, module, (record.symbol + "_" + launch.suffix).c_str()));
    const int64_t rows = row.ownsKeys ? sizes.seqK : sizes.seqQ;
    ASSERT_HIP(hipModuleLaunchKernel(
        function, unsigned(row.ownsKeys ? sizes.headsK : sizes.heads),
        unsigned((rows + launch.blockRows - 1) / launch.blockRows),
        unsigned(sizes.batch), unsigned(launch.threads), 1, 1, 0, nullptr,
        nullptr, config));
  }
  ASSERT_HIP(hipDeviceSynchronize());
  ASSERT_HIP(hipModuleUnload(module));
}

void CaptureGradientTest::expectGradients() {
  for (auto [i, wanted] : llvm::enumerate(*given)) {
    if (!gradients[i])
      continue;
    const GradientMemory &memory = *gradients[i];
    const reference::CaptureGradient exact = reference::captureGradientF64(
        problem, out, lse, wanted.capture, memory.count());
    std::map<int64_t, reference::CaptureGradient::Element> places;
    for (int64_t element = 0; element != memory.count(); ++element)
      places[memory.placeOf(element)].add(exact.elements[size_t(element)]);
    const std::vector<float> after = memory.device->read();
    double largest = 0;
    int wrong = 0;
    for (size_t place = 0; place != after.size(); ++place) {
      const float before = memory.before[place];
      auto found = places.find(int64_t(place));
      if (found == places.end() || found->second.terms == 0) {
        if (after[place] != before && wrong++ < 3)
          ADD_FAILURE() << "gradient of capture " << wanted.capture
                        << ", place " << place << ": nothing is added to it, "
                        << before << " became " << after[place];
        continue;
      }
      const reference::CaptureGradient::Element &element = found->second;
      const double error = std::fabs(after[place] - before - element.exact),
                   budget = element.budget(before);
      largest = std::max(largest, error / budget);
      if (!(error <= budget) && wrong++ < 3)
        ADD_FAILURE() << "gradient of capture " << wanted.capture << ", place "
                      << place << ": " << before << " became " << after[place]
                      << ", expected " << before + element.exact << " within "
                      << budget << " of " << element.terms << " terms";
    }
    EXPECT_EQ(wrong, 0) << "of " << after.size();
    RecordProperty(formatv("use_{0}", wanted.capture).str(),
                   formatv("{0:F3}", largest).str());
  }
}

TEST_P(CaptureGradientTest, AgreesWithTheReference) {
  compile();
  if (HasFatalFailure())
    return;
  std::string error;
  session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  // Blocks of keys that are seen whole; queries that see none.
  constexpr std::tuple<int64_t, int64_t, int64_t> all[] = {{75, 200, 2},
                                                           {67, 35, 1}};
  const auto &launches = program().launches;
  const size_t count =
      kernel().isOnce ? 1 : std::max(launches.size(), std::size(all));
  for (size_t i = 0; i != count; ++i) {
    const auto [seqQ, seqK, group] = all[i % std::size(all)];
    given = &launches[i % launches.size()];
    fill(seqQ, seqK, group);
    if (HasFatalFailure())
      return;
    ASSERT_EQ(captures->upload(*session), "");
    launch();
    if (HasFatalFailure())
      return;
    expectGradients();
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaptureGradientTest,
                         testing::ValuesIn(allParameters()), nameOf);

} // namespace

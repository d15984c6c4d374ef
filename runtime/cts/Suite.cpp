//===- Suite.cpp - setting up and running the suite's problems ------------===//

#include "Call.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fovea::cts {
namespace {

std::vector<std::string> packagePaths;

[[noreturn]] void stop(const char *what) {
  std::fprintf(stderr, "fovea-cts: %s: %s\n", what, fovea_last_message());
  std::exit(2);
}

template <typename Function>
void resolve(const char *name, Function &function) {
  function = reinterpret_cast<Function>(fovea_hip_symbol(context(), name));
  if (!function)
    stop(name);
}

} // namespace

fovea_context_t *newContext() {
  fovea_context_t *made = nullptr;
  if (fovea_context_create(nullptr, &made) != FOVEA_STATUS_OK)
    stop("creating a context");
  for (const std::string &path : packagePaths)
    if (fovea_package_open(made, path.c_str()) != FOVEA_STATUS_OK)
      stop("opening a package");
  return made;
}

fovea_context_t *context() {
  static fovea_context_t *shared = newContext();
  return shared;
}

const HipFunctions &hip() {
  static const HipFunctions functions = [] {
    HipFunctions f;
    resolve("hipMalloc", f.hipMalloc);
    resolve("hipFree", f.hipFree);
    resolve("hipMemcpy", f.hipMemcpy);
    resolve("hipStreamCreate", f.hipStreamCreate);
    resolve("hipStreamDestroy", f.hipStreamDestroy);
    resolve("hipStreamSynchronize", f.hipStreamSynchronize);
    resolve("hipDeviceSynchronize", f.hipDeviceSynchronize);
    resolve("hipModuleLoadData", f.hipModuleLoadData);
    resolve("hipModuleUnload", f.hipModuleUnload);
    resolve("hipModuleGetFunction", f.hipModuleGetFunction);
    resolve("hipStreamBeginCapture", f.hipStreamBeginCapture);
    resolve("hipStreamEndCapture", f.hipStreamEndCapture);
    resolve("hipGraphInstantiate", f.hipGraphInstantiate);
    resolve("hipGraphLaunch", f.hipGraphLaunch);
    resolve("hipGraphExecDestroy", f.hipGraphExecDestroy);
    resolve("hipGraphDestroy", f.hipGraphDestroy);
    resolve("hipGetErrorName", f.hipGetErrorName);
    return f;
  }();
  return functions;
}

/// By the schedule's text, which begins with its name; where it names none
/// (kernels that no schedule describes) the first one.
static const spec::AlgorithmSpec &algorithmOf(OpKind op,
                                              const std::string &schedule) {
  const auto &algorithms = spec::specOf(op).algorithms;
  for (const spec::AlgorithmSpec &algorithm : algorithms)
    if (schedule.rfind(algorithm.name + std::string(";"), 0) == 0)
      return algorithm;
  return algorithms[0];
}

static std::vector<KernelCase> findKernels() {
  std::vector<KernelCase> found;
  const size_t count = fovea_kernel_count(context());
  for (uint32_t id = 1; id <= count; ++id) {
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(context(), id, &info) != FOVEA_STATUS_OK)
      stop("asking for a kernel");
    const Expected<ProblemKey> key = ProblemKey::parse(info.problem);
    if (!key) {
      std::fprintf(stderr,
                   "fovea-cts: the problem '%s' of kernel %u is none that the "
                   "suite knows: %s; take one built with this library\n",
                   info.problem, id, key.status().message().c_str());
      std::exit(2);
    }
    if (!spec::specOf(key->op).isAttention) // has no queries and keys
      continue;
    Problem p;
    KernelCase &kernel = p.kernel;
    kernel.id = id;
    kernel.key = *key;
    kernel.algorithm = &algorithmOf(key->op, info.schedule);
    kernel.name = "k" + std::to_string(id) + "_" + info.problem;
    for (char &c : kernel.name)
      if (!std::isalnum(static_cast<unsigned char>(c)))
        c = '_';
    // Whether device 0 runs it; a call that is wrong is the suite's fault.
    const fovea_status_t status = Call(p).select();
    if (status == FOVEA_STATUS_OK)
      found.push_back(kernel);
    else if (status != FOVEA_STATUS_INVALID_ARGUMENT)
      std::fprintf(stderr, "fovea-cts: left out: %s\n", fovea_last_message());
    else
      stop(kernel.name.c_str());
  }
  return found;
}

const std::vector<KernelCase> &kernelCases() {
  static const std::vector<KernelCase> all = findKernels();
  return all;
}

std::vector<KernelCase> kernelCases(OpKind op) {
  std::vector<KernelCase> cases;
  std::copy_if(kernelCases().begin(), kernelCases().end(),
               std::back_inserter(cases),
               [&](const KernelCase &kernel) { return kernel.key.op == op; });
  return cases;
}

std::vector<KernelCase> windowCases(OpKind op) {
  std::vector<KernelCase> cases = kernelCases(op);
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [](const KernelCase &kernel) {
                               return !kernel.key.takesWindow();
                             }),
              cases.end());
  return cases;
}

void expectWindowCases(OpKind op) {
  if (windowCases(op).empty())
    GTEST_SKIP() << "no kernel: none of the packages' " << toString(op)
                 << " kernels takes a window; compile some with --mask=any";
}

fovea_window_t NamedWindow::group() const {
  fovea_window_t window{};
  window.header.struct_size = sizeof(window);
  window.header.group = FOVEA_GROUP_WINDOW;
  window.left = left;
  window.right = right;
  window.left_alignment = leftAlignment;
  window.right_alignment = rightAlignment;
  return window;
}

const std::vector<NamedWindow> &windows() {
  constexpr int64_t kInf = FOVEA_WINDOW_INFINITE;
  constexpr int32_t kTop = FOVEA_ALIGN_TOP_LEFT,
                    kBottom = FOVEA_ALIGN_BOTTOM_RIGHT;
  static const std::vector<NamedWindow> all = {
      {"everything", kInf, kInf, kTop, kBottom},
      {"causal top left", kInf, 0, kTop, kTop},
      {"causal bottom right", kInf, 0, kBottom, kBottom},
      {"band top left", 7, 3, kTop, kTop},
      {"band bottom right", 7, 3, kBottom, kBottom},
      {"top left to bottom right", 2, 4, kTop, kBottom},
      {"bottom right to top left", 2, 4, kBottom, kTop},
      {"one key", 0, 0, kBottom, kBottom},
      {"no bound on the left", kInf, 5, kBottom, kBottom},
      {"no bound on the right", 33, kInf, kTop, kTop},
      {"behind the diagonal", 20, -4, kTop, kTop},
      {"before the diagonal", -4, 20, kBottom, kBottom},
      {"blocks", 64, 63, kTop, kTop},
      {"no key of any row", 3, -4, kTop, kTop},
      {"far to the left", kInf - 1, -kInf, kTop, kBottom},
      {"far to the right", INT64_MIN, kInf - 1, kBottom, kTop},
      {"farther than any length", kInf - 1, kInf - 1, kBottom, kBottom},
  };
  return all;
}

const Problem::Value &Problem::operator[](const std::string &tensor) const {
  static const Value one = [](int64_t, int64_t, int64_t, int64_t) {
    return 1.0f;
  };
  const auto found = values.find(tensor);
  return found == values.end() ? one : found->second;
}

int64_t Problem::sizeOf(spec::Extent extent) const {
  switch (extent) {
  case spec::Extent::Batch:
    return batch;
  case spec::Extent::HeadsQ:
    return headsQ;
  case spec::Extent::HeadsK:
    return headsK;
  case spec::Extent::SeqlenQ:
    return seqlenQ;
  case spec::Extent::SeqlenK:
    return seqlenK;
  case spec::Extent::HeadDim:
    return kernel.key.headDim;
  case spec::Extent::HeadDimV:
    return kernel.key.dimOfV();
  }
  return 0;
}

Problem::Keys Problem::keysOf(int64_t row) const {
  int64_t begin = 0, end = seqlenK;
  // Beyond all lengths, and far from overflowing.
  constexpr int64_t kFar = int64_t(1) << 40;
  auto diagonal = [&](int32_t alignment) {
    return row +
           (alignment == FOVEA_ALIGN_BOTTOM_RIGHT ? seqlenK - seqlenQ : 0);
  };
  if (window) {
    begin = diagonal(window->left_alignment) -
            std::clamp(window->left, -kFar, kFar);
    end = diagonal(window->right_alignment) +
          std::clamp(window->right, -kFar, kFar) + 1;
  } else if (kernel.key.mask == MaskKind::CausalTopLeft) {
    end = diagonal(FOVEA_ALIGN_TOP_LEFT) + 1;
  } else if (kernel.key.mask == MaskKind::CausalBottomRight) {
    end = diagonal(FOVEA_ALIGN_BOTTOM_RIGHT) + 1;
  }
  begin = std::clamp<int64_t>(begin, 0, seqlenK);
  return {begin, std::clamp(end, begin, seqlenK)};
}

void forEachRow(const Problem &p, const Results &results,
                const std::function<void(int64_t, int64_t, int64_t,
                                         const float *, float)> &check) {
  const std::vector<float> &out = results.at("out");
  const auto lse = results.find("lse");
  size_t row = 0;
  for (int64_t b = 0; b != p.batch; ++b)
    for (int64_t h = 0; h != p.headsQ; ++h)
      for (int64_t r = 0; r != p.seqlenQ; ++r, ++row)
        check(b, h, r, out.data() + row * size_t(p.kernel.key.dimOfV()),
              lse == results.end() ? NAN : lse->second[row]);
}

double roundoff(DataType type) {
  return std::ldexp(1.0, -1 - dataTypeInfo(type).fractionBits);
}

double errorOfOnes(DataType type, int64_t keys) {
  return type == DataType::F32 ? 2 * double(keys + 2) * roundoff(type) : 0;
}

} // namespace fovea::cts

namespace {

constexpr const char *kUsage =
    R"(usage: fovea-cts [--target=CHIP] PACKAGE... [GoogleTest's options]

Runs the conformance suite on device 0 with all kernels of the packages that it
can run.

  --target=CHIP  chip that the device is to be; the simulated one becomes it
                 (default: FOVEA_SIM_TARGET, or else the packages', if that is
                 one chip)
  --version      the project's version
  --gtest_help   GoogleTest's options

FOVEA_HIP_LIBRARY chooses the HIP library: auto, rocm, sim or a path.
Exit codes: 0 all passed, 1 a test failed, 2 wrong usage, no device or output that
is lost.
)";

int complain(const std::string &why) {
  std::fprintf(stderr, "fovea-cts: %s\n", why.c_str());
  return 2;
}

/// The one chip that all kernels of the packages are for; else empty.
std::string chipOfPackages() {
  std::string only;
  const size_t count = fovea_kernel_count(fovea::cts::context());
  for (uint32_t id = 1; id <= count; ++id) {
    fovea_kernel_info_t info{};
    info.struct_size = sizeof(info);
    if (fovea_kernel_info(fovea::cts::context(), id, &info) != FOVEA_STATUS_OK)
      return "";
    const std::string target = info.target;
    if (target.find("-generic") != std::string::npos ||
        (!only.empty() && only != target))
      return "";
    only = target;
  }
  return only;
}

int runSuite(int argc, char **argv) {
  // GoogleTest lists the parameters before main's own reading of the command
  // line, so the packages are taken out first.
  std::string target;
  for (int arg = 1; arg < argc; ++arg) {
    const std::string text = argv[arg];
    if (text == "--help" || text == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (text == "--version") {
      std::puts("fovea-cts " FOVEA_PROJECT_VERSION);
      return 0;
    }
    const bool isTarget = text == "--target" || text.rfind("--target=", 0) == 0;
    if (text == "--target" && arg + 1 < argc)
      target = argv[++arg];
    else if (isTarget && text != "--target")
      target = text.substr(std::strlen("--target="));
    if (text.empty() || (isTarget && target.empty()))
      return complain("--target or a package is without a value\n" +
                      std::string(kUsage));
    if (text[0] != '-')
      fovea::cts::packagePaths.push_back(text);
    else if (!isTarget && text.rfind("--gtest_", 0) != 0)
      return complain("no option '" + text + "'\n" + kUsage);
  }
  if (fovea::cts::packagePaths.empty())
    return complain(std::string("no package is named\n") + kUsage);
  // Read by the simulated library when it is opened, and by nobody else.
  if (!target.empty())
    ::setenv("FOVEA_SIM_TARGET", target.c_str(), /*overwrite=*/1);
  else if (const std::string chip = chipOfPackages(); !chip.empty())
    ::setenv("FOVEA_SIM_TARGET", chip.c_str(), /*overwrite=*/0);
  fovea_hip_library_info_t info{};
  info.struct_size = sizeof(info);
  if (fovea_hip_library_info(fovea::cts::context(), &info) != FOVEA_STATUS_OK)
    fovea::cts::stop("looking for HIP");
  std::printf("HIP library %s: %s\n", info.path, info.reason);
  fovea_device_info_t device{};
  device.struct_size = sizeof(device);
  if (fovea_device_info(fovea::cts::context(), 0, &device) != FOVEA_STATUS_OK)
    fovea::cts::stop("looking for device 0");
  const std::string arch = device.arch;
  if (!target.empty() &&
      arch.substr(0, arch.find(':')) != target.substr(0, target.find(':')))
    return complain("device 0 is " + arch + ", not the target " + target +
                    "; leave --target out, or simulate it with "
                    "FOVEA_HIP_LIBRARY=sim");
  testing::InitGoogleTest(&argc, argv); // asks for the kernels, once each
  if (fovea::cts::kernelCases().empty())
    return complain("no kernel of the packages runs on device 0, " + arch +
                    "; --target=CHIP makes a simulated device another chip");
  const int result = RUN_ALL_TESTS();
  fovea_context_destroy(fovea::cts::context());
  return result;
}

} // namespace

int main(int argc, char **argv) {
  const int result = runSuite(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return complain("output is lost: standard output can't be written");
  return result;
}

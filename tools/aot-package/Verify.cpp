//===- Verify.cpp - aot-package verify ------------------------------------===//
//
// Rows and images are checked by the reader; loading goes through libfovea and
// a HIP library, as in the program that will use the package.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "fovea/Package/Captures.h"
#include "fovea/Package/Chips.h"
#include "fovea/fovea.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>

namespace fovea::pkg {
namespace {

struct ContextDeleter {
  void operator()(fovea_context_t *context) const {
    fovea_context_destroy(context);
  }
};
using Context = std::unique_ptr<fovea_context_t, ContextDeleter>;

/// A kernel's score program in a call, with captures of the smallest problem.
struct ScoreGroup {
  /// \param text  of the program
  ScoreGroup(const ProblemKey &key, const std::string &text)
      : program(scoreDigits(key.score)) {
    // A program that is not understood is refused by its name below.
    if (auto specs = spec::capturesOfProgram(text))
      for (const spec::CaptureSpec &spec : *specs) {
        fovea_capture_t &capture = captures.emplace_back();
        capture = {};
        capture.type = int32_t(spec.element) + 1;
        capture.rank = int32_t(spec.dims.size());
        for (size_t dim = 0; dim != spec.dims.size(); ++dim) {
          capture.extents[dim] = spec::kCaptureAlignment;
          capture.strides[dim] = spec.dims[dim].isUnit;
        }
        if (key.scoreGradients >> (captures.size() - 1) & 1)
          addGradient(capture);
      }
    group.header = {sizeof(group), FOVEA_GROUP_SCORE, nullptr};
    group.program = program.c_str();
    group.captures = captures.data();
    group.capture_count = uint32_t(captures.size());
    group.capture_size = sizeof(fovea_capture_t);
    group.stored_gradients = key.storedGradients;
  }
  ScoreGroup(const ScoreGroup &) = delete;

  fovea_score_t group{};

private:
  /// A gradient with memory of its own for each element. Nothing is launched, so
  /// that there is none behind it.
  static void addGradient(fovea_capture_t &capture) {
    alignas(16) static char nothing[16];
    capture.gradient = nothing;
    int64_t step = 1;
    for (int32_t dim = capture.rank; dim-- > 0;) {
      capture.gradient_strides[dim] = step;
      step *= capture.extents[dim];
    }
  }

  std::string program;
  std::vector<fovea_capture_t> captures;
};

template <typename Params>
Params smallestProblem(const ProblemKey &key, uint32_t id,
                       const ScoreGroup &score, fovea_head_dims_t &dims) {
  Params params{};
  if (key.score)
    params.groups = &score.group.header;
  if (key.headDimV) {
    dims = {{sizeof(dims), FOVEA_GROUP_HEAD_DIMS, params.groups}, key.headDimV};
    params.groups = &dims.header;
  }
  params.struct_size = sizeof(params);
  params.dtype = dataTypeNumber(key.dtype);
  params.mask = int32_t(key.mask);
  params.scale = 1;
  params.batch = params.heads_q = params.heads_k = 1;
  params.seqlen_q = params.seqlen_k = 1;
  params.head_dim = key.headDim;
  params.kernel = id;
  // Strides say what is wanted.
  params.q.stride_seq = params.k.stride_seq = key.headDim;
  params.v.stride_seq = key.dimOfV();
  return params;
}

fovea_status_t prepare(fovea_context_t *context, const ProblemKey &key,
                       uint32_t id, int32_t device, const ScoreGroup &score) {
  if (key.op == OpKind::DropoutMask) {
    fovea_dropout_mask_params_t params{};
    params.struct_size = sizeof(params);
    params.dtype = dataTypeNumber(key.dtype);
    params.batch = params.heads_q = params.seqlen_q = params.seqlen_k = 1;
    params.kernel = id;
    return fovea_dropout_mask_prepare(context, &params, device, nullptr);
  }
  fovea_head_dims_t dims = {};
  if (key.op == OpKind::Forward) {
    auto params = smallestProblem<fovea_forward_params_t>(key, id, score, dims);
    params.out.stride_seq = key.dimOfV();
    return fovea_forward_prepare(context, &params, device, nullptr);
  }
  auto params = smallestProblem<fovea_backward_params_t>(key, id, score, dims);
  params.dq.stride_seq = params.dk.stride_seq = key.headDim;
  params.dv.stride_seq = key.dimOfV();
  params.out.stride_seq = params.dout.stride_seq = key.dimOfV();
  return fovea_backward_prepare(context, &params, device, nullptr);
}

/// A package that can be read.
struct Sound {
  std::string path;
  TargetId target;
  std::map<uint64_t, std::string> programs; ///< texts by digest
};

class Loader {
public:
  /// Simulated devices are those of the packages' targets, in their order.
  Loader(const std::vector<Sound> &packages, std::string library)
      : library(std::move(library)) {
    if (this->library != "sim")
      return;
    std::string all;
    for (const Sound &package : packages) {
      const std::string device = simulatedChipFor(package.target.str());
      if (devices.try_emplace(device, int32_t(devices.size())).second)
        all += (all.empty() ? "" : ",") + device;
    }
    ::setenv("FOVEA_SIM_TARGET", all.c_str(), 1);
  }

  /// Loads each kernel; false after a message when one fails.
  bool load(const Sound &package, Streams io) {
    fovea_context_options_t options{};
    options.struct_size = sizeof(options);
    options.hip_library = library.c_str();
    fovea_context_t *made = nullptr;
    auto failed = [&](const std::string &what) {
      io.err << "aot-package: error: " << what << ": " << fovea_last_message()
             << "\n";
      return false;
    };
    const fovea_status_t created = fovea_context_create(&options, &made);
    const Context context(made);
    fovea_device_info_t info{};
    info.struct_size = sizeof(info);
    const int32_t device = numberOf(package);
    if (created != FOVEA_STATUS_OK ||
        fovea_device_info(context.get(), device, &info) != FOVEA_STATUS_OK ||
        fovea_package_open(context.get(), package.path.c_str()) !=
            FOVEA_STATUS_OK)
      return failed("'" + package.path + "' can't be loaded");
    const size_t count = fovea_kernel_count(context.get());
    size_t loaded = 0;
    for (uint32_t id = 1; id <= count; ++id) {
      fovea_kernel_info_t kernel{};
      kernel.struct_size = sizeof(kernel);
      if (fovea_kernel_info(context.get(), id, &kernel) != FOVEA_STATUS_OK)
        return failed("'" + package.path + "'");
      Expected<ProblemKey> key = ProblemKey::parse(kernel.problem);
      const std::string text = key ? textOf(package, key->score) : "";
      const ScoreGroup score(key ? *key : ProblemKey(), text);
      if (key &&
          prepare(context.get(), *key, id, device, score) == FOVEA_STATUS_OK)
        ++loaded;
      else
        failed(std::string("'") + kernel.symbol + "' ('" + kernel.schedule +
               "')");
    }
    io.out << package.path << ": " << loaded << " of " << count
           << " kernels load on " << info.arch
           << (library == "sim" ? " (simulated)" : "") << "\n";
    return loaded == count;
  }

private:
  static std::string textOf(const Sound &package, uint64_t score) {
    auto found = package.programs.find(score);
    return found == package.programs.end() ? "" : found->second;
  }
  /// Of a library other than the simulated one the first device.
  int32_t numberOf(const Sound &package) const {
    auto at = devices.find(simulatedChipFor(package.target.str()));
    return at == devices.end() ? 0 : at->second;
  }
  std::string library;
  std::map<std::string, int32_t> devices;
};

/// Tuning rows that name a schedule which is not there: such a launch goes by
/// the rule.
void checkTuning(const PackageReader &package, Streams io) {
  for (const TuningRow &row : package.tuning()) {
    const std::vector<const KernelRecord *> kernels =
        package.candidates(row.problem);
    if (std::none_of(kernels.begin(), kernels.end(),
                     [&](const KernelRecord *kernel) {
                       return kernel->schedule == row.schedule;
                     }))
      io.err << "aot-package: warning: '" << package.path()
             << "': a tuning row of '" << row.problem.str()
             << "' names the schedule '" << row.schedule
             << "', of which there is no kernel\n";
  }
}

} // namespace

int verify(const std::vector<std::string> &paths, const VerifyOptions &options,
           Streams io) {
  int result = kGood;
  std::vector<Sound> sound;
  for (const std::string &path : paths) {
    Expected<PackageReader> package = PackageReader::open(path);
    if (!package) {
      result = std::max(result, complain(package.status(), io));
      continue;
    }
    size_t good = 0;
    for (const KernelRecord &kernel : package->kernels()) {
      const Status status = package->verifyImage(kernel);
      if (status.ok()) {
        ++good;
        continue;
      }
      io.err << "aot-package: error: '" << kernel.symbol << "' ('"
             << kernel.schedule << "'): " << status.message() << "\n";
      result = std::max<int>(result, kFound);
    }
    checkTuning(*package, io);
    io.out << path << ": " << good << " of " << package->kernels().size()
           << " kernels are sound, for " << package->target().str() << "\n";
    Sound &added = sound.emplace_back(Sound{path, package->target(), {}});
    for (const KernelRecord &kernel : package->kernels())
      if (kernel.problem.score)
        added.programs[kernel.problem.score] = kernel.score.text;
  }
  if (options.load != "none") {
    Loader loader(sound, options.load);
    for (const Sound &package : sound)
      if (!loader.load(package, io))
        result = std::max<int>(result, kFound);
  }
  return result;
}

} // namespace fovea::pkg

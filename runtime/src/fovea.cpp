//===- fovea.cpp - the C interface ----------------------------------------===//
//
// Each function translates its arguments and calls the context. Nothing leaves
// as an exception: a failure is a status and the calling thread's message.
//
//===----------------------------------------------------------------------===//

#include "fovea/fovea.h"

#include "Context.h"
#include "LastMessage.h"
#include "Params.h"
#include "Versioned.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <new>

using namespace fovea::rt;

struct fovea_context : Context {};

namespace {

/// Runs a call's body and keeps its message, its cause and HIP's error.
template <typename Body>
fovea_status_t call(Body body) noexcept {
  lastHipError = 0;
  lastCause = FOVEA_CAUSE_NONE;
  try {
    Result result = body();
    lastHipError = result.hipError;
    lastCause = result.cause;
    keepMessage(std::move(result.message));
    return result.code;
  } catch (const std::bad_alloc &) {
    keepMessage("memory ran out; free some and call again");
    return FOVEA_STATUS_OUT_OF_MEMORY;
  } catch (...) { // a callback of the caller's may throw anything
    keepMessage(
        "an exception came out of libfovea, or of the log or explain function");
    return FOVEA_STATUS_INTERNAL;
  }
}

/// The same for calls on a context.
template <typename Body>
fovea_status_t callOn(fovea_context_t *context, Body body) noexcept {
  return call([&] { return context ? body() : invalid("context is NULL"); });
}

constexpr const char *kStatusNames[] = {
    "FOVEA_STATUS_OK",        "FOVEA_STATUS_INVALID_ARGUMENT",
    "FOVEA_STATUS_NOT_FOUND", "FOVEA_STATUS_INCOMPATIBLE",
    "FOVEA_STATUS_CORRUPT",   "FOVEA_STATUS_IO",
    "FOVEA_STATUS_BUSY",      "FOVEA_STATUS_NO_DEVICE",
    "FOVEA_STATUS_HIP_ERROR", "FOVEA_STATUS_OUT_OF_MEMORY",
    "FOVEA_STATUS_INTERNAL",
};
static_assert(std::size(kStatusNames) == FOVEA_STATUS_INTERNAL + 1);

/// Writes what launches are made of where the caller has room for them.
void fill(const Plan &chosen, fovea_forward_plan_t &filled) {
  std::copy_n(chosen.launches[0].grid, 3, filled.grid);
  filled.threads = chosen.launches[0].threads;
  filled.splits = uint32_t(chosen.splits);
}
void fill(const Plan &chosen, fovea_backward_plan_t &filled) {
  static_assert(sizeof(filled.launches) / sizeof(filled.launches[0]) >=
                fovea::spec::kMaxLaunches);
  for (uint32_t i = 0; i != chosen.launchCount; ++i) {
    std::copy_n(chosen.launches[i].grid, 3, filled.launches[i].grid);
    filled.launches[i].threads = chosen.launches[i].threads;
  }
}

/// Reads parameters as far as they and the context say what is wanted.
template <typename Params>
Result readProblem(const Context &context, const Params *params,
                   Problem &problem) {
  Result result = readParams(params, problem);
  problem.onDemand = context.compilesAlways() && problem.kernel == 0;
  problem.compiles = context.compiles() && problem.kernel == 0;
  return result;
}

/// The body of a select or prepare function: reads a problem, chooses its
/// kernels and, if there is a `plan`, writes that.
/// \param load  loads the kernels as well
/// \param firstSize  of the plan's structure in its first version
template <typename Params, typename Out>
Result select(Context &context, const Params *params, int32_t device, bool load,
              Out *plan, uint32_t firstSize) {
  Out filled{};
  if (plan)
    if (Result result = checkSize("plan", plan, firstSize); !result.ok())
      return result;
  Problem problem;
  if (Result result = readProblem(context, params, problem); !result.ok())
    return result;
  std::string text = "nothing to compute: no launch";
  if (!problem.empty()) {
    Plan chosen;
    if (Result result = context.select(problem, device, load, chosen, text);
        !result.ok())
      return result;
    filled.kernel = chosen.kernel().id;
    filled.chosen_by = chosen.chosenBy;
    filled.launch_count = chosen.launchCount;
    filled.workspace_bytes = chosen.workspaceBytes;
    filled.provisional = chosen.provisional;
    fill(chosen, filled);
  }
  if (plan)
    writeVersioned(plan, filled);
  return Result(FOVEA_STATUS_OK, text);
}

/// The body of an explaining function.
template <typename Params>
Result explain(Context &context, const Params *params, int32_t device,
               fovea_explain_fn function, void *user) {
  if (!function)
    return invalid("explain is NULL");
  Problem problem;
  if (Result result = readProblem(context, params, problem); !result.ok())
    return result;
  if (problem.empty())
    return Result(FOVEA_STATUS_OK, "nothing to compute: no launch");
  return context.explain(problem, device, [&](const Step &step) {
    fovea_candidate_t candidate{};
    candidate.struct_size = sizeof(candidate);
    candidate.kernel = step.kernel;
    candidate.state = step.state;
    candidate.name = step.name.c_str();
    candidate.reason = step.reason.c_str();
    function(user, &candidate);
  });
}

/// Launches what launchAgain() did not.
template <typename Params>
Result launchAnew(Context &context, const Params *params, const Call &given,
                  void *stream, const Attempt &before) {
  Problem problem;
  if (Result result = readProblem(context, params, problem); !result.ok())
    return result;
  if (problem.empty())
    return Result();
  if (Result result = checkLaunchAddresses(problem); !result.ok())
    return result;
  return context.launch(problem, given, stream, before);
}

/// The body of a launching function.
template <typename Params>
Result launch(Context &context, const Params *params, void *stream) {
  const Call given(params);
  Attempt attempt;
  if (context.launchAgain(given, stream, attempt))
    return Result();
  return launchAnew(context, params, given, stream, attempt);
}

} // namespace

uint32_t fovea_version(void) { return FOVEA_VERSION; }

const char *fovea_status_name(fovea_status_t status) {
  return status >= 0 && status < fovea_status_t(std::size(kStatusNames))
             ? kStatusNames[status]
             : "unknown fovea_status_t";
}

const char *fovea_last_message(void) { return lastMessage(); }

int32_t fovea_last_hip_error(void) { return lastHipError; }

int32_t fovea_last_cause(void) { return lastCause; }

fovea_status_t fovea_context_create(const fovea_context_options_t *options,
                                    fovea_context_t **context) {
  return call([&]() -> Result {
    if (!context)
      return invalid("context is NULL");
    *context = nullptr;
    auto made = std::make_unique<fovea_context>();
    if (Result result = made->configure(options); !result.ok())
      return result;
    *context = made.release();
    return Result();
  });
}

void fovea_context_destroy(fovea_context_t *context) {
  (void)call([&] {
    delete context;
    return Result();
  });
}

fovea_status_t fovea_hip_library_info(fovea_context_t *context,
                                      fovea_hip_library_info_t *info) {
  return callOn(context, [&]() -> Result {
    if (Result result = checkSize("info", info, kHipInfoFirstSize);
        !result.ok())
      return result;
    Hip *library;
    if (Result result = context->hip(library); !result.ok())
      return result;
    fovea_hip_library_info_t filled{};
    filled.kind = library->api.kind;
    filled.path = library->api.path.c_str();
    filled.reason = library->api.reason.c_str();
    filled.runtime_version = library->api.runtimeVersion;
    filled.device_count = library->api.deviceCount;
    writeVersioned(info, filled);
    return Result();
  });
}

void *fovea_hip_symbol(fovea_context_t *context, const char *name) {
  void *address = nullptr;
  (void)callOn(context, [&]() -> Result {
    if (!name)
      return invalid("name is NULL");
    Hip *library;
    if (Result result = context->hip(library); !result.ok())
      return result;
    address = dlsym(library->api.handle, name);
    return address ? Result()
                   : Result(FOVEA_STATUS_NOT_FOUND,
                            "the HIP library " + library->api.path +
                                " has no function '" + name + "'");
  });
  return address;
}

fovea_status_t fovea_device_info(fovea_context_t *context, int32_t device,
                                 fovea_device_info_t *info) {
  return callOn(context, [&]() -> Result {
    if (Result result = checkSize("info", info, kDeviceInfoFirstSize);
        !result.ok())
      return result;
    Hip *library;
    Device *found;
    if (Result result = context->device(device, library, found); !result.ok())
      return result;
    fovea_device_info_t filled{};
    filled.compute_units = found->traits.computeUnits;
    filled.arch = found->arch.c_str();
    writeVersioned(info, filled);
    return Result();
  });
}

fovea_status_t fovea_package_open(fovea_context_t *context, const char *path) {
  return callOn(context, [&] {
    return path ? context->openPackage(path) : invalid("path is NULL");
  });
}

size_t fovea_kernel_count(fovea_context_t *context) {
  size_t count = 0;
  (void)callOn(context, [&] {
    count = context->catalog()->kernels().size();
    return Result();
  });
  return count;
}

fovea_status_t fovea_kernel_info(fovea_context_t *context, uint32_t id,
                                 fovea_kernel_info_t *info) {
  return callOn(context, [&]() -> Result {
    if (Result result = checkSize("info", info, kKernelInfoFirstSize);
        !result.ok())
      return result;
    // Kernels live as long as the context: each catalog holds all of the last
    // one's, so the texts outlive this catalog.
    const std::shared_ptr<const Catalog> catalog = context->catalog();
    const Kernel *kernel = catalog->find(id);
    if (!kernel)
      return invalid("id is " + std::to_string(id) + ", not in 1 to " +
                     std::to_string(catalog->kernels().size()) +
                     ", the number of kernels in the open packages");
    const fovea::KernelRecord &record = *kernel->record;
    fovea_kernel_info_t filled{};
    filled.id = id;
    filled.package = kernel->package->path().c_str();
    filled.target = kernel->target.c_str();
    filled.problem = kernel->problem.c_str();
    filled.schedule = record.schedule.c_str();
    filled.symbol = record.symbol.c_str();
    filled.abi_version = record.abiVersion;
    filled.block_m = record.blockM;
    filled.block_n = record.blockN;
    filled.threads = record.threads;
    filled.vgprs = record.resources.vgprs;
    filled.agprs = record.resources.agprs;
    filled.sgprs = record.resources.sgprs;
    filled.lds_bytes = record.resources.ldsBytes;
    filled.scratch_bytes = record.resources.scratchBytes;
    filled.occupancy = record.resources.occupancy;
    filled.matrix_instructions = record.resources.matrixInstructions;
    filled.code_bytes = record.resources.codeBytes;
    filled.compile_ms = record.compileMs;
    filled.vgpr_spills = record.resources.vgprSpills;
    filled.sgpr_spills = record.resources.sgprSpills;
    writeVersioned(info, filled);
    return Result();
  });
}

fovea_status_t fovea_forward_select(fovea_context_t *context,
                                    const fovea_forward_params_t *params,
                                    int32_t device,
                                    fovea_forward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/false, plan,
                  kForwardPlanFirstSize);
  });
}

fovea_status_t fovea_forward_prepare(fovea_context_t *context,
                                     const fovea_forward_params_t *params,
                                     int32_t device,
                                     fovea_forward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/true, plan,
                  kForwardPlanFirstSize);
  });
}

fovea_status_t fovea_forward_explain(fovea_context_t *context,
                                     const fovea_forward_params_t *params,
                                     int32_t device, fovea_explain_fn explain,
                                     void *user) {
  return callOn(context, [&] {
    return ::explain(*context, params, device, explain, user);
  });
}

fovea_status_t fovea_forward(fovea_context_t *context,
                             const fovea_forward_params_t *params,
                             void *stream) {
  return callOn(context, [&] { return launch(*context, params, stream); });
}

fovea_status_t fovea_backward_select(fovea_context_t *context,
                                     const fovea_backward_params_t *params,
                                     int32_t device,
                                     fovea_backward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/false, plan,
                  kBackwardPlanFirstSize);
  });
}

fovea_status_t fovea_backward_prepare(fovea_context_t *context,
                                      const fovea_backward_params_t *params,
                                      int32_t device,
                                      fovea_backward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/true, plan,
                  kBackwardPlanFirstSize);
  });
}

fovea_status_t fovea_backward_explain(fovea_context_t *context,
                                      const fovea_backward_params_t *params,
                                      int32_t device, fovea_explain_fn explain,
                                      void *user) {
  return callOn(context, [&] {
    return ::explain(*context, params, device, explain, user);
  });
}

fovea_status_t fovea_backward(fovea_context_t *context,
                              const fovea_backward_params_t *params,
                              void *stream) {
  return callOn(context, [&] { return launch(*context, params, stream); });
}

fovea_status_t
fovea_dropout_mask_select(fovea_context_t *context,
                          const fovea_dropout_mask_params_t *params,
                          int32_t device, fovea_forward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/false, plan,
                  kForwardPlanFirstSize);
  });
}

fovea_status_t
fovea_dropout_mask_prepare(fovea_context_t *context,
                           const fovea_dropout_mask_params_t *params,
                           int32_t device, fovea_forward_plan_t *plan) {
  return callOn(context, [&] {
    return select(*context, params, device, /*load=*/true, plan,
                  kForwardPlanFirstSize);
  });
}

fovea_status_t fovea_dropout_mask_explain(
    fovea_context_t *context, const fovea_dropout_mask_params_t *params,
    int32_t device, fovea_explain_fn explain, void *user) {
  return callOn(context, [&] {
    return ::explain(*context, params, device, explain, user);
  });
}

fovea_status_t fovea_dropout_mask(fovea_context_t *context,
                                  const fovea_dropout_mask_params_t *params,
                                  void *stream) {
  return callOn(context, [&] { return launch(*context, params, stream); });
}

fovea_status_t fovea_score_text(fovea_context_t *context, int32_t dtype,
                                const char *program, const char *text,
                                const char **canonical) {
  return callOn(context, [&]() -> Result {
    if (!program || !canonical)
      return invalid(std::string(program ? "canonical" : "program") +
                     " is NULL");
    *canonical = nullptr;
    return context->scoreText(dtype, program, text, *canonical);
  });
}

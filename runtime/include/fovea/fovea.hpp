//===- fovea.hpp - the C interface in C++17 ---------------------*- C++ -*-===//
//
// A thin layer over fovea.h, in this header alone: contexts that end
// themselves, one function for both operations, texts and lists that are the
// caller's own. The structures are those of fovea.h, whose documentation holds.
//
//   fovea::Context context;
//   context.openPackage("/usr/share/kernels");
//   auto p = fovea::make<fovea_forward_params_t>(); // then fill it in
//   context.launch(p, stream);
//
// Failures are exceptions, fovea::Error; code without exceptions calls fovea.h.
// All functions may be called from any thread; a launch costs what it does in
// C.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_FOVEA_HPP
#define FOVEA_FOVEA_HPP

#include "fovea/fovea.h"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

/// A call that has failed: what() is fovea_last_message().
class Error : public std::runtime_error {
public:
  Error(fovea_status_t status, const std::string &message,
        int32_t cause = FOVEA_CAUSE_NONE)
      : std::runtime_error(message), code(status), why(cause) {}
  fovea_status_t status() const noexcept { return code; }
  int32_t cause() const noexcept { return why; } ///< FOVEA_CAUSE_...

private:
  fovea_status_t code;
  int32_t why;
};

/// A structure of fovea.h that is zero but for its size.
template <typename T>
T make() {
  T made{};
  made.struct_size = sizeof(T);
  return made;
}

/// Version of the library that runs, to compare with FOVEA_VERSION.
inline uint32_t version() noexcept { return fovea_version(); }

/// A step of a choice, as fovea_candidate_t.
struct Candidate {
  uint32_t kernel; ///< its id; 0: a tuning row
  int32_t state;   ///< FOVEA_CANDIDATE_...
  std::string name, reason;
};

/// A choice and how it came about.
struct Explanation {
  fovea_status_t status; ///< OK: a kernel was chosen
  std::string message;   ///< the choice, or why there is none
  std::vector<Candidate> candidates;
};

/// What differs between the operations: their structures and functions.
template <typename Params>
struct CallsOf;
template <>
struct CallsOf<fovea_forward_params_t> {
  using Plan = fovea_forward_plan_t;
  static constexpr auto select = fovea_forward_select;
  static constexpr auto prepare = fovea_forward_prepare;
  static constexpr auto explain = fovea_forward_explain;
  static constexpr auto launch = fovea_forward;
};
template <>
struct CallsOf<fovea_backward_params_t> {
  using Plan = fovea_backward_plan_t;
  static constexpr auto select = fovea_backward_select;
  static constexpr auto prepare = fovea_backward_prepare;
  static constexpr auto explain = fovea_backward_explain;
  static constexpr auto launch = fovea_backward;
};
template <>
struct CallsOf<fovea_dropout_mask_params_t> {
  using Plan = fovea_forward_plan_t;
  static constexpr auto select = fovea_dropout_mask_select;
  static constexpr auto prepare = fovea_dropout_mask_prepare;
  static constexpr auto explain = fovea_dropout_mask_explain;
  static constexpr auto launch = fovea_dropout_mask;
};
template <typename Params>
using PlanOf = typename CallsOf<Params>::Plan;

/// Where a context's options differ from the defaults.
struct ContextOptions {
  std::optional<std::string> hipLibrary; ///< "rocm", "sim", "auto" or a path
  std::optional<std::string> log;        ///< "off", "info" or "dispatch"
  /// Receives the lines of the log, from any thread; may not throw.
  std::function<void(const char *line)> logger;
};

/// Open packages, the HIP library, and the modules loaded from them. Moved
/// from, a context is empty, and may only be destroyed or assigned to.
class Context {
public:
  explicit Context(const ContextOptions &given = {}) {
    auto options = make<fovea_context_options_t>();
    options.hip_library =
        given.hipLibrary ? given.hipLibrary->c_str() : nullptr;
    options.log = given.log ? given.log->c_str() : nullptr;
    if (given.logger) {
      logger = std::make_unique<Logger>(given.logger);
      options.log_user = logger.get();
      options.log_fn = [](void *user, const char *line) {
        (*static_cast<Logger *>(user))(line);
      };
    }
    fovea_context_t *made = nullptr;
    check(fovea_context_create(&options, &made));
    handle.reset(made);
  }
  Context(Context &&) noexcept = default;
  Context &operator=(Context &&other) noexcept {
    handle = std::move(other.handle); // its end may be logged
    logger = std::move(other.logger);
    return *this;
  }

  /// For what is not here. Stays the context's own.
  fovea_context_t *get() const noexcept { return handle.get(); }

  //===--------------------------------------------------------------------===//
  // HIP library and devices
  //===--------------------------------------------------------------------===//

  fovea_hip_library_info_t hipLibrary() const {
    auto info = make<fovea_hip_library_info_t>();
    check(fovea_hip_library_info(get(), &info));
    return info;
  }
  /// A function of the HIP library, of a type like int (*)(void **, size_t). Its
  /// error has the status NOT_FOUND, whatever the reason in its message.
  template <typename Function>
  Function hipSymbol(const char *name) const {
    void *address = fovea_hip_symbol(get(), name);
    if (!address)
      throw Error(FOVEA_STATUS_NOT_FOUND, fovea_last_message(),
                  fovea_last_cause());
    return reinterpret_cast<Function>(address);
  }
  /// \param number  -1: the calling thread's current device
  fovea_device_info_t device(int32_t number = -1) const {
    auto info = make<fovea_device_info_t>();
    check(fovea_device_info(get(), number, &info));
    return info;
  }

  //===--------------------------------------------------------------------===//
  // Packages and kernels
  //===--------------------------------------------------------------------===//

  /// Opens a package, or all packages of a folder.
  void openPackage(const std::string &path) {
    check(fovea_package_open(get(), path.c_str()));
  }
  size_t kernelCount() const { return fovea_kernel_count(get()); }
  /// \param id  1 to kernelCount()
  fovea_kernel_info_t kernel(uint32_t id) const {
    auto info = make<fovea_kernel_info_t>();
    check(fovea_kernel_info(get(), id, &info));
    return info;
  }

  //===--------------------------------------------------------------------===//
  // Attention: Params is fovea_forward_params_t or fovea_backward_params_t;
  // the mask of dropout: fovea_dropout_mask_params_t
  //===--------------------------------------------------------------------===//

  /// The kernel for a problem; while its stream is being captured, of those
  /// that are loaded. \param device  -1: the thread's current device
  template <typename Params>
  PlanOf<Params> select(const Params &params, int32_t device = -1) const {
    auto plan = make<PlanOf<Params>>();
    check(CallsOf<Params>::select(get(), &params, device, &plan));
    return plan;
  }
  /// The same; none where no kernel fits, of which lastMessage() tells why.
  template <typename Params>
  std::optional<PlanOf<Params>> find(const Params &params,
                                     int32_t device = -1) const {
    auto plan = make<PlanOf<Params>>();
    const fovea_status_t status =
        CallsOf<Params>::select(get(), &params, device, &plan);
    if (status == FOVEA_STATUS_NOT_FOUND)
      return std::nullopt;
    check(status);
    return plan;
  }
  /// Selects, and loads what a launch needs.
  template <typename Params>
  PlanOf<Params> prepare(const Params &params, int32_t device = -1) const {
    auto plan = make<PlanOf<Params>>();
    check(CallsOf<Params>::prepare(get(), &params, device, &plan));
    return plan;
  }
  /// Tells how the choice comes about. That there is no kernel is an answer
  /// here and no exception.
  template <typename Params>
  Explanation explain(const Params &params, int32_t device = -1) const {
    Explanation explanation;
    explanation.status = CallsOf<Params>::explain(
        get(), &params, device,
        [](void *user, const fovea_candidate_t *candidate) {
          static_cast<Explanation *>(user)->candidates.push_back(
              {candidate->kernel, candidate->state, candidate->name,
               candidate->reason});
        },
        &explanation);
    if (explanation.status != FOVEA_STATUS_NOT_FOUND)
      check(explanation.status);
    explanation.message = fovea_last_message();
    return explanation;
  }
  /// Enqueues the pass on a stream of the thread's current device.
  template <typename Params>
  void launch(const Params &params, void *stream = nullptr) const {
    check(CallsOf<Params>::launch(get(), &params, stream));
  }

private:
  using Logger = std::function<void(const char *)>;
  struct Destroy {
    void operator()(fovea_context_t *context) const noexcept {
      fovea_context_destroy(context);
    }
  };

  static void check(fovea_status_t status) {
    if (status != FOVEA_STATUS_OK)
      throw Error(status, fovea_last_message(), fovea_last_cause());
  }

  // The context logs to the last, so it goes first.
  std::unique_ptr<Logger> logger;
  std::unique_ptr<fovea_context_t, Destroy> handle;
};

/// What the calling thread's latest call had to say, as fovea_last_message().
inline std::string lastMessage() { return fovea_last_message(); }

} // namespace fovea

#endif // FOVEA_FOVEA_HPP

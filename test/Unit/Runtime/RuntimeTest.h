//===- RuntimeTest.h - fixture of the runtime's tests -----------*- C++ -*-===//
//
// A folder, a fake HIP library set back to its defaults, and shorthands for
// contexts, packages and parameters.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_RUNTIME_RUNTIMETEST_H
#define FOVEA_TEST_UNIT_RUNTIME_RUNTIMETEST_H

#include "../Package/TestPackage.h"
#include "FakeHip.h"

#include "fovea/fovea.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace fovea::test {

struct ContextDeleter {
  void operator()(fovea_context_t *context) const {
    fovea_context_destroy(context);
  }
};
using ContextPtr = std::unique_ptr<fovea_context_t, ContextDeleter>;

/// Expects a status, and a message that contains each of `parts`.
inline void expectStatus(fovea_status_t got, fovea_status_t wanted,
                         std::initializer_list<const char *> parts = {}) {
  const std::string message = fovea_last_message();
  EXPECT_STREQ(fovea_status_name(got), fovea_status_name(wanted)) << message;
  for (const char *part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << message;
}

inline void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

/// Where the n-th tensor of a call is: nothing is there, and none of the sizes
/// that tests have reaches the next one.
inline constexpr uintptr_t kBetweenPlaces = uintptr_t(1) << 44;
inline void *place(int n, uintptr_t offset = 0) {
  return at(uintptr_t(n) * kBetweenPlaces + offset);
}

/// A change to parameters that breaks a rule, and what the message says of it.
template <typename Params>
struct Rule {
  std::function<void(Params &)> change;
  const char *part;
};

/// The rules of what forward and backward parameters share.
template <typename Params>
std::vector<Rule<Params>> commonRules() {
  return {
      {[](Params &p) { p.dtype = 0; }, "dtype is 0"},
      {[](Params &p) { p.mask = 3; }, "mask is 3"},
      {[](Params &p) { p.mask = -1; }, "mask is -1"},
      {[](Params &p) { p.head_dim = 577; }, "head_dim is 577, not in 1 to 576"},
      {[](Params &p) { p.head_dim = 513; },
       "head_dim is 513, and so is that of v"},
      {[](Params &p) { p.head_dim = 0; }, "head_dim is 0"},
      {[](Params &p) { p.head_dim = 520; }, "head_dim is 520"},
      {[](Params &p) { p.batch = -1; }, "batch is -1, not in 0 to 65535"},
      {[](Params &p) { p.batch = 65536; }, "batch is 65536"},
      {[](Params &p) { p.heads_q = -8; }, "heads_q is -8"},
      {[](Params &p) { p.heads_k = 3; },
       "heads_q (8) must be a multiple of heads_k (3)"},
      {[](Params &p) { p.heads_k = 0; }, "multiple of heads_k (0)"},
      {[](Params &p) { p.heads_k = -2; }, "heads_k is -2"},
      {[](Params &p) { p.seqlen_q = int64_t(1) << 31; },
       "seqlen_q is 2147483648"},
      {[](Params &p) { p.seqlen_k = -1; }, "seqlen_k is -1"},
      {[](Params &p) { p.scale = NAN; }, "scale is nan"},
      {[](Params &p) { p.scale = INFINITY; }, "scale is inf"},
      {[](Params &p) { p.scale = -2.36e38f; },
       "scale is -2.36e+38; it must be a number from -2.35866e+38 to "
       "2.35866e+38"},
      {[](Params &p) { p.reserved = 1; }, "reserved is 1"},
      {[](Params &p) { p.q.stride_batch = -1; }, "q.stride_batch is -1"},
      {[](Params &p) { p.k.stride_head = -1; }, "k.stride_head is -1"},
      {[](Params &p) { p.v.stride_seq = -128; },
       "v.stride_seq is -128, not in 0 to 4194303"},
      {[](Params &p) { p.q.stride_seq = 4194304; },
       "q.stride_seq is 4194304, not in 0 to 4194303"},
      {[](Params &p) {
         p.k.stride_batch = std::numeric_limits<int64_t>::max();
       },
       "k spans more than 2^56"},
      {[](Params &p) { p.q.data = nullptr; }, "q.data is NULL"},
      {[](Params &p) { p.k.data = nullptr; }, "k.data is NULL"},
      {[](Params &p) { p.v.data = nullptr; }, "v.data is NULL"},
      {[](Params &p) { p.out.data = nullptr; }, "out.data is NULL"},
      {[](Params &p) { p.k.data = place(2, 1); },
       "k.data is 35184372088833, no multiple of the element size (2 bytes)"},
      {[](Params &p) { p.kernel = 9; }, "kernel is 9, not an id"},
  };
}

/// Expects `call` to refuse the parameters of `make` with each change.
template <typename Params, typename Call>
void expectRefused(const std::vector<Rule<Params>> &rules, Params (*make)(),
                   Call call) {
  for (const Rule<Params> &rule : rules) {
    Params p = make();
    rule.change(p);
    expectStatus(call(&p), FOVEA_STATUS_INVALID_ARGUMENT, {rule.part});
  }
}

/// State of a fake library, set back to its defaults.
inline FakeHipState &fakeState(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  auto get =
      reinterpret_cast<FakeHipStateFn>(dlsym(handle, "fovea_fake_hip_state"));
  FakeHipState &state = *get();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.archs = {"gfx942:sramecc+:xnack-"};
  state.computeUnits = 304;
  state.currentDevice = 0;
  state.capturing = nullptr;
  state.captureMode = 0;
  state.runtimeVersion.reset();
  state.propertiesWritten = true;
  state.propertiesUnits.reset();
  state.newFieldAt = SIZE_MAX;
  state.newFieldBytes = 0;
  state.resetCountdown = 0;
  state.resetsAfterLoads = 0;
  state.calls.clear();
  state.launches.clear();
  state.failFunction.clear();
  return state;
}

/// What a launch passed in an argument of its kernel's signature.
template <typename T>
T passedIn(const FakeLaunch &launch, const spec::Signature &signature,
           const char *name) {
  T value{};
  const spec::Argument *argument = signature.find(name);
  EXPECT_TRUE(argument) << name;
  EXPECT_EQ(launch.argumentBytes, signature.bytes) << name;
  if (!argument || launch.argumentSegment.size() < signature.bytes)
    return value;
  EXPECT_EQ(sizeof(value), size_t(spec::sizeOf(argument->kind))) << name;
  std::memcpy(&value, launch.argumentSegment.data() + argument->offset,
              sizeof(value));
  return value;
}

class RuntimeTest : public ::testing::Test {
protected:
  TempDir dir;
  const std::string path = dir.file("gfx942.fovea");
  FakeHipState &fake = fakeState(FAKE_HIP6);

  /// A context on a HIP library; `openPackage` if the package file is there.
  /// With `log`, which receives the lines of all levels.
  ContextPtr makeContext(const char *library = FAKE_HIP6,
                         std::string *log = nullptr) {
    fovea_context_options_t options{};
    options.struct_size = sizeof(options);
    options.hip_library = library;
    if (log) {
      options.log = "dispatch";
      options.log_user = log;
      options.log_fn = [](void *user, const char *line) {
        *static_cast<std::string *>(user) += std::string(line) + "\n";
      };
    }
    fovea_context_t *context = nullptr;
    expectStatus(fovea_context_create(&options, &context), FOVEA_STATUS_OK);
    ContextPtr owner(context);
    if (std::filesystem::exists(path))
      expectStatus(fovea_package_open(context, path.c_str()), FOVEA_STATUS_OK);
    return owner;
  }

  /// Stores kernels, each with its symbol as the payload of its image.
  void write(const std::vector<KernelRecord> &records,
             const std::vector<TuningRow> &tuning = {},
             const std::string &target = "gfx942") {
    writeTo(path, records, tuning, target);
  }
  static void writeTo(const std::string &path,
                      const std::vector<KernelRecord> &records,
                      const std::vector<TuningRow> &tuning = {},
                      const std::string &target = "gfx942") {
    const TargetId id = *TargetId::parse(target);
    Expected<PackageWriter> writer = PackageWriter::open(path, id);
    ASSERT_TRUE(writer) << writer.status().message();
    auto bits = [](FeatureState state) -> uint32_t {
      return state == FeatureState::Any   ? 1
             : state == FeatureState::Off ? 2
                                          : 3;
    };
    for (const KernelRecord &record : records) {
      std::vector<uint8_t> image =
          makeImage(id.arch, record.symbol, bits(id.xnack), bits(id.sramecc));
      FOVEA_ASSERT_OK(writer->put(record, image.data(), image.size()));
    }
    for (const TuningRow &row : tuning)
      FOVEA_ASSERT_OK(writer->putTuning(row));
  }

  /// The problem bf16, head dimension 128, no mask: batch 2, heads 8 over 2,
  /// lengths 300 x 500, packed in the order of the shape.
  template <typename Params>
  static Params makeProblemParams() {
    Params p{};
    p.struct_size = sizeof(p);
    p.dtype = FOVEA_DTYPE_BF16;
    p.mask = FOVEA_MASK_NONE;
    p.scale = 0.125f;
    p.batch = 2;
    p.heads_q = 8;
    p.heads_k = 2;
    p.seqlen_q = 300;
    p.seqlen_k = 500;
    p.head_dim = 128;
    p.q = {place(1), 8 * 300 * 128, 300 * 128, 128};
    p.k = {place(2), 2 * 500 * 128, 500 * 128, 128};
    p.v = {place(3), 2 * 500 * 128, 500 * 128, 128};
    p.out = {place(4), 8 * 300 * 128, 300 * 128, 128};
    return p;
  }
  static fovea_forward_params_t makeParams() {
    return makeProblemParams<fovea_forward_params_t>();
  }

  /// What a launch passed to a kernel of that record in an argument.
  template <typename T>
  T passed(const KernelRecord &record, const char *name,
           size_t launch = 0) const {
    EXPECT_LT(launch, fake.launches.size());
    return launch < fake.launches.size()
               ? passedIn<T>(fake.launches[launch],
                             spec::signatureOf(record.problem), name)
               : T();
  }

  /// The launches' kernels, "bwd_delta bwd_dkdv"; forgets them.
  std::string launched() {
    std::string names;
    for (const FakeLaunch &launch : fake.launches)
      names += (names.empty() ? "" : " ") + launch.function;
    fake.launches.clear();
    return names;
  }

  void fail(const char *function, int nth, int error) {
    std::lock_guard<std::mutex> lock(fake.mutex);
    fake.failFunction = function;
    fake.failCountdown = nth;
    fake.failError = error;
  }
};

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_RUNTIME_RUNTIMETEST_H

//===- VersionsTest.cpp - callers of other versions -----------------------===//
//
// Every structure as a caller of the first version has it, of a version that
// never was, and of a later one. The sizes are written out: what the library is
// built with may grow, what programs were built with does not.
//
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <cstring>

using namespace fovea;
using namespace fovea::test;

namespace {

constexpr size_t kLater = 64; // bytes of fields that this library lacks
constexpr unsigned char kUntouched = 0xab;

/// A structure in a caller's memory, with more behind it.
class Caller {
public:
  explicit Caller(size_t bytes) : memory(bytes + 2 * kLater, kUntouched) {}
  template <typename T>
  explicit Caller(const T &content, size_t first) : Caller(first) {
    std::memset(memory.data(), 0, first + kLater);
    std::memcpy(memory.data(), &content, std::min(sizeof(T), first));
  }
  template <typename T>
  T *as(uint32_t size) {
    std::memcpy(memory.data(), &size, sizeof(size));
    return reinterpret_cast<T *>(memory.data());
  }
  bool isUntouchedFrom(size_t begin) const {
    return std::all_of(memory.begin() + long(begin), memory.end(),
                       [](unsigned char byte) { return byte == kUntouched; });
  }
  unsigned char &operator[](size_t at) { return memory[at]; }

private:
  std::vector<unsigned char> memory; // aligned as operator new does
};

class VersionsTest : public RuntimeTest {
protected:
  void SetUp() override {
    write({makeRecord(makeProblem(128))});
    KernelRecord gradients = makeBackwardRecord();
    gradients.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
    Expected<PackageWriter> writer =
        PackageWriter::open(path, *TargetId::parse("gfx942"));
    ASSERT_TRUE(writer);
    FOVEA_ASSERT_OK(putFake(*writer, gradients,
                            "gradients_delta gradients_dkdv gradients_dq"));
    context = makeContext();
  }

  static fovea_backward_params_t makeGradients() {
    auto p = makeProblemParams<fovea_backward_params_t>();
    p.dout = p.q;
    p.lse = static_cast<float *>(place(6));
    p.lse_stride_batch = 8 * 300;
    p.lse_stride_head = 300;
    p.dq = {place(7), p.q.stride_batch, p.q.stride_head, p.q.stride_seq};
    return p;
  }

  /// A structure that the library fills in.
  template <typename T, typename Call>
  static void expectFilled(uint32_t first, Call call) {
    ASSERT_GE(sizeof(T), first);
    for (const uint32_t size : {first, uint32_t(first + kLater)}) {
      Caller caller(first);
      expectStatus(call(caller.as<T>(size)), FOVEA_STATUS_OK);
      EXPECT_TRUE(caller.isUntouchedFrom(std::min<size_t>(size, sizeof(T))));
      uint32_t kept;
      std::memcpy(&kept, &caller[0], sizeof(kept));
      EXPECT_EQ(kept, size);
    }
    for (const uint32_t size : {0u, 4u, first - 1, 65537u, ~0u}) {
      Caller caller(first);
      expectStatus(call(caller.as<T>(size)), FOVEA_STATUS_INVALID_ARGUMENT,
                   {"struct_size is"});
      EXPECT_TRUE(caller.isUntouchedFrom(4));
    }
  }

  /// A structure that the library reads.
  template <typename T, typename Call>
  static void expectRead(const T &content, uint32_t first, Call call) {
    ASSERT_GE(sizeof(T), first);
    Caller caller(content, first);
    expectStatus(call(caller.as<T>(first)), FOVEA_STATUS_OK);
    expectStatus(call(caller.as<T>(first + kLater)), FOVEA_STATUS_OK);
    for (const size_t at : {sizeof(T), first + kLater - 1}) {
      caller[at] = 1; // a field that means something
      expectStatus(call(caller.as<T>(first + kLater)),
                   FOVEA_STATUS_INCOMPATIBLE,
                   {"fields of a later version", "update libfovea"});
      caller[at] = 0;
    }
    for (const uint32_t size : {0u, 4u, first - 1, 65537u, ~0u})
      expectStatus(call(caller.as<T>(size)), FOVEA_STATUS_INVALID_ARGUMENT,
                   {"struct_size is"});
  }

  ContextPtr context;
};

} // namespace

TEST_F(VersionsTest, StructuresThatAreFilledIn) {
  fovea_context_t *c = context.get();
  expectFilled<fovea_hip_library_info_t>(
      32, [&](auto *info) { return fovea_hip_library_info(c, info); });
  expectFilled<fovea_device_info_t>(
      16, [&](auto *info) { return fovea_device_info(c, 0, info); });
  expectFilled<fovea_kernel_info_t>(
      104, [&](auto *info) { return fovea_kernel_info(c, 1, info); });
  const fovea_forward_params_t p = makeParams();
  const fovea_backward_params_t g = makeGradients();
  for (auto select : {fovea_forward_select, fovea_forward_prepare})
    expectFilled<fovea_forward_plan_t>(
        28, [&](auto *plan) { return select(c, &p, 0, plan); });
  for (auto select : {fovea_backward_select, fovea_backward_prepare})
    expectFilled<fovea_backward_plan_t>(
        88, [&](auto *plan) { return select(c, &g, 0, plan); });
}

TEST_F(VersionsTest, StructuresThatAreRead) {
  fovea_context_t *c = context.get();
  fovea_context_options_t options{};
  options.hip_library = FAKE_HIP6;
  expectRead(options, 40, [](auto *given) {
    fovea_context_t *made = nullptr;
    const fovea_status_t status = fovea_context_create(given, &made);
    EXPECT_EQ(made != nullptr, status == FOVEA_STATUS_OK);
    if (made) // else the message is to stay
      fovea_context_destroy(made);
    return status;
  });
  auto ignore = [](void *, const fovea_candidate_t *) {};
  expectRead(makeParams(), 224, [&](auto *p) {
    const fovea_status_t status = fovea_forward(c, p, nullptr);
    EXPECT_EQ(fovea_forward_select(c, p, 0, nullptr), status);
    EXPECT_EQ(fovea_forward_prepare(c, p, 0, nullptr), status);
    EXPECT_EQ(fovea_forward_explain(c, p, 0, ignore, nullptr), status);
    return status;
  });
  fovea_backward_params_t g = makeGradients();
  g.workspace = place(10);
  g.workspace_bytes = 1 << 20;
  expectRead(g, 376, [&](auto *p) {
    const fovea_status_t status = fovea_backward(c, p, nullptr);
    EXPECT_EQ(fovea_backward_select(c, p, 0, nullptr), status);
    EXPECT_EQ(fovea_backward_prepare(c, p, 0, nullptr), status);
    EXPECT_EQ(fovea_backward_explain(c, p, 0, ignore, nullptr), status);
    return status;
  });
}

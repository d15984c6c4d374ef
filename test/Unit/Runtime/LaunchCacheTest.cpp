//===- LaunchCacheTest.cpp - launches that come again ---------------------===//
//
// Changes each word of calls that a thread has just launched, to values good
// and bad, and expects what a thread says and launches that has launched
// nothing before.
//
//===----------------------------------------------------------------------===//

#include "BackwardTest.h"

#include <thread>

using namespace fovea;
using namespace fovea::test;

namespace {

/// What a call said, and what HIP was given.
std::string outcomeOf(FakeHipState &fake, fovea_status_t status) {
  std::string text = std::string(fovea_status_name(status)) + ": " +
                     fovea_last_message() + "; cause " +
                     std::to_string(fovea_last_cause()) + "; ";
  for (const FakeLaunch &launch : fake.launches) {
    text += launch.function + " ";
    for (int i = 0; i != 3; ++i)
      text += std::to_string(launch.grid[i]) + "x" +
              std::to_string(launch.block[i]) + " ";
    char byte[4];
    for (unsigned char each : launch.argumentSegment) {
      std::snprintf(byte, sizeof(byte), "%02x ", each);
      text += byte;
    }
  }
  fake.launches.clear();
  return text;
}

/// A structure of a call, with zeros behind it, as far as a size may say that
/// it goes on.
template <typename T>
struct Padded {
  alignas(8) unsigned char bytes[65536 + sizeof(T)] = {};
  T &get() { return *reinterpret_cast<T *>(bytes); }
};

class LaunchCacheTest : public BackwardTest {
protected:
  LaunchCacheTest() {
    forward.get() = makeParams();
    forward.get().lse = static_cast<float *>(place(6));
    forward.get().lse_stride_batch = 8 * 300;
    forward.get().lse_stride_head = 300;
    backward.get() = makeBackward();
    // More than any number of rows that a changed call has.
    backward.get().workspace_bytes = uint64_t(1) << 40;
    varlen.get() = {
        {sizeof(fovea_varlen_t), FOVEA_GROUP_VARLEN, nullptr},
        {words(20), nullptr, FOVEA_LENGTHS_CUMULATIVE, FOVEA_ROWS_PACKED, 300},
        {words(21), words(22), FOVEA_LENGTHS_EACH, FOVEA_ROWS_PACKED, 500},
        0,
        FOVEA_LSE_AS_Q,
        0};
    dropout.get() = {{sizeof(fovea_dropout_t), FOVEA_GROUP_DROPOUT, nullptr},
                     0.5f,
                     FOVEA_PHILOX_0123,
                     7,
                     8,
                     numbers(23),
                     nullptr,
                     nullptr,
                     nullptr};
    window.get() = {{sizeof(fovea_window_t), FOVEA_GROUP_WINDOW, nullptr},
                    100,
                    50,
                    FOVEA_ALIGN_TOP_LEFT,
                    FOVEA_ALIGN_TOP_LEFT};
    sinks.get() = {{sizeof(fovea_sinks_t), FOVEA_GROUP_SINKS, nullptr},
                   static_cast<const float *>(place(24)),
                   1};
    dlse.get() = {{sizeof(fovea_dlse_t), FOVEA_GROUP_DLSE, nullptr},
                  static_cast<const float *>(place(25)),
                  8 * 300,
                  300};
    blocks.get().header = {sizeof(fovea_blocks_t), FOVEA_GROUP_BLOCKS, nullptr};
    blocks.get().q_block = blocks.get().kv_block = 128;
    blocks.get().kv = {words(26), 24, 3, words(27), 96, 12, 4, 4};
    dims.get() = {{sizeof(fovea_head_dims_t), FOVEA_GROUP_HEAD_DIMS, nullptr},
                  128};
  }

  static const int32_t *words(int n) {
    return static_cast<const int32_t *>(place(n));
  }
  static const uint64_t *numbers(int n) {
    return static_cast<const uint64_t *>(place(n));
  }

  /// Stores forward kernels, or backward ones, with those groups.
  void store(OpKind op, std::initializer_list<const char *> groups) {
    KernelRecord record =
        op == OpKind::Forward ? makeRecord(makeProblem()) : makeRows();
    for (const char *group : groups) {
      const size_t row = size_t(spec::findGroup(group));
      record.problem.groups[row] = spec::featureGroups()[row].version;
    }
    if (op == OpKind::Forward)
      write({record});
    else
      writeBackward(record);
    context = makeContext();
  }

  std::string launch() {
    return outcomeOf(
        fake, isForward
                  ? fovea_forward(context.get(), &forward.get(), nullptr)
                  : fovea_backward(context.get(), &backward.get(), nullptr));
  }
  /// The same by a thread that remembers nothing.
  std::string launchAnew() {
    std::string outcome;
    std::thread([&] { outcome = launch(); }).join();
    return outcome;
  }

  /// The first launch is forgotten, the second one remembered.
  static constexpr int kUntilRemembered = 3;

  /// Launches the call until it is remembered; what comes of it is good.
  void remember() {
    good = launchAnew();
    EXPECT_EQ(good.find("FOVEA_STATUS_OK"), 0u) << good;
    for (int i = 0; i != kUntilRemembered; ++i)
      EXPECT_EQ(launch(), good) << i;
  }

  /// Expects that the call's present state is launched, or refused, as if
  /// nothing had been before, right behind `good` and when it comes again.
  template <typename Restore>
  void expectAsAnew(Restore restore) {
    const std::string anew = launchAnew();
    for (int i = 0; i != kUntilRemembered; ++i)
      EXPECT_EQ(launch(), anew) << i;
    ++(anew.find("FOVEA_STATUS_OK") == 0 ? served : refused);
    restore();
    EXPECT_EQ(launch(), good);
  }

  /// Changes each word of a structure of the call but for `fixed`, a pointer
  /// that is followed.
  template <typename T>
  void changeEach(Padded<T> &structure, size_t fixed) {
    remember();
    const T was = structure.get();
    auto restore = [&] { structure.get() = was; };
    auto change = [&](size_t offset, auto value) {
      SCOPED_TRACE("offset " + std::to_string(offset) + ", value " +
                   std::to_string(value));
      std::memcpy(structure.bytes + offset, &value, sizeof(value));
      expectAsAnew(restore);
    };
    for (size_t offset = 0; offset != sizeof(T) && !HasFailure(); offset += 4) {
      if (offset / 8 == fixed / 8)
        continue;
      uint32_t old;
      std::memcpy(&old, structure.bytes + offset, sizeof(old));
      for (const uint32_t value :
           {0u, 1u, old + 1, 0x7fffffffu, 0x80000000u, 0xffffffffu})
        change(offset, value);
      if (offset % 8 != 0)
        continue;
      uint64_t wide;
      std::memcpy(&wide, structure.bytes + offset, sizeof(wide));
      for (const uint64_t value :
           {wide + 2, wide + 16, ~uint64_t(0), uint64_t(1) << 63,
            ~uint64_t(0) >> 1, ~uint64_t(0) << 4,
            uint64_t(4) * kBetweenPlaces + 256, uint64_t(1) * kBetweenPlaces,
            uint64_t(20) * kBetweenPlaces, uint64_t(40) * kBetweenPlaces})
        change(offset, value);
    }
    EXPECT_GT(refused, 10);
    EXPECT_GT(served, 10);
  }
  template <typename Params>
  void changeParams(Padded<Params> &params) {
    changeEach(params, offsetof(Params, groups));
  }
  template <typename Group>
  void changeGroup(Padded<Group> &group) {
    changeEach(group, offsetof(fovea_group_t, next));
  }

  Padded<fovea_forward_params_t> forward;
  Padded<fovea_backward_params_t> backward;
  Padded<fovea_varlen_t> varlen;
  Padded<fovea_dropout_t> dropout;
  Padded<fovea_window_t> window;
  Padded<fovea_sinks_t> sinks;
  Padded<fovea_dlse_t> dlse;
  Padded<fovea_blocks_t> blocks;
  Padded<fovea_head_dims_t> dims;
  bool isForward = true;
  ContextPtr context;
  std::string good;
  int served = 0, refused = 0;
};

} // namespace

TEST_F(LaunchCacheTest, Forward) {
  store(OpKind::Forward, {});
  changeParams(forward);
  // Two tensors whose last addresses are none.
  forward.get().q.data = forward.get().out.data = at(~uintptr_t(0) << 12);
  expectAsAnew([&] {
    forward.get().q.data = place(1);
    forward.get().out.data = place(4);
  });
}

TEST_F(LaunchCacheTest, Backward) {
  store(OpKind::Backward, {});
  isForward = false;
  changeParams(backward);
}

TEST_F(LaunchCacheTest, VarlenAndDropout) {
  store(OpKind::Forward, {"varlen", "dropout"});
  forward.get().groups = &varlen.get().header;
  varlen.get().header.next = &dropout.get().header;
  changeGroup(varlen);
  changeGroup(dropout);
  changeParams(forward);
}

// Grids are of all blocks where sequences begin at the sums of their lengths.
TEST_F(LaunchCacheTest, SumsThatAreStarts) {
  store(OpKind::Forward, {"varlen"});
  forward.get().groups = &varlen.get().header;
  forward.get().seqlen_q = 2000;
  auto restore = [&] { varlen.get().q.starts = varlen.get().q.lengths; };
  restore();
  remember();
  varlen.get().q.starts = words(28);
  expectAsAnew(restore);
  varlen.get().q.starts = nullptr;
  expectAsAnew(restore);
  varlen.get().q.lengths = varlen.get().q.starts = words(29);
  expectAsAnew(
      [&] { varlen.get().q.lengths = varlen.get().q.starts = words(20); });
}

TEST_F(LaunchCacheTest, WindowSinksAndHeadDims) {
  store(OpKind::Forward, {"window", "sinks", "head_dims"});
  forward.get().groups = &window.get().header;
  window.get().header.next = &sinks.get().header;
  sinks.get().header.next = &dims.get().header;
  changeGroup(window);
  changeGroup(sinks);
  changeGroup(dims);
}

TEST_F(LaunchCacheTest, Blocks) {
  store(OpKind::Forward, {"blocks"});
  forward.get().groups = &blocks.get().header;
  changeGroup(blocks);
}

TEST_F(LaunchCacheTest, BackwardGroups) {
  store(OpKind::Backward, {"dlse", "varlen", "dropout"});
  isForward = false;
  backward.get().groups = &dlse.get().header;
  dlse.get().header.next = &varlen.get().header;
  varlen.get().header.next = &dropout.get().header;
  changeGroup(dlse);
  changeGroup(varlen);
}

// The order and number of groups are of the call too.
TEST_F(LaunchCacheTest, LinkedGroups) {
  store(OpKind::Forward, {"window", "sinks"});
  forward.get().groups = &window.get().header;
  remember();
  auto alone = [&] { window.get().header.next = nullptr; };
  window.get().header.next = &sinks.get().header;
  expectAsAnew(alone);
  window.get().header.next = &window.get().header; // behind itself
  expectAsAnew(alone);
  forward.get().groups = nullptr;
  expectAsAnew([&] { forward.get().groups = &window.get().header; });
}

// Ranges of interleaved gradients meet; the same ones at another distance may
// share memory.
TEST_F(LaunchCacheTest, InterleavedGradients) {
  store(OpKind::Backward, {});
  isForward = false;
  fovea_backward_params_t &p = backward.get();
  constexpr int64_t row = 12 * 128; // of 8, 2 and 2 heads
  p.seqlen_k = p.seqlen_q;
  p.k = p.v = {place(2), 300 * 2 * 128, 128, 2 * 128};
  auto interleave = [&] {
    p.dq = {place(7), 300 * row, 128, row};
    p.dk = {place(7, 8 * 256), 300 * row, 128, row};
    p.dv = {place(7, 10 * 256), 300 * row, 128, row};
  };
  interleave();
  remember();
  for (fovea_mutable_tensor_t *tensor : {&p.dq, &p.dk, &p.dv})
    for (const int64_t bytes : {-512l, -256l, -2l, 2l, 256l, 512l, row * 2}) {
      tensor->data = static_cast<char *>(tensor->data) + bytes;
      expectAsAnew(interleave);
    }
  EXPECT_GT(refused, 10);
  EXPECT_GT(served, 0);
  // All of them elsewhere.
  for (fovea_mutable_tensor_t *tensor : {&p.dq, &p.dk, &p.dv})
    tensor->data = static_cast<char *>(tensor->data) + 4096;
  expectAsAnew(interleave);
}

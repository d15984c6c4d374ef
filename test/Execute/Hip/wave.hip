//===- wave.hip - lanes of a wave that see each other ---------------------===//
//
// Votes, shuffles through LDS hardware and DPP, lane reads, and what is built
// of them. The host computes with arrays of a wave's lanes.
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <functional>

namespace {

// Code for GFX9 is compiled for waves of 64 lanes, later code for 32.
#if defined(__GFX9__)
__device__ uint64_t ballot(bool p) { return __builtin_amdgcn_ballot_w64(p); }
#else
__device__ uint64_t ballot(bool p) { return __builtin_amdgcn_ballot_w32(p); }
#endif

__device__ uint32_t laneId() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
__device__ int shuffle(int value, uint32_t lane) {
  return __builtin_amdgcn_ds_bpermute(int(lane * 4), value);
}

using Lanes = std::vector<int>;

/// Runs `device` on every wave and compares with `host(lane, lanes)`.
template <typename Kernel>
void check(fovea::test::Report &report, const char *what, Kernel kernel,
           const std::function<int(int, const Lanes &)> &host) {
  const int wave = waveSize();
  constexpr int kCount = 256;
  Numbers numbers;
  auto in = numbers.integers<int>(kCount);
  for (int &x : in)
    x &= 0xffffff;
  Buffer<int> device(report, in), out(report, size_t(kCount));
  kernel<<<2, kCount / 2>>>(static_cast<const int *>(device),
                            static_cast<int *>(out));
  finish(report);
  std::vector<int> want(kCount);
  for (int start = 0; start < kCount; start += wave) {
    const Lanes lanes(in.begin() + start, in.begin() + start + wave);
    for (int lane = 0; lane < wave; ++lane)
      want[start + lane] = host(lane, lanes);
  }
  same(report, what, out.read(), want);
}

__global__ void votes(const int *in, int *out) {
  const int x = in[globalX()];
  const uint64_t odd = ballot(x & 1);
  const bool any = ballot(x > 0xff0000) != 0, all = ballot(x < 0) == 0;
  const int below = int(__builtin_amdgcn_mbcnt_hi(
      uint32_t(odd >> 32), __builtin_amdgcn_mbcnt_lo(uint32_t(odd), 0)));
  out[globalX()] =
      __builtin_popcountll(odd) + 100 * below + 10000 * any + 20000 * all;
}

HIP_CASE(Votes) {
  check(report, "votes", votes, [](int lane, const Lanes &lanes) {
    int odd = 0, below = 0, any = 0, all = 1;
    for (size_t i = 0; i < lanes.size(); ++i) {
      odd += lanes[i] & 1;
      below += int(i) < lane ? lanes[i] & 1 : 0;
      any |= lanes[i] > 0xff0000;
      all &= !(lanes[i] < 0);
    }
    return odd + 100 * below + 10000 * any + 20000 * all;
  });
}

/// A vote where only some lanes take part.
__global__ void partialVotes(const int *in, int *out) {
  const int x = in[globalX()];
  int result = -1;
  if (x % 3 == 0)
    result = int(__builtin_popcountll(ballot(x & 4)));
  else if (x % 3 == 1)
    result = int(__builtin_popcountll(ballot(true)));
  out[globalX()] = result;
}

HIP_CASE(PartialVotes) {
  check(report, "partial votes", partialVotes,
        [](int lane, const Lanes &lanes) {
          int threes = 0, ones = 0;
          for (int x : lanes) {
            threes += x % 3 == 0 && (x & 4);
            ones += x % 3 == 1;
          }
          const int r = lanes[size_t(lane)] % 3;
          return r == 0 ? threes : r == 1 ? ones : -1;
        });
}

__global__ void shuffles(const int *in, int *out) {
  const uint32_t lane = laneId(), lanes = __builtin_amdgcn_wavefrontsize();
  const int x = in[globalX()];
  const int mirrored = shuffle(x, lanes - 1 - lane);
  const int turned = shuffle(x, (lane + 5) % lanes);
  const int chosen = shuffle(x, uint32_t(x) % lanes);
  const int pushed =
      __builtin_amdgcn_ds_permute(int((lane + 3) % lanes * 4), x);
  out[globalX()] = mirrored ^ (turned * 3) ^ (chosen * 5) ^ (pushed * 7);
}

HIP_CASE(Shuffles) {
  check(report, "shuffles", shuffles, [](int lane, const Lanes &lanes) {
    const int n = int(lanes.size());
    return lanes[n - 1 - lane] ^ (lanes[(lane + 5) % n] * 3) ^
           (lanes[lanes[lane] % n] * 5) ^ (lanes[(lane + n - 3) % n] * 7);
  });
}

__global__ void laneReads(const int *in, int *out) {
  const int x = in[globalX()];
  int sum = __builtin_amdgcn_readfirstlane(x);
  for (int lane = 1; lane < 32; lane += 7)
    sum = sum * 3 + __builtin_amdgcn_readlane(x, lane);
  // The first of the lanes that are active.
  if (x & 1)
    sum += __builtin_amdgcn_readfirstlane(x);
  out[globalX()] = sum;
}

HIP_CASE(LaneReads) {
  check(report, "lane reads", laneReads, [](int lane, const Lanes &lanes) {
    uint32_t sum = uint32_t(lanes[0]);
    for (int i = 1; i < 32; i += 7)
      sum = sum * 3 + uint32_t(lanes[size_t(i)]);
    if (lanes[size_t(lane)] & 1)
      for (int x : lanes)
        if (x & 1) {
          sum += uint32_t(x);
          break;
        }
    return int(sum);
  });
}

// Controls of DPP that all generations share, by their documented numbers.
constexpr int kQuadPerm = 0x00, kRowShl = 0x100, kRowShr = 0x110,
              kRowRor = 0x120, kRowMirror = 0x140, kRowHalfMirror = 0x141;

/// Keeps the order of what is mixed in, by operations that DPP can be part of.
HD uint32_t mix(uint32_t sum, uint32_t x) { return (sum << 3 | sum >> 29) ^ x; }

__global__ void dppMoves(const int *in, int *out) {
  const int x = in[globalX()];
  uint32_t r = 0;
  r = mix(r, __builtin_amdgcn_update_dpp(0, x, kQuadPerm | 0x1b, 0xf, 0xf, true));
  r = mix(r, __builtin_amdgcn_update_dpp(0, x, kRowShl | 2, 0xf, 0xf, true));
  r = mix(r, __builtin_amdgcn_update_dpp(11, x, kRowShr | 3, 0xf, 0xf, false));
  r = mix(r, __builtin_amdgcn_update_dpp(0, x, kRowRor | 5, 0xf, 0xf, true));
  r = mix(r, __builtin_amdgcn_update_dpp(0, x, kRowMirror, 0xf, 0xf, true));
  r = mix(r, __builtin_amdgcn_update_dpp(0, x, kRowHalfMirror, 0xf, 0xf, true));
  // Banks that are switched off keep the old value.
  r = mix(r, __builtin_amdgcn_update_dpp(x, 7, kRowMirror, 0xf, 0x5, true));
  out[globalX()] = int(r);
}

HIP_CASE(Dpp) {
  check(report, "dpp", dppMoves, [](int lane, const Lanes &lanes) {
    const int row = lane / 16 * 16, at = lane % 16;
    auto x = [&](int i) { return uint32_t(lanes[size_t(row + i)]); };
    uint32_t r = mix(0, x(at / 4 * 4 + (3 - at % 4)));
    r = mix(r, at + 2 < 16 ? x(at + 2) : 0);
    r = mix(r, at >= 3 ? x(at - 3) : 11);
    r = mix(r, x((at + 16 - 5) % 16));
    r = mix(r, x(15 - at));
    r = mix(r, x(at / 8 * 8 + 7 - at % 8));
    r = mix(r, (0x5 >> (at / 4)) & 1 ? 7 : x(at));
    return int(r);
  });
}

__global__ void swizzles(const int *in, int *out) {
  const int x = in[globalX()];
  // Within 32 lanes: xor with 5; quads reversed.
  const int turned = __builtin_amdgcn_ds_swizzle(x, (5 << 10) | 0x1f);
  const int quads = __builtin_amdgcn_ds_swizzle(x, 0x8000 | 0x1b);
  out[globalX()] = turned * 3 + quads;
}

HIP_CASE(Swizzle) {
  check(report, "swizzle", swizzles, [](int lane, const Lanes &lanes) {
    return int(uint32_t(lanes[size_t(lane ^ 5)]) * 3 +
               uint32_t(lanes[size_t(lane ^ 3)]));
  });
}

/// A wave's sum and prefix sums, of 64-bit values in two halves.
__global__ void waveSums(const int *in, int *out) {
  const uint32_t lane = laneId(), lanes = __builtin_amdgcn_wavefrontsize();
  int64_t sum = int64_t(in[globalX()]) * 1000003;
  int64_t prefix = sum;
  for (uint32_t step = 1; step < lanes; step *= 2) {
    auto from = [&](int64_t v, uint32_t l) {
      return int64_t(uint64_t(uint32_t(shuffle(int(v), l))) |
                     uint64_t(uint32_t(shuffle(int(v >> 32), l))) << 32);
    };
    sum += from(sum, lane ^ step);
    const int64_t before = from(prefix, lane >= step ? lane - step : lane);
    if (lane >= step)
      prefix += before;
  }
  out[globalX()] = int(sum >> 16) ^ int(prefix >> 8);
}

HIP_CASE(WaveSums) {
  check(report, "wave sums", waveSums, [](int lane, const Lanes &lanes) {
    int64_t sum = 0, prefix = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      sum += int64_t(lanes[i]) * 1000003;
      if (int(i) <= lane)
        prefix += int64_t(lanes[i]) * 1000003;
    }
    return int(sum >> 16) ^ int(prefix >> 8);
  });
}

} // namespace

//===- Clocks.h - What happened before what in a workgroup ------*- C++ -*-===//
//
// Vector clocks of the waves of one workgroup (Fidge 1988; as race detectors
// use them: Flanagan and Freund, "FastTrack", 2009). A wave's own clock grows
// with each event that others may wait for; what a wave knows of the others
// grows at barriers and at atomics on a common address. Loads that go to LDS write
// it on a clock of their own, as if another wave did: they may be under way while
// the wave's later writes are done.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_CLOCKS_H
#define FOVEA_SIMULATOR_CHECK_CLOCKS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fovea::sim {

constexpr unsigned kMaxWaves = 32; ///< 1024 work-items in waves of 32
/// Clock of the loads to LDS of wave i: i + kLoadClock. Only chips with waves of 64
/// lanes have such loads, and so at most 16 waves.
constexpr unsigned kLoadClock = 16;

class Clocks {
public:
  using Vector = std::array<uint32_t, kMaxWaves>;

  void beginGroup(unsigned waves) {
    Count = waves;
    Seen.resize(std::max<size_t>(Seen.size(), waves));
    for (unsigned i = 0; i < waves; ++i) {
      Seen[i].fill(0);
      Seen[i][i] = 1;
      if (hasLoads())
        Seen[i][i + kLoadClock] = 1;
    }
    Synced.clear();
    Barriers = 1;
  }

  uint32_t now(unsigned wave) const { return Seen[wave][wave]; }
  void tick(unsigned wave) { ++Seen[wave][wave]; }
  /// The clock that loads to LDS of \p wave write at; whether it has its own.
  bool hasLoads() const { return Count <= kLoadClock; }
  unsigned loads(unsigned wave) const {
    return hasLoads() ? wave + kLoadClock : wave;
  }
  uint32_t nowLoad(unsigned wave) const { return Seen[wave][loads(wave)]; }
  void tickLoad(unsigned wave) { ++Seen[wave][loads(wave)]; }
  /// Whether what \p other did at its \p clock happened before what \p wave
  /// does now.
  bool before(unsigned wave, unsigned other, uint32_t clock) const {
    return clock <= Seen[wave][other];
  }
  /// Barriers that the group has passed, from 1 on.
  uint32_t barriers() const { return Barriers; }
  /// Whether \p wave learned of \p other by an atomic since the last barrier.
  bool synced(unsigned wave, unsigned other) const {
    return Seen[wave][other] > AtBarrier[other];
  }

  /// All waves have met. Events from clock \p open[i] on are not known to be done
  /// (UINT32_MAX: all are).
  void barrier(const Vector &open) {
    Vector all{};
    for (unsigned j = 0; j < Count; ++j) {
      all[j] = std::min(Seen[j][j], open[j] - 1);
      if (hasLoads())
        all[j + kLoadClock] =
            std::min(Seen[j][j + kLoadClock], open[j + kLoadClock] - 1);
    }
    for (unsigned i = 0; i < Count; ++i) {
      uint32_t own = Seen[i][i] + 1, load = nowLoad(i) + 1;
      Seen[i] = all;
      if (hasLoads())
        Seen[i][i + kLoadClock] = load;
      Seen[i][i] = own;
    }
    AtBarrier = all;
    Synced.clear();
    ++Barriers;
  }

  /// \p wave executes an atomic on \p key, with its events from \p open on
  /// still under way: it learns what all before it knew there.
  void synchronise(unsigned wave, uint64_t key, uint32_t open) {
    auto [it, fresh] = Synced.try_emplace(key);
    Vector &common = it->second;
    if (fresh)
      common.fill(0);
    Vector &mine = Seen[wave];
    uint32_t own = mine[wave];
    for (unsigned j = 0; j < kMaxWaves; ++j) {
      // Loads to LDS are told of at barriers alone.
      if (hasLoads() && j >= kLoadClock)
        break;
      uint32_t told = j == wave ? std::min(own, open - 1) : mine[j];
      mine[j] = std::max(mine[j], common[j]);
      common[j] = std::max(common[j], told);
    }
    mine[wave] = own + 1;
  }

private:
  unsigned Count = 0;
  uint32_t Barriers = 1;
  std::vector<Vector> Seen;
  Vector AtBarrier{};
  std::unordered_map<uint64_t, Vector> Synced;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_CLOCKS_H

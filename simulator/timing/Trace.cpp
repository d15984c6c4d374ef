//===- Trace.cpp - What a workgroup executed ------------------------------===//
//
// An observer that keeps instructions and the lines of memory accesses.
//
//===----------------------------------------------------------------------===//
#include "timing/Trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace fovea::sim {

class TraceObserver : public Observer {
public:
  explicit TraceObserver(TraceRecorder &recorder) : R(recorder) {}

  void beginGroup(Group &group, Wave *, unsigned count) override {
    Trace = std::make_unique<GroupTrace>();
    Trace->id = group.id[0] + uint64_t(R.Grid[0]) *
                                  (group.id[1] + uint64_t(R.Grid[1]) * group.id[2]);
    Trace->waves.resize(count);
    FirstValues.clear();
    Tiles.clear();
    Round = Executed = TileStart = 0;
  }
  void endGroup(Group &) override {
    for (const auto &[address, value] : FirstValues)
      std::memcpy(reinterpret_cast<void *>(address), &value, 4);
    for (const auto &wave : Trace->waves)
      Trace->instructions += wave.size();
    if (!Tiles.empty())
      Tiles.back().instructions = Executed - TileStart;
    std::lock_guard<std::mutex> lock(R.Mutex);
    R.Tiles = std::move(Tiles);
    R.Done.push_back(std::move(Trace));
  }
  void before(Wave &wave, const MicroOp &, uint32_t index) override {
    if (Trace->lines.size() >= R.MaxLines) {
      wave.stop(WaveState::Ended);
      return;
    }
    Counter = 0;
    ++Executed;
    if (R.Keep)
      Trace->waves[wave.index].push_back({index, 0});
  }
  void after(Wave &, const MicroOp &, uint32_t) override {
    if (!Counter)
      return;
    // The k-th tile comes from the k-th round of all workgroups, from a place in
    // it that differs from round to round: rounds are often a multiple of the
    // period in which tiles are large and small.
    uint32_t now;
    std::memcpy(&now, reinterpret_cast<void *>(Counter), 4);
    uint32_t taken = now - CounterBefore;
    if (!Tiles.empty())
      Tiles.back().instructions = Executed - TileStart;
    Tiles.push_back({CounterBefore - FirstValues[Counter], 0});
    TileStart = Executed;
    auto place = [&](uint64_t round) {
      // Traces of neighbours stay neighbours; those that only count spread out.
      double golden = double(round) * 0.6180339887498949 +
                      (R.Keep ? 0 : double(Trace->id) * 0.7548776662466927);
      return (round + (golden - std::floor(golden))) * double(R.Persistent);
    };
    now = CounterBefore +
          taken * static_cast<uint32_t>(std::max(
                      1.0, place(Round + 1) - place(Round)));
    ++Round;
    std::memcpy(reinterpret_cast<void *>(Counter), &now, 4);
  }

  void access(Wave &wave, const MicroOp &op, const MemoryAccess &a) override {
    if (R.Persistent > 1 && a.kind == MemoryAccess::Atomic && a.bytes == 4 &&
        a.space == MemoryAccess::Global && (op.flags & kReturn) &&
        (a.mask & (a.mask - 1)) == 0) { // one lane for the whole workgroup
      Counter = a.address[__builtin_ctzll(a.mask)];
      std::memcpy(&CounterBefore, reinterpret_cast<void *>(Counter), 4);
      if (FirstValues.try_emplace(Counter, CounterBefore).second) {
        // Those before it have taken their first tiles.
        CounterBefore += static_cast<uint32_t>(Trace->id % R.Persistent);
        std::memcpy(reinterpret_cast<void *>(Counter), &CounterBefore, 4);
      }
    }
    if (!R.Keep)
      return;
    TraceStep &step = Trace->waves[wave.index].back();
    if (!step.use) {
      step.use = static_cast<uint32_t>(Trace->uses.size());
      Trace->uses.emplace_back();
      Trace->uses.back().firstLine = Trace->lines.size();
    }
    MemoryUse &use = Trace->uses.back();
    unsigned active = static_cast<unsigned>(__builtin_popcountll(a.mask));
    if (a.space == MemoryAccess::Lds) {
      unsigned conflicts = 0;
      use.ldsClocks += ldsClocks(R.Lds, a.address, a.mask, wave.lanes, a.bytes,
                                 a.kind != MemoryAccess::Load, conflicts);
      use.ldsConflicts += conflicts;
      use.ldsBytes += unsigned(wave.lanes) * std::max(4u, a.bytes);
      return;
    }
    use.bytes = static_cast<uint16_t>(
        std::min<unsigned>(65535, use.bytes + active * a.bytes));
    use.lanes = static_cast<uint8_t>(std::min(64u, use.lanes + active));
    use.store |= a.kind == MemoryAccess::Store;
    use.atomic |= a.kind == MemoryAccess::Atomic;
    use.scalar |= a.scalar;
    // Scratch is swizzled: a word of all lanes lies together.
    uint64_t lineBytes = R.Chip.lineBytes;
    size_t begin = Trace->lines.size();
    auto add = [&](uint64_t line) {
      for (size_t i = Trace->lines.size(); i > begin; --i)
        if (Trace->lines[i - 1] == line)
          return;
      Trace->lines.push_back(line);
    };
    const uint64_t scratch = scratchOf(wave);
    for (uint64_t left = a.mask; left; left &= left - 1) {
      unsigned l = static_cast<unsigned>(__builtin_ctzll(left));
      if (a.space == MemoryAccess::Scratch) {
        for (uint32_t w = 0; w < (a.bytes + 3) / 4; ++w)
          add((scratch + (a.address[l] / 4 + w) * 4 * uint64_t(wave.lanes) + 4 * l) /
              lineBytes);
      } else {
        for (uint64_t line = a.address[l] / lineBytes;
             line * lineBytes < a.address[l] + a.bytes; ++line)
          add(line);
      }
    }
    use.lines = static_cast<uint16_t>(Trace->lines.size() - use.firstLine);
  }

private:
  /// Where the chip has a wave's scratch: on a granule, apart from all buffers
  /// and from what other workgroups have. This process's own address would make
  /// times depend on the allocator, and workgroups seem to share their lines.
  static uint64_t scratchOf(const Wave &wave) {
    constexpr uint64_t base = uint64_t(1) << 48, granule = 1024;
    const Group &group = *wave.group;
    const uint64_t bytes = uint64_t(group.privateBytes) * unsigned(wave.lanes);
    return base + (group.number * group.waveCount + wave.index) *
                      ((bytes + granule - 1) / granule * granule);
  }

  TraceRecorder &R;
  std::unique_ptr<GroupTrace> Trace;
  std::map<uint64_t, uint32_t> FirstValues; ///< of counters
  uint64_t Counter = 0; ///< that the current instruction moves
  uint32_t CounterBefore = 0;
  uint64_t Round = 0;   ///< how often it took something
  uint64_t Executed = 0, TileStart = 0;
  std::vector<TraceRecorder::Tile> Tiles;
};

std::unique_ptr<Observer> TraceRecorder::create() {
  return std::make_unique<TraceObserver>(*this);
}

} // namespace fovea::sim

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

namespace {

/// The order in which lanes are served where it is not consecutive: lanes of a
/// phase stand together.
constexpr uint8_t kRead128[64] = { // phases of 8 (gfx90x, gfx94x)
    0,  1,  2,  3,  20, 21, 22, 23, 32, 33, 34, 35, 52, 53, 54, 55,
    4,  5,  6,  7,  16, 17, 18, 19, 36, 37, 38, 39, 48, 49, 50, 51,
    8,  9,  10, 11, 28, 29, 30, 31, 40, 41, 42, 43, 60, 61, 62, 63,
    12, 13, 14, 15, 24, 25, 26, 27, 44, 45, 46, 47, 56, 57, 58, 59};
constexpr uint8_t kRead128Wide[64] = { // phases of 16 (gfx950)
    0,  1,  2,  3,  12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27,
    32, 33, 34, 35, 44, 45, 46, 47, 52, 53, 54, 55, 56, 57, 58, 59,
    4,  5,  6,  7,  8,  9,  10, 11, 16, 17, 18, 19, 28, 29, 30, 31,
    36, 37, 38, 39, 40, 41, 42, 43, 48, 49, 50, 51, 60, 61, 62, 63};
constexpr uint8_t kRead96[64] = { // phases of 8
    0,  1,  2,  3,  20, 21, 22, 23, 4,  5,  6,  7,  16, 17, 18, 19,
    8,  9,  10, 11, 28, 29, 30, 31, 12, 13, 14, 15, 24, 25, 26, 27,
    32, 33, 34, 35, 52, 53, 54, 55, 36, 37, 38, 39, 48, 49, 50, 51,
    40, 41, 42, 43, 60, 61, 62, 63, 44, 45, 46, 47, 56, 57, 58, 59};

} // namespace

unsigned ldsClocks(const TimingConstants &chip, const uint64_t *address,
                   uint64_t mask, uint32_t bytes, bool store,
                   unsigned &conflicts) {
  // In a phase every bank gives one word; lanes that want the same word share
  // it, and lanes that want others of the same bank cost a clock more each.
  // Phases without active lanes take their clock too. Writes see the 32 banks
  // and 128 bytes a clock of the older chips on all.
  unsigned width = bytes <= 4 ? 4 : bytes <= 8 ? 8 : bytes <= 12 ? 12 : 16;
  bool narrow = store || width == 12;
  unsigned rate = narrow ? std::min(128u, chip.ldsReadBytes) : chip.ldsReadBytes;
  unsigned banks = narrow ? std::min(32u, chip.ldsBanks) : chip.ldsBanks;
  unsigned lanes = width == 12 ? 8 : rate / width;
  const uint8_t *order = store          ? nullptr
                         : width == 12  ? kRead96
                         : width == 16  ? (lanes == 8 ? kRead128 : kRead128Wide)
                                        : nullptr;
  unsigned total = 0, least = 0;
  constexpr unsigned kMaxBanks = 64, kMaxWords = 64;
  for (unsigned first = 0; first < 64; first += lanes) {
    uint64_t words[kMaxBanks][kMaxWords];
    uint8_t counts[kMaxBanks] = {};
    unsigned worst = 1;
    for (unsigned i = first; i < first + lanes && i < 64; ++i) {
      unsigned l = order ? order[i] : i;
      if (!((mask >> l) & 1))
        continue;
      for (uint64_t word = address[l] / 4; word * 4 < address[l] + bytes; ++word) {
        unsigned bank = static_cast<unsigned>(word % banks);
        bool known = false;
        for (unsigned k = 0; k < counts[bank]; ++k)
          known |= words[bank][k] == word;
        if (known || counts[bank] == kMaxWords)
          continue;
        words[bank][counts[bank]] = word;
        worst = std::max<unsigned>(worst, ++counts[bank]);
      }
    }
    total += worst;
    ++least;
  }
  conflicts = total - least;
  return total;
}

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
      use.ldsClocks += ldsClocks(R.Chip, a.address, a.mask, a.bytes,
                                 a.kind != MemoryAccess::Load, conflicts);
      use.ldsConflicts += conflicts;
      use.ldsBytes += 64 * std::max(4u, a.bytes);
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
    uint64_t scratch = reinterpret_cast<uint64_t>(wave.scratch);
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

//===- DotLayouts.cpp - layouts for products and copies -------------------===//

#include "fovea/Layout/DotLayouts.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>

namespace fovea::layout {

/// Elements that one wide access moves, as bits.
static int wideBits(int elementBytes) {
  return llvm::countr_zero(uint32_t(kWideBytes / elementBytes));
}

namespace {
/// A permutation of index bits: the image of each power of two.
class BitMap {
public:
  void set(int32_t from, int32_t to) {
    size_t bit = llvm::countr_zero(uint32_t(from));
    if (images.size() <= bit)
      images.resize(bit + 1, 0);
    images[bit] = to;
  }
  int32_t operator()(int32_t from) const {
    return from == 0 ? 0 : images[llvm::countr_zero(uint32_t(from))];
  }

private:
  llvm::SmallVector<int32_t, 8> images;
};
} // namespace

/// Rows of the product by rows of the instruction's D: the lowest registers,
/// then lanes, then the other registers.
static BitMap chooseRowMap(const InstrLayouts &instr) {
  const TileLayout &d = instr.d;
  BitMap map;
  int32_t next = 1;
  auto take = [&](Coord basis) {
    if (basis[0] == 0)
      return;
    map.set(basis[0], next);
    next <<= 1;
  };
  llvm::ArrayRef<Coord> registers = d.registers();
  size_t wide =
      std::min<size_t>(wideBits(instr.elementBytes), registers.size());
  for (const Coord &basis : registers.take_front(wide))
    take(basis);
  for (const Coord &basis : d.lanes())
    take(basis);
  for (const Coord &basis : registers.drop_front(wide))
    take(basis);
  return map;
}

/// Register bits of a right operand that nothing has given a layout yet: a wide
/// access, or all of an instruction's if that takes more.
static int rightRegisterBits(const InstrLayouts &instr) {
  return std::max<int>(wideBits(instr.elementBytes),
                       instr.b.registers().size());
}

int64_t contractionUnit(const InstrLayouts &instr) {
  int bits = rightRegisterBits(instr);
  for (const Coord &basis : instr.b.lanes())
    bits += basis[0] != 0;
  return int64_t(1) << bits;
}

std::optional<DotLayouts> chooseDotLayouts(const InstrLayouts &instr, int64_t m,
                                           int64_t k, int64_t n,
                                           WaveSplit waves,
                                           const TileLayout *b) {
  Coord dUnit = instr.d.unit();
  // Of each operand, the part that a wave holds.
  Bases waveColumns, waveRows, waveBoth;
  for (int bit = 1; bit < waves.columns; bit <<= 1) {
    waveColumns.push_back({0, dUnit[1] * bit});
    waveRows.push_back({0, 0});
    waveBoth.push_back({0, dUnit[1] * bit});
  }
  for (int bit = 1; bit < waves.rows; bit <<= 1) {
    waveColumns.push_back({0, 0});
    waveRows.push_back({dUnit[0] * bit, 0});
    waveBoth.push_back({dUnit[0] * bit, 0});
  }
  for (int bit = 1; bit < waves.repeated; bit <<= 1)
    for (Bases *bases : {&waveColumns, &waveRows, &waveBoth})
      bases->push_back({0, 0});

  DotLayouts result;
  if (b) {
    result.b = *b;
  } else {
    // A lane reads several instructions' worth of the contraction at once where
    // an instruction takes less than a wide access.
    Bases registers, lanes;
    int registerBits = rightRegisterBits(instr);
    for (int bit = 0; bit < registerBits; ++bit)
      registers.push_back({1 << bit, 0});
    int32_t next = 1 << registerBits;
    for (const Coord &basis : instr.b.lanes()) {
      if (basis[0] == 0) {
        lanes.push_back(basis);
        continue;
      }
      lanes.push_back({next, 0});
      next <<= 1;
    }
    Coord unit = {next, dUnit[1] * waves.columns};
    if (k % unit[0] != 0 || n % unit[1] != 0)
      return std::nullopt;
    result.b = TileLayout(registers, lanes, waveColumns,
                          {int32_t(k / unit[0]), int32_t(n / unit[1])});
  }

  // The given or chosen B must be the instruction's but for the order of the
  // contraction: columns where the instruction wants them, contraction bits in
  // the same registers and lanes.
  BitMap order;
  llvm::ArrayRef<Coord> want = instr.b.registers(), have = result.b.registers();
  if (have.size() < want.size() ||
      result.b.lanes().size() != instr.b.lanes().size() ||
      result.b.waves() != llvm::ArrayRef<Coord>(waveColumns))
    return std::nullopt;
  for (const Coord &basis : have)
    if (basis[1] != 0 || basis[0] == 0)
      return std::nullopt;
  for (auto [wanted, got] : llvm::zip(want, have))
    order.set(wanted[0], got[0]);
  for (auto [wanted, got] : llvm::zip(instr.b.lanes(), result.b.lanes())) {
    if (wanted[1] != got[1] || (wanted[0] == 0) != (got[0] == 0))
      return std::nullopt;
    if (wanted[0] != 0)
      order.set(wanted[0], got[0]);
  }
  Coord bShape = result.b.shape();
  if (bShape[0] != k || bShape[1] != n)
    return std::nullopt;

  BitMap rows = chooseRowMap(instr);
  Bases registers, lanes;
  for (const Coord &basis : instr.a.registers())
    registers.push_back({rows(basis[0]), order(basis[1])});
  for (const Coord &basis : have.drop_front(want.size()))
    registers.push_back({0, basis[0]});
  for (const Coord &basis : instr.a.lanes())
    lanes.push_back({rows(basis[0]), order(basis[1])});
  int32_t unitK = result.b.unit()[0];
  int32_t unitM = dUnit[0] * waves.rows;
  if (m % unitM != 0)
    return std::nullopt;
  result.a = TileLayout(registers, lanes, waveRows,
                        {int32_t(m / unitM), int32_t(k / unitK)});

  Bases accRegisters, accLanes;
  for (const Coord &basis : instr.d.registers())
    accRegisters.push_back({rows(basis[0]), basis[1]});
  for (const Coord &basis : instr.d.lanes())
    accLanes.push_back({rows(basis[0]), basis[1]});
  result.acc =
      TileLayout(accRegisters, accLanes, waveBoth,
                 {int32_t(m / unitM), int32_t(n / (dUnit[1] * waves.columns))});
  return result;
}

TileLayout chooseCopyLayout(int64_t rows, int64_t columns, int elementBytes,
                            int laneBits, int waveBits, bool transposed,
                            int leadingRowBits, int maxColumnBits) {
  int columnBits =
      std::min<int>(llvm::countr_zero(uint64_t(columns)), maxColumnBits);
  int rowBits = llvm::countr_zero(uint64_t(rows));
  // Runs that a lane holds, {along a row, along a column}, wide ones first. The
  // first that leaves every lane something of its own to do is taken; failing
  // that, the narrowest, with lanes repeating one another.
  struct Run {
    int columns, rows;
  };
  const int wide = wideBits(elementBytes);
  const int half = std::max(wide - 1, 0), quarter = std::max(wide - 2, 0);
  const Run straight[] = {{wide, 0}, {half, 0}, {quarter, 0}};
  const Run turned[] = {{half, wide},
                        {half, half},
                        {quarter, wide},
                        {quarter, half},
                        {quarter, quarter}};
  llvm::ArrayRef<Run> runs =
      transposed ? llvm::ArrayRef<Run>(turned) : llvm::ArrayRef<Run>(straight);
  Run run = runs.back();
  if (columns == 1)
    run.columns = 0;
  for (Run candidate : runs)
    if (candidate.columns <= columnBits && candidate.rows <= rowBits &&
        columnBits + rowBits - candidate.columns - candidate.rows >=
            laneBits + waveBits) {
      run = candidate;
      break;
    }

  Bases registers, lanes, waves;
  for (int bit = 0; bit < run.columns; ++bit)
    registers.push_back({0, 1 << bit});
  for (int bit = 0; bit < run.rows; ++bit)
    registers.push_back({1 << bit, 0});
  // Neighbouring lanes read neighbouring columns, so that memory sees whole
  // rows; then rows; waves last.
  Bases rest;
  int columnsFrom = std::min(run.rows + leadingRowBits, rowBits);
  for (int bit = run.rows; bit < columnsFrom; ++bit)
    rest.push_back({1 << bit, 0});
  for (int bit = run.columns; bit < columnBits; ++bit)
    rest.push_back({0, 1 << bit});
  for (int bit = columnsFrom; bit < rowBits; ++bit)
    rest.push_back({1 << bit, 0});
  rest.resize(std::max<size_t>(rest.size(), laneBits + waveBits), Coord{0, 0});
  lanes.assign(rest.begin(), rest.begin() + laneBits);
  waves.assign(rest.begin() + laneBits, rest.begin() + laneBits + waveBits);
  TileLayout layout(registers, lanes, waves);
  Coord unit = layout.unit();
  return TileLayout(registers, lanes, waves,
                    {int32_t(rows / unit[0]), int32_t(columns / unit[1])});
}

llvm::SmallVector<TileLayout> tradesForLines(const TileLayout &layout,
                                             int elementBytes) {
  // Bits of a bank's number, of 4 lanes, in a row of DPP.
  constexpr int kLineBytes = 128, kFirstBit = 2, kLastBit = 3;
  TileLayout wide = layout.transposed();
  while (wide.unit()[0] * elementBytes < kLineBytes) {
    std::optional<TileLayout> taller = wide.withTallerUnit();
    if (!taller)
      break;
    wide = *taller;
  }
  wide = wide.transposed();
  Bases registers(wide.registers()), lanes(wide.lanes());
  llvm::SmallVector<TileLayout> trades;
  int lane = kFirstBit;
  for (Coord &held : registers) {
    const int bytes = held[1] * elementBytes;
    if (held[0] != 0 || bytes < kWideBytes || bytes >= kLineBytes)
      continue;
    while (lane <= kLastBit && (lanes[lane][0] == 0 || lanes[lane][1] != 0))
      ++lane;
    if (lane > kLastBit)
      break;
    std::swap(held, lanes[lane++]);
    trades.push_back(
        TileLayout(registers, lanes, Bases(wide.waves()), wide.grid()));
  }
  return trades;
}

WideAccesses wideAccesses(const TileLayout &layout, int maxWidth) {
  llvm::SmallVector<int> wideBits, otherBits;
  llvm::ArrayRef<Coord> registers = layout.registers();
  for (int32_t column = 1; column < maxWidth; column <<= 1) {
    const Coord *found = llvm::find(registers, Coord{0, column});
    if (found == registers.end())
      break;
    wideBits.push_back(found - registers.begin());
  }
  for (int bit = 0; bit < int(registers.size()); ++bit)
    if (!llvm::is_contained(wideBits, bit))
      otherBits.push_back(bit);
  auto spread = [](llvm::ArrayRef<int> bits, int index) {
    int result = 0;
    for (auto [i, bit] : llvm::enumerate(bits))
      result |= (index >> i & 1) << bit;
    return result;
  };
  WideAccesses result;
  result.width = 1 << wideBits.size();
  for (int access = 0; access < 1 << otherBits.size(); ++access) {
    auto &regs = result.regs.emplace_back();
    for (int element = 0; element < result.width; ++element)
      regs.push_back(spread(otherBits, access) | spread(wideBits, element));
  }
  return result;
}

Coord lineOf(int64_t rowBytes, int elementBytes, const Swizzle &swizzle,
             Coord at) {
  int bits = swizzle.lineRowBits(rowBytes);
  int64_t elements = rowBytes / elementBytes;
  return {at[0] >> bits,
          int32_t((at[0] & ((1 << bits) - 1)) * elements + at[1])};
}

int64_t ldsAddress(const LdsShape &shape, const Swizzle &swizzle, Coord at) {
  int64_t rowBytes = shape.rowBytes();
  Coord line = lineOf(rowBytes, shape.elementBytes, swizzle, at);
  int64_t byte = int64_t(line[1]) * shape.elementBytes;
  return line[0] * (rowBytes << swizzle.lineRowBits(rowBytes)) +
         (byte ^ swizzle.rowXor(line[0]) * 16 ^
          (swizzle.swapsHalves(at[0]) ? kHalfChunk : 0));
}

bool canSwapHalves(const TileLayout &layout, int elementBytes,
                   const Swizzle &swizzle) {
  if (swizzle.halfBit < 0 ||
      wideAccesses(layout, kWideBytes / elementBytes).width * elementBytes <=
          kHalfChunk)
    return true;
  for (Space space : {Space::Lane, Space::Wave})
    for (const Coord &basis : layout.get(space))
      if (basis[0] >> swizzle.halfBit & 1)
        return false;
  return true;
}

namespace {
/// Counts the bank conflicts of a tile's accesses under many swizzles: what
/// does not depend on the swizzle is worked out once.
class ConflictCounter {
public:
  ConflictCounter(const LdsShape &shape, llvm::ArrayRef<LdsAccess> accesses);
  /// The conflicts of all accesses; any number above `most` stands for more
  /// than that.
  int64_t count(const Swizzle &swizzle,
                int64_t most = std::numeric_limits<int64_t>::max());

private:
  /// The wide accesses of one tile's way, `together` of them in a clock.
  struct Way {
    const LdsPort *port;
    int bytes, together;
    std::vector<Coord> places; ///< where lanes access, clock after clock
  };
  int64_t count(const Way &way, const Swizzle &swizzle, int64_t most);

  LdsShape shape;
  llvm::SmallVector<Way> ways;
  /// Distinct words that a bank has to give in the clock of that number.
  struct Bank {
    int64_t clock = -1;
    llvm::SmallVector<int64_t, 4> words;
  };
  llvm::SmallVector<Bank, 64> held;
  int64_t clock = 0;
};
} // namespace

ConflictCounter::ConflictCounter(const LdsShape &shape,
                                 llvm::ArrayRef<LdsAccess> accesses)
    : shape(shape) {
  int banks = 0;
  for (const LdsAccess &access : accesses) {
    const TileLayout &layout = access.layout;
    Way &way = ways.emplace_back();
    way.port = access.write ? &this->shape.lds.write : &this->shape.lds.read;
    banks = std::max(banks, way.port->banks);
    WideAccesses wide = wideAccesses(layout, shape.wideElements());
    way.bytes = wide.width * shape.elementBytes;
    int lanes = 1 << layout.lanes().size();
    way.together = std::min(
        lanes, std::max(1, way.port->bytesPerClock / std::max(way.bytes, 4)));
    bool ordered =
        way.bytes == kWideBytes && int(way.port->wideOrder.size()) == lanes;
    for (int fragment = 0; fragment < layout.fragments(); ++fragment) {
      Coord origin = layout.fragmentOrigin(fragment);
      for (const auto &regs : wide.regs)
        for (int place = 0; place < lanes; ++place) {
          int lane = ordered ? way.port->wideOrder[place] : place;
          Coord at = layout.map(regs[0], lane, 0);
          way.places.push_back({origin[0] + at[0], origin[1] + at[1]});
        }
    }
  }
  held.resize(banks);
}

int64_t ConflictCounter::count(const Way &way, const Swizzle &swizzle,
                               int64_t most) {
  assert(llvm::isPowerOf2_32(way.port->banks) && "LDS has 2^n banks");
  const int64_t bankMask = way.port->banks - 1;
  int64_t conflicts = 0;
  for (size_t first = 0; first < way.places.size(); first += way.together) {
    size_t clocks = 1;
    ++clock;
    for (const Coord &at :
         llvm::ArrayRef<Coord>(way.places).slice(first, way.together)) {
      int64_t address = ldsAddress(shape, swizzle, at);
      address &= -way.bytes; // a wide access takes both halves
      for (int64_t word = address / 4; word <= (address + way.bytes - 1) / 4;
           ++word) {
        Bank &bank = held[word & bankMask];
        if (bank.clock != clock) {
          bank.clock = clock;
          bank.words.clear();
        }
        if (llvm::is_contained(bank.words, word))
          continue;
        bank.words.push_back(word);
        clocks = std::max(clocks, bank.words.size());
      }
    }
    conflicts += int64_t(clocks) - 1;
    if (conflicts > most)
      break;
  }
  return conflicts;
}

int64_t ConflictCounter::count(const Swizzle &swizzle, int64_t most) {
  int64_t sum = 0;
  for (const Way &way : ways)
    if ((sum += count(way, swizzle, most - sum)) > most)
      break;
  return sum;
}

int64_t bankConflicts(const LdsShape &shape, const Swizzle &swizzle,
                      const LdsAccess &access) {
  return ConflictCounter(shape, access).count(swizzle);
}

/// Addresses that a lane has to hold for all its accesses of a tile: those that
/// the swizzle does not let it get from another by adding a constant.
static int64_t laneAddresses(const LdsShape &shape, const Swizzle &swizzle,
                             const LdsAccess &access) {
  const TileLayout &layout = access.layout;
  int64_t rowBytes = shape.rowBytes();
  int64_t byLane = (swizzle.chunks - 1) * 16;
  for (Space space : {Space::Lane, Space::Wave})
    for (const Coord &basis : layout.get(space))
      byLane |= lineOf(rowBytes, shape.elementBytes, swizzle, basis)[1] *
                shape.elementBytes;
  WideAccesses accesses = wideAccesses(layout, shape.wideElements());
  llvm::SmallVector<int64_t> flips;
  for (int fragment = 0; fragment < layout.fragments(); ++fragment)
    for (const auto &regs : accesses.regs) {
      Coord origin = layout.fragmentOrigin(fragment);
      Coord at = layout.map(regs[0], 0, 0);
      at = lineOf(rowBytes, shape.elementBytes, swizzle,
                  {origin[0] + at[0], origin[1] + at[1]});
      int64_t flip =
          (at[1] * shape.elementBytes ^ swizzle.rowXor(at[0]) * 16) & byLane;
      if (!llvm::is_contained(flips, flip))
        flips.push_back(flip);
    }
  return flips.size();
}

Swizzle chooseSwizzle(const LdsShape &shape,
                      llvm::ArrayRef<LdsAccess> accesses) {
  constexpr int kMaxShift = 5, kMaxHalfBit = 3;
  int64_t rowChunks = shape.rowBytes() / kWideBytes;
  if (rowChunks == 0)
    return {}; // shorter than what trades places
  // Chunks that the widest access sees at once.
  int64_t bankChunks =
      std::max(shape.lds.read.banks, shape.lds.write.banks) / 4;
  int64_t chunks = std::min(rowChunks & -rowChunks, bankChunks);
  // Where a row is short of that, whole rows join to a line.
  if (rowChunks == chunks && !shape.wholeChunks)
    while (chunks < bankChunks && shape.rows % (2 * chunks / rowChunks) == 0)
      chunks *= 2;
  Swizzle best;
  best.chunks = int(chunks);
  ConflictCounter counter(shape, accesses);
  int64_t conflicts = counter.count(best);
  if (conflicts == 0)
    return best;
  int64_t addresses = 0; // a swizzle that does not help is not taken
  auto consider = [&](llvm::ArrayRef<int32_t> shifts, int32_t halfBit) {
    Swizzle swizzle;
    swizzle.chunks = int(chunks);
    swizzle.shifts.assign(shifts.begin(), shifts.end());
    swizzle.halfBit = halfBit;
    if (llvm::any_of(accesses, [&](const LdsAccess &access) {
          return !canSwapHalves(access.layout, shape.elementBytes, swizzle);
        }))
      return;
    int64_t clocks = counter.count(swizzle, conflicts);
    if (clocks > conflicts)
      return;
    int64_t held = 0;
    for (const LdsAccess &access : accesses)
      held += laneAddresses(shape, swizzle, access);
    // Between equals, the one that takes fewer registers.
    if (clocks == conflicts && held >= addresses)
      return;
    conflicts = clocks;
    addresses = held;
    best = swizzle;
  };
  // Swaps of halves help narrow reads alone. Reads and writes may see different
  // numbers of banks.
  int64_t most = chunks;
  int32_t mostHalfBit = shape.wholeChunks ? -1 : kMaxHalfBit;
  for (int32_t halfBit = -1; halfBit <= mostHalfBit; ++halfBit) {
    for (chunks = most; chunks > 1; chunks /= 2)
      for (int32_t a = 0; a <= kMaxShift; ++a) {
        consider({a}, halfBit);
        for (int32_t b = a + 1; b <= kMaxShift; ++b)
          consider({a, b}, halfBit);
      }
    // Reads of a few rows at a time, several chunks of each.
    chunks = most;
    for (int32_t a = -1; a >= -kMaxShift; --a)
      consider({a}, halfBit);
    if (conflicts == 0)
      break;
  }
  return best;
}

TileLayout chooseTransposedCopyLayout(const LdsShape &shape, int laneBits,
                                      int waveBits,
                                      llvm::ArrayRef<LdsAccess> reads) {
  constexpr int kMostRowBits = 2;
  llvm::SmallVector<LdsAccess> accesses(reads);
  TileLayout best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int rowBits = 0; rowBits <= kMostRowBits; ++rowBits) {
    TileLayout candidate =
        chooseCopyLayout(shape.columns, shape.rows, shape.elementBytes,
                         laneBits, waveBits, true, rowBits)
            .transposed();
    accesses.push_back({candidate, /*write=*/true});
    Swizzle swizzle = chooseSwizzle(shape, accesses);
    int64_t conflicts = ConflictCounter(shape, accesses).count(swizzle);
    accesses.pop_back();
    if (conflicts < least) {
      least = conflicts;
      best = candidate;
    }
  }
  return best;
}

} // namespace fovea::layout

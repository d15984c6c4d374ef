//===- BufferFormat.cpp - Formatted buffer loads and stores ---------------===//
//
// buffer_{load,store}_format_* take the format from the resource, tbuffer_* from
// the instruction; both take the destination swizzle from the resource. An
// element is converted to, or from, 32-bit numbers, or 16-bit ones in pairs
// (d16). Formats: CDNA3 ISA document, tables on buffer data and number formats.
//
//===----------------------------------------------------------------------===//
#include "exec/Access.h"
#include "exec/UnifiedFormat.h"
#include "fovea/Simulator/Chip.h"

namespace fovea::sim::FOVEA_VARIANT {

namespace {

/// Bits of the components, from the lowest; by data format. Sum 0: no format.
constexpr uint8_t kBits[16][4] = {
    {0, 0, 0, 0},     {8, 0, 0, 0},     {16, 0, 0, 0},   {8, 8, 0, 0},
    {32, 0, 0, 0},    {16, 16, 0, 0},   {11, 11, 10, 0}, {10, 11, 11, 0},
    {2, 10, 10, 10},  {10, 10, 10, 2},  {8, 8, 8, 8},    {32, 32, 0, 0},
    {16, 16, 16, 16}, {32, 32, 32, 0},  {32, 32, 32, 32}, {0, 0, 0, 0}};
enum NumFormat : uint32_t { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kFloat = 7 };

bool isInteger(uint32_t number) { return number == kUint || number == kSint; }

/// Unsigned floats of 10 and 11 bits: five of exponent, as fp16 without sign.
float smallFloat(uint32_t raw, unsigned bits) {
  return halfToFloat(static_cast<uint16_t>(raw << (15 - bits)));
}

/// A component as a 32-bit number: a float, or an integer.
uint32_t decode(uint32_t raw, unsigned bits, uint32_t number) {
  int32_t s = static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits);
  auto top = static_cast<double>((uint64_t(1) << (bits - 1)) - 1);
  switch (number) {
  case kUnorm:
    return asU32(static_cast<float>(
        raw / static_cast<double>((uint64_t(1) << bits) - 1)));
  case kSnorm:
    return asU32(static_cast<float>(imax(-1.0, s / top)));
  case kUscaled: return asU32(static_cast<float>(raw));
  case kSscaled: return asU32(static_cast<float>(s));
  case kSint: return static_cast<uint32_t>(s);
  case kFloat:
    return bits == 32   ? raw
           : bits == 16 ? asU32(halfToFloat(static_cast<uint16_t>(raw)))
                        : asU32(smallFloat(raw, bits));
  default: return raw;
  }
}

/// The bits of a component from a 32-bit number.
uint32_t encode(uint32_t x, unsigned bits, uint32_t number) {
  uint64_t all = (uint64_t(1) << bits) - 1;
  auto top = static_cast<double>(all >> 1);
  auto f = static_cast<double>(asF32(x));
  f = f != f ? 0 : f;
  auto limited = [&](double low, double high, double scale) {
    double y = imin(imax(f, low), high) * scale;
    return static_cast<uint32_t>(static_cast<int64_t>(std::nearbyint(y)) &
                                 static_cast<int64_t>(all));
  };
  switch (number) {
  case kUnorm: return limited(0, 1, static_cast<double>(all));
  case kSnorm: return limited(-1, 1, top);
  case kUscaled: return limited(0, static_cast<double>(all), 1);
  case kSscaled: return limited(-top - 1, top, 1);
  case kUint: return x > all ? static_cast<uint32_t>(all) : x;
  case kSint: {
    auto s = static_cast<double>(static_cast<int32_t>(x));
    return static_cast<uint32_t>(
        static_cast<int64_t>(imin(imax(s, -top - 1), top)) &
        static_cast<int64_t>(all));
  }
  case kFloat:
    if (bits == 32)
      return x;
    if (bits == 16)
      return floatToHalf(asF32(x));
    // Without sign: negative numbers become 0; bits that do not fit are cut.
    return f < 0 ? 0 : static_cast<uint32_t>(halfRtz(asF32(x))) >> (15 - bits);
  default: return x;
  }
}

struct Element {
  const uint8_t *bits;
  uint32_t number;
  unsigned count = 0, bytes = 0;

  Element(uint32_t data, uint32_t number) : bits(kBits[data & 15]), number(number) {
    unsigned total = 0;
    while (count < 4 && bits[count])
      total += bits[count++];
    bytes = total / 8;
  }
  void load(const uint8_t *from, uint32_t *x) const {
    unsigned at = 0;
    uint64_t words[2] = {0, 0};
    std::memcpy(words, from, bytes);
    for (unsigned i = 0; i < count; at += bits[i++]) {
      uint32_t raw = static_cast<uint32_t>(words[at / 64] >> (at % 64));
      if (bits[i] < 32)
        raw &= (1u << bits[i]) - 1;
      x[i] = decode(raw, bits[i], number);
    }
    for (unsigned i = count; i < 4; ++i)
      x[i] = i < 3 ? 0 : one();
  }
  void store(uint8_t *to, const uint32_t *x) const {
    unsigned at = 0;
    uint64_t words[2] = {0, 0};
    for (unsigned i = 0; i < count; at += bits[i++])
      words[at / 64] |= uint64_t(encode(x[i], bits[i], number)) << (at % 64);
    std::memcpy(to, words, bytes);
  }
  uint32_t one() const { return isInteger(number) ? 1 : asU32(1.0f); }
};

/// A number as 16 bits, and back.
uint32_t narrow(uint32_t x, const Element &e) {
  if (e.number == kUint)
    return clampTo(x, 0xffff);
  if (e.number == kSint)
    return static_cast<uint16_t>(imed3(static_cast<int32_t>(x), -32768, 32767));
  return floatToHalf(asF32(x));
}
uint32_t widen(uint32_t x, const Element &e) {
  if (e.number == kUint)
    return x & 0xffff;
  if (e.number == kSint)
    return static_cast<uint32_t>(static_cast<int16_t>(x));
  return asU32(halfToFloat(static_cast<uint16_t>(x)));
}

} // namespace

void execBufferFormat(Wave &w, const MicroOp &op) {
  const Row &row = *op.row;
  uint64_t mask = w.exec();
  if (!mask)
    return;
  const uint32_t *r = &w.s[op.s[2].reg];
  bool typed = row.mnemonic[0] == 't';
  uint32_t format = (r[3] >> 15 & 15) | (r[3] >> 12 & 7) << 4;
  if (w.group->chip->unifiedFormats)
    format = splitFormat((r[3] >> 12) & 63);
  if (typed)
    format = op.aux;
  Element element(format & 15, (format >> 4) & 7);
  uint64_t base = r[0] | uint64_t(r[1] & 0xffff) << 32;
  uint32_t stride = (r[1] >> 16) & 0x3fff;
  bool swizzle = r[1] >> (w.group->chip->bufferOobSelect ? 30 : 31);
  bool addTid = (r[3] >> 23) & 1;
  uint32_t indexStride = 8u << ((r[3] >> 21) & 3);
  uint32_t soffset = readS32(w, op.s[3]);
  bool idxen = op.flags & kIdxen;
  const uint32_t *vIndex = idxen ? w.vreg(op.s[0].reg) : nullptr;
  const uint32_t *vOffset =
      op.flags & kOffen ? w.vreg(op.s[0].reg + (idxen ? 1 : 0)) : nullptr;
  const BufferRange range = bufferRange(*w.group->chip, r, stride, swizzle,
                                        idxen, soffset, element.bytes);
  uint64_t address[kLaneStride], inRange = 0;
  forEachLane(mask, [&](int l) {
    uint64_t index = (vIndex ? vIndex[l] : 0) + uint64_t(addTid ? l : 0);
    uint64_t offset = static_cast<uint64_t>(static_cast<uint32_t>(op.offset)) +
                      (vOffset ? vOffset[l] : 0);
    if (element.bytes && range.holds(index, offset + element.bytes))
      inRange |= uint64_t(1) << l;
    address[l] = swizzle && stride
                     ? base + soffset +
                           (index / indexStride * stride + offset / 4 * 4) *
                               indexStride +
                           index % indexStride * 4 + offset % 4
                     : base + soffset + index * stride + offset;
  });
  bool store = row.flags & kStore;
  if (inRange && !checkMemory(w, op, address, inRange, element.bytes))
    return;
  auto place = [&](int l) { return reinterpret_cast<uint8_t *>(address[l]); };
  if (!observed(w, op, accessKind(row), inRange, place, element.bytes))
    return;
  uint64_t bytes =
      static_cast<uint64_t>(__builtin_popcountll(inRange)) * element.bytes;
  (store ? w.group->bytesStored : w.group->bytesLoaded) += bytes;
  bool d16 = row.flags & kD16, high = row.flags & kHigh;
  unsigned n = row.count;
  if (store) {
    const unsigned data = op.s[1].reg;
    forEachLane(inRange, [&](int l) {
      uint32_t x[4] = {0, 0, 0, 0};
      for (unsigned i = 0; i < n; ++i)
        x[i] = d16 ? widen(w.vreg(data + i / 2)[l] >> (i % 2 || high ? 16 : 0),
                           element)
                   : w.vreg(data + i)[l];
      element.store(place(l), x);
    });
    return;
  }
  const uint32_t kept = keptByD16(w);
  forEachLane(mask, [&](int l) {
    uint32_t x[4] = {0, 0, 0, 0}, y[4];
    bool in = (inRange >> l) & 1;
    if (in)
      element.load(place(l), x);
    for (unsigned i = 0; i < n; ++i) {
      unsigned sel = (r[3] >> (3 * i)) & 7;
      y[i] = !in ? 0 : sel >= 4 ? x[sel - 4] : sel == 1 ? element.one() : 0;
    }
    for (unsigned i = 0; i < n; ++i) {
      uint32_t *d = w.vreg(op.d.reg + (d16 ? i / 2 : i));
      if (!d16)
        d[l] = y[i];
      else if (i % 2)
        d[l] = (d[l] & 0xffff) | narrow(y[i], element) << 16;
      else if (high)
        d[l] = (d[l] & kept & 0xffff) | narrow(y[i], element) << 16;
      else
        d[l] = (n > 1 ? 0 : d[l] & kept & 0xffff0000) | narrow(y[i], element);
    }
  });
}

} // namespace fovea::sim::FOVEA_VARIANT

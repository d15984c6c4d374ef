//===- Fill.cpp - first contents of buffers -------------------------------===//
//
// Elements are made in order of their index, so that the same description gives
// the same values whatever its strides.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "Main.h"
#include "Npy.h"
#include "fovea/Reference/Inputs.h"
#include "fovea/Reference/Types.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace fovea::describe;

namespace {

void storeFloat(Type type, double value, uint8_t *to) {
  const float single = float(value);
  const uint16_t half = type == Type::F16 ? fovea::reference::toF16(value)
                                          : fovea::reference::toBF16(value);
  switch (type) {
  case Type::F64:
    std::memcpy(to, &value, 8);
    break;
  case Type::F32:
    std::memcpy(to, &single, 4);
    break;
  default:
    std::memcpy(to, &half, 2);
    break;
  }
}

class Filler {
public:
  Filler(const Buffer &buffer, const std::vector<double> *reference,
         std::vector<uint8_t> &bytes)
      : buffer(buffer), fill(buffer.fill), reference(reference), bytes(bytes),
        random(buffer.fill.seed), size(typeSize(buffer.type)) {}

  bool run(std::string &error) {
    if (fill.kind == Fill::File && !readFile(error))
      return false;
    if (fill.kind == Fill::Reference &&
        (!reference || int64_t(reference->size()) != buffer.elements())) {
      error = "buffer '" + buffer.name +
              "': the check has no reference values of its shape";
      return false;
    }
    bytes.assign(buffer.bytes, 0xff);
    if (isFloat(buffer.type))
      for (size_t at = 0; at + size <= bytes.size(); at += size)
        storeFloat(buffer.type, std::numeric_limits<double>::quiet_NaN(),
                   bytes.data() + at);
    if (buffer.bytes == 0)
      return true;
    std::vector<int64_t> index(buffer.shape.size(), 0);
    const int64_t count = buffer.elements();
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < index.size(); ++axis)
        offset += index[axis] * buffer.strides[axis];
      store(i, bytes.data() + size_t(offset) * size);
      for (size_t axis = index.size(); axis-- > 0;) {
        if (++index[axis] < buffer.shape[axis])
          break;
        index[axis] = 0;
      }
    }
    return true;
  }

private:
  bool readFile(std::string &error) {
    fovea::run::NpyArray array;
    if (!fovea::run::readNpy(fill.path, array, error))
      return false;
    if (int64_t(array.values.size()) != buffer.elements()) {
      error = fill.path + ": " + std::to_string(array.values.size()) +
              " elements, buffer '" + buffer.name + "' has " +
              std::to_string(buffer.elements());
      return false;
    }
    int64_t least = 0, most = 0;
    if (!isFloat(buffer.type))
      integerRange(buffer.type, least, most);
    for (size_t i = 0; i < array.values.size() && !isFloat(buffer.type); ++i) {
      const double value = array.values[i];
      // The largest of 64 bits is none of fp64, which has the next.
      if (value == std::floor(value) && value >= double(least) &&
          (value <= double(most) && value < 0x1p63))
        continue;
      error = fill.path + ": element " + std::to_string(i) + " is " +
              std::to_string(value) + ", which is no value of buffer '" +
              buffer.name + "', type " + typeName(buffer.type);
      return false;
    }
    file = std::move(array.values);
    return true;
  }

  void store(int64_t i, uint8_t *to) {
    if (isFloat(buffer.type))
      return storeFloat(buffer.type, floating(i), to);
    const int64_t value = integer(i);
    std::memcpy(to, &value, size); // little-endian hosts
  }

  double floating(int64_t i) {
    switch (fill.kind) {
    case Fill::Zeros:
      return 0;
    case Fill::NaN:
      return std::numeric_limits<double>::quiet_NaN();
    case Fill::Iota:
      return double(i);
    case Fill::Normal:
      return fill.a + fill.b * random.normal();
    case Fill::Uniform:
      return fill.a + (fill.b - fill.a) * random.uniform();
    case Fill::Value:
      return fill.values[0].real();
    case Fill::Values:
      return fill.values[size_t(i)].real();
    case Fill::File:
      return file[size_t(i)];
    case Fill::Reference:
      return (*reference)[size_t(i)];
    }
    return 0;
  }

  int64_t integer(int64_t i) {
    switch (fill.kind) {
    case Fill::NaN:
      return -1;
    case Fill::Iota:
      return i;
    case Fill::Uniform:
      return int64_t(std::floor(fill.a + (fill.b - fill.a) * random.uniform()));
    case Fill::Value:
      return fill.values[0].whole;
    case Fill::Values:
      return fill.values[size_t(i)].whole;
    case Fill::File:
      return int64_t(file[size_t(i)]);
    case Fill::Reference:
      return int64_t((*reference)[size_t(i)]);
    default:
      return 0;
    }
  }

  const Buffer &buffer;
  const Fill &fill;
  const std::vector<double> *reference;
  std::vector<uint8_t> &bytes;
  fovea::reference::Random random;
  const size_t size;
  std::vector<double> file;
};

} // namespace

bool fovea::describe::fillBuffer(const Buffer &buffer,
                                 const std::vector<double> *reference,
                                 std::vector<uint8_t> &bytes,
                                 std::string &error) {
  return fovea::tool::allocating(
      ("buffer '" + buffer.name + "'").c_str(), buffer.bytes,
      [&] { return Filler(buffer, reference, bytes).run(error); });
}

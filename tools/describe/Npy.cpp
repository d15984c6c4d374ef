//===- Npy.cpp - arrays in NumPy's file format ----------------------------===//
//
// The header is a Python dictionary of three known keys; each is looked for by
// name rather than parsed as Python.
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include "Main.h"
#include "fovea/Reference/Types.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

using namespace fovea::run;
namespace ref = fovea::reference;

namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
/// More elements than any tensor a kernel addresses with room to spare; keeps
/// products of damaged shapes in range.
constexpr int64_t kMaxElements = int64_t(1) << 40;
/// NumPy writes some hundred bytes.
constexpr uint32_t kMaxHeader = 1 << 20;
/// Elements that are read at once.
constexpr size_t kPiece = 1 << 16;

template <typename Stored>
double plain(const char *from) {
  Stored value;
  std::memcpy(&value, from, sizeof(value));
  return double(value);
}

double half(const char *from) {
  return ref::fromF16(uint16_t(plain<uint16_t>(from)));
}
double bfloat(const char *from) {
  return ref::fromBF16(uint16_t(plain<uint16_t>(from)));
}

struct NpyType {
  const char *name;
  size_t bytes;
  double (*read)(const char *);
};
constexpr NpyType kNpyTypes[] = {
    {"<f2", 2, half},   {"<f4", 4, plain<float>}, {"<f8", 8, plain<double>},
    {"<u2", 2, bfloat}, {"<V2", 2, bfloat},       {"|V2", 2, bfloat},
};

/// The text after `'key':` in the header, blanks skipped; empty: no such key.
std::string valueOf(const std::string &header, const std::string &key) {
  size_t at = header.find("'" + key + "':");
  if (at == std::string::npos)
    return {};
  at = header.find_first_not_of(" ", at + key.size() + 3);
  return at == std::string::npos ? std::string() : header.substr(at);
}

bool parseShape(const std::string &text, std::vector<int64_t> &shape,
                int64_t &elements) {
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string::npos)
    return false;
  elements = 1;
  const char *at = text.c_str() + 1;
  while (true) {
    at += std::strspn(at, " ,");
    if (*at == ')')
      return true;
    char *after;
    errno = 0;
    const long long extent = std::strtoll(at, &after, 10);
    if (after == at || errno != 0 || extent < 0 || extent > kMaxElements ||
        (extent != 0 && elements > kMaxElements / extent))
      return false;
    shape.push_back(extent);
    elements *= extent;
    at = after;
  }
}

} // namespace

bool fovea::run::readNpy(const std::string &path, NpyArray &array,
                         std::string &error) {
  auto refuse = [&](const std::string &why) {
    error = path + ": " + why;
    return false;
  };
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return refuse(std::strerror(errno));
  // No further than the header says: a file may have no end.
  auto read = [&](size_t count) {
    std::string bytes(count, '\0');
    file.read(bytes.data(), std::streamsize(count));
    bytes.resize(size_t(file.gcount()));
    return bytes;
  };
  std::string start = read(10);
  if (start.size() < 10 || start.compare(0, kMagicSize, kMagic) != 0)
    return refuse("not a .npy file");
  const bool old = start[6] == 1;
  start += read(old ? 0 : 2);
  uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, std::min<size_t>(start.size() - 8, 4));
  if (length > kMaxHeader)
    return refuse("its header of " + std::to_string(length) +
                  " bytes is none that NumPy writes");
  const std::string header = read(length);
  if (header.size() < length)
    return refuse("the header is truncated");
  const std::string type = valueOf(header, "descr");
  if (valueOf(header, "fortran_order").compare(0, 5, "False") != 0)
    return refuse("the array is in Fortran order; save it with "
                  "numpy.ascontiguousarray");
  int64_t elements;
  array.shape.clear();
  if (!parseShape(valueOf(header, "shape"), array.shape, elements))
    return refuse("the shape in its header cannot be read");
  for (const NpyType &row : kNpyTypes) {
    if (type.compare(0, 5, "'" + std::string(row.name) + "'") != 0)
      continue;
    // Piece by piece: a damaged shape may ask for more than there is memory.
    array.values.clear();
    for (size_t left = size_t(elements); left != 0;) {
      const std::string data = read(std::min(left, kPiece) * row.bytes);
      const size_t present = data.size() / row.bytes;
      for (size_t i = 0; i != present; ++i)
        array.values.push_back(row.read(data.data() + i * row.bytes));
      left -= present;
      if (left != 0 && present != kPiece)
        return refuse("truncated: of " + std::to_string(elements) +
                      " elements of " + std::to_string(row.bytes) +
                      " bytes the last " + std::to_string(left) +
                      " are missing");
    }
    return true;
  }
  return refuse("its type is " + type.substr(0, type.find(',')) +
                "; it must be float16, float32, float64, or bfloat16 as 16-bit "
                "words");
}

bool fovea::run::writeNpy(const std::string &path,
                          const std::vector<int64_t> &shape,
                          const std::vector<float> &values,
                          std::string &error) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  // Data begins at a multiple of 64 bytes; the header ends with a newline.
  constexpr size_t kAlign = 64, kPrefix = 10;
  header.append(kAlign - (kPrefix + header.size() + 1) % kAlign, ' ');
  header += '\n';
  const uint16_t length = uint16_t(header.size());
  std::string content(kMagic, kMagicSize);
  content.append("\x01\x00", 2)
      .append(reinterpret_cast<const char *>(&length), 2)
      .append(header)
      .append(reinterpret_cast<const char *>(values.data()),
              values.size() * sizeof(float));
  return tool::writeFile(path, content, error);
}

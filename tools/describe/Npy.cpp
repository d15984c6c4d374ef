//===- Npy.cpp - arrays in NumPy's file format ----------------------------===//
//
// The header is a Python dictionary of three known keys; each is looked for by
// name rather than parsed as Python.
//
//===----------------------------------------------------------------------===//

#include "Npy.h"

#include "Main.h"
#include "fovea/Reference/Types.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace fovea::run;
namespace ref = fovea::reference;

namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
/// More elements than any tensor a kernel addresses with room to spare; keeps
/// products of damaged shapes in range.
constexpr int64_t kMaxElements = int64_t(1) << 40;

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

struct TypeRow {
  const char *name;
  size_t bytes;
  double (*read)(const char *);
};
constexpr TypeRow kTypes[] = {
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
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < 12 || bytes.compare(0, kMagicSize, kMagic) != 0)
    return refuse("not a .npy file");
  const bool old = bytes[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, old ? 2 : 4);
  const size_t start = old ? 10 : 12;
  if (bytes.size() - start < length)
    return refuse("the header is truncated");
  const std::string header = bytes.substr(start, length);
  const std::string type = valueOf(header, "descr");
  if (valueOf(header, "fortran_order").compare(0, 5, "False") != 0)
    return refuse("the array is in Fortran order; save it with "
                  "numpy.ascontiguousarray");
  int64_t elements;
  array.shape.clear();
  if (!parseShape(valueOf(header, "shape"), array.shape, elements))
    return refuse("the shape in its header cannot be read");
  for (const TypeRow &row : kTypes) {
    if (type.compare(0, 5, "'" + std::string(row.name) + "'") != 0)
      continue;
    const size_t present = bytes.size() - start - length;
    if (present / row.bytes < size_t(elements))
      return refuse("truncated: " + std::to_string(elements) + " elements of " +
                    std::to_string(row.bytes) + " bytes are missing in " +
                    std::to_string(present));
    array.values.resize(size_t(elements));
    const char *from = bytes.data() + start + length;
    for (int64_t i = 0; i < elements; ++i)
      array.values[size_t(i)] = row.read(from + size_t(i) * row.bytes);
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

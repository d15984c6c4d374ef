//===- Description.cpp - what to launch, and on what ----------------------===//
//
// From JSON to numbers.
//
//===----------------------------------------------------------------------===//

#include "Description.h"

#include "Reader.h"
#include "fovea/Reference/Types.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace fovea::describe;

namespace {

/// 2^46 bytes: beyond any memory, and far from overflow in sums and products.
constexpr int64_t kMaxBytes = int64_t(1) << 46;
constexpr int64_t kMaxGrid = (int64_t(1) << 32) - 1;
constexpr int64_t kMaxBlock = 1024;
constexpr int64_t kMaxArguments = 1 << 16; // far above any kernel's

struct TypeRow {
  Type type;
  const char *name;
  size_t bytes;
  bool floating;
};
constexpr TypeRow kTypes[] = {
    {Type::F16, "f16", 2, true},  {Type::BF16, "bf16", 2, true},
    {Type::F32, "f32", 4, true},  {Type::F64, "f64", 8, true},
    {Type::I8, "i8", 1, false},   {Type::U8, "u8", 1, false},
    {Type::I16, "i16", 2, false}, {Type::U16, "u16", 2, false},
    {Type::I32, "i32", 4, false}, {Type::U32, "u32", 4, false},
    {Type::I64, "i64", 8, false}, {Type::U64, "u64", 8, false},
};
const TypeRow &row(Type type) { return kTypes[size_t(type)]; }

bool findType(const std::string &name, Type &type) {
  for (const TypeRow &candidate : kTypes)
    if (name == candidate.name) {
      type = candidate.type;
      return true;
    }
  return false;
}

std::string typeNames() {
  std::string names;
  for (const TypeRow &candidate : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
  return names;
}

/// Least and largest value of an integer type, as far as expressions reach.
void integerRange(Type type, int64_t &least, int64_t &most) {
  const unsigned bits = unsigned(8 * typeSize(type));
  const bool isUnsigned = typeName(type)[0] == 'u';
  least = isUnsigned ? 0 : int64_t(-1) << (bits - 1);
  most = bits == 64   ? INT64_MAX
         : isUnsigned ? (int64_t(1) << bits) - 1
                      : (int64_t(1) << (bits - 1)) - 1;
}

class Builder {
public:
  Builder(const nlohmann::json &json, const std::string &path,
          const std::string &directory, Problem &problem)
      : diagnostics{path, {}}, directory(directory),
        top(&json, "", scope, diagnostics), problem(problem) {
    problem = {};
    problem.path = path;
  }

  bool run(const Overrides &overrides, std::string &error) {
    top.expectFields({"version", "name", "target", "variables", "require",
                      "buffers", "launches", "check", "code_object", "kernel",
                      "grid", "block", "dynamic_lds", "arguments",
                      "kernarg_bytes", "work"});
    const Node version = top.required("version");
    if (version && version.integer() != 1)
      version.fail("this program reads version 1, not " +
                   std::to_string(version.integer()));
    problem.name = top.field("name")
                       ? top.field("name").text()
                       : std::filesystem::path(problem.path).stem().string();
    problem.target = top.field("target").text();
    readVariables(overrides);
    if (ok())
      readRequirements();
    if (ok())
      for (const auto &[name, node] : top.field("buffers").fields())
        readBuffer(name, node);
    if (ok())
      readLaunches();
    if (ok() && top.field("check"))
      readCheck(top.field("check"));
    if (ok())
      for (const Buffer &buffer : problem.buffers)
        if (buffer.fill.kind == Fill::Reference && !problem.check)
          top.field("buffers")
              .field(buffer.name)
              .fail("the fill 'reference' wants a 'check'");
    error = diagnostics.error;
    return ok();
  }

private:
  bool ok() const { return diagnostics.error.empty(); }

  void readVariables(const Overrides &overrides) {
    for (const auto &[name, node] : top.field("variables").fields())
      scope.define(name, node.expression());
    for (const auto &[name, expression] : overrides) {
      if (!scope.has(name)) {
        Number unused;
        std::string why;
        scope.find(name, unused, why);
        return top.field("variables").fail("cannot set '" + name + "': " + why);
      }
      scope.define(name, expression);
    }
    std::string culprit, why;
    if (!scope.all(problem.variables, culprit, why))
      top.field("variables").field(culprit).fail(why);
  }

  void readRequirements() {
    for (const Node &node : top.field("require").items())
      if (!node.number().truth())
        node.fail("these variables are refused: " + node.expression() +
                  " does not hold");
  }

  size_t findBuffer(const Node &node) {
    const std::string name = node.text();
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      if (problem.buffers[i].name == name)
        return i;
    node.fail("no buffer '" + name + "'");
    return 0;
  }

  void readBuffer(const std::string &name, const Node &node) {
    node.expectFields({"type", "shape", "strides", "bytes", "fill"});
    Buffer buffer;
    buffer.name = name;
    if (node.field("bytes")) {
      for (const char *other : {"type", "shape", "strides"})
        if (node.field(other))
          node.fail(std::string("'bytes' excludes '") + other + "'");
      buffer.shape = {node.field("bytes").integer(0, kMaxBytes)};
    } else {
      const Node type = node.required("type");
      if (type && !findType(type.text(), buffer.type))
        type.fail("no type '" + type.text() + "'; there are: " + typeNames());
      buffer.shape = node.required("shape").integers(0, kMaxBytes);
    }
    layOut(buffer, node);
    if (ok() && node.field("fill"))
      readFill(buffer, node.field("fill"));
    problem.buffers.push_back(std::move(buffer));
  }

  /// Strides and size.
  void layOut(Buffer &buffer, const Node &node) {
    const size_t rank = buffer.shape.size();
    if (node.field("strides")) {
      buffer.strides = node.field("strides").integers(0, kMaxBytes);
      if (ok() && buffer.strides.size() != rank)
        node.field("strides").fail(std::to_string(buffer.strides.size()) +
                                   " strides for " + std::to_string(rank) +
                                   " axes");
    } else {
      buffer.strides.assign(rank, 1);
      for (size_t i = rank; i-- > 1;)
        if (__builtin_mul_overflow(buffer.strides[i], buffer.shape[i],
                                   &buffer.strides[i - 1]))
          return node.fail("the buffer is larger than 2^46 bytes");
    }
    if (!ok())
      return;
    int64_t last = 0, elements = 1;
    bool overflow = false, empty = false;
    for (size_t i = 0; i < rank; ++i) {
      int64_t step;
      empty |= buffer.shape[i] == 0;
      overflow |= __builtin_mul_overflow(buffer.shape[i] - 1, buffer.strides[i],
                                         &step) ||
                  __builtin_add_overflow(last, step, &last) ||
                  __builtin_mul_overflow(elements, buffer.shape[i], &elements);
    }
    if (empty)
      return;
    const int64_t size = int64_t(typeSize(buffer.type));
    if (overflow || last >= kMaxBytes / size || elements > kMaxBytes)
      return node.fail("the buffer is larger than 2^46 bytes");
    buffer.bytes = uint64_t((last + 1) * size);
  }

  void readFill(Buffer &buffer, const Node &node) {
    Fill &fill = buffer.fill;
    const std::string kind =
        node.isObject() ? node.required("kind").text() : node.text();
    struct KindRow {
      const char *name;
      Fill::Kind kind;
      bool object;
    };
    static constexpr KindRow kKinds[] = {
        {"zeros", Fill::Zeros, false},  {"nan", Fill::NaN, false},
        {"iota", Fill::Iota, false},    {"reference", Fill::Reference, false},
        {"normal", Fill::Normal, true}, {"uniform", Fill::Uniform, true},
        {"value", Fill::Value, true},   {"values", Fill::Values, true},
        {"file", Fill::File, true}};
    const KindRow *found = nullptr;
    std::string names;
    for (const KindRow &candidate : kKinds) {
      names += (names.empty() ? "" : ", ") + std::string(candidate.name);
      if (kind == candidate.name)
        found = &candidate;
    }
    if (!ok())
      return;
    if (!found)
      return node.fail("no fill '" + kind + "'; there are: " + names);
    fill.kind = found->kind;
    if (fill.kind == Fill::Uniform && !isFloat(buffer.type))
      fill.b = 2; // 0 and 1
    auto seed = [&] {
      if (node.field("seed"))
        fill.seed = uint64_t(node.field("seed").integer());
    };
    auto number = [&](const char *name, double &value) {
      if (node.field(name))
        value = node.field(name).real();
    };
    switch (fill.kind) {
    case Fill::Normal:
      if (node.isObject())
        node.expectFields({"kind", "seed", "scale", "mean"});
      seed();
      number("mean", fill.a);
      number("scale", fill.b);
      break;
    case Fill::Uniform:
      if (node.isObject())
        node.expectFields({"kind", "seed", "low", "high"});
      seed();
      number("low", fill.a);
      number("high", fill.b);
      if (!(fill.a < fill.b))
        node.fail("'low' must be below 'high'");
      break;
    case Fill::Value:
      node.expectFields({"kind", "value"});
      fill.values = {node.required("value").number()};
      break;
    case Fill::Values:
      node.expectFields({"kind", "values"});
      for (const Node &item : node.required("values").items())
        fill.values.push_back(item.number());
      if (ok() && int64_t(fill.values.size()) != buffer.elements())
        node.field("values").fail(
            std::to_string(fill.values.size()) + " values for " +
            std::to_string(buffer.elements()) + " elements");
      break;
    case Fill::File:
      node.expectFields({"kind", "path"});
      fill.path = relative(node.required("path").text());
      break;
    default:
      if (node.isObject())
        node.expectFields({"kind"});
      break;
    }
    if (!isFloat(buffer.type))
      checkRange(buffer, node);
  }

  /// Integers that a fill names must fit.
  void checkRange(const Buffer &buffer, const Node &node) {
    int64_t least, most;
    integerRange(buffer.type, least, most);
    for (const Number &value : buffer.fill.values)
      if (!value.integer || value.whole < least || value.whole > most)
        return node.fail((value.integer ? std::to_string(value.whole)
                                        : std::to_string(value.fraction)) +
                         " is no value of type " + typeName(buffer.type));
    const Fill &fill = buffer.fill;
    if (fill.kind == Fill::Normal)
      node.fail(std::string("'normal' wants a floating-point type, not ") +
                typeName(buffer.type));
    if (fill.kind == Fill::Uniform &&
        (fill.a < double(least) || fill.b > double(most) + 1))
      node.fail(std::string("the bounds exceed type ") + typeName(buffer.type));
  }

  std::string relative(const std::string &path) const {
    const std::filesystem::path given(path);
    return given.is_absolute() ? path
                               : (std::filesystem::path(directory) / given)
                                     .lexically_normal()
                                     .string();
  }

  void readLaunches() {
    constexpr const char *kOwn[] = {"code_object",   "kernel",    "grid",
                                    "block",         "arguments", "dynamic_lds",
                                    "kernarg_bytes", "work"};
    if (!top.field("launches"))
      return readLaunch(top);
    for (const char *name : kOwn)
      if (top.field(name))
        top.fail(std::string("'launches' excludes '") + name +
                 "' at top level");
    for (const Node &node : top.field("launches").items()) {
      node.expectFields({"name", "code_object", "kernel", "grid", "block",
                         "dynamic_lds", "arguments", "kernarg_bytes", "work"});
      readLaunch(node);
    }
    if (ok() && problem.launches.empty())
      top.field("launches").fail("the list is empty");
  }

  void readLaunch(const Node &node) {
    Launch launch;
    launch.codeObject = relative(node.required("code_object").text());
    launch.kernel = node.field("kernel").text();
    launch.name = launch.kernel.empty()
                      ? std::filesystem::path(launch.codeObject).stem().string()
                      : launch.kernel;
    if (node.field("name"))
      launch.name = node.field("name").text();
    readExtent(node.required("grid"), 0, kMaxGrid, launch.grid);
    readExtent(node.required("block"), 1, kMaxBlock, launch.block);
    const int64_t items =
        int64_t(launch.block[0]) * launch.block[1] * launch.block[2];
    if (items > kMaxBlock)
      node.field("block").fail(std::to_string(items) +
                               " work-items; a workgroup has at most 1024");
    if (node.field("dynamic_lds"))
      launch.dynamicLds =
          uint32_t(node.field("dynamic_lds").integer(0, 1 << 20));
    for (const Node &argument : node.required("arguments").items())
      readArgument(argument, launch);
    if (const Node size = node.field("kernarg_bytes")) {
      const int64_t bytes = size.integer(0, kMaxArguments);
      if (bytes < int64_t(launch.arguments.size()))
        size.fail(std::to_string(bytes) + " bytes, but the arguments take " +
                  std::to_string(launch.arguments.size()));
      else
        launch.arguments.resize(size_t(bytes));
    }
    if (const Node work = node.field("work")) {
      work.expectFields({"flops", "bytes"});
      if (work.field("flops"))
        launch.flops = work.field("flops").real();
      if (work.field("bytes"))
        launch.bytes = work.field("bytes").real();
    }
    covered.clear();
    problem.launches.push_back(std::move(launch));
  }

  void readExtent(const Node &node, int64_t least, int64_t most,
                  std::array<uint32_t, 3> &extent) {
    const std::vector<int64_t> found = node.integers(least, most);
    if (found.empty() || found.size() > 3) {
      if (node)
        node.fail("expected 1 to 3 numbers, found " +
                  std::to_string(found.size()));
      return;
    }
    for (size_t i = 0; i < found.size(); ++i)
      extent[i] = uint32_t(found[i]);
  }

  void readArgument(const Node &node, Launch &launch) {
    node.expectFields({"name", "offset", "kind", "value", "plus"});
    const std::string kind = node.required("kind").text();
    const Node value = node.required("value");
    if (!ok())
      return;
    if (node.field("plus") && kind != "buffer")
      return node.field("plus").fail("only a buffer has 'plus'");
    std::vector<uint8_t> bytes(8);
    Pointer pointer;
    bool isPointer = false;
    Type type;
    if (kind == "buffer") {
      isPointer = true;
      pointer.buffer = findBuffer(value);
      if (node.field("plus"))
        pointer.plus = node.field("plus").integer();
    } else if (kind == "ptr") {
      const int64_t address = value.integer();
      std::memcpy(bytes.data(), &address, 8);
    } else if (kind == "bytes") {
      readBytes(value, bytes);
    } else if (findType(kind, type)) {
      bytes = encode(type, value);
    } else {
      return node.field("kind").fail("no kind '" + kind +
                                     "'; there are: buffer, ptr, bytes, " +
                                     typeNames());
    }
    const int64_t size = int64_t(bytes.size());
    const int64_t align = kind == "bytes" ? 1 : size;
    int64_t offset =
        (int64_t(launch.arguments.size()) + align - 1) / align * align;
    if (node.field("offset"))
      offset = node.field("offset").integer(0, kMaxArguments - size);
    if (!ok())
      return;
    if (offset + size > int64_t(launch.arguments.size())) {
      launch.arguments.resize(size_t(offset + size));
      covered.resize(size_t(offset + size));
    }
    for (int64_t i = offset; i < offset + size; ++i) {
      if (covered[size_t(i)])
        return node.fail("overlaps another argument at byte " +
                         std::to_string(i));
      covered[size_t(i)] = true;
      launch.arguments[size_t(i)] = isPointer ? 0 : bytes[size_t(i - offset)];
    }
    if (isPointer) {
      pointer.offset = uint64_t(offset);
      launch.pointers.push_back(pointer);
    }
  }

  std::vector<uint8_t> encode(Type type, const Node &value) {
    std::vector<uint8_t> bytes(typeSize(type));
    if (isFloat(type)) {
      const double number = value.real();
      const float single = float(number);
      const uint16_t half = type == Type::F16
                                ? fovea::reference::toF16(number)
                                : fovea::reference::toBF16(number);
      const void *from = type == Type::F64 ? static_cast<const void *>(&number)
                         : type == Type::F32
                             ? static_cast<const void *>(&single)
                             : &half;
      std::memcpy(bytes.data(), from, bytes.size());
      return bytes;
    }
    int64_t least, most;
    integerRange(type, least, most);
    const int64_t number = value.integer(least, most);
    std::memcpy(bytes.data(), &number, bytes.size()); // little-endian hosts
    return bytes;
  }

  void readBytes(const Node &value, std::vector<uint8_t> &bytes) {
    const std::string digits = value.text();
    bytes.clear();
    if (digits.empty() || digits.size() % 2 != 0 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return value.fail("expected an even number of hexadecimal digits");
    for (size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(
          uint8_t(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16)));
  }

  void readCheck(const Node &node);
  void readCheckBuffer(const Node &node, const char *role, bool needed);

  Diagnostics diagnostics;
  Scope scope;
  std::string directory;
  Node top;
  Problem &problem;
  /// Bytes of the current launch's arguments that some argument has.
  std::vector<bool> covered;
};

void Builder::readCheckBuffer(const Node &node, const char *role, bool needed) {
  const Node field = needed ? node.required(role) : node.field(role);
  if (!field)
    return;
  const size_t index = findBuffer(field);
  if (!ok())
    return;
  Check &check = *problem.check;
  const Buffer &buffer = problem.buffers[index];
  const bool rows = std::string(role) == "lse";
  const size_t rank = check.axes.size() - (rows ? 1 : 0);
  if (rows ? buffer.type != Type::F32
           : buffer.type != Type::F16 && buffer.type != Type::BF16)
    return field.fail(std::string("has type ") + typeName(buffer.type) +
                      "; the check compares " + (rows ? "f32" : "f16 or bf16"));
  if (buffer.shape.size() != rank)
    return field.fail("has " + std::to_string(buffer.shape.size()) +
                      " axes; 'axes' says " + std::to_string(rank));
  if (!rows && buffer.strides.back() != 1)
    return field.fail("its last axis must be contiguous");
  check.buffers[role] = index;
}

void Builder::readCheck(const Node &node) {
  Check &check = problem.check.emplace();
  const std::string kind = node.required("kind").text();
  if (!ok())
    return;
  const bool backward = kind == "attention-backward";
  if (!backward && kind != "attention-forward")
    return node.field("kind").fail(
        "no check '" + kind +
        "'; there are: attention-forward, attention-backward");
  check.kind = backward ? Check::AttentionBackward : Check::AttentionForward;
  if (backward)
    node.expectFields({"kind", "q", "k", "v", "out", "lse", "dout", "dq", "dk",
                       "dv", "scale", "mask", "axes", "starts_q", "starts_k",
                       "tolerance"});
  else
    node.expectFields({"kind", "q", "k", "v", "out", "lse", "scale", "mask",
                       "axes", "starts_q", "starts_k", "tolerance"});
  const bool packed = node.field("starts_q") || node.field("starts_k");
  check.axes = node.field("axes") ? node.field("axes").text()
               : packed           ? "hsd"
                                  : "bhsd";
  std::string sorted = check.axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != (packed ? "dhs" : "bdhs") || check.axes.back() != 'd')
    return node.field("axes").fail(
        "'" + check.axes + "' is no order of " +
        (packed ? "h, s (packed sequences have no batch axis) and, last, d"
                : "b, h, s and, last, d"));
  if (packed) {
    check.startsQ = node.required("starts_q").integers(0, kMaxBytes);
    check.startsK = node.required("starts_k").integers(0, kMaxBytes);
    if (ok() && (check.startsQ.size() != check.startsK.size() ||
                 check.startsQ.size() < 2))
      return node.field("starts_k")
          .fail(
              "'starts_q' and 'starts_k' must have one number, 2 at least, of "
              "entries");
    for (const std::vector<int64_t> *starts : {&check.startsQ, &check.startsK})
      if (!std::is_sorted(starts->begin(), starts->end()))
        return node.field("starts_q").fail("the starts must not decrease");
  }
  for (const char *role : {"q", "k", "v", "out"})
    readCheckBuffer(node, role, true);
  readCheckBuffer(node, "lse", backward);
  if (backward) {
    readCheckBuffer(node, "dout", true);
    for (const char *role : {"dq", "dk", "dv"})
      readCheckBuffer(node, role, false);
  }
  if (!ok())
    return;
  const double dim = double(problem.buffers[check.buffers["q"]].shape.back());
  check.scale =
      node.field("scale") ? node.field("scale").real() : 1 / std::sqrt(dim);
  if (node.field("tolerance"))
    check.tolerance = node.field("tolerance").real();
  if (const Node mask = node.field("mask")) {
    const std::string name = mask.text();
    if (name == "causal-top-left")
      check.mask = Mask::CausalTopLeft;
    else if (name == "causal-bottom-right")
      check.mask = Mask::CausalBottomRight;
    else if (name != "none")
      mask.fail("no mask '" + name +
                "'; there are: none, causal-top-left, causal-bottom-right");
  }
}

} // namespace

const char *fovea::describe::typeName(Type type) { return row(type).name; }
size_t fovea::describe::typeSize(Type type) { return row(type).bytes; }
bool fovea::describe::isFloat(Type type) { return row(type).floating; }

int64_t Buffer::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::vector<uint8_t>
Launch::bind(const std::vector<uint64_t> &addresses) const {
  std::vector<uint8_t> bound = arguments;
  for (const Pointer &pointer : pointers) {
    const uint64_t address = addresses[pointer.buffer] + uint64_t(pointer.plus);
    std::memcpy(bound.data() + pointer.offset, &address, sizeof(address));
  }
  return bound;
}

bool fovea::describe::parse(const std::string &text, const std::string &path,
                            const std::string &directory,
                            const Overrides &overrides, Problem &problem,
                            std::string &error) {
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    // Once more for the library's words of what is wrong and where.
    try {
      (void)nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception &reason) {
      error = path + ": " + reason.what();
    }
    return false;
  }
  return Builder(json, path, directory, problem).run(overrides, error);
}

bool fovea::describe::load(const std::string &path, const Overrides &overrides,
                           Problem &problem, std::string &error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = path + ": " + std::strerror(errno);
    return false;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, path, std::filesystem::path(path).parent_path().string(),
               overrides, problem, error);
}

bool fovea::describe::parseOverrides(const std::string &text,
                                     Overrides &overrides, std::string &error) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(')
      ++depth;
    if (i < text.size() && text[i] == ')')
      --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0))
      continue;
    const std::string item = text.substr(begin, i - begin);
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos ||
        equals + 1 == item.size()) {
      error = "'" + item + "' is not of the form name=expression";
      return false;
    }
    overrides[item.substr(0, equals)] = item.substr(equals + 1);
    begin = i + 1;
  }
  return true;
}

bool fovea::describe::findDescriptions(const std::string &path,
                                       std::vector<std::string> &files,
                                       std::string &error) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    if (!fs::exists(path, code)) {
      error = path + ": no such file or folder";
      return false;
    }
    files.push_back(path);
    return true;
  }
  const size_t before = files.size();
  for (const fs::directory_entry &entry : fs::directory_iterator(path, code)) {
    if (entry.path().extension() != ".json")
      continue;
    // Compilers leave JSON of their own beside code objects.
    std::ifstream file(entry.path());
    const nlohmann::json json =
        nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() || (json.is_object() && json.contains("version")))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin() + ptrdiff_t(before), files.end());
  if (files.size() == before)
    error = path + ": no kernel description (*.json with a \"version\") in it";
  return files.size() != before;
}

//===- Builder.cpp - from JSON to numbers ---------------------------------===//
//
// The description as a whole, its variables and launches.
//
//===----------------------------------------------------------------------===//

#include "Builder.h"

#include "fovea/Reference/Types.h"

#include <cstring>
#include <filesystem>

using namespace fovea::describe;

bool Builder::run(const Overrides &overrides, std::string &error) {
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

std::string Builder::relative(const std::string &path) const {
  const std::filesystem::path given(path);
  return given.is_absolute() ? path
                             : (std::filesystem::path(directory) / given)
                                   .lexically_normal()
                                   .string();
}

size_t Builder::findBuffer(const Node &node) {
  const std::string name = node.text();
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].name == name)
      return i;
  node.fail("no buffer '" + name + "'");
  return 0;
}

void Builder::readVariables(const Overrides &overrides) {
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

void Builder::readRequirements() {
  for (const Node &node : top.field("require").items())
    if (!node.number().truth())
      node.fail("these variables are refused: " + node.expression() +
                " does not hold");
}

void Builder::readLaunches() {
  constexpr const char *kOwn[] = {"code_object",   "kernel",    "grid",
                                  "block",         "arguments", "dynamic_lds",
                                  "kernarg_bytes", "work"};
  if (!top.field("launches"))
    return readLaunch(top);
  for (const char *name : kOwn)
    if (top.field(name))
      top.fail(std::string("'launches' excludes '") + name + "' at top level");
  for (const Node &node : top.field("launches").items()) {
    node.expectFields({"name", "code_object", "kernel", "grid", "block",
                       "dynamic_lds", "arguments", "kernarg_bytes", "work"});
    readLaunch(node);
  }
  if (ok() && problem.launches.empty())
    top.field("launches").fail("the list is empty");
}

void Builder::readLaunch(const Node &node) {
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
    launch.dynamicLds = uint32_t(node.field("dynamic_lds").integer(0, 1 << 20));
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

void Builder::readExtent(const Node &node, int64_t least, int64_t most,
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

void Builder::readArgument(const Node &node, Launch &launch) {
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
    offset = node.field("offset").integer(0, kMaxArguments);
  if (!ok())
    return;
  if (offset + size > kMaxArguments)
    return node.fail("ends at byte " + std::to_string(offset + size) +
                     " of the arguments, which may have " +
                     std::to_string(kMaxArguments));
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

std::vector<uint8_t> Builder::encode(Type type, const Node &value) {
  std::vector<uint8_t> bytes(typeSize(type));
  if (isFloat(type)) {
    const double number = value.real();
    const float single = float(number);
    const uint16_t half = type == Type::F16 ? fovea::reference::toF16(number)
                                            : fovea::reference::toBF16(number);
    const void *from = type == Type::F64   ? static_cast<const void *>(&number)
                       : type == Type::F32 ? static_cast<const void *>(&single)
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

void Builder::readBytes(const Node &value, std::vector<uint8_t> &bytes) {
  const std::string digits = value.text();
  bytes.clear();
  if (digits.empty() || digits.size() % 2 != 0 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return value.fail("expected an even number of hexadecimal digits");
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(
        uint8_t(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16)));
}

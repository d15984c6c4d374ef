//===- Description.cpp - what to launch, and on what ----------------------===//
//
// Types, files and folders.
//
//===----------------------------------------------------------------------===//

#include "Description.h"

#include "Builder.h"
#include "Main.h"

#include <algorithm>
#include <filesystem>

using namespace fovea::describe;

namespace {

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

} // namespace

bool fovea::describe::findType(const std::string &name, Type &type) {
  for (const TypeRow &candidate : kTypes)
    if (name == candidate.name) {
      type = candidate.type;
      return true;
    }
  return false;
}

std::string fovea::describe::typeNames() {
  std::string names;
  for (const TypeRow &candidate : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
  return names;
}

void fovea::describe::integerRange(Type type, int64_t &least, int64_t &most) {
  const unsigned bits = unsigned(8 * typeSize(type));
  const bool isUnsigned = typeName(type)[0] == 'u';
  least = isUnsigned ? 0 : INT64_MIN >> (64 - bits);
  most = bits == 64   ? INT64_MAX
         : isUnsigned ? (int64_t(1) << bits) - 1
                      : (int64_t(1) << (bits - 1)) - 1;
}

const char *fovea::describe::typeName(Type type) { return row(type).name; }
size_t fovea::describe::typeSize(Type type) { return row(type).bytes; }
bool fovea::describe::isFloat(Type type) { return row(type).floating; }

int64_t Buffer::elements() const {
  // Only together with a 0 may the others be beyond 64 bits.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return 0;
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
  std::string text;
  if (!tool::readFile(path, text, error))
    return false;
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
    const std::string name = item.substr(0, equals);
    const auto [known, isNew] =
        overrides.emplace(name, item.substr(equals + 1));
    if (!isNew) {
      error = "'" + name + "' is set to " + known->second + " and to " +
              item.substr(equals + 1) + "; set it once";
      return false;
    }
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
    if (entry.is_directory(code))
      continue;
    // Compilers leave JSON of their own beside code objects. What cannot be
    // read is told of where it is loaded.
    const Expected<std::string> text = readWhole(entry.path().string());
    const nlohmann::json json =
        text ? nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false)
             : nlohmann::json(nlohmann::json::value_t::discarded);
    if (json.is_discarded() || (json.is_object() && json.contains("version")))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin() + ptrdiff_t(before), files.end());
  if (files.size() == before)
    error = path + ": no kernel description (*.json with a \"version\") in it";
  return files.size() != before;
}

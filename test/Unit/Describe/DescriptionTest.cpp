//===- DescriptionTest.cpp - reading kernel descriptions ------------------===//

#include "Description.h"
#include "Npy.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace fovea::describe;
using nlohmann::json;

namespace {

/// One launch with every kind of argument, on two buffers.
json sample() {
  return json::parse(R"json({
    "version": 1, "name": "sample", "target": "gfx942",
    "variables": {"rows": 5, "half": "rows / 2", "pad": 3},
    "buffers": {
      "in":  {"type": "bf16", "shape": ["rows", 4], "strides": ["4 + pad", 1],
              "fill": {"kind": "normal", "seed": 3}},
      "out": {"bytes": "rows * 8"}
    },
    "launches": [{
      "code_object": "k.hsaco", "kernel": "k",
      "grid": ["ceildiv(rows, 2)", 2], "block": [64], "dynamic_lds": 1024,
      "arguments": [
        {"kind": "buffer", "value": "in", "plus": "2 * rows"},
        {"kind": "i32", "value": "-rows"},
        {"kind": "f64", "value": "1 / 4.0"},
        {"kind": "bf16", "value": 1},
        {"kind": "bytes", "value": "a1b2c3"},
        {"offset": 48, "kind": "buffer", "value": "out"},
        {"offset": 40, "kind": "ptr", "value": 0}
      ],
      "kernarg_bytes": 64,
      "work": {"flops": "rows * 1e9"}
    }]
  })json");
}

bool read(const json &text, Problem &problem, std::string &error,
          const Overrides &overrides = {}) {
  return parse(text.dump(), "d.json", "/folder", overrides, problem, error);
}

std::string errorOf(const json &text, const Overrides &overrides = {}) {
  Problem problem;
  std::string error;
  return read(text, problem, error, overrides) ? "no error" : error;
}

template <typename T>
T at(const std::vector<uint8_t> &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

TEST(Description, IsReadAndEvaluated) {
  Problem p;
  std::string error;
  ASSERT_TRUE(read(sample(), p, error)) << error;
  EXPECT_EQ(p.name, "sample");
  EXPECT_EQ(p.target, "gfx942");
  EXPECT_EQ(p.variables.at("half").whole, 2);
  ASSERT_EQ(p.buffers.size(), 2u);
  const Buffer &in = p.buffers[0];
  EXPECT_EQ(in.type, Type::BF16);
  EXPECT_EQ(in.shape, (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(in.bytes, 2u * (4 * 7 + 3 + 1));
  EXPECT_EQ(p.buffers[1].bytes, 40u);
  ASSERT_EQ(p.launches.size(), 1u);
  const Launch &l = p.launches[0];
  EXPECT_EQ(l.codeObject, "/folder/k.hsaco");
  EXPECT_EQ(l.grid, (std::array<uint32_t, 3>{3, 2, 1}));
  EXPECT_EQ(l.block, (std::array<uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(l.dynamicLds, 1024u);
  EXPECT_EQ(l.flops, 5e9);
  ASSERT_EQ(l.arguments.size(), 64u);
  const std::vector<uint8_t> bound = l.bind({0x1000, 0x2000});
  EXPECT_EQ(at<uint64_t>(bound, 0), 0x1000u + 10);
  EXPECT_EQ(at<int32_t>(bound, 8), -5);
  EXPECT_EQ(at<double>(bound, 16), 0.25);
  EXPECT_EQ(at<uint16_t>(bound, 24), 0x3f80);
  EXPECT_EQ(bound[26], 0xa1);
  EXPECT_EQ(bound[28], 0xc3);
  EXPECT_EQ(at<uint64_t>(bound, 40), 0u);
  EXPECT_EQ(at<uint64_t>(bound, 48), 0x2000u);
}

TEST(Description, OverridesReachWhatDependsOnThem) {
  Problem p;
  std::string error;
  Overrides overrides;
  ASSERT_TRUE(parseOverrides("rows=4*4,pad=min(1,2)", overrides, error));
  ASSERT_TRUE(read(sample(), p, error, overrides)) << error;
  EXPECT_EQ(p.variables.at("half").whole, 8);
  EXPECT_EQ(p.buffers[0].strides, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(p.launches[0].grid[0], 8u);
  EXPECT_FALSE(parseOverrides("rows", overrides, error));
  EXPECT_NE(error.find("'rows'"), std::string::npos);
  EXPECT_FALSE(parseOverrides("=3", overrides, error));
}

TEST(Description, OneLaunchMayBeAtTopLevel) {
  json text = sample(), launch = text["launches"][0];
  text.erase("launches");
  text.update(launch);
  Problem p;
  std::string error;
  ASSERT_TRUE(read(text, p, error)) << error;
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.launches[0].kernel, "k");
}

TEST(Description, ErrorsNameFilePlaceAndRemedy) {
  struct Case {
    const char *pointer;
    json value;
    std::vector<const char *> parts;
  };
  const json::array_t none;
  const Case cases[] = {
      {"/version", 2, {"d.json: /version:", "version 1, not 2"}},
      {"/colour", 1, {"unknown field 'colour'", "known are: version"}},
      {"/variables/half", "rows +", {"/variables/half:", "missing at the end"}},
      {"/variables/half", "pad", {"no error"}},
      {"/variables/pad",
       "half + pad",
       {"/variables/pad:", "depends on itself"}},
      {"/variables/pad", "rowz", {"no variable 'rowz'", "half, pad, rows"}},
      {"/buffers/in/type", "f17", {"/buffers/in/type: no type 'f17'", "bf16"}},
      {"/buffers/in/shape/0",
       "rows / 2.0",
       {"/buffers/in/shape/0: expected an integer"}},
      {"/buffers/in/shape/0", -1, {"-1 is not within 0"}},
      {"/buffers/in/shape",
       json::array({int64_t(1) << 40, int64_t(1) << 40}),
       {"/buffers/in: the buffer is larger than 2^46 bytes"}},
      {"/buffers/in/strides", json::array({1}), {"1 strides for 2 axes"}},
      {"/buffers/in/fill/kind", "gauss", {"no fill 'gauss'", "uniform"}},
      {"/buffers/in/fill/sead", 1, {"/buffers/in/fill: unknown field 'sead'"}},
      {"/buffers/in/fill", "reference", {"/buffers/in: the fill 'reference'"}},
      {"/buffers/out/type", "f16", {"'bytes' excludes 'type'"}},
      {"/buffers/out/fill",
       json{{"kind", "value"}, {"value", 256}},
       {"/buffers/out/fill: 256 is no value of type u8"}},
      {"/buffers/out/fill", json{{"kind", "normal"}}, {"floating-point"}},
      {"/buffers/out/fill",
       json{{"kind", "values"}, {"values", {1, 2}}},
       {"2 values for 40 elements"}},
      {"/buffers/out/fill",
       json{{"kind", "uniform"}, {"low", 5}, {"high", 5}},
       {"'low' must be below 'high'"}},
      {"/launches/0/kernal", "k", {"/launches/0: unknown field 'kernal'"}},
      {"/launches/0/grid",
       json::array({1, 1, 1, 1}),
       {"/launches/0/grid: expected 1 to 3 numbers, found 4"}},
      {"/launches/0/block",
       json::array({64, 32}),
       {"2048 work-items; a workgroup has at most 1024"}},
      {"/launches/0/block", json::array({0}), {"0 is not within 1"}},
      {"/launches/0/arguments/0/value", "inn", {"no buffer 'inn'"}},
      {"/launches/0/arguments/1/plus", 1, {"only a buffer has 'plus'"}},
      {"/launches/0/arguments/1/kind", "i33", {"no kind 'i33'", "buffer"}},
      {"/launches/0/arguments/1/value",
       "1 << 40",
       {"/launches/0/arguments/1/value: 1099511627776 is not within"}},
      {"/launches/0/arguments/4/value", "abc", {"hexadecimal"}},
      {"/launches/0/arguments/6/offset", 50, {"overlaps another argument"}},
      {"/launches/0/kernarg_bytes", 8, {"8 bytes, but the arguments take 56"}},
      {"/launches", none, {"/launches: the list is empty"}},
      {"/grid", json::array({1}), {"'launches' excludes 'grid'"}},
      {"/require",
       json::array({"rows > 2", "rows % 4 == 0"}),
       {"/require/1:", "rows % 4 == 0 does not hold"}},
  };
  for (const Case &c : cases) {
    json text = sample();
    text[json::json_pointer(c.pointer)] = c.value;
    const std::string error = errorOf(text);
    for (const char *part : c.parts)
      EXPECT_NE(error.find(part), std::string::npos)
          << c.pointer << ": " << error;
  }
  json missing = sample();
  missing["launches"][0].erase("grid");
  EXPECT_NE(errorOf(missing).find("/launches/0: field 'grid' is missing"),
            std::string::npos)
      << errorOf(missing);
  EXPECT_NE(errorOf(sample(), {{"cols", "1"}}).find("cannot set 'cols'"),
            std::string::npos);
}

TEST(Description, ChecksAreChecked) {
  json text = sample();
  const json tensor = {{"type", "f16"}, {"shape", {1, 2, 8, 16}}};
  for (const char *name : {"q", "k", "v", "o"})
    text["buffers"][name] = tensor;
  text["buffers"]["l"] = {{"type", "f32"}, {"shape", {1, 2, 8}}};
  text["buffers"]["n"] = {{"type", "i32"}, {"shape", {1, 2, 8}}};
  text["check"] = {{"kind", "attention-forward"},
                   {"q", "q"},
                   {"k", "k"},
                   {"v", "v"},
                   {"out", "o"},
                   {"lse", "l"}};
  Problem p;
  std::string error;
  ASSERT_TRUE(read(text, p, error)) << error;
  ASSERT_TRUE(p.check);
  EXPECT_EQ(p.check->scale, 0.25);
  struct Case {
    const char *pointer;
    json value;
    const char *part;
  };
  const Case cases[] = {
      {"/check/kind", "softmax", "no check 'softmax'"},
      {"/check/mask", "diagonal", "no mask 'diagonal'"},
      {"/check/axes", "bhds", "'bhds' is no order"},
      {"/check/axes", "bhd", "'bhd' is no order"},
      {"/check/starts_q", json::array({0, 8}), "'starts_k' is missing"},
      {"/check/out", "in", "has 2 axes; 'axes' says 4"},
      {"/check/out", "n", "the check compares f16, bf16 or f32"},
      {"/check/lse", "o", "the check compares f32"},
      {"/check/q", "x", "no buffer 'x'"},
      {"/check/dq", "q", "unknown field 'dq'"},
      {"/buffers/v/strides", json::array({1, 1, 1, 2}), "contiguous"},
  };
  for (const Case &c : cases) {
    json wrong = text;
    wrong[json::json_pointer(c.pointer)] = c.value;
    EXPECT_NE(errorOf(wrong).find(c.part), std::string::npos)
        << c.pointer << ": " << errorOf(wrong);
  }
}

TEST(Description, MalformedTextIsRefused) {
  Problem p;
  std::string error;
  for (const char *text : {"", "{", "[]", "7", "{\"version\": 1", "nul"}) {
    EXPECT_FALSE(parse(text, "d.json", "", {}, p, error)) << text;
    EXPECT_EQ(error.compare(0, 8, "d.json: "), 0) << error;
  }
  EXPECT_FALSE(load("/nonexistent.json", {}, p, error));
  EXPECT_NE(error.find("No such file"), std::string::npos);
}

// Whatever number stands anywhere: an answer or an error, and no arithmetic
// beyond 64 bits, which sanitizers would see.
TEST(Description, AnyNumberAnywhereIsAnErrorOrFits) {
  const int64_t values[] = {0,
                            -1,
                            (int64_t(1) << 31) - 1,
                            int64_t(1) << 31,
                            int64_t(1) << 32,
                            int64_t(1) << 46,
                            int64_t(1) << 62,
                            INT64_MAX,
                            -INT64_MAX};
  const char *places[] = {"/variables/rows",
                          "/variables/pad",
                          "/buffers/in/shape/0",
                          "/buffers/in/shape/1",
                          "/buffers/in/strides/0",
                          "/buffers/in/fill/seed",
                          "/buffers/out/bytes",
                          "/launches/0/grid/1",
                          "/launches/0/block/0",
                          "/launches/0/dynamic_lds",
                          "/launches/0/arguments/0/plus",
                          "/launches/0/arguments/1/value",
                          "/launches/0/arguments/5/offset",
                          "/launches/0/kernarg_bytes"};
  int read = 0, refused = 0;
  for (const char *one : places)
    for (const char *other : places)
      for (int64_t value : values)
        for (int64_t second : values) {
          json text = sample();
          text[json::json_pointer(one)] = value;
          text[json::json_pointer(other)] = second;
          Problem p;
          std::string error;
          if (!parse(text.dump(), "d.json", "/folder", {}, p, error)) {
            ++refused;
            ASSERT_EQ(error.compare(0, 8, "d.json: "), 0) << text << error;
            continue;
          }
          ++read;
          for (const Buffer &buffer : p.buffers) {
            ASSERT_LE(buffer.bytes, uint64_t(1) << 46) << text;
            ASSERT_LE(buffer.elements(), int64_t(1) << 46) << text;
          }
          for (const Launch &launch : p.launches)
            ASSERT_LE(launch.arguments.size(), 65536u) << text;
        }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Description, SizesBeyondCountingAreRefused) {
  const int64_t large = int64_t(1) << 40;
  json text = sample();
  // No memory, and years of work.
  text["buffers"]["in"]["strides"] = {0, 0};
  text["buffers"]["in"]["shape"] = {large, 4};
  EXPECT_NE(errorOf(text).find("/buffers/in: 4398046511104 elements in the "
                               "place of 1; there may be 2^32"),
            std::string::npos)
      << errorOf(text);
  // Empty, whatever the others are.
  text = sample();
  text["buffers"]["in"]["strides"] = {1, 1, 1};
  text["buffers"]["in"]["shape"] = {large, large, 0};
  Problem p;
  std::string error;
  ASSERT_TRUE(read(text, p, error)) << error;
  EXPECT_EQ(p.buffers[0].bytes, 0u);
  EXPECT_EQ(p.buffers[0].elements(), 0);
  // Arguments without an offset have the limit of those with one.
  text = sample();
  text["launches"][0]["arguments"][4]["value"] = std::string(140000, 'a');
  EXPECT_NE(errorOf(text).find("of the arguments, which may have 65536"),
            std::string::npos)
      << errorOf(text);
}

// Each names the next: a stack that ends would end the process.
TEST(Description, LongChainsOfVariablesAreRefused) {
  json text = sample();
  for (int i = 0; i < 100000; ++i)
    text["variables"]["v" + std::to_string(i)] = "v" + std::to_string(i + 1);
  text["variables"]["v100000"] = 1;
  EXPECT_NE(errorOf(text).find("more than 1000 levels of nesting"),
            std::string::npos)
      << errorOf(text).substr(0, 500);
}

TEST(Description, FoldersAreSearched) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(testing::TempDir()) / "fovea-describe-folder";
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::vector<std::string> files;
  std::string error;
  EXPECT_FALSE(findDescriptions(folder.string(), files, error));
  EXPECT_NE(error.find("no kernel description"), std::string::npos);
  std::ofstream(folder / "b.json") << sample();
  std::ofstream(folder / "a.json") << sample();
  std::ofstream(folder / "other.json") << "{\"shared\": 3}";
  std::ofstream(folder / "broken.json") << "{";
  std::ofstream(folder / "k.hsaco") << "x";
  fs::create_symlink(folder / "none", folder / "dangling.json");
  fs::create_directory(folder / "folder.json");
  ASSERT_TRUE(findDescriptions(folder.string(), files, error)) << error;
  // What is broken or cannot be read is taken along, so that it is told of.
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0], (folder / "a.json").string());
  EXPECT_EQ(files[2], (folder / "broken.json").string());
  EXPECT_EQ(files[3], (folder / "dangling.json").string());
  fs::remove_all(folder);
}

Buffer bufferOf(Type type, Fill::Kind kind) {
  Buffer b;
  b.name = "b";
  b.type = type;
  b.shape = {2, 3};
  b.strides = {4, 1};
  b.bytes = 7 * typeSize(type);
  b.fill.kind = kind;
  return b;
}

TEST(Fill, LeavesGapsThatShow) {
  std::vector<uint8_t> bytes;
  std::string error;
  ASSERT_TRUE(
      fillBuffer(bufferOf(Type::F32, Fill::Iota), nullptr, bytes, error));
  ASSERT_EQ(bytes.size(), 28u);
  for (int i : {0, 1, 2})
    EXPECT_EQ(at<float>(bytes, size_t(4 * i)), float(i));
  EXPECT_TRUE(std::isnan(at<float>(bytes, 12)));
  EXPECT_EQ(at<float>(bytes, 16), 3.0f);
  ASSERT_TRUE(
      fillBuffer(bufferOf(Type::I16, Fill::Iota), nullptr, bytes, error));
  EXPECT_EQ(at<int16_t>(bytes, 6), -1);
  EXPECT_EQ(at<int16_t>(bytes, 12), 5);
}

TEST(Fill, IntegersFromAFileMustFitTheType) {
  const std::string path = testing::TempDir() + "fovea-fill.npy";
  Buffer b = bufferOf(Type::U8, Fill::File);
  b.fill.path = path;
  std::vector<uint8_t> bytes;
  std::string error;
  const struct {
    float value;
    bool fits;
  } rows[] = {{255, true},  {256, false},   {-1, false},
              {0.5, false}, {1e30f, false}, {NAN, false}};
  for (const auto &row : rows) {
    ASSERT_TRUE(
        fovea::run::writeNpy(path, {6}, {1, 2, row.value, 4, 5, 6}, error))
        << error;
    EXPECT_EQ(fillBuffer(b, nullptr, bytes, error), row.fits) << row.value;
    if (!row.fits)
      EXPECT_NE(error.find("element 2 is "), std::string::npos) << error;
  }
  b.type = Type::I64;
  b.bytes = 7 * 8;
  ASSERT_TRUE(fovea::run::writeNpy(path, {6}, {1, 2, 0x1p63f, 4, 5, 6}, error));
  EXPECT_FALSE(fillBuffer(b, nullptr, bytes, error));
  std::filesystem::remove(path);
}

// There is a message instead of an end by a signal.
TEST(Fill, MemoryThatIsNotThereIsNamed) {
  Buffer b = bufferOf(Type::U8, Fill::Zeros);
  b.bytes = uint64_t(1) << 46;
  std::vector<uint8_t> bytes;
  std::string error;
  try {
    (void)fillBuffer(b, nullptr, bytes, error);
    FAIL() << "64 TiB were allocated";
  } catch (const std::bad_alloc &reason) {
    EXPECT_STREQ(reason.what(), "buffer 'b': 70368744177664 bytes");
  }
}

TEST(Fill, DistributionsAreWhatTheySay) {
  Buffer b;
  b.name = "b";
  b.type = Type::F32;
  b.shape = {20000};
  b.strides = {1};
  b.bytes = 80000;
  b.fill.kind = Fill::Normal;
  b.fill.a = 3;
  b.fill.b = 2;
  std::vector<uint8_t> first, second;
  std::string error;
  ASSERT_TRUE(fillBuffer(b, nullptr, first, error));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 20000; ++i) {
    const double x = at<float>(first, 4 * i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20000, 3, 0.05);
  EXPECT_NEAR(squares / 20000 - 9, 4, 0.2);
  b.fill.seed = 2;
  ASSERT_TRUE(fillBuffer(b, nullptr, second, error));
  EXPECT_NE(first, second);
  b.type = Type::I32;
  b.fill.kind = Fill::Uniform;
  b.fill.a = -2;
  b.fill.b = 3;
  ASSERT_TRUE(fillBuffer(b, nullptr, first, error));
  int counts[5] = {};
  for (size_t i = 0; i < 20000; ++i) {
    const int x = at<int32_t>(first, 4 * i);
    ASSERT_TRUE(x >= -2 && x < 3) << x;
    ++counts[x + 2];
  }
  for (int count : counts)
    EXPECT_NEAR(count, 4000, 300);
}

} // namespace

//===- FunctionalsTest.cpp - AOTriton's variants and our kernels ----------===//
//
// The products of the axes that AOTriton's public rules list (modules/flash,
// v3python/rules), each mapped to a kernel that kernels/sdpa.json plans for a
// chip, or to a reason with a name. docs/KernelLibraries.md has the counts.
//
//===----------------------------------------------------------------------===//

#include "../../Support/FullGrids.h"
#include "KernelCompiler.h"
#include "Plan.h"
#include "SpecFile.h"
#include "fovea/Target/TargetInfo.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace fovea;
using namespace fovea::tools;

namespace {

/// One of AOTriton's variants; each is a code object or more there.
struct Variant {
  const char *kernel;
  const char *type; ///< "fp16", "bf16" or "fp32"
  int32_t block;    ///< BLOCK_DMODEL
  bool padded;      ///< PADDED_HEAD: head dimensions below the block
  bool windowed;    ///< CAUSAL_TYPE
  bool drops;       ///< ENABLE_DROPOUT
  bool bias;        ///< BIAS_TYPE

  bool isBackward() const { return llvm::StringRef(kernel) != "attn_fwd"; }
};

constexpr int32_t kBlocks[] = {16,  32,  48,  64,  80,  96,
                               128, 160, 192, 224, 256, 512};

/// The rows: 3 types, 12 blocks, padded or not, dropped or not, and
/// (none, none), (windowed, none), (none, bias).
std::vector<Variant> variantsOf(const char *kernel, int32_t largest) {
  std::vector<Variant> all;
  for (const char *type : {"fp16", "bf16", "fp32"})
    for (int32_t block : kBlocks)
      for (bool padded : {false, true})
        for (bool drops : {false, true})
          for (auto [windowed, bias] :
               {std::pair(false, false), {true, false}, {false, true}})
            if (block <= largest)
              all.push_back(
                  {kernel, type, block, padded, windowed, drops, bias});
  return all;
}

/// The keys of what a chip gets of sdpa.json.
class Library {
public:
  void plan(const char *chip) {
    auto text = llvm::MemoryBuffer::getFile(FOVEA_SDPA, /*IsText=*/true);
    ASSERT_TRUE(bool(text));
    Complaints complaints;
    Request request;
    request.emit = Emit::Package;
    request.jobs =
        parseSpec("sdpa.json", (*text)->getBuffer(), {{chip, "--target"}},
                  complaints, request.repeated, request.notes);
    ASSERT_EQ(complaints.str(), "");
    llvm::Expected<Plan> plan = planJobs(request);
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    for (const Job &job : request.jobs) {
      const ProblemKey &key = job.problem;
      keys.insert(textOf(key, job.score.name));
      int32_t &dim = largest[{key.op, key.dtype}];
      dim = std::max(dim, key.headDim);
    }
  }

  /// The largest head dimension of an operation and type; 0: none.
  int32_t largestOf(OpKind op, DataType type) const {
    const auto found = largest.find({op, type});
    return found == largest.end() ? 0 : found->second;
  }
  bool has(const ProblemKey &key, llvm::StringRef program) const {
    return keys.contains(textOf(key, program));
  }

private:
  /// With the program's name, whose digits are those of its text.
  static std::string textOf(ProblemKey key, llvm::StringRef program) {
    key.score = program.empty() ? 0 : 1;
    return key.str() + ";" + program.str();
  }
  llvm::StringSet<> keys;
  std::map<std::pair<OpKind, DataType>, int32_t> largest;
};

constexpr const char *kUnmapped = "neither a kernel nor a reason";

/// Empty: a kernel of ours computes it; else why not.
std::string reasonFor(const Library &library, const Variant &variant) {
  const DataTypeInfo *type = findDataType(variant.type);
  ProblemKey key;
  key.op = variant.isBackward() ? OpKind::Backward : OpKind::Forward;
  if (!type || !library.largestOf(key.op, type->type))
    return std::string("no kernels of ") + variant.type;
  key.dtype = type->type;
  key.headDim = variant.block;
  key.groups[kWindowGroup] = kWindowVersion; // of any window, none too
  auto add = [&](const char *group) {
    const auto row = size_t(spec::findGroup(group));
    key.groups[row] = spec::featureGroups()[row].version;
  };
  add("varlen");
  if (variant.padded)
    add("head_dims");
  if (variant.drops)
    add("dropout");
  if (variant.bias && variant.isBackward()) {
    key.score = 1;
    key.scoreGradients = 1;
    if (type->type != DataType::F32)
      key.storedGradients = 1;
  }
  if (library.has(key, variant.bias ? "bias" : ""))
    return "";
  if (key.headDim > library.largestOf(key.op, key.dtype))
    return "no " + std::string(toString(key.op)) +
           " kernels above head dimension " +
           std::to_string(library.largestOf(key.op, key.dtype));
  return kUnmapped;
}

class Functionals : public testing::TestWithParam<const target::TargetInfo *> {
};

} // namespace

TEST_P(Functionals, HaveKernelsOrReasons) {
  Library library;
  const std::string chip = GetParam()->name.str();
  library.plan(chip.c_str());
  if (HasFatalFailure())
    return;
  std::map<std::string, int> served;
  std::map<std::string, int> reasons;
  int all = 0;
  for (auto [kernel, largest] : {std::pair("attn_fwd", 512),
                                 {"bwd_kernel_dk_dv", 512},
                                 {"bwd_kernel_dq", 512},
                                 {"bwd_kernel_fuse", 256}})
    for (const Variant &variant : variantsOf(kernel, largest)) {
      ++all;
      const std::string reason = reasonFor(library, variant);
      ++(reason.empty() ? served[variant.kernel] : reasons[reason]);
    }
  EXPECT_EQ(all, 3 * 432 + 396);
  EXPECT_EQ(reasons[kUnmapped], 0);
  // gfx1250 has no kernels of fp32.
  const int each = chip == "gfx1250" ? 288 : 432;
  for (const char *kernel : {"attn_fwd", "bwd_kernel_dq", "bwd_kernel_dk_dv"})
    EXPECT_GE(served[kernel], each) << kernel;
  for (const auto &[kernel, count] : served)
    std::printf("%s: %s: %d served\n", chip.c_str(), kernel.c_str(), count);
  for (const auto &[reason, count] : reasons)
    if (count)
      std::printf("%s: %s: %d\n", chip.c_str(), reason.c_str(), count);
}

// Generic targets and chips whose schedules are another's run with --full
// alone.
INSTANTIATE_TEST_SUITE_P(
    All, Functionals, testing::ValuesIn([] {
      static constexpr llvm::StringLiteral kChips[] = {
          "gfx908",  "gfx90a",  "gfx942",  "gfx950", "gfx1100",
          "gfx1102", "gfx1151", "gfx1201", "gfx1250"};
      std::vector<const target::TargetInfo *> rows;
      for (const target::TargetInfo &row : target::allTargets())
        if (fovea::test::runsFullGrids() ||
            llvm::is_contained(kChips, row.name))
          rows.push_back(&row);
      return rows;
    }()),
    [](const testing::TestParamInfo<const target::TargetInfo *> &info) {
      std::string name = info.param->name.str();
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

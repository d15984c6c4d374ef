//===- ScoreKernel.h - kernels with score programs --------------*- C++ -*-===//
//
// A score program, a kernel that has it, and a fixture that compiles the
// kernel, executes it on a simulated device and holds what it gives to the
// oracle, which evaluates the same program in fp64.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EXECUTE_SCORES_SCOREKERNEL_H
#define FOVEA_TEST_EXECUTE_SCORES_SCOREKERNEL_H

#include "CompiledKernel.h"
#include "Scores.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

namespace fovea::test::scores {

using llvm::StringRef;

/// What a program captures. Dimensions have the extents of the problem's batch
/// (b), heads (h), queries (q) and keys (k), in capitals as one element for
/// all, or 200 (t); none: a scalar.
struct Capture {
  const char *element, *dims;
  double most;     ///< values lie in [-most, most], integers in [0, most]
  bool isUnit;     ///< the last stride is 1 in the type
  bool isReversed; ///< the first dimension is the innermost in memory
};

struct Program {
  const char *name, *text;
  std::vector<Capture> captures = {};
  const char *yields = "%s : f32";
};

/// A chip, a type, a head dimension and what is asked of the schedule.
struct Kernel {
  const char *name, *chip, *dtype;
  int headDim;
  std::map<std::string, std::string> schedule;
};

using Parameters = std::pair<Program, Kernel>;

inline std::string nameOf(const testing::TestParamInfo<Parameters> &info) {
  return std::string(info.param.first.name) + "_" + info.param.second.name;
}

inline run::ForwardCase &sizesOf(run::ForwardCase &c) { return c; }
inline run::ForwardCase &sizesOf(run::BackwardCase &c) { return c.forward; }

/// How what a program captures is filled; what the mask hides is NaN.
std::vector<run::CaptureFill> fillsOf(llvm::ArrayRef<Capture> captures);

class ScoreTest : public testing::TestWithParam<Parameters> {
protected:
  const Kernel &kernel() const { return GetParam().second; }
  std::string region() const {
    std::string captures;
    if (!program().captures.empty())
      captures =
          llvm::formatv("captures({0} : {1})",
                        llvm::join(mapCaptures([](size_t i, StringRef) {
                                     return "%g" + std::to_string(i);
                                   }),
                                   ", "),
                        llvm::join(mapCaptures([](size_t, StringRef type) {
                                     return type.str();
                                   }),
                                   ", "));
    return llvm::formatv(
        "{2} score {{ ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, "
        "%key: i32, %seqlen_q: i32, %seqlen_k: i32{1}): {0}\n"
        "attn.yield {3} }",
        text(), captureArguments("%c"), captures, program().yields);
  }
  const Program &program() const { return GetParam().first; }
  /// What `make` gives for each capture's number and name of its type.
  std::vector<std::string>
  mapCaptures(llvm::function_ref<std::string(size_t, StringRef)> make) const {
    std::vector<std::string> all;
    for (auto [i, capture] : llvm::enumerate(program().captures))
      all.push_back(make(i, *capture.dims ? "!c" + std::to_string(i)
                                          : std::string(capture.element)));
    return all;
  }
  std::string captureArguments(StringRef prefix) const {
    return llvm::join(
        mapCaptures([&](size_t i, StringRef type) {
          return (", " + prefix + llvm::Twine(i) + ": " + type).str();
        }),
        "");
  }
  /// Aliases of the captured tensors' types.
  std::string captureTypes() const {
    std::string text;
    for (auto [i, capture] : llvm::enumerate(program().captures)) {
      const size_t rank = StringRef(capture.dims).size();
      if (rank == 0)
        continue;
      std::vector<std::string> strides(rank, "?");
      if (capture.isUnit)
        strides.back() = "1";
      text += llvm::formatv("!c{0} = memref<{1}{2}, strided<[{3}]>>\n", i,
                            llvm::join(std::vector<StringRef>(rank, "?x"), ""),
                            capture.element, llvm::join(strides, ", "));
    }
    return text;
  }
  virtual std::string text() const { return GetParam().first.text; }
  std::string tensor() const {
    return llvm::formatv("memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>",
                         kernel().headDim, kernel().dtype);
  }

  void compile(fovea::OpKind op, const std::string &function,
               bool hasSinks = false) {
    CompiledKernel::Request request = {kernel().chip,     function, {},
                                       kernel().schedule, {},       {}};
    request.record.problem.op = op;
    request.record.problem.headDim = kernel().headDim;
    request.record.problem.dtype =
        StringRef(kernel().dtype) == "f16" ? DataType::F16 : DataType::BF16;
    request.record.problem.mask = fovea::MaskKind::CausalBottomRight;
    if (hasSinks)
      request.record.problem.groups[size_t(spec::findGroup("sinks"))] = 1;
    request.record.abiVersion = fovea::abiVersionOf(op);
    ASSERT_EQ(compiled.compile(request), "");
  }

  /// Compiles, and opens what came of it; null: it failed, as the test does.
  std::unique_ptr<run::Session> compileAndOpen(fovea::OpKind op,
                                               const std::string &function,
                                               bool hasSinks = false) {
    compile(op, function, hasSinks);
    if (HasFatalFailure())
      return nullptr;
    std::string error;
    auto session = compiled.open(error);
    EXPECT_TRUE(session) << error;
    return session;
  }

  std::vector<run::ForwardCase> cases() const {
    std::vector<run::ForwardCase> all;
    run::ForwardCase c;
    c.type = StringRef(kernel().dtype) == "f16" ? reference::ElemType::F16
                                                : reference::ElemType::BF16;
    c.headDim = kernel().headDim;
    c.mask = reference::Mask::CausalBottomRight;
    c.batch = 2;
    c.heads = 2;
    c.headsK = 1;
    for (auto [seqQ, seqK, scale] :
         {std::tuple(130, 261, 0.125f), {141, 70, -0.3f}, {1, 90, 1.0f}}) {
      c.seqQ = seqQ;
      c.seqK = seqK;
      c.scale = scale;
      all.push_back(c);
    }
    return all;
  }

  std::vector<run::BackwardCase> gradientCases() const {
    std::vector<run::BackwardCase> all;
    for (const run::ForwardCase &forward : cases()) {
      run::BackwardCase c;
      c.forward = forward;
      all.push_back(c);
    }
    return all;
  }
  std::string forward(bool hasSinks = false) const, backward() const;

  template <typename Case>
  void expectPasses(const std::vector<Case> &cases) {
    std::string error;
    auto session = compiled.open(error);
    ASSERT_TRUE(session) << error;
    for (Case problem : cases) {
      run::CaseScore captures(compiled.score().name, compiled.captures(),
                              fillsOf(program().captures), sizesOf(problem));
      ASSERT_EQ(captures.upload(*session), "");
      give(sizesOf(problem), captures);
      const run::RunReport report = session->run(problem, options);
      EXPECT_EQ(report.outcome, run::Outcome::Pass)
          << problem.str() << ": " << report.message;
      EXPECT_TRUE(report.launched);
    }
  }

  /// Holds derivatives and gradients to differences of scores and of the loss.
  void expectSlopes();

  /// Gives a case the program.
  virtual void give(run::ForwardCase &c, const run::CaseScore &captures) {
    std::string error;
    c.score = reference::readScoreProgram(compiled.score().text,
                                          captures.values(), error);
    ASSERT_TRUE(c.score) << error;
    c.given = {captures.group()};
  }

  CompiledKernel compiled;
  run::RunOptions options;
};

} // namespace fovea::test::scores

#endif // FOVEA_TEST_EXECUTE_SCORES_SCOREKERNEL_H

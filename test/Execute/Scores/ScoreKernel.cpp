//===- ScoreKernel.cpp - kernels with score programs ----------------------===//

#include "ScoreKernel.h"
#include "Slopes.h"
#include <cctype>

using namespace fovea;
using namespace fovea::test;
using namespace fovea::test::scores;

std::vector<run::CaptureFill>
scores::fillsOf(llvm::ArrayRef<Capture> captures) {
  std::vector<run::CaptureFill> fills;
  for (const Capture &capture : captures) {
    run::CaptureFill &fill = fills.emplace_back();
    fill.most = capture.most;
    fill.extent = 200;
    fill.isReversed = capture.isReversed;
    fill.poison = true;
    for (auto [dim, name] : llvm::enumerate(StringRef(capture.dims)))
      fill.broadcast |= unsigned(std::isupper(name) != 0) << dim;
  }
  return fills;
}

std::string ScoreTest::forward(bool hasSinks) const {
  return llvm::formatv(
      "{3}func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, "
      "%lse: memref<?x?x?xf32, strided<[?, ?, 1]>>, %scale: f32{4}{2}) {{\n"
      "attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) {5}"
      "visible [#attn.causal<bottom_right>] {1} : {0}, {0}, {0}, {0}, "
      "memref<?x?x?xf32, strided<[?, ?, 1]>>\nreturn\n}",
      tensor(), region(), captureArguments("%g"), captureTypes(),
      hasSinks ? ", %sinks: memref<?xf32, strided<[?]>>" : "",
      hasSinks ? "sinks(%sinks : memref<?xf32, strided<[?]>>) " : "");
}

std::string ScoreTest::backward() const {
  return llvm::formatv(
      "{4}func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, "
      "%dout: {0}, %lse: {1}, %dq: {0}, %dk: {0}, %dv: {0}, "
      "%w: memref<?xi8>, %scale: f32{3}) {{\n"
      "attn.backward %q, %k, %v, %out, %dout, %lse -> %dq, %dk, %dv "
      "workspace(%w) scale(%scale) "
      "visible [#attn.causal<bottom_right>] {2} : "
      "{0}, {0}, {0}, {0}, {0}, {1} -> {0}, {0}, {0}, memref<?xi8>\n"
      "return\n}",
      tensor(), "memref<?x?x?xf32, strided<[?, ?, 1]>>", region(),
      captureArguments("%g"), captureTypes());
}

void ScoreTest::expectSlopes() {
  run::BackwardCase c = gradientCases().front();
  c.forward.batch = 1;
  c.forward.seqQ = 24;
  c.forward.seqK = 80;
  run::CaseScore captures(compiled.score().name, compiled.captures(),
                          fillsOf(program().captures), c.forward);
  expectDerivatives(compiled.score().text, captures.values(), c.forward);
  // A loss with steps has no slope.
  if (HasFailure() || StringRef(text()).contains("math.floor"))
    return;
  std::string error;
  auto session = compiled.open(error);
  ASSERT_TRUE(session) << error;
  ASSERT_EQ(captures.upload(*session), "");
  give(c.forward, captures);
  expectSlopesOfLoss(*session, c, options);
}

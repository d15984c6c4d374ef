//===- ForwardKernel.cpp - forward kernels under test ---------------------===//

#include "ForwardKernel.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fovea;
using namespace fovea::test;

void ForwardKernelTest::build(bool hasWindow) {
  std::string tensor = llvm::formatv(
      "memref<?x?x?x{0}x{1}, strided<[?, ?, ?, 1]>>", kHeadDim, dtype());
  std::string lse = "memref<?x?x?xf32, strided<[?, ?, 1]>>";
  KernelRecord record;
  record.problem.headDim = kHeadDim;
  if (hasWindow)
    record.problem.groups[kWindowGroup] = kWindowVersion;
  else
    record.problem.mask = fovea::MaskKind::CausalBottomRight;
  record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Forward);
  PlantedKernelTest::build(
      llvm::formatv(
          "func.func @kernel(%q: {0}, %k: {0}, %v: {0}, %out: {0}, %lse: {1}, "
          "%scale: f32{2}) {{\n"
          "attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) "
          "visible {3} : {0}, {0}, {0}, {0}, {1}\nreturn\n}",
          tensor, lse, hasWindow ? kWindowArguments : "",
          hasWindow ? kWindowPart : "[#attn.causal<bottom_right>]"),
      record);
}

std::vector<run::ForwardCase> ForwardKernelTest::windows() const {
  std::vector<run::ForwardCase> all;
  auto add = [&](const Window &window, int64_t seqK) {
    run::ForwardCase c;
    c.type = type();
    c.headDim = kHeadDim;
    c.mask = window;
    c.heads = 2;
    c.headsK = 1;
    c.seqQ = 300;
    c.seqK = seqK;
    all.push_back(c);
  };
  for (const Window &window : kFaultWindows)
    add(window, 420);
  // All of 256 rows see two blocks of 128 keys and more.
  add({700, 7, Alignment::BottomRight, Alignment::BottomRight}, 900);
  return all;
}

std::vector<run::ForwardCase> ForwardKernelTest::cases() const {
  std::vector<run::ForwardCase> all;
  run::ForwardCase problem;
  problem.type = type();
  problem.headDim = kHeadDim;
  problem.mask = reference::Mask::CausalBottomRight;
  problem.heads = 4;
  problem.headsK = 2;
  problem.seqQ = 200;
  // The last two have an even and an odd number of full blocks where those are
  // of 128 keys and go in pairs.
  for (int64_t seqK : {200, 331, 500, 587})
    // Large logits make the maximum grow from block to block.
    for (auto input :
         {reference::InputKind::Normal, reference::InputKind::Large}) {
      problem.seqK = seqK;
      problem.input = input;
      all.push_back(problem);
    }
  return all;
}

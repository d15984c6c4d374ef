//===- pack.cpp - puts code objects of other compilers in a package -------===//
//
// fovea-test-pack PACKAGE TARGET SYMBOL BLOCK_M THREADS (PROBLEM IMAGE)...
//
// SYMBOL is followed by the operation: kernels are SYMBOL_forward, and of the
// backward pass SYMBOL_backward_delta, _dkdv and _dq, all of the same shape.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "fovea/Package/PackageWriter.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace fovea;

static int fail(const Status &status) {
  std::fprintf(stderr, "fovea-test-pack: %s\n", status.message().c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 8 || argc % 2 != 0) {
    std::fprintf(stderr, "usage: fovea-test-pack PACKAGE TARGET SYMBOL BLOCK_M "
                         "THREADS (PROBLEM IMAGE)...\n");
    return 2;
  }
  std::filesystem::remove(argv[1]);
  Expected<TargetId> target = TargetId::parse(argv[2]);
  if (!target)
    return fail(target.status());
  Expected<PackageWriter> writer = PackageWriter::open(argv[1], *target);
  if (!writer)
    return fail(writer.status());
  for (int arg = 6; arg != argc; arg += 2) {
    Expected<ProblemKey> problem = ProblemKey::parse(argv[arg]);
    if (!problem)
      return fail(problem.status());
    std::ifstream in(argv[arg + 1], std::ios::binary);
    const std::vector<uint8_t> image{std::istreambuf_iterator<char>(in),
                                     std::istreambuf_iterator<char>()};
    KernelRecord record;
    record.problem = *problem;
    record.schedule = "plain";
    record.fingerprint = "clang";
    const bool backward = problem->op == OpKind::Backward;
    record.abiVersion = backward ? fovea::abiVersionOf(fovea::OpKind::Backward)
                                 : fovea::abiVersionOf(fovea::OpKind::Forward);
    record.symbol = std::string(argv[3]) + "_" + toString(problem->op);
    record.blockM = std::atoi(argv[4]);
    record.blockN = 1;
    record.threads = std::atoi(argv[5]);
    if (backward)
      for (const char *suffix : {"delta", "dkdv", "dq"})
        record.launches.push_back({suffix, record.blockM, record.threads});
    if (Status status = writer->put(record, image.data(), image.size());
        !status.ok())
      return fail(status);
  }
  return 0;
}

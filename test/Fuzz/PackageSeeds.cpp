//===- PackageSeeds.cpp - writes the seeds of FuzzPackage -----------------===//

#include "TestPackage.h"

#include <zstd.h>

using namespace fovea;
using namespace fovea::test;

namespace {

std::string folder;

void write(const std::string &name, const std::string &bytes) {
  writeBytes(folder + "/" + name, {bytes.begin(), bytes.end()});
}

Status makePackage(const std::string &path, int32_t kernels, bool pack) {
  std::filesystem::remove(path);
  Expected<PackageWriter> writer =
      PackageWriter::open(path, *TargetId::parse("gfx942"));
  if (!writer)
    return writer.status();
  for (int32_t i = 0; i != kernels; ++i)
    if (Status status = putFake(*writer, makeRecord(makeProblem(16 + 8 * i)),
                                codeLikePayload(uint32_t(i)));
        !status.ok())
      return status;
  if (Status status = putFake(*writer, makeBackwardRecord(), "gradients");
      !status.ok())
    return status;
  if (Status status = writer->putTuning(
          {makeProblem(64), 512, TuningRow::kAny, TuningRow::kAny, "s"});
      !status.ok())
    return status;
  return pack ? writer->pack() : Status();
}

/// A block of 4096 bytes, and an image in it.
std::string makeBlockSeed() {
  const std::string content = codeLikePayload(1).substr(0, 4096);
  std::string frame(ZSTD_compressBound(content.size()), 0);
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(),
                             content.size(), 3));
  std::string seed = "i";
  for (size_t number : {size_t(4096), size_t(1000), size_t(500)})
    seed += {char(number >> 8), char(number)};
  return seed + frame;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s STORED_PACKAGE FOLDER\n", argv[0]);
    return 2;
  }
  folder = argv[2];
  writeBytes(folder + "/format2", readBytes(argv[1]));
  for (const auto &[name, kernels, pack] :
       {std::tuple("plain", 2, false), std::tuple("packed", 18, true)})
    if (Status status = makePackage(folder + "/" + name, kernels, pack);
        !status.ok()) {
      std::fprintf(stderr, "%s: %s\n", name, status.message().c_str());
      return 1;
    }
  write("problem",
        "t" + makeProblem(64, DataType::F16, MaskKind::CausalTopLeft).str());
  write("launches", "t" + toString(makeBackwardRecord().launches));
  write("target", "tgfx942:sramecc+:xnack-");
  write("block", makeBlockSeed());
  for (const char *arch : {"gfx942", "gfx11-generic"}) {
    const std::vector<uint8_t> image = makeImage(arch, "code");
    write(arch, "c" + std::string(image.begin(), image.end()));
  }
  return 0;
}

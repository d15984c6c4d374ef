//===- TestPackage.h - packages made up for tests ---------------*- C++ -*-===//
//
// Code objects that are nothing but headers, kernel records, and a folder that
// goes away with the test. Shared by the tests of the package and the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_PACKAGE_TESTPACKAGE_H
#define FOVEA_TEST_UNIT_PACKAGE_TESTPACKAGE_H

#include "fovea/Package/Chips.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "fovea/Package/PackageReader.h"
#include "fovea/Package/PackageWriter.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace fovea::test {

/// A folder of its own for a test.
class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fovea-test-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  std::string file(const std::string &name) const {
    return (root / name).string();
  }
  std::string path() const { return root.string(); }

private:
  std::filesystem::path root;
};

/// An AMDGPU code object of one loadable segment holding `payload`; xnack and
/// sramecc are the two-bit fields of e_flags (1: any). V6 with generic version
/// 1 for a generic target, else V5.
inline std::vector<uint8_t> makeImage(const std::string &arch,
                                      const std::string &payload,
                                      uint32_t xnack = 1,
                                      uint32_t sramecc = 1) {
  const Chip *chip = findChip(arch);
  EXPECT_TRUE(chip) << arch;
  const bool generic = chip && chip->isGeneric();
  std::vector<uint8_t> image(64 + 56 + payload.size());
  auto put = [&](size_t offset, uint64_t value, size_t bytes) {
    std::memcpy(image.data() + offset, &value, bytes);
  };
  std::memcpy(image.data(),
              "\x7f"
              "ELF",
              4);
  put(4, 2, 1);  // 64 bits
  put(5, 1, 1);  // little endian
  put(6, 1, 1);  // ELF version
  put(7, 64, 1); // AMDGPU_HSA
  put(8, generic ? 4 : 3, 1);
  put(16, 3, 2);   // shared object
  put(18, 224, 2); // AMDGPU
  put(20, 1, 4);
  put(32, 64, 8); // program headers follow
  put(48,
      (chip ? chip->mach : 0) | xnack << 8 | sramecc << 10 |
          uint32_t(generic) << 24,
      4);
  put(52, 64, 2);
  put(54, 56, 2);
  put(56, 1, 2);
  put(64, 1, 4);                   // PT_LOAD
  put(64 + 8, 120, 8);             // offset
  put(64 + 32, payload.size(), 8); // size in the file
  put(64 + 40, payload.size(), 8); // size in memory
  std::memcpy(image.data() + 120, payload.data(), payload.size());
  return image;
}

inline ProblemKey makeProblem(int32_t headDim = 128,
                              DataType dtype = DataType::BF16,
                              MaskKind mask = MaskKind::None) {
  ProblemKey key;
  key.dtype = dtype;
  key.headDim = headDim;
  key.mask = mask;
  return key;
}

inline KernelRecord makeRecord(const ProblemKey &problem, int32_t blockM = 128,
                               int32_t blockN = 64) {
  KernelRecord record;
  record.problem = problem;
  record.schedule = "block_m=" + std::to_string(blockM) +
                    ",block_n=" + std::to_string(blockN) + ",waves=4";
  record.fingerprint = "test 1";
  record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Forward);
  record.symbol = "kernel_m" + std::to_string(blockM);
  record.blockM = blockM;
  record.blockN = blockN;
  record.threads = 256;
  record.resources = {128, 64, 40, 32768, 0, 2, 96, 4096, 3, 1};
  record.compileMs = 123.5;
  return record;
}

/// A record with a score program.
inline KernelRecord makeScoreRecord(uint64_t digest, const std::string &name,
                                    const std::string &text = "score 1") {
  ProblemKey problem = makeProblem();
  problem.score = digest;
  KernelRecord record = makeRecord(problem);
  record.score = {name, text};
  record.symbol = "with_" + name;
  return record;
}

/// A row of the three kernels of a backward pass.
inline KernelRecord makeBackwardRecord(int32_t headDim = 128) {
  ProblemKey problem = makeProblem(headDim);
  problem.op = OpKind::Backward;
  KernelRecord record = makeRecord(problem);
  record.schedule = "deterministic";
  record.symbol = "gradients";
  record.launches = {{"delta", 64, 256}, {"dkdv", 128, 256}, {"dq", 128, 512}};
  return record;
}

/// Stores a record whose image's payload is `payload`.
inline Status putFake(PackageWriter &writer, const KernelRecord &record,
                      const std::string &payload,
                      const std::string &arch = "gfx942") {
  std::vector<uint8_t> image = makeImage(arch, payload);
  return writer.put(record, image.data(), image.size());
}

/// A payload as long as a small kernel's, most of which all such payloads
/// share; the rest does not compress.
inline std::string codeLikePayload(uint32_t seed) {
  std::string payload;
  auto add = [&](uint32_t state, size_t bytes) {
    for (size_t i = 0; i != bytes; ++i)
      payload += char((state = state * 1664525 + 1013904223) >> 24);
  };
  add(1, 3000);
  add(seed + 2, 300);
  add(2, 1500);
  return payload;
}

inline std::vector<uint8_t> readBytes(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline void writeBytes(const std::string &path,
                       const std::vector<uint8_t> &bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char *>(bytes.data()),
            std::streamsize(bytes.size()));
}

#define FOVEA_ASSERT_OK(expression)                                            \
  do {                                                                         \
    const ::fovea::Status status_ = (expression);                              \
    ASSERT_TRUE(status_.ok()) << status_.message();                            \
  } while (false)

/// Expects a failure of `code` whose message contains `part`.
inline void expectFailure(const Status &status, StatusCode code,
                          const std::string &part) {
  EXPECT_EQ(toString(status.code()), std::string(toString(code)))
      << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos)
      << "'" << part << "' is not in: " << status.message();
}

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_PACKAGE_TESTPACKAGE_H

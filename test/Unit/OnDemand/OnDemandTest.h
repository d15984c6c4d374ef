//===- OnDemandTest.h - a context that compiles, on the simulated device --===//
//
// The compiler's library stands behind one that counts what it is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_ONDEMAND_ONDEMANDTEST_H
#define FOVEA_TEST_UNIT_ONDEMAND_ONDEMANDTEST_H

#include "../Package/TestPackage.h"

#include "fovea/fovea.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fovea::test {

struct Ended {
  int status; ///< of wait()
  std::string text;
};

inline std::vector<std::string> linesOf(const std::string &path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

inline std::string readAll(std::FILE *file) {
  std::string text;
  char part[4096];
  while (size_t got = std::fread(part, 1, sizeof(part), file))
    text.append(part, got);
  return text;
}

class OnDemandTest : public ::testing::Test {
protected:
  void SetUp() override {
    set("FOVEA_HIP_LIBRARY", "sim");
    set("FOVEA_SIM_TARGET", "gfx942,gfx1100,gfx90a");
    set("FOVEA_COMPILE", "auto");
    set("FOVEA_COMPILER_LIBRARY", COUNTING_COMPILER);
    set("FOVEA_CACHE_DIR", cache());
    set("FOVEA_TEST_COUNT", counts());
  }
  void TearDown() override {
    for (const std::string &name : names)
      ::unsetenv(name.c_str());
  }
  void set(const std::string &name, const std::string &value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names.insert(name);
  }
  std::string cache() const { return dir.path() + "/cache"; }
  std::string counts() const { return dir.path() + "/counts"; }
  /// Compilations that have begun.
  std::vector<std::string> compiled() const { return linesOf(counts()); }

  struct Destroy {
    void operator()(fovea_context_t *context) const {
      fovea_context_destroy(context);
    }
  };
  using ContextPtr = std::unique_ptr<fovea_context_t, Destroy>;
  ContextPtr context() {
    fovea_context_t *made = nullptr;
    EXPECT_EQ(fovea_context_create(nullptr, &made), FOVEA_STATUS_OK)
        << fovea_last_message();
    return ContextPtr(made);
  }

  static fovea_forward_params_t forward(int64_t headDim) {
    fovea_forward_params_t p = {};
    p.struct_size = sizeof p;
    p.dtype = FOVEA_DTYPE_F16;
    p.mask = FOVEA_MASK_CAUSAL_TOP_LEFT;
    p.scale = 1;
    p.batch = p.heads_q = p.heads_k = 1;
    p.seqlen_q = p.seqlen_k = 32;
    p.head_dim = headDim;
    auto stride = [&](auto &tensor) {
      tensor.stride_seq = headDim;
      tensor.stride_head = tensor.stride_batch = 32 * headDim;
    };
    stride(p.q);
    stride(p.k);
    stride(p.v);
    stride(p.out);
    return p;
  }

  /// aot-run of a problem that the package has not, judged against fp64.
  /// \param around  a shell's words before the command
  std::string command(const std::string &around = "",
                      const std::string &options = "--head-dim=16") {
    return "FOVEA_LOG=info " + around + " " AOT_RUN " --package=" + package() +
           " --dtype=fp16 --seqlen-q=33 --seqlen-k=50 " + options + " 2>&1";
  }
  static Ended finish(std::FILE *pipe) {
    std::string text = readAll(pipe);
    return {::pclose(pipe), std::move(text)};
  }
  Ended run(const std::string &command) {
    return finish(::popen(command.c_str(), "r"));
  }
  void expectPass(const Ended &run, const std::string &part) {
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_NE(run.text.find("result    pass"), std::string::npos) << run.text;
    EXPECT_NE(run.text.find(part), std::string::npos) << part << "\n"
                                                      << run.text;
  }
  /// A package with a kernel of another head dimension.
  const std::string &package() {
    if (packagePath.empty()) {
      packagePath = dir.path() + "/kernels.fovea";
      EXPECT_EQ(std::system((AOT_COMPILE " --target=gfx942 --op=forward "
                                         "--dtype=fp16 --head-dim=32 "
                                         "--emit=package -q -o " +
                             packagePath)
                                .c_str()),
                0);
    }
    return packagePath;
  }
  /// The cache's one package.
  std::string cached() {
    return linesOfCommand("ls " + cache() + "/*.fovea").at(0);
  }
  std::vector<std::string> linesOfCommand(const std::string &command) {
    Ended got = run(command);
    std::vector<std::string> lines;
    for (size_t at = 0, end;
         (end = got.text.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(got.text.substr(at, end - at));
    return lines;
  }

  TempDir dir;

private:
  std::string packagePath;
  std::set<std::string> names;
};

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_ONDEMAND_ONDEMANDTEST_H

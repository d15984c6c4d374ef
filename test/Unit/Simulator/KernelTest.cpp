//===- KernelTest.cpp - Building and running kernels in tests -------------===//
//
// Runs clang and llvm-mc of the LLVM installation that the build found.
//
//===----------------------------------------------------------------------===//
#include "KernelTest.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace fovea::sim::test {

const char *const kOpenCLPrelude = R"(
#define GID (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x())
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define LID __builtin_amdgcn_workitem_id_x()
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef __attribute__((ext_vector_type(2))) half h2;
typedef __attribute__((ext_vector_type(4))) half h4;
typedef __attribute__((ext_vector_type(4))) short s4;
typedef __attribute__((ext_vector_type(4))) float f4;
typedef __attribute__((ext_vector_type(16))) float f16;
typedef __attribute__((ext_vector_type(32))) float f32;
)";

std::string runTool(const std::string &command) {
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe)
    return "cannot run " + command;
  std::string output;
  char chunk[4096];
  while (size_t n = fread(chunk, 1, sizeof chunk, pipe))
    output.append(chunk, n);
  int code = pclose(pipe);
  return code ? "error: " + command + "\n" + output : output;
}

namespace {
std::vector<char> build(const std::string &source, const char *extension,
                        const std::string &options) {
  char name[] = "/tmp/fovea-sim-XXXXXX";
  int fd = mkstemp(name);
  if (fd < 0) {
    ADD_FAILURE() << "no temporary file";
    return {};
  }
  close(fd);
  std::string in = std::string(name) + extension, out = std::string(name) + ".co";
  std::ofstream(in) << source;
  std::string output =
      runTool(std::string(FOVEA_CLANG) + " " + options + " " + in + " -o " + out);
  std::ifstream file(out, std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
  for (const std::string &path : {std::string(name), in, out})
    unlink(path.c_str());
  EXPECT_FALSE(image.empty()) << output;
  return image;
}
} // namespace

std::vector<bool> assembles(const std::vector<std::string> &lines,
                            const std::string &target) {
  char name[] = "/tmp/fovea-table-XXXXXX";
  int fd = mkstemp(name);
  std::vector<bool> ok(lines.size(), fd >= 0);
  if (fd < 0)
    return ok;
  close(fd);
  std::vector<size_t> owner; // of each line of the file
  {
    std::ofstream file(name);
    for (size_t i = 0; i < lines.size(); ++i) {
      file << lines[i] << "\n";
      owner.insert(owner.end(),
                   1 + static_cast<size_t>(
                           std::count(lines[i].begin(), lines[i].end(), '\n')),
                   i);
    }
  }
  std::string output = runTool(std::string(FOVEA_LLVM_MC) +
                               " -triple=amdgcn-amd-amdhsa -mcpu=" + target +
                               " -filetype=null " + name);
  // Errors read "file:LINE:COLUMN: error: ...".
  std::string prefix = std::string(name) + ":";
  for (size_t at = output.find(prefix); at != std::string::npos;
       at = output.find(prefix, at + 1)) {
    size_t line = std::stoul(output.substr(at + prefix.size()));
    size_t end = output.find('\n', at);
    if (output.substr(at, end - at).find("error:") != std::string::npos &&
        line >= 1 && line <= owner.size())
      ok[owner[line - 1]] = false;
  }
  unlink(name);
  return ok;
}

std::vector<char> compileOpenCL(const std::string &source,
                                const std::string &target,
                                const std::string &flags) {
  return build(kOpenCLPrelude + source, ".cl",
               "-target amdgcn-amd-amdhsa -mcpu=" + target +
                   " -nogpulib -x cl -cl-std=CL2.0 " + flags);
}

std::vector<char> assemble(const std::string &source,
                           const std::string &target) {
  return build(source, ".s",
               "-target amdgcn-amd-amdhsa -mcpu=" + target + " -nogpulib");
}

} // namespace fovea::sim::test

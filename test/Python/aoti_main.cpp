//===- aoti_main.cpp - a model with our operators, without Python ---------===//
//
//   aoti_main LIBRARY MODEL.pt2 INPUTS.pt OUTPUT.pt
//
// Opens libfovea_torch, runs what AOTInductor has compiled, and writes the first of its results.
//
//===----------------------------------------------------------------------===//

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/serialize.h>

#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <iterator>

static std::vector<char> read(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int main(int argc, char **argv) {
  if (argc != 5 || !dlopen(argv[1], RTLD_NOW)) {
    std::fprintf(stderr, "%s\n", argc == 5 ? dlerror() : "four arguments");
    return 2;
  }
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized")) {
    std::fprintf(stderr, "there is Python in the process\n");
    return 3;
  }
  torch::inductor::AOTIModelPackageLoader loader(argv[2]);
  const c10::IValue given = torch::pickle_load(read(argv[3]));
  std::vector<at::Tensor> inputs;
  for (const c10::IValue &input : given.toListRef())
    inputs.push_back(input.toTensor());
  const std::vector<char> result = torch::pickle_save(loader.run(inputs).at(0));
  std::ofstream(argv[4], std::ios::binary).write(result.data(), result.size());
}

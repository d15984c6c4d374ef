//===- CompilerApi.cpp - the compiler's library at run time ---------------===//

#include "CompilerApi.h"

#include <dlfcn.h>

namespace fovea::rt {
namespace {

constexpr const char *kLibraryName = "libfovea_compiler.so.0";
constexpr const char *kRemedy =
    "; install libfovea_compiler of this version beside libfovea (of Python's "
    "wheels: fovea-compiler), or set FOVEA_COMPILER_LIBRARY to its path";

/// Folder of this library with a slash, or "".
std::string ownFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&kLibraryName), &info) ||
      !info.dli_fname)
    return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string versionText(uint32_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace

Result CompilerApi::open(const std::string &given) {
  if (handle)
    return Result();
  std::vector<std::string> names;
  if (!given.empty()) {
    names.push_back(given);
  } else {
    if (std::string folder = ownFolder(); !folder.empty())
      names.push_back(folder + kLibraryName);
    names.push_back(kLibraryName);
  }
  void *opened = nullptr;
  std::string notes;
  for (const std::string &name : names) {
    opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened) {
      file = name;
      break;
    }
    const char *message = dlerror();
    notes += (notes.empty() ? "" : "; ") +
             std::string(message ? message : "cannot be opened");
  }
  if (!opened)
    return Result(FOVEA_STATUS_NOT_FOUND,
                  "the compiler's library could not be opened (" + notes + ")" +
                      kRemedy);
  const char *missing = nullptr;
  auto resolve = [&](const char *name, auto &function) {
    function =
        reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(opened, name));
    if (!function && !missing)
      missing = name;
  };
  resolve("fovea_compiler_version", version);
  resolve("fovea_compiler_build_id", buildIdOf);
  resolve("fovea_compiler_last_message", lastMessage);
  resolve("fovea_compile", compileOne);
  resolve("fovea_compile_find_score", findOne);
  resolve("fovea_compiled_info", infoOf);
  resolve("fovea_compiled_destroy", destroy);
  if (missing) {
    (void)dlclose(opened);
    return Result(FOVEA_STATUS_INCOMPATIBLE, "the compiler's library '" + file +
                                                 "' lacks " + missing +
                                                 kRemedy);
  }
  if (const uint32_t found = version(); found != FOVEA_COMPILER_VERSION) {
    (void)dlclose(opened);
    return Result(FOVEA_STATUS_INCOMPATIBLE,
                  "the compiler's library '" + file + "' is of version " +
                      versionText(found) + ", libfovea of " +
                      versionText(FOVEA_COMPILER_VERSION) + kRemedy);
  }
  build = buildIdOf();
  handle = opened;
  return Result();
}

Result CompilerApi::ask(decltype(&fovea_compile) function,
                        const KernelOrder &order,
                        fovea_compile_request_t request, Answer &answer,
                        bool &refused) const {
  const std::string problem = order.problem.str();
  request.struct_size = sizeof(request);
  request.problem = problem.c_str();
  if (const ScoreOrder &score = order.score; !score.program.empty()) {
    request.score = score.program.c_str();
    request.captures = score.captures ? score.captures->c_str() : nullptr;
    if (score.text) {
      request.score_text = score.text->c_str();
      request.score_text_name = "score.text";
    }
  }
  fovea_compiled_t *made = nullptr;
  const fovea_compiler_status_t status = function(&request, &made);
  answer.owner = {made, destroy};
  refused = status == FOVEA_COMPILER_STATUS_INVALID_ARGUMENT ||
            status == FOVEA_COMPILER_STATUS_UNSUPPORTED;
  if (status != FOVEA_COMPILER_STATUS_OK)
    return Result(status == FOVEA_COMPILER_STATUS_OUT_OF_MEMORY
                      ? FOVEA_STATUS_OUT_OF_MEMORY
                  : status == FOVEA_COMPILER_STATUS_IO ? FOVEA_STATUS_IO
                                                       : FOVEA_STATUS_NOT_FOUND,
                  lastMessage());
  answer.info = {};
  answer.info.struct_size = sizeof(answer.info);
  if (infoOf(made, &answer.info) != FOVEA_COMPILER_STATUS_OK)
    return Result(FOVEA_STATUS_INTERNAL, lastMessage());
  return Result();
}

Result CompilerApi::findScore(const KernelOrder &order, uint64_t &digits,
                              ScoreRecord &score, bool &refused) const {
  Answer answer{{nullptr, destroy}, {}};
  Result result = ask(findOne, order, {}, answer, refused);
  if (refused)
    result.code = FOVEA_STATUS_INVALID_ARGUMENT;
  if (!result.ok())
    return result;
  Expected<ProblemKey> found = ProblemKey::parse(answer.info.problem);
  if (!found)
    return Result(found.status());
  digits = found->score;
  score = {answer.info.score_name, answer.info.score_text};
  return Result();
}

Result CompilerApi::compile(const KernelOrder &order, OrderedKernel &kernel,
                            bool &refused) const {
  const std::string schedule =
      order.algorithm.empty() ? "" : "algorithm=" + order.algorithm;
  fovea_compile_request_t request{};
  request.target = order.chip.c_str();
  request.schedule = schedule.c_str();
  Answer answer{{nullptr, destroy}, {}};
  if (Result result = ask(compileOne, order, request, answer, refused);
      !result.ok())
    return result;
  const fovea_compiled_info_t &info = answer.info;
  Expected<std::vector<LaunchRecord>> launches = parseLaunches(info.launches);
  if (!launches)
    return Result(launches.status());
  KernelRecord &record = kernel.record;
  record.problem = order.problem;
  record.schedule = info.schedule;
  record.abiVersion = info.abi_version;
  record.symbol = info.symbol;
  record.blockM = info.block_m;
  record.blockN = info.block_n;
  record.threads = info.threads;
  record.launches = std::move(*launches);
  if (order.problem.score)
    record.score = {info.score_name, info.score_text};
  KernelResources &resources = record.resources;
  resources.vgprs = info.vgprs;
  resources.agprs = info.agprs;
  resources.sgprs = info.sgprs;
  resources.ldsBytes = info.lds_bytes;
  resources.scratchBytes = info.scratch_bytes;
  resources.occupancy = info.occupancy;
  resources.matrixInstructions = info.matrix_instructions;
  resources.codeBytes = info.code_bytes;
  resources.vgprSpills = info.vgpr_spills;
  resources.sgprSpills = info.sgpr_spills;
  record.compileMs = info.compile_ms;
  const auto *bytes = static_cast<const uint8_t *>(info.image);
  kernel.image.assign(bytes, bytes + info.image_bytes);
  return Result();
}

} // namespace fovea::rt

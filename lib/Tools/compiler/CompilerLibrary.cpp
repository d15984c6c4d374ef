//===- CompilerLibrary.cpp - the C interface of the compiler --------------===//
//
// aot-compile's way from a request to a code object behind C functions. Nothing
// leaves as an exception: a failure is a status and the calling thread's
// message.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "KernelCompiler.h"
#include "Problem.h"
#include "Report.h"
#include "Scores.h"
#include "fovea/Pipelines/SourceCheck.h"
#include "fovea/Tools/BuildKernel.h"
#include "fovea/compiler.h"
#include "llvm/ADT/StringExtras.h"
#include <atomic>
#include <cstring>
#include <new>

using namespace fovea;
using namespace fovea::tools;

struct fovea_compiler_canceller {
  std::atomic<bool> asked{false};
};

struct fovea_compiled {
  KernelRecord record;
  std::string target, problem, launches, image, contract, report;
};

namespace {

/// A status with its message.
struct Result {
  fovea_compiler_status_t code = FOVEA_COMPILER_STATUS_OK;
  std::string message;
};

Result invalid(std::string message) {
  return {FOVEA_COMPILER_STATUS_INVALID_ARGUMENT, std::move(message)};
}

/// The thread's message. A text that stays for ever, where there was no memory
/// for another.
thread_local std::string kept;
thread_local const char *fixed = nullptr;

template <typename Body>
fovea_compiler_status_t call(Body body) noexcept {
  try {
    Result result = body();
    kept = std::move(result.message);
    fixed = nullptr;
    return result.code;
  } catch (const std::bad_alloc &) {
    fixed = "memory ran out; free some and call again";
    return FOVEA_COMPILER_STATUS_OUT_OF_MEMORY;
  } catch (...) {
    fixed = "an exception came out of libfovea_compiler";
    return FOVEA_COMPILER_STATUS_INTERNAL;
  }
}

constexpr const char *kStatusNames[] = {
    "FOVEA_COMPILER_STATUS_OK",
    "FOVEA_COMPILER_STATUS_INVALID_ARGUMENT",
    "FOVEA_COMPILER_STATUS_UNSUPPORTED",
    "FOVEA_COMPILER_STATUS_CANCELLED",
    "FOVEA_COMPILER_STATUS_IO",
    "FOVEA_COMPILER_STATUS_OUT_OF_MEMORY",
    "FOVEA_COMPILER_STATUS_INTERNAL",
};
static_assert(std::size(kStatusNames) == FOVEA_COMPILER_STATUS_INTERNAL + 1);

// Sizes of the structures' first version: part of the binary interface.
constexpr uint32_t kRequestFirstSize = 56, kInfoFirstSize = 144;
static_assert(sizeof(fovea_compile_request_t) == 88);
static_assert(sizeof(fovea_compiled_info_t) == 160);

template <typename T>
Result checkSize(const char *name, const T *given, uint32_t firstSize) {
  if (!given)
    return invalid(std::string(name) + " is NULL");
  if (given->struct_size < firstSize || given->struct_size > 65536)
    return invalid(std::string(name) + ".struct_size is " +
                   std::to_string(given->struct_size) + "; set it to sizeof (" +
                   std::to_string(sizeof(T)) + " in this version)");
  return {};
}

/// What became of a compilation, by the code of its error.
Result failure(llvm::Error error) {
  std::error_code code = llvm::inconvertibleErrorCode();
  std::string text;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    code = info.convertToErrorCode();
    text += (text.empty() ? "" : "\n") + info.message();
  });
  if (code == std::errc::operation_canceled)
    return {FOVEA_COMPILER_STATUS_CANCELLED, std::move(text)};
  if (code == std::errc::invalid_argument)
    return invalid(std::move(text));
  // The system's, of the temporary files between backend and linker.
  if (code.category() == std::generic_category() ||
      code.category() == std::system_category())
    return {FOVEA_COMPILER_STATUS_IO, std::move(text)};
  return {FOVEA_COMPILER_STATUS_UNSUPPORTED, std::move(text)};
}

/// Reads "algorithm=split;block_m=64".
Result readSchedule(llvm::StringRef text, ScheduleOverrides &overrides) {
  if (text.empty())
    return {};
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';');
  llvm::SmallVector<llvm::StringRef> seen;
  for (llvm::StringRef part : parts) {
    auto [key, value] = part.split('=');
    if (!part.contains('=') || llvm::is_contained(seen, key))
      return invalid(
          "schedule '" + text.str() + "': '" + part.str() + "' " +
          (part.contains('=') ? "gives its key twice" : "is no key=value"));
    seen.push_back(key);
    std::optional<int64_t> number;
    std::optional<llvm::StringRef> name;
    int64_t read;
    if (!value.getAsInteger(10, read))
      number = read;
    else
      name = value;
    if (std::string why = setParameter(overrides, key, number, name);
        !why.empty())
      return invalid("schedule '" + text.str() + "': " + key.str() + ": " +
                     why);
  }
  return {};
}

/// Gives a job the score program of a request.
Result readScore(const fovea_compile_request_t &given, Job &job) {
  std::shared_ptr<InputFile> own;
  if (given.score_text) {
    own = std::make_shared<InputFile>(
        InputFile{given.score_text_name ? given.score_text_name : "score.mlir",
                  given.score_text});
    if (llvm::Error error = checkSource({own->text, own->name}))
      return invalid(llvm::toString(std::move(error)));
  }
  std::optional<GivenCaptures> captures;
  if (given.captures) {
    fovea::Expected<std::vector<spec::CaptureSpec>> read =
        spec::parseCaptures(given.captures);
    if (!read)
      return invalid(read.status().message());
    captures.emplace(GivenCaptures{std::move(*read), job.problem.dtype});
  }
  Complaints complaints;
  std::string notes;
  std::shared_ptr<const ScoreChoice> choice =
      chooseScores(given.score, own, "score", complaints, notes,
                   captures ? &*captures : nullptr);
  if (!choice)
    return invalid(llvm::StringRef(complaints.str()).rtrim().str());
  // "0+2" of the key is "0,2" of --score-gradients.
  auto listOf = [](uint8_t captures) {
    std::string numbers = captureNumbers(captures);
    std::replace(numbers.begin(), numbers.end(), '+', ',');
    return Item{numbers, "problem"};
  };
  llvm::Expected<NamedScore> named =
      nameScore(*choice, job.problem.dtype, listOf(job.problem.scoreGradients),
                listOf(job.problem.storedGradients), complaints);
  if (!named)
    return invalid(llvm::toString(named.takeError()));
  if (complaints.any())
    return invalid(llvm::StringRef(complaints.str()).rtrim().str());
  if (job.problem.score && job.problem.score != named->digest)
    return invalid("problem '" + job.problem.str() +
                   "' has another score program than '" + choice->name +
                   "', whose digits are " + scoreDigits(named->digest));
  job.problem.score = named->digest;
  job.score = std::move(named->record);
  job.captures = std::move(named->captures);
  job.scores = std::move(choice);
  return {};
}

/// The job of a checked request, not planned.
/// \param compiles  and so needs a chip
Result readJob(const fovea_compile_request_t &given, Request &request, Job &job,
               bool compiles) {
  const target::TargetInfo *target = nullptr;
  if (given.target) {
    target = target::lookupTarget(given.target);
    if (!target)
      return invalid("unknown chip '" + std::string(given.target) +
                     "'; known: " + target::targetNames());
  }
  ScheduleOverrides overrides;
  if (given.schedule)
    if (Result result = readSchedule(given.schedule, overrides); result.code)
      return result;
  if (given.problem) {
    if (!target && compiles)
      return invalid("target is NULL; known: " + target::targetNames());
    fovea::Expected<ProblemKey> problem = ProblemKey::parse(given.problem);
    if (!problem)
      return invalid(problem.status().message());
    if (problem->score && !given.score)
      return invalid("problem '" + std::string(given.problem) +
                     "' has a score program, which its text does not hold; "
                     "name it in score, or give its MLIR");
    job.target = target;
    job.problem = *problem;
    job.overrides = overrides;
    if (given.score)
      if (Result result = readScore(given, job); result.code)
        return result;
    job.symbol = kernelSymbol(job.problem, overrides, job.score.name);
    return {};
  }
  request.input =
      InputFile{given.mlir_name ? given.mlir_name : "mlir", given.mlir};
  llvm::SmallVector<const target::TargetInfo *, 1> targets;
  if (target)
    targets.push_back(target);
  llvm::Expected<std::vector<Job>> jobs =
      readProblems(*request.input, targets, overrides);
  if (!jobs)
    return invalid(llvm::toString(jobs.takeError()));
  if (jobs->size() != 1)
    return invalid(request.input->name + ": it has " +
                   std::to_string(jobs->size()) +
                   " functions; a request is for one");
  job = std::move(jobs->front());
  return {};
}

Result checkRequest(const fovea_compile_request_t &given) {
  if (!given.problem == !given.mlir)
    return invalid(given.problem ? "problem and mlir are given; a request has "
                                   "one of them"
                                 : "problem and mlir are NULL; a request has "
                                   "one of them");
  if (given.mlir_name && !given.mlir)
    return invalid("mlir_name is given without mlir");
  if (given.reserved)
    return invalid("request.reserved is " + std::to_string(given.reserved) +
                   ", not 0");
  if (given.score && !given.problem)
    return invalid("score is given with mlir, whose op has the program itself");
  for (const auto &[name, value] : {std::pair("score_text", given.score_text),
                                    {"captures", given.captures}})
    if (value && !given.score)
      return invalid(std::string(name) + " is given without score");
  if (given.score_text_name && !given.score_text)
    return invalid("score_text_name is given without score_text");
  return {};
}

Result findScore(const fovea_compile_request_t &given,
                 std::unique_ptr<fovea_compiled> &found) {
  if (Result result = checkRequest(given); result.code)
    return result;
  if (!given.score)
    return invalid("score is NULL; name the program to find");
  Request request;
  Job job;
  if (Result result = readJob(given, request, job, /*compiles=*/false);
      result.code)
    return result;
  found = std::make_unique<fovea_compiled>();
  found->record.score = job.score;
  found->problem = job.problem.str();
  return {};
}

Result compile(const fovea_compile_request_t &given,
               std::unique_ptr<fovea_compiled> &compiled) {
  if (Result result = checkRequest(given); result.code)
    return result;
  Request request;
  request.emit = Emit::Hsaco;
  request.takesFlags = false;
  request.cancelled = given.cancel ? &given.cancel->asked : nullptr;
  Job job;
  if (Result result = readJob(given, request, job, /*compiles=*/true);
      result.code)
    return result;
  if (llvm::Error error = planJob(job, request))
    return failure(std::move(error));
  llvm::Expected<CompiledKernel> kernel = compileJob(job, request);
  if (!kernel)
    return failure(kernel.takeError());

  auto made = std::make_unique<fovea_compiled>();
  made->record = recordOf(job, *kernel);
  made->target = job.target->name.str();
  if (job.tensors.empty())
    made->problem = job.problem.str();
  made->launches = toString(made->record.launches);
  made->contract = contractJson(job, *kernel);
  made->image = std::move(kernel->image);
  std::string messages = std::move(kernel->messages);
  Outcome outcome;
  outcome.status = Outcome::Compiled;
  outcome.kernel = std::move(*kernel);
  made->report = reportJson(job, outcome, {});
  compiled = std::move(made);
  return {FOVEA_COMPILER_STATUS_OK, llvm::StringRef(messages).rtrim().str()};
}

} // namespace

uint32_t fovea_compiler_version(void) { return FOVEA_COMPILER_VERSION; }

const char *fovea_compiler_build_id(void) {
  static const std::string *id = new std::string(compilerBuildId());
  return id->c_str();
}

const char *fovea_compiler_status_name(fovea_compiler_status_t status) {
  return status >= 0 &&
                 status < fovea_compiler_status_t(std::size(kStatusNames))
             ? kStatusNames[status]
             : "unknown fovea_compiler_status_t";
}

const char *fovea_compiler_last_message(void) {
  return fixed ? fixed : kept.c_str();
}

fovea_compiler_cancel_t *fovea_compiler_cancel_create(void) {
  return new (std::nothrow) fovea_compiler_canceller;
}

void fovea_compiler_cancel(fovea_compiler_cancel_t *cancel) {
  if (cancel)
    cancel->asked.store(true, std::memory_order_relaxed);
}

void fovea_compiler_cancel_destroy(fovea_compiler_cancel_t *cancel) {
  delete cancel;
}

/// The body of a function that makes something of a request of any version.
template <typename Make>
static fovea_compiler_status_t make(const fovea_compile_request_t *request,
                                    fovea_compiled_t **compiled, Make body) {
  return call([&]() -> Result {
    if (!compiled)
      return invalid("compiled is NULL");
    *compiled = nullptr;
    if (Result result = checkSize("request", request, kRequestFirstSize);
        result.code)
      return result;
    // What a later version adds must be zero: it is not known here.
    const char *bytes = reinterpret_cast<const char *>(request);
    for (size_t at = sizeof(*request); at < request->struct_size; ++at)
      if (bytes[at])
        return invalid("request uses fields of a later version of compiler.h "
                       "than this library's (" +
                       std::to_string(FOVEA_COMPILER_VERSION) +
                       "); update libfovea_compiler");
    fovea_compile_request_t known{};
    std::memcpy(&known, request,
                std::min<size_t>(request->struct_size, sizeof(known)));
    std::unique_ptr<fovea_compiled> made;
    Result result = body(known, made);
    *compiled = made.release();
    return result;
  });
}

fovea_compiler_status_t fovea_compile(const fovea_compile_request_t *request,
                                      fovea_compiled_t **compiled) {
  return make(request, compiled, compile);
}

fovea_compiler_status_t
fovea_compile_find_score(const fovea_compile_request_t *request,
                         fovea_compiled_t **found) {
  return make(request, found, findScore);
}

fovea_compiler_status_t fovea_compiled_info(const fovea_compiled_t *compiled,
                                            fovea_compiled_info_t *info) {
  return call([&]() -> Result {
    if (!compiled)
      return invalid("compiled is NULL");
    if (Result result = checkSize("info", info, kInfoFirstSize); result.code)
      return result;
    const KernelRecord &record = compiled->record;
    const fovea::KernelResources &resources = record.resources;
    fovea_compiled_info_t filled{};
    filled.struct_size = info->struct_size;
    filled.abi_version = record.abiVersion;
    filled.image = compiled->image.data();
    filled.image_bytes = compiled->image.size();
    filled.target = compiled->target.c_str();
    filled.problem = compiled->problem.c_str();
    filled.schedule = record.schedule.c_str();
    filled.symbol = record.symbol.c_str();
    filled.launches = compiled->launches.c_str();
    filled.contract = compiled->contract.c_str();
    filled.report = compiled->report.c_str();
    filled.block_m = record.blockM;
    filled.block_n = record.blockN;
    filled.threads = record.threads;
    filled.vgprs = resources.vgprs;
    filled.agprs = resources.agprs;
    filled.sgprs = resources.sgprs;
    filled.vgpr_spills = resources.vgprSpills;
    filled.sgpr_spills = resources.sgprSpills;
    filled.lds_bytes = resources.ldsBytes;
    filled.scratch_bytes = resources.scratchBytes;
    filled.occupancy = resources.occupancy;
    filled.matrix_instructions = resources.matrixInstructions;
    filled.code_bytes = resources.codeBytes;
    filled.compile_ms = record.compileMs;
    filled.score_name = record.score.name.c_str();
    filled.score_text = record.score.text.c_str();
    std::memcpy(info, &filled,
                std::min<size_t>(info->struct_size, sizeof(filled)));
    return {};
  });
}

void fovea_compiled_destroy(fovea_compiled_t *compiled) { delete compiled; }

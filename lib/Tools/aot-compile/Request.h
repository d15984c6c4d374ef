//===- Request.h - what aot-compile was asked for ---------------*- C++ -*-===//
//
// The checked form of a command line or spec file: one Job a kernel, and what
// to do with the kernels. Nothing in it is a guess: whatever was given is in
// here or was refused.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TOOLS_AOTCOMPILE_REQUEST_H
#define FOVEA_LIB_TOOLS_AOTCOMPILE_REQUEST_H

#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "fovea/Pipelines/Pipelines.h"
#include "fovea/Target/TargetInfo.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::tools {

/// What becomes of each kernel.
enum class Emit {
  Mlir,
  Llvm,
  Asm,
  Obj,
  Hsaco,
  Package,
  Contract,
  Description,
  None
};

/// One row a form; the only place that spells them.
struct EmitInfo {
  Emit emit;
  llvm::StringLiteral name;
  llvm::StringLiteral extension; ///< of the files in an output folder
  bool isText;
  llvm::StringLiteral description;
};
llvm::ArrayRef<EmitInfo> allEmits();
const EmitInfo &emitInfo(Emit emit);

/// Of code objects, and so what a description's names end in.
inline constexpr llvm::StringLiteral kCodeObjectExtension = ".hsaco";

enum class ReportFormat { None, Text, Json };

/// Parameters of a schedule that take the place of the chosen ones; numbers
/// below the smallest possible and an empty name leave the choice.
struct ScheduleOverrides {
  int32_t blockM = 0, blockN = 0, waves = 0, stages = 0, wavesPerSimd = 0;
  int32_t rescaleThreshold = -1;
  int32_t valueSplit = 0, queriesInLds = -1, directCopy = -1, columnChunk = -1;
  std::string inst;
  std::string algorithm;

  /// For symbols, e.g. "_bm64_bn32"; empty when nothing is replaced. Equal
  /// texts, equal parameters.
  std::string suffix() const;
  /// Whether the table's choice is taken as it is, by whatever algorithm.
  bool leavesSchedule() const {
    ScheduleOverrides others = *this;
    others.algorithm.clear();
    return others.suffix().empty();
  }
};

/// A parameter of ScheduleOverrides that is a number: one row each, for options
/// and spec files alike.
struct OverrideInfo {
  llvm::StringLiteral option; ///< "block-m"; with '_' in spec files
  llvm::StringLiteral letter; ///< in symbols
  int32_t ScheduleOverrides::*member;
  int32_t smallest;
  bool ofBackward; ///< backward kernels have it too
  llvm::StringLiteral description;
};
llvm::ArrayRef<OverrideInfo> allOverrides();

/// Sets a parameter by its key in spec files: "block_m" to a number, "inst" and
/// "algorithm" to a name. Neither is given where the value is something else.
/// Empty, or what is wrong: "must be ...".
std::string setParameter(ScheduleOverrides &overrides, llvm::StringRef key,
                         std::optional<int64_t> number,
                         std::optional<llvm::StringRef> name);

/// Whether an operation has an algorithm of that name, and all names for
/// messages.
bool isAlgorithm(llvm::StringRef name);
std::string algorithmNames();

/// The text of an .mlir file that holds the problems.
struct InputFile {
  std::string name, text;
};

/// One kernel function of a job, and how it is launched.
struct Launch {
  LaunchRecord record; ///< without suffix if it is the job's only one
  const spec::LaunchSpec *kind = nullptr;
  std::string symbol;
  std::string schedule; ///< canonical text of its own part
  int32_t blockN = 0, wavesPerSimd = 0;
  /// Of forward kernels, how they know that maxima of rows grew: a name of
  /// attn::RowMaxima. Empty: others.
  llvm::StringRef rowMaxima;
};

/// What it will cost to compile a kernel; Cost.h estimates it.
struct Cost {
  double cpuMs = 0;       ///< CPU time of the compilation, milliseconds
  double storedBytes = 0; ///< that a package grows by
  double imageBytes = 0;  ///< of the code object
};

struct ScoreChoice;

/// One kernel to compile, or the kernels of an operation that takes several.
/// `schedule` and what follows is known after planning.
struct Job {
  const target::TargetInfo *target = nullptr;
  ProblemKey problem;
  ScheduleOverrides overrides;
  std::string symbol; ///< of the kernel; the function of an input file. Of
                      ///< several kernels what their names begin with
  std::string where;  ///< of a spec's kernel, its object: "spec.json:4: [1]"
  /// Of a spec's kernel: it is left out where the chip cannot do it.
  bool skipUnsupported = false;
  std::string tuning; ///< the folder with its chip's tuning rows, or ""
  /// The tuning rows that take this kernel. Before planning their schedules are
  /// those that the rows were found with, which may be another build's.
  std::vector<TuningRow> rows;
  bool borrowsRows = false; ///< they are of the problem without groups
  bool isForRows = false;   ///< and nothing else asks for it

  std::string schedule;       ///< canonical text, the key in a package
  bool keepsFirstRow = false; ///< of the table, whatever it takes
  /// Whether the table says what the schedule is, so that a later row of it may
  /// take the place of the first; and of each launch, how many rows are passed
  /// over. Empty: none.
  bool takesLaterRows = false;
  std::vector<int32_t> passedOver;
  std::string firstSchedule; ///< with nothing passed over
  const spec::AlgorithmSpec *algorithm = nullptr;
  /// Of an input file's kernel that takes tensors in an order of its own, or a
  /// tensor as two operands: those that it takes. Empty: the table's.
  std::vector<const spec::TensorSpec *> tensors;
  ScoreRecord score; ///< of problem.score; empty without a score program
  std::vector<spec::CaptureSpec> captures; ///< of the program
  /// What it was asked to be; null: none, or that of an input file.
  std::shared_ptr<const ScoreChoice> scores;
  std::vector<Launch> launches; ///< in their order; at least one
  /// Of the launches the largest.
  int32_t blockM = 0, blockN = 0, threads = 0;
  Cost cost;

  /// What its kernels are passed.
  spec::Signature signature() const {
    return tensors.empty()
               ? spec::signatureOf(problem, algorithm, captures)
               : spec::signatureOf(problem, tensors, algorithm, captures);
  }

  bool isOneLaunch() const { return launches.size() == 1; }

  /// What a package says of it, without build, figures and image.
  KernelRecord record() const;

  /// "attn_fwd_bf16_d128 (gfx942)", for messages.
  std::string str() const { return symbol + " (" + target->name.str() + ")"; }
};

/// Name of a kernel of ours, e.g. "attn_fwd_bf16_d128_causal_bottom_right".
/// \param score  name of its program, "softcap,alibi"; empty: none
std::string kernelSymbol(const ProblemKey &problem,
                         const ScheduleOverrides &overrides,
                         llvm::StringRef score = "");

/// One of several parts that a library is compiled in.
struct Shard {
  uint32_t index = 1, count = 1; ///< from 1 to count
};

struct Request {
  Emit emit = Emit::Hsaco;
  Stage stage = Stage::Problem; ///< with Emit::Mlir
  std::string output;           ///< file, folder or "-"; empty: none given
  ReportFormat report = ReportFormat::None;
  std::string reportFile; ///< "-": standard output
  int optLevel = 3;
  unsigned workers = 1;
  bool prune = false;
  bool dryRun = false; ///< count, and neither compile nor write
  bool quiet = false;
  bool takesFlags = true; ///< MLIR's flags are registered, and are obeyed
  /// Becomes true when nobody wants the kernels any more; null: never. A
  /// compilation then fails, between passes, as std::errc::operation_canceled.
  const std::atomic<bool> *cancelled = nullptr;
  std::string remarks;                ///< categories of remarks, a regex
  std::vector<std::string> llvmFlags; ///< flags of LLVM's that were given
  std::optional<InputFile> input;
  std::vector<Job> jobs;
  std::string notes;   ///< lines for people about what was asked for
  size_t repeated = 0; ///< kernels of a spec that were asked for once more
  /// For packages; known after planning.
  std::vector<std::pair<const target::TargetInfo *, TuningRow>> tuningRows;
  // Of packages, too.
  /// Nothing is kept that differs from run to run: the time of compilations.
  bool reproducible = false;
  std::optional<Shard> shard; ///< with Emit::Package
  /// Of each chip that was planned for, with a shard: a hash of all its kernels
  /// and rows (Shard.h); known after planning.
  llvm::MapVector<const target::TargetInfo *, std::string> plans;
};

} // namespace fovea::tools

#endif // FOVEA_LIB_TOOLS_AOTCOMPILE_REQUEST_H

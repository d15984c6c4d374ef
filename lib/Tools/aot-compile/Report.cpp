//===- Report.cpp - the figures of compiled kernels -----------------------===//

#include "Report.h"
#include "BuildId.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea;
using namespace fovea::tools;

namespace {
/// One figure of a kernel: a column of the table and a key of the JSON.
struct Figure {
  StringLiteral heading;
  StringLiteral key;
  int64_t (*get)(const KernelFigures &);
  bool inPackage; ///< known of a kernel that was not compiled now
};
} // namespace

static const Figure kFigures[] = {
    {"VGPRs", "vgprs",
     [](const KernelFigures &k) -> int64_t { return k.resources.vgprs; }, true},
    {"AGPRs", "agprs",
     [](const KernelFigures &k) -> int64_t { return k.resources.agprs; }, true},
    {"SGPRs", "sgprs",
     [](const KernelFigures &k) -> int64_t { return k.resources.sgprs; }, true},
    {"VGPR spills", "vgpr_spills",
     [](const KernelFigures &k) -> int64_t { return k.resources.vgprSpills; },
     false},
    {"SGPR spills", "sgpr_spills",
     [](const KernelFigures &k) -> int64_t { return k.resources.sgprSpills; },
     false},
    {"LDS B", "lds_bytes",
     [](const KernelFigures &k) -> int64_t { return k.resources.ldsBytes; },
     true},
    {"scratch B", "scratch_bytes",
     [](const KernelFigures &k) -> int64_t { return k.resources.scratchBytes; },
     true},
    {"waves/SIMD", "occupancy",
     [](const KernelFigures &k) -> int64_t { return k.occupancy; }, true},
    {"matrix", "matrix_instructions",
     [](const KernelFigures &k) -> int64_t {
       return k.resources.matrixInstructions;
     },
     true},
    {"instructions", "instructions",
     [](const KernelFigures &k) -> int64_t { return k.resources.instructions; },
     false},
    {"code B", "code_bytes",
     [](const KernelFigures &k) -> int64_t { return k.resources.codeBytes; },
     true},
    {"image B", "image_bytes",
     [](const KernelFigures &k) -> int64_t { return int64_t(k.imageBytes); },
     true},
};

static StringLiteral statusName(Outcome::Status status) {
  switch (status) {
  case Outcome::Pending:
    return "not compiled";
  case Outcome::Compiled:
    return "compiled";
  case Outcome::Current:
    return "current";
  case Outcome::Failed:
    return "failed";
  }
  llvm_unreachable("all are listed");
}

/// The figure, or none where it is not known.
static std::optional<int64_t> value(const Figure &figure,
                                    const Outcome &outcome,
                                    const KernelFigures &kernel) {
  if (outcome.status == Outcome::Compiled ||
      (outcome.status == Outcome::Current && figure.inPackage))
    return figure.get(kernel);
  return std::nullopt;
}

/// The kernels of a job that is several launches, with their figures; of those
/// in a package only what holds for all is known.
static auto launchesOf(const Job &job, const Outcome &outcome) {
  std::vector<std::pair<const Launch *, const KernelFigures *>> launches;
  if (!job.isOneLaunch() && !outcome.kernel.launches.empty())
    for (auto [launch, figures] :
         zip_equal(job.launches, outcome.kernel.launches))
      launches.emplace_back(&launch, &figures);
  return launches;
}

std::string fovea::tools::reportText(ArrayRef<Job> jobs,
                                     ArrayRef<Outcome> outcomes) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {"kernel", "target"};
  for (const Figure &figure : kFigures)
    rows[0].push_back(figure.heading.str());
  rows[0].insert(rows[0].end(), {"CPU ms", "state", "schedule"});
  auto add = [&](const Job &job, const Outcome &outcome, StringRef symbol,
                 const KernelFigures &kernel, bool timed, StringRef schedule) {
    std::vector<std::string> &row = rows.emplace_back(
        std::vector<std::string>{symbol.str(), job.target->name.str()});
    for (const Figure &figure : kFigures) {
      std::optional<int64_t> known = value(figure, outcome, kernel);
      row.push_back(known ? std::to_string(*known) : "-");
    }
    row.push_back(timed ? formatv("{0:f1}", outcome.kernel.cpuMs).str() : "-");
    row.push_back(statusName(outcome.status).str());
    row.push_back(schedule.str());
  };
  for (auto [job, outcome] : zip_equal(jobs, outcomes)) {
    bool timed = outcome.status == Outcome::Compiled ||
                 outcome.status == Outcome::Current;
    add(job, outcome, job.symbol, outcome.kernel, timed, job.schedule);
    for (auto [launch, figures] : launchesOf(job, outcome))
      add(job, outcome, launch->symbol, *figures, /*timed=*/false,
          launch->schedule);
  }
  std::vector<size_t> widths(rows[0].size());
  for (const std::vector<std::string> &row : rows)
    for (auto [width, cell] : zip_equal(widths, row))
      width = std::max(width, cell.size());
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      bool isNumber = i >= 2 && i + 2 < row.size();
      std::string padding(widths[i] - row[i].size(), ' ');
      line +=
          (i ? "  " : "") + (isNumber ? padding + row[i] : row[i] + padding);
    }
    text += StringRef(line).rtrim().str() + "\n";
  }
  return text;
}

std::string fovea::tools::reportJson(ArrayRef<Job> jobs,
                                     ArrayRef<Outcome> outcomes,
                                     ArrayRef<LeftOut> leftOut) {
  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os, 2);
  auto writeProblem = [&](const Job &job) {
    json.attribute("kernel", job.symbol);
    json.attribute("target", job.target->name);
    json.attribute("op", toString(job.problem.op));
    json.attribute("dtype", toString(job.problem.dtype));
    if (job.problem.headDim)
      json.attribute("head_dim", job.problem.headDim);
    if (job.problem.headDimV)
      json.attribute("head_dim_v", job.problem.headDimV);
    json.attribute("mask", job.problem.takesWindow()
                               ? llvm::StringRef("any")
                               : toString(job.problem.mask));
  };
  auto writeFigures = [&](const Outcome &outcome, const KernelFigures &kernel) {
    for (const Figure &figure : kFigures) {
      std::optional<int64_t> known = value(figure, outcome, kernel);
      json.attribute(figure.key,
                     known ? json::Value(*known) : json::Value(nullptr));
    }
  };
  json.object([&] {
    json.attribute("compiler", compilerBuildId());
    json.attributeArray("kernels", [&] {
      for (auto [job, outcome] : zip_equal(jobs, outcomes))
        json.object([&, &job = job, &outcome = outcome] {
          writeProblem(job);
          json.attribute("schedule", job.schedule);
          if (job.schedule != job.firstSchedule)
            json.attribute("first_schedule", job.firstSchedule);
          json.attribute("threads", job.threads);
          if (!job.launches.empty() && !job.launches[0].rowMaxima.empty())
            json.attribute("row_maxima", job.launches[0].rowMaxima);
          json.attribute("status", statusName(outcome.status));
          if (outcome.status == Outcome::Failed)
            json.attribute("error", outcome.error);
          if (outcome.status != Outcome::Compiled &&
              outcome.status != Outcome::Current)
            return;
          writeFigures(outcome, outcome.kernel);
          json.attribute("compile_ms", outcome.kernel.cpuMs);
          json.attribute("emissions",
                         outcome.status == Outcome::Current
                             ? json::Value(nullptr)
                             : json::Value(outcome.kernel.emissions));
          auto launches = launchesOf(job, outcome);
          if (launches.empty())
            return;
          json.attributeArray("launches", [&] {
            for (auto [launch, figures] : launches)
              json.object([&, launch = launch, figures = figures] {
                json.attribute("kernel", launch->symbol);
                json.attribute("schedule", launch->schedule);
                json.attribute("threads", launch->record.threads);
                writeFigures(outcome, *figures);
              });
          });
        });
    });
    if (leftOut.empty())
      return;
    json.attributeArray("left_out", [&] {
      for (const LeftOut &left : leftOut)
        json.object([&] {
          writeProblem(left.job);
          json.attribute("reason", left.reason);
        });
    });
  });
  os << "\n";
  return text;
}

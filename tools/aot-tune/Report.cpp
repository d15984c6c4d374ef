//===- Report.cpp - what a search found, for people and programs ----------===//

#include "Report.h"

#include "Format.h"
#include "TimeRun.h"
#include "fovea/Package/Counted.h"

using namespace fovea;
using namespace fovea::tune;
using nlohmann::json;

static json parametersOf(const ScheduleChoice &choice) {
  json all = json::object();
  for (const auto &[key, value] : choice.names)
    all[key] = value;
  for (const auto &[key, value] : choice.numbers)
    all[key] = value;
  return all;
}

static std::string lineOf(const Found &found) {
  std::string line = timing::format("  %-12s", found.size.str().c_str());
  if (!found.baseline.isKnown())
    return line + "  " + found.why + "\n";
  line += timing::format(" %11s %11s %6.2f%s  ",
                         timing::timeText(found.baseline.seconds).c_str(),
                         timing::timeText(found.best.seconds).c_str(),
                         found.baseline.seconds / found.best.seconds,
                         found.baselineTies ? "~" : " ");
  // Of gradients the compiler chooses an algorithm that the runtime does not.
  line += found.isBaseline           ? "default"
          : found.chosen.size() == 0 ? "the compiler's choice"
                                     : toString(found.chosen);
  if (!found.isBaseline)
    line += timing::format(", %.2f times as fast", found.estimate);
  line += "\n               " + found.why + "; " +
          counted(found.tried, "schedule") + " tried, " +
          std::to_string(found.refused) + " refused, " +
          std::to_string(found.ties) + " beside the fastest within its error" +
          (found.isComplete ? "" : "; the budget ended the search") + "\n";
  return line;
}

std::string tune::reportText(const Tuned &tuned) {
  std::string text = tuned.subject.target + " " + tuned.subject.problem.str();
  text += ", times are " + tuned.by + "\n";
  text += "  rows x heads      default     fastest  ratio  chosen\n";
  bool isGuess = false;
  for (const Found &found : tuned.buckets) {
    text += lineOf(found);
    isGuess |= found.baseline.isGuess;
  }
  if (isGuess)
    text += "  the error by which ties are told is a guess for this chip\n";
  return text;
}

json tune::reportJson(const Tuned &tuned) {
  json all = {{"target", tuned.subject.target},
              {"problem", tuned.subject.problem.str()},
              {"by", tuned.by},
              {"buckets", json::array()}};
  for (const Found &found : tuned.buckets) {
    json bucket = {{"seqlen", found.size.seqlen},
                   {"batch_heads", found.size.batchHeads()},
                   {"chosen", parametersOf(found.chosen)},
                   {"schedule", found.schedule},
                   {"is_default", found.isBaseline},
                   {"gain", found.gain},
                   {"estimate", found.estimate},
                   {"tried", found.tried},
                   {"refused", found.refused},
                   {"ties", found.ties},
                   {"default_ties", found.baselineTies},
                   {"complete", found.isComplete},
                   {"why", found.why}};
    if (found.baseline.isKnown()) {
      bucket["default_seconds"] = found.baseline.seconds;
      bucket["fastest"] = parametersOf(found.bestChoice);
      bucket["fastest_seconds"] = found.best.seconds;
      bucket["tie_error"] =
          std::max(found.best.tieError, found.baseline.tieError);
      bucket["error_is_estimate"] = found.baseline.isGuess;
    }
    all["buckets"].push_back(std::move(bucket));
  }
  return all;
}

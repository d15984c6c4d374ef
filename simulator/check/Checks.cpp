//===- Checks.cpp - The table of checkers ---------------------------------===//
//
// One row a checker, and the text form of a set of them.
//
//===----------------------------------------------------------------------===//
#include "fovea/Simulator/Checks.h"

namespace fovea::sim {

const std::vector<CheckInfo> &knownChecks() {
  static const std::vector<CheckInfo> table = {
      {kCheckBounds, "bounds",
       "accesses outside every allocation, LDS and scratch, or after free "
       "(always on)"},
      {kCheckBudget, "budget", "endless loops (always on)"},
      {kCheckAlign, "align",
       "addresses whose alignment hardware does not serve"},
      {kCheckBarrier, "barrier", "barriers that not all work-items reach"},
      {kCheckWaitcnt, "waitcnt",
       "uses of a register before the load into it is waited for"},
      {kCheckUninitReg, "uninit-reg", "uses of registers never written"},
      {kCheckUninitLds, "uninit-lds", "uses of LDS never written"},
      {kCheckUninitMem, "uninit-mem", "uses of device memory never written"},
      {kCheckRaceLds, "race-lds", "LDS races between waves of a workgroup"},
      {kCheckRaceGlobal, "race-global",
       "races on device memory between waves and between workgroups"},
      {kCheckAlignNatural, "align-natural",
       "words at addresses that are no multiple of 4 (not among all)"},
  };
  return table;
}

std::string_view nameOf(Check check) {
  for (const CheckInfo &row : knownChecks())
    if (row.check == check)
      return row.name;
  return "?";
}

Status parseChecks(std::string_view text, uint32_t &checks) {
  uint32_t result = kAlwaysChecked;
  while (true) {
    size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    bool remove = !word.empty() && word[0] == '-';
    std::string_view name = word.substr(remove ? 1 : 0);
    uint32_t bits = name == "all" ? kAllChecks : 0;
    for (const CheckInfo &row : knownChecks())
      if (name == row.name)
        bits = row.check;
    if (!bits && (name != "none" || remove)) {
      std::string known;
      for (const CheckInfo &row : knownChecks())
        known += ", " + std::string(row.name);
      return {ErrorCode::InvalidArgument,
              "no check is named '" + std::string(name) +
                  "'; there are all, none" + known +
                  " (several with commas between them, '-' before a name takes "
                  "it away)"};
    }
    result = remove ? result & ~bits : result | bits;
    if (comma == text.npos)
      break;
    text.remove_prefix(comma + 1);
  }
  checks = result | kAlwaysChecked;
  return Status::success();
}

} // namespace fovea::sim

//===- FaultText.cpp - Where and why a wave failed ------------------------===//
//
// Offsets of instructions are from the kernel's entry.
//
//===----------------------------------------------------------------------===//
#include "exec/FaultText.h"
#include "decode/Program.h"

#include <cinttypes>
#include <cstdio>

namespace fovea::sim {

namespace {

std::string sourceOf(const Group &group, uint32_t index) {
  std::string line = group.program->sourceLine(index);
  return line.empty() ? line : "source " + line + ", ";
}

/// The instruction at dword \p index of the code.
std::string where(const Run &run, const Wave &w, uint32_t index) {
  const Group &group = *w.group;
  // Functions that the kernel calls may lie before it.
  int64_t offset = static_cast<int64_t>(group.textBegin + uint64_t(index) * 4 -
                                        run.kernel.entryAddress);
  char pc[32];
  std::snprintf(pc, sizeof pc, "%c0x%" PRIx64, offset < 0 ? '-' : '+',
                static_cast<uint64_t>(offset < 0 ? -offset : offset));
  return "kernel '" + run.kernel.name + "', pc " + pc + ", `" +
         group.program->text(index) + "`, " + sourceOf(group, index) +
         "workgroup " + triple(group.id) + ", wave " + std::to_string(w.index);
}

/// "0-3, 8" for the bits of \p lanes.
std::string lanesText(uint64_t lanes) {
  std::string text;
  for (unsigned l = 0; l < 64; ++l) {
    if (!((lanes >> l) & 1))
      continue;
    unsigned last = l;
    while (last < 63 && ((lanes >> (last + 1)) & 1))
      ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(l);
    if (last > l)
      text += "-" + std::to_string(last);
    l = last;
  }
  return text;
}

} // namespace

Status faultStatus(const Run &run, const Wave &w) {
  // An instruction moved by VGPR indexing is not in the program itself.
  auto at = w.fault.op - w.group->ops;
  uint32_t index = at >= 0 && at < int64_t(w.group->textDwords) + 1
                       ? static_cast<uint32_t>(at)
                       : w.pc - 1;
  std::string text = where(run, w, index);
  if (w.fault.lanes & (w.fault.lanes - 1))
    text += ", lanes " + lanesText(w.fault.lanes);
  else if (w.fault.lane >= 0)
    text += ", lane " + std::to_string(w.fault.lane);
  return {w.fault.code, text + ": " + w.fault.what};
}

Status deadlockStatus(const Run &run, const Wave &w) {
  return {ErrorCode::LaunchFailure,
          where(run, w, w.pc - 1) +
              ": the wave waits for a barrier that no other wave will "
              "complete"};
}

Status budgetStatus(const Run &run, const Wave &w) {
  return {ErrorCode::BudgetExceeded,
          where(run, w, w.pc) + ": the wave executed " +
              std::to_string(w.executed) + " instructions; the budget is " +
              std::to_string(run.config.options.waveBudget) +
              " (an endless loop?)"};
}

} // namespace fovea::sim

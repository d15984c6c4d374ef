//===- Report.cpp - How checkers end a wave -------------------------------===//
//
// The words that all reports of checkers have in common.
//
//===----------------------------------------------------------------------===//
#include "check/Report.h"

#include <cinttypes>
#include <cstdio>

namespace fovea::sim {

std::string hexText(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

void Reporter::fail(Wave &wave, const MicroOp &op, Check check, uint64_t lanes,
                    const std::string &what) const {
  if (wave.state == WaveState::Faulted)
    return;
  wave.fail(ErrorCode::CheckFailed, op, lanes ? __builtin_ctzll(lanes) : -1,
            "check '" + std::string(nameOf(check)) + "': " + what);
  wave.fault.lanes = lanes;
}

std::string Reporter::place(uint32_t index) const {
  int64_t offset = static_cast<int64_t>(Prog.begin() + uint64_t(index) * 4 -
                                        Kernel.entryAddress);
  std::string text = "`" + Prog.text(index) + "` at pc " +
                     (offset < 0 ? "-" : "+") +
                     hexText(uint64_t(offset < 0 ? -offset : offset));
  std::string line = Prog.sourceLine(index);
  return line.empty() ? text : text + " (source " + line + ")";
}

std::string Reporter::memoryPlace(const DeviceMemory &memory, uint64_t address,
                                  uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes at " + hexText(address);
  Allocation found;
  if (memory.find(address, found))
    text += ", byte " + std::to_string(address - found.base) +
            " of allocation #" + std::to_string(found.id) + " (" +
            std::to_string(found.size) + " bytes at " + hexText(found.base) +
            ")";
  return text;
}

} // namespace fovea::sim

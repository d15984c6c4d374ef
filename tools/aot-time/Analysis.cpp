//===- Analysis.cpp - what a prediction says about a kernel ---------------===//
//
// Shares, loops and advice.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

using namespace fovea;
using namespace fovea::timing;
using sim::InstTiming;
using sim::Stall;
using sim::TimingReport;

namespace {

bool isText(const InstTiming &inst, std::string_view mnemonic) {
  return inst.text.compare(0, mnemonic.size(), mnemonic) == 0;
}

struct AdviceRow {
  Stall stall;
  Advice advice;
};

constexpr AdviceRow kAdvice[] = {
    {Stall::Alu,
     {"a vector or scalar result was not ready yet",
      "put independent instructions between producer and user, or let more "
      "waves share a SIMD"}},
    {Stall::Matrix,
     {"a matrix instruction's result was not ready yet",
      "use results later: start the next tile's products before this tile's "
      "softmax"}},
    {Stall::MatrixPipe,
     {"the matrix core was busy", "nothing to fix while the matrix cores are "
                                  "the busiest unit: they are the "
                                  "limit then"}},
    {Stall::VectorPort,
     {"the vector ALU was busy, with this wave or another one",
      "fewer vector instructions a tile: packed forms, cheaper rounding, "
      "rescaling less often"}},
    {Stall::Port,
     {"another wave of the SIMD issued to that unit in this slot",
      "waves in step ask for the same unit together; different phases or "
      "s_setprio part them"}},
    {Stall::MemoryQueue,
     {"LDS or vector memory had too many accesses before this one",
      "wider accesses, fewer bank conflicts, loads spread over the iteration"}},
    {Stall::WaitVector,
     {"s_waitcnt for data from memory",
      "load earlier (one tile more ahead), or let more waves share a SIMD"}},
    {Stall::WaitLds,
     {"s_waitcnt for data from LDS",
      "read LDS earlier and wait for parts (lgkmcnt above 0); remove bank "
      "conflicts"}},
    {Stall::WaitScalar,
     {"s_waitcnt for scalar loads",
      "load arguments and addresses before the loop"}},
    {Stall::WaitOther, {"s_waitcnt for exports or messages", "rarely matters"}},
    {Stall::Barrier,
     {"other waves of the workgroup had not reached the barrier",
      "fewer barriers (more LDS buffers), equal work for all waves, or a "
      "second "
      "workgroup beside this one"}},
    {Stall::Fetch,
     {"branches, and instructions that the instruction cache did not hold",
      "smaller loops than the instruction cache; fewer taken branches"}},
    {Stall::Idle,
     {"s_nop, s_sleep and waits that held",
      "fewer s_waitcnt and s_nop: useful instructions in their place"}},
};

} // namespace

Advice timing::adviceFor(Stall stall) {
  for (const AdviceRow &row : kAdvice)
    if (row.stall == stall)
      return row.advice;
  return {"", ""};
}

bool timing::branchTarget(const InstTiming &inst, int64_t &offset) {
  if (!isText(inst, "s_branch ") && !isText(inst, "s_cbranch_"))
    return false;
  const size_t space = inst.text.find(' ');
  if (space == std::string::npos)
    return false;
  char *end = nullptr;
  const long long dwords = std::strtoll(inst.text.c_str() + space + 1, &end, 0);
  if (end == inst.text.c_str() + space + 1)
    return false;
  // The disassembler prints the 16-bit field with or without its sign.
  offset = int64_t(int32_t(inst.offset)) + 4 + 4 * int64_t(int16_t(dwords));
  return true;
}

void timing::moveBarrierWaits(TimingReport &report) {
  constexpr unsigned barrier = unsigned(Stall::Barrier);
  for (size_t i = 1; i < report.instructions.size(); ++i) {
    InstTiming &before = report.instructions[i - 1];
    InstTiming &inst = report.instructions[i];
    if (inst.stalls[barrier] && isText(before, "s_barrier") &&
        inst.offset == before.offset + 4) {
      before.stalls[barrier] += inst.stalls[barrier];
      inst.stalls[barrier] = 0;
    }
  }
}

double Analysis::clocksOf(const InstTiming &inst, unsigned slotClocks) {
  double sum = double(inst.issues) * slotClocks;
  for (uint64_t clocks : inst.stalls)
    sum += double(clocks);
  return sum;
}

std::pair<Stall, uint64_t> Analysis::mainStall(const InstTiming &inst) {
  unsigned most = 0;
  for (unsigned s = 1; s < sim::kStalls; ++s)
    if (inst.stalls[s] > inst.stalls[most])
      most = s;
  return {Stall(most), inst.stalls[most]};
}

Analysis::Analysis(const TimingReport &report) {
  const std::vector<InstTiming> &insts = report.instructions;
  share.assign(insts.size(), 0);
  std::map<int64_t, size_t> byOffset;
  for (size_t i = 0; i < insts.size(); ++i) {
    share[i] = clocksOf(insts[i], report.slotClocks);
    waveClocks += share[i];
    byOffset[int32_t(insts[i].offset)] = i;
    if (isText(insts[i], "s_endpgm"))
      waves += double(insts[i].issues);
  }
  const double clocks = waveClocks;
  if (clocks > 0)
    for (double &part : share)
      part /= clocks;

  // Loops: several branches to one place are one loop that ends at the last.
  std::map<size_t, Loop> byFirst;
  for (size_t i = 0; i < insts.size(); ++i) {
    int64_t target = 0;
    if (!branchTarget(insts[i], target) || target > int32_t(insts[i].offset))
      continue;
    // What stands there may never have been executed: no loop then.
    auto found = byOffset.find(target);
    if (found == byOffset.end())
      continue;
    Loop &loop = byFirst[found->second];
    loop.first = found->second;
    loop.last = std::max(loop.last, i);
  }
  // Ranges that cross are no nest of loops: of two, the jump that is taken less
  // only leads to a block that happens to lie further up.
  for (auto it = byFirst.begin(); it != byFirst.end();) {
    const Loop &loop = it->second;
    bool crossed = false;
    for (const auto &[first, other] : byFirst)
      crossed |= ((loop.first < first && first <= loop.last &&
                   loop.last < other.last) ||
                  (first < loop.first && loop.first <= other.last &&
                   other.last < loop.last)) &&
                 insts[loop.first].issues < insts[first].issues;
    it = crossed ? byFirst.erase(it) : std::next(it);
  }
  for (auto &[first, loop] : byFirst) {
    const double headIssues = double(insts[loop.first].issues);
    for (size_t i = loop.first; i <= loop.last; ++i) {
      loop.share += share[i];
      if (insts[i].cls == sim::InstClass::Mfma)
        loop.matrix += double(insts[i].busyClocks);
      else if (insts[i].cls == sim::InstClass::Valu ||
               insts[i].cls == sim::InstClass::Trans)
        loop.valu += double(insts[i].busyClocks);
    }
    if (headIssues > 0) {
      loop.clocks = loop.share * clocks / headIssues;
      loop.matrix /= headIssues;
      loop.valu /= headIssues;
    }
    loop.iterations = waves > 0 ? headIssues / waves : headIssues;
    loops.push_back(loop);
  }
  for (Loop &outer : loops)
    for (const Loop &inner : loops)
      if (&outer != &inner && inner.first >= outer.first &&
          inner.last <= outer.last)
        outer.innermost = false;
  // A branch back that is taken once in a while is no hot loop; time decides.
  for (size_t i = 0; i < loops.size(); ++i)
    if (loops[i].innermost &&
        (hot < 0 || loops[i].share > loops[size_t(hot)].share))
      hot = int(i);

  for (unsigned s = 0; s < sim::kStalls; ++s)
    if (report.stalls[s] > 0)
      stalls.push_back({Stall(s), report.stalls[s]});
  std::sort(stalls.begin(), stalls.end(), [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

std::vector<size_t> Analysis::costliest(size_t count) const {
  std::vector<size_t> order(share.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return share[a] != share[b] ? share[a] > share[b] : a < b;
  });
  order.resize(std::min(order.size(), count));
  return order;
}

Window timing::steadyWindow(const TimingReport &report,
                            const Analysis &analysis, unsigned iterations,
                            uint64_t fallback) {
  if (report.timeline.empty())
    return {};
  uint64_t first = ~uint64_t(0), last = 0;
  for (const sim::TimelineEvent &event : report.timeline) {
    first = std::min(first, event.clock);
    last = std::max(last, event.clock + event.clocks);
  }
  if (analysis.hot >= 0) {
    // Of the wave whose loop head comes first, and of the workgroup in which it
    // goes round most often: the middle of its iterations.
    const uint32_t head =
        static_cast<uint32_t>(analysis.loops[size_t(analysis.hot)].first);
    int wave = -1;
    std::vector<uint64_t> heads, most;
    for (const sim::TimelineEvent &event : report.timeline) {
      if (wave >= 0 && event.wave != wave)
        continue;
      if (event.inst == head) {
        wave = event.wave;
        heads.push_back(event.clock);
      } else if (wave >= 0 &&
                 isText(report.instructions[event.inst], "s_endpgm")) {
        if (heads.size() > most.size())
          most.swap(heads);
        heads.clear(); // the next workgroup
      }
    }
    if (heads.size() > most.size())
      most.swap(heads);
    if (most.size() > iterations) {
      const size_t begin = (most.size() - 1 - iterations) / 2;
      return {most[begin], most[begin + iterations]};
    }
  }
  if (last - first <= fallback)
    return {first, last};
  const uint64_t begin = first + (last - first - fallback) / 2;
  return {begin, begin + fallback};
}

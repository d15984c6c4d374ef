//===- Ensemble.cpp - The model as it might be as well --------------------===//
//
// A row a constant, or a few that one unknown moves: by which factors it may be
// off, by family of chips. Letters are those of Constants.cpp; docs/Timing.md
// has the reasons.
//
//===----------------------------------------------------------------------===//
#include "timing/Ensemble.h"

#include "fovea/Simulator/Timing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fovea::sim {

namespace {

/// Factors of a constant; 1: not off to that side.
struct Range {
  double low, high;
};
constexpr Range kSure{1, 1};

/// Chips whose constants have the same sources.
enum Family { Mi300, Mi100, Rdna, kFamilies };

struct Unknown {
  const char *name;
  Range ranges[kFamilies];
  void (*scale)(TimingConstants &, double factor);
};

void times(unsigned &value, double factor) {
  value = static_cast<unsigned>(std::lround(value * factor));
}
void timesRates(MemoryLevel &level, double factor) {
  level.unitClock *= factor;
  level.totalClock *= factor;
  level.totalSecond *= factor;
}
bool isMemory(const MemoryLevel &level) { return !level.bytes; }
/// L2 and RDNA's caches of arrays: at the clock of compute units.
bool isClocked(const MemoryLevel &level) {
  return level.scope == Scope::Die || level.scope == Scope::Array;
}

constexpr Unknown kUnknowns[] = {
    // gfx942: what two sources have of the same kernels; gfx1100: AITER's, 31 %
    // fast; gfx1151: 2.1 measured of 2.6.
    {"clock",
     {{0.87, 1.15}, {0.8, 1.2}, {0.75, 1.15}},
     [](TimingConstants &c, double f) { c.loadHz *= f; }},
    // [F] [A] 0: one clock for all
    {"power of matrix cores",
     {{0, 1.5}, {0, 1.5}, {0, 2}},
     [](TimingConstants &c, double f) { c.loadSlope *= f; }},
    // Earlier fits had 0.41 and 0.59 of four GEMMs; attention asks for 1.25.
    {"power of 16 x 16 products",
     {{0.75, 1.25}, {0.75, 1.25}, kSure},
     [](TimingConstants &c, double f) { c.smallProductPower *= f; }},
    // [R] [I] peaks: reads beside writes cost more, by figures of [G]; RDNA: 77
    // bytes of 128 are proven.
    {"LDS rate",
     {{0.7, 1}, {0.7, 1}, {0.6, 1}},
     [](TimingConstants &c, double f) { c.ldsScale /= f; }},
    // [G] 50 to 70; [T] 31 to 36
    {"LDS latency",
     {{0.9, 1.25}, {0.75, 1.5}, {0.9, 1.3}},
     [](TimingConstants &c, double f) { times(c.ldsLatency, f); }},
    {"LDS queue",
     {{0.75, 1.5}, {0.5, 2}, {0.5, 2}}, // [G] [A]
     [](TimingConstants &c, double f) { times(c.ldsQueue, f); }},
    // [W]; RDNA: [F] and [B] of one chip each
    {"L1 rate",
     {{0.8, 1.15}, {0.75, 1.25}, {0.67, 1.5}},
     [](TimingConstants &c, double f) {
       c.l1Scale /= f;
       for (MemoryLevel &level : c.levels)
         if (level.scope == Scope::Unit)
           timesRates(level, f);
     }},
    {"L1 latency",
     {{0.8, 1.25}, {0.8, 1.25}, {0.5, 1.5}}, // [B] [U]; [A]
     [](TimingConstants &c, double f) {
       times(c.l1Latency, f);
       for (MemoryLevel &level : c.levels)
         if (level.scope == Scope::Unit)
           level.clocks *= f;
     }},
    // [W] peaks; [X] of one chip, others by their size
    {"L2 rate",
     {{0.65, 1.1}, {0.65, 1.1}, {0.6, 1.5}},
     [](TimingConstants &c, double f) {
       for (MemoryLevel &level : c.levels)
         if (isClocked(level))
           timesRates(level, f);
     }},
    {"L2 latency",
     {{0.8, 1.25}, {0.8, 1.25}, {0.75, 1.4}}, // [U] [B] [X]
     [](TimingConstants &c, double f) {
       for (MemoryLevel &level : c.levels)
         if (isClocked(level))
           level.clocks *= f;
     }},
    // gfx950: 6 TB/s of one kernel, and [W] has twice that; RDNA: half of AMD's
    {"rate of the cache of the chip",
     {{0.7, 1.7}, kSure, {0.7, 1.8}},
     [](TimingConstants &c, double f) {
       for (MemoryLevel &level : c.levels)
         if (level.scope == Scope::Chip && !isMemory(level))
           timesRates(level, f);
     }},
    {"memory's rate",
     {{0.85, 1.1}, {0.9, 1.05}, {0.85, 1.05}}, // [U] [B] [D]
     [](TimingConstants &c, double f) { timesRates(c.levels.back(), f); }},
    // [U] [B] [M] unloaded; under load nobody has told it of most chips
    {"latency behind L2",
     {{0.8, 1.5}, {0.8, 1.5}, {0.75, 1.7}},
     [](TimingConstants &c, double f) {
       for (MemoryLevel &level : c.levels)
         level.seconds *= f;
       c.loadedSeconds *= f;
     }},
    // Where it is modelled: [F] of one kernel
    {"latency by load",
     {{0, 1.5}, kSure, kSure},
     [](TimingConstants &c, double f) { c.loadedSeconds *= f; }},
    // [G] of gfx950; [A] of others
    {"loads in flight",
     {{0.75, 1.33}, {0.5, 1.5}, {0.5, 2}},
     [](TimingConstants &c, double f) {
       times(c.flightBytes, f);
       times(c.vmemQueue, f);
     }},
    // A rate drawn from how close neighbours are: nobody has counted any.
    {"misses of shared caches",
     {{0.67, 1.5}, {0.67, 1.5}, {0.67, 1.5}},
     [](TimingConstants &c, double f) { c.missScale *= f; }},
    {"atomics",
     {{0.8, 1.25}, {0.5, 2}, {0.5, 2}}, // [F] [A]
     [](TimingConstants &c, double f) { c.atomicWordsPerSecond *= f; }},
    {"vector latency",
     {kSure, kSure, {0.8, 1.4}}, // [R] exact; [T] 5
     [](TimingConstants &c, double f) { times(c.valuLatency, f); }},
    // [L] [G]; RDNA: 1 and 4 of [T], beside WMMA not measured by clock
    {"transcendentals",
     {{0.8, 1.25}, {0.8, 1.25}, {1, 2}},
     [](TimingConstants &c, double f) {
       times(c.transClocks, f);
       times(c.transPort, f);
     }},
    // [L]; RDNA: 4 to 27 of [T]
    {"latency of transcendentals",
     {{1, 1.25}, {1, 1.25}, {0.5, 2.5}},
     [](TimingConstants &c, double f) { times(c.transLatency, f); }},
    {"latency of products",
     {{1, 1.33}, {1, 1.33}, {0.6, 2.5}}, // [L]; [A]
     [](TimingConstants &c, double f) { times(c.matrixLatency, f); }},
    // 4 of [R] and 8 of [G], each of another chip; [A]
    {"issue of products",
     {{0.5, 2}, {0.5, 2}, {1, 4}},
     [](TimingConstants &c, double f) {
       times(c.matrixIssue, f);
       c.matrixIssue = std::max(c.matrixIssue, c.slot);
     }},
    // [P] of gfx1151, assumed of all gfx11; [U] of gfx12. No factors: none, and
    // the most, which is twice the model's of gfx11 and 2 clocks of gfx12
    {"clash of banks",
     {kSure, kSure, {0, 2}},
     [](TimingConstants &c, double f) {
       c.matrixClash = f > 1 ? c.matrixClashMost : 0;
     }},
    {"way to LDS and memory",
     {kSure, kSure, {0.9, 1.25}}, // [T] 21 to 27
     [](TimingConstants &c, double f) { times(c.addressLatency, f); }},
    {"lane masks",
     {{0.5, 3}, {0.5, 3}, {0.8, 1.25}}, // [A]; [T] 16 to 24
     [](TimingConstants &c, double f) {
       times(c.maskLatency, f);
       times(c.maskToScalar, f);
     }},
    {"waits",
     {{1, 2}, {1, 2}, {1, 2}}, // [G] [T]: at least a slot
     [](TimingConstants &c, double f) { times(c.waitClocks, f); }},
    {"barriers",
     {{0.5, 3}, {0.5, 3}, {0.5, 2}}, // [A]; [T] 6 to 14
     [](TimingConstants &c, double f) { times(c.barrierLatency, f); }},
    {"branches",
     {{0.5, 2}, {0.5, 2}, {0.6, 1.6}}, // [A]; [T]
     [](TimingConstants &c, double f) {
       times(c.branchTaken, f);
       times(c.branchNotTaken, f);
     }},
    {"instruction fetch",
     {{0.5, 2.5}, {0.5, 2.5}, {0.5, 2.5}}, // [A]
     [](TimingConstants &c, double f) { times(c.fetchMiss, f); }},
    {"scalar loads",
     {{0.5, 2}, {0.5, 2}, {0.5, 2}}, // [A]
     [](TimingConstants &c, double f) {
       times(c.scalarHit, f);
       times(c.scalarMiss, f);
     }},
    // [A]; grids of short workgroups ask for more (docs/Timing.md)
    {"start of workgroups",
     {{0.5, 4}, {0.5, 4}, {0.5, 4}},
     [](TimingConstants &c, double f) {
       times(c.groupLaunch, f);
       times(c.groupInterval, f);
     }},
    {"start of a launch",
     {{0.5, 2}, {0.5, 2}, {0.5, 2}}, // [A]
     [](TimingConstants &c, double f) { c.launchSeconds *= f; }},
    // Chosen with one kernel's occupancies in view: 0, any free compute unit
    {"queues by engine",
     {{0, 1}, {0, 1}, {0, 1}},
     [](TimingConstants &c, double f) {
       if (f == 0)
         c.engines = 1;
     }},
};

Family familyOf(const TimingConstants &chip) {
  if (chip.target == "gfx942" || chip.target == "gfx950")
    return Mi300;
  return chip.target.substr(0, 4) == "gfx9" ? Mi100 : Rdna;
}

/// Members with all constants at an end of their ranges, which chance gives;
/// each second one has them at the other ends than the one before.
constexpr unsigned kJoint = 8;

} // namespace

std::vector<Member> ensembleOf(const TimingConstants &chip) {
  const Family family = familyOf(chip);
  std::vector<Member> members;
  for (const Unknown &unknown : kUnknowns) {
    const Range &range = unknown.ranges[family];
    for (double factor : {range.low, range.high}) {
      if (factor == 1)
        continue;
      char name[80];
      std::snprintf(name, sizeof name, "%s x %.3g", unknown.name, factor);
      members.push_back({name, chip});
      unknown.scale(members.back().constants, factor);
    }
  }
  uint64_t state = 0x9e3779b97f4a7c15u, ends = 0;
  for (unsigned i = 0; i < kJoint; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ends = i % 2 ? ~ends : state >> 13;
    members.push_back({"all constants, draw " + std::to_string(i + 1), chip});
    unsigned bit = 0;
    for (const Unknown &unknown : kUnknowns) {
      const Range &range = unknown.ranges[family];
      unknown.scale(members.back().constants,
                    ends >> bit++ & 1 ? range.high : range.low);
    }
  }
  return members;
}

RatioRange ratioOverMembers(const std::vector<MemberTime> &a,
                            const std::vector<MemberTime> &b) {
  RatioRange range;
  for (size_t i = 0; i != std::min(a.size(), b.size()); ++i) {
    const double ratio = a[i].seconds / b[i].seconds;
    if (range.least == 0 || ratio < range.least) {
      range.least = ratio;
      range.leastBy = a[i].name;
    }
    if (ratio > range.greatest) {
      range.greatest = ratio;
      range.greatestBy = a[i].name;
    }
  }
  return range;
}

} // namespace fovea::sim

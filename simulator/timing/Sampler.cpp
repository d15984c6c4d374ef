//===- Sampler.cpp - Executing some workgroups of a launch ----------------===//
//
// Each is a launch of its own on one host thread.
//
//===----------------------------------------------------------------------===//
#include "timing/Sampler.h"

#include <algorithm>

namespace fovea::sim {

Sampler::Sampler(const CodeObject &code, const KernelInfo &kernel,
                 const LaunchConfig &config, const TimingConstants &chip,
                 const uint32_t *grid, uint64_t persistent, UndoLog *undo)
    : code(code), kernel(kernel), config(config), chip(chip),
      lds(ldsShape(code.device()->chip())), grid(grid), persistent(persistent),
      undo(undo) {}

Status Sampler::run(uint64_t group, ObserverFactory *observers,
                    Counters *counters) const {
  LaunchConfig one = config;
  one.workgroups = {group};
  one.options.threads = 1;
  one.options.observers = observers;
  one.options.trial = undo != nullptr;
  if (undo) {
    undo->beside(observers);
    one.options.observers = undo;
  }
  return launch(code, kernel, one, counters);
}

Status Sampler::count(const std::vector<uint64_t> &groups,
                      std::map<uint64_t, uint64_t> &result) const {
  for (uint64_t group : groups) {
    if (result.count(group))
      continue;
    TraceRecorder tiles = recorder(/*keep=*/false);
    Counters counters;
    if (Status status =
            run(group, persistent > 1 ? &tiles : nullptr, &counters);
        !status)
      return status;
    result[group] = counters.instructions;
  }
  return Status::success();
}

Status Sampler::probe(bool &takesTiles, uint64_t &executed) const {
  TraceRecorder found = recorder(/*keep=*/false);
  Counters counters;
  Status status = run(0, &found, &counters);
  executed = counters.instructions;
  takesTiles = found.tiles().size() > 1;
  return status;
}

Status Sampler::tiles(uint64_t group, std::map<uint64_t, uint64_t> &tiles,
                      uint64_t &last) const {
  TraceRecorder recorded = recorder(/*keep=*/false);
  if (Status status = run(group, &recorded); !status)
    return status;
  const auto &found = recorded.tiles();
  for (size_t i = 0; i + 1 < found.size(); ++i)
    tiles[found[i].index] = found[i].instructions;
  if (!found.empty())
    last = std::min<uint64_t>(last, found.back().index);
  return Status::success();
}

Status Sampler::trace(uint64_t group, std::unique_ptr<GroupTrace> &result,
                      size_t maxLines) const {
  TraceRecorder recorded = recorder(/*keep=*/true, maxLines);
  if (Status status = run(group, &recorded); !status)
    return status;
  auto traces = recorded.take();
  if (traces.empty())
    return {ErrorCode::LaunchFailure,
            "kernel '" + kernel.name + "': workgroup " + std::to_string(group) +
                " did not end"};
  result = std::move(traces[0]);
  return Status::success();
}

} // namespace fovea::sim

//===- JsonReport.cpp - a prediction for programs -------------------------===//
//
// Fields are only ever added; docs/AotTime.md lists them.
//
//===----------------------------------------------------------------------===//

#include "Reports.h"

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;
using sim::Stall;
using sim::TimingReport;

namespace {

json stallsOf(const std::array<uint64_t, sim::kStalls> &stalls) {
  json result = json::object();
  for (unsigned s = 0; s < sim::kStalls; ++s)
    if (stalls[s])
      result[std::string(sim::name(Stall(s)))] = stalls[s];
  return result;
}

json launchJson(const LaunchTime &launch, bool instructions) {
  const TimingReport &r = launch.report;
  const Analysis analysis(r);
  json result = {
      {"kernel", r.kernel},
      {"grid", launch.launch.grid},
      {"block", launch.launch.block},
      {"seconds", r.seconds},
      {"time_error", r.timeError},
      {"ratio_error", r.ratioError},
      {"error_is_estimate", r.errorIsEstimate},
      {"launch_seconds", r.launchSeconds},
      {"clocks", r.clocks},
      {"clock_hz", r.clockHz},
      {"peak_clock_hz", r.peakClockHz},
      {"peak_flops_per_second", r.peakFlops},
      {"flops_credited", launch.launch.flops},
      {"flops_executed", r.flops},
      {"workgroups", r.workgroups},
      {"waves_per_workgroup", r.wavesPerWorkgroup},
      {"resident_workgroups", r.resident},
      {"resident_limit", r.residentLimit},
      {"waves_per_simd", r.wavesPerSimd},
      {"rounds", r.rounds},
      {"busy_share", r.busyShare},
      {"board", r.board},
      {"matrix_of_chip", r.matrixOfChip},
      {"units",
       {{"matrix", r.matrix},
        {"valu", r.valu},
        {"salu", r.salu},
        {"lds", r.lds},
        {"vector_memory", r.vectorMemory},
        {"issue", r.issue}}},
      {"memory",
       {{"l1_bytes", r.l1Bytes},
        {"l2_bytes", r.l2Bytes},
        {"memory_bytes", r.memoryBytes},
        {"peak_bytes_per_second", r.memoryBytesPerSecond},
        {"l1_hit_rate", r.l1HitRate},
        {"l2_hit_rate", r.l2HitRate},
        {"lds_conflict_share", r.ldsConflictShare}}},
      {"registers",
       {{"vgprs", launch.kernel.vgprs},
        {"agprs", launch.kernel.agprs},
        {"sgprs", launch.kernel.sgprs}}},
      {"lds_bytes", launch.kernel.staticLdsBytes + launch.launch.dynamicLds},
      {"scratch_bytes", launch.kernel.privateBytes},
      {"issued_share", r.issuedShare},
      {"notes", r.notes},
      {"host_seconds", launch.hostSeconds}};
  if (r.seconds > 0)
    result["flops_per_second"] =
        (launch.launch.flops > 0 ? launch.launch.flops : r.flops) / r.seconds;
  json &stalls = result["stalls"] = json::object();
  for (const auto &[stall, share] : analysis.stalls)
    stalls[std::string(sim::name(stall))] = share;
  if (!r.members.empty()) {
    json &members = result["members"] = json::array();
    for (const sim::MemberTime &member : r.members)
      members.push_back({{"name", member.name}, {"seconds", member.seconds}});
  }
  json &samples = result["samples"] = json::array();
  for (const sim::TimingSample &sample : r.samples)
    samples.push_back({{"workgroup", sample.workgroup},
                       {"wave_instructions", sample.waveInstructions},
                       {"clocks", sample.clocks}});
  json &loops = result["loops"] = json::array();
  for (size_t i = 0; i < analysis.loops.size(); ++i) {
    const Loop &loop = analysis.loops[i];
    loops.push_back(
        {{"first_offset", int32_t(r.instructions[loop.first].offset)},
         {"last_offset", int32_t(r.instructions[loop.last].offset)},
         {"iterations_per_wave", loop.iterations},
         {"share", loop.share},
         {"clocks", loop.clocks},
         {"matrix_clocks", loop.matrix},
         {"valu_clocks", loop.valu},
         {"hot", int(i) == analysis.hot}});
  }
  if (!instructions)
    return result;
  json &rows = result["instructions"] = json::array();
  for (size_t i = 0; i < r.instructions.size(); ++i) {
    const sim::InstTiming &inst = r.instructions[i];
    json row = {{"offset", int32_t(inst.offset)},
                {"text", inst.text},
                {"class", std::string(sim::name(inst.cls))},
                {"issues", inst.issues},
                {"busy_clocks", inst.busyClocks},
                {"share", analysis.share[i]},
                {"stalls", stallsOf(inst.stalls)}};
    if (!inst.source.empty())
      row["source"] = inst.source;
    if (inst.conflictClocks)
      row["conflict_clocks"] = inst.conflictClocks;
    rows.push_back(std::move(row));
  }
  return result;
}

} // namespace

json timing::toJson(const SubjectTime &subject, bool instructions) {
  json result = subjectJson(subject);
  if (!subject.error.empty())
    return result;
  result["seconds"] = subject.seconds();
  result["flops_credited"] = subject.flops();
  result["notes"] = subject.notes;
  json &launches = result["launches"] = json::array();
  for (const LaunchTime &launch : subject.launches)
    launches.push_back(launchJson(launch, instructions));
  return result;
}

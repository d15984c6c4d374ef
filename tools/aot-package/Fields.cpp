//===- Fields.cpp - a kernel's record by name -----------------------------===//

#include "Fields.h"

using nlohmann::ordered_json;

namespace fovea::pkg {
namespace {

template <auto Member>
ordered_json direct(const KernelRecord &record) {
  return record.*Member;
}
template <auto Member>
ordered_json resource(const KernelRecord &record) {
  return record.resources.*Member;
}
template <auto Member>
ordered_json score(const KernelRecord &record) {
  return record.score.*Member;
}
/// -1 stands for what an older package does not say.
template <auto Member>
ordered_json spills(const KernelRecord &record) {
  const int32_t count = record.resources.*Member;
  return count < 0 ? ordered_json() : ordered_json(count);
}

} // namespace

const std::vector<Field> &kernelFields() {
  using K = KernelRecord;
  using R = KernelResources;
  static const std::vector<Field> fields = {
      {"problem", true,
       [](const K &record) { return ordered_json(record.problem.str()); }},
      {"score_name", true, score<&ScoreRecord::name>, true},
      {"score_text", true, score<&ScoreRecord::text>, true},
      {"schedule", true, direct<&K::schedule>},
      {"symbol", true, direct<&K::symbol>},
      {"launches", true,
       [](const K &record) { return ordered_json(toString(record.launches)); }},
      {"fingerprint", true, direct<&K::fingerprint>},
      {"abi_version", true, direct<&K::abiVersion>},
      {"block_m", true, direct<&K::blockM>},
      {"block_n", true, direct<&K::blockN>},
      {"threads", true, direct<&K::threads>},
      {"vgprs", true, resource<&R::vgprs>},
      {"agprs", true, resource<&R::agprs>},
      {"sgprs", true, resource<&R::sgprs>},
      {"vgpr_spills", true, spills<&R::vgprSpills>},
      {"sgpr_spills", true, spills<&R::sgprSpills>},
      {"lds_bytes", true, resource<&R::ldsBytes>},
      {"scratch_bytes", true, resource<&R::scratchBytes>},
      {"occupancy", true, resource<&R::occupancy>},
      {"matrix_instructions", true, resource<&R::matrixInstructions>},
      {"code_bytes", true, resource<&R::codeBytes>},
      {"compile_ms", false, direct<&K::compileMs>},
      {"image_hash", true,
       [](const K &record) {
         return ordered_json(toString(record.imageHash));
       }},
      {"image_bytes", true, direct<&K::imageBytes>},
  };
  return fields;
}

ordered_json toJson(const TuningRow &row) {
  auto limit = [](int64_t value) {
    return value == TuningRow::kAny ? ordered_json() : ordered_json(value);
  };
  return {{"problem", row.problem.str()},
          {"max_seqlen_q", limit(row.maxSeqlenQ)},
          {"max_seqlen_k", limit(row.maxSeqlenK)},
          {"max_batch_heads", limit(row.maxBatchHeads)},
          {"schedule", row.schedule}};
}

} // namespace fovea::pkg

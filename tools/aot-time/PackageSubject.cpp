//===- PackageSubject.cpp - kernels of packages as subjects ---------------===//
//
// A forward kernel of a package becomes a description: the same path as
// everybody else's kernels, and the same variables.
//
//===----------------------------------------------------------------------===//

#include "TimeRun.h"

#include "fovea/Package/ForwardAbi.h"
#include "fovea/Package/PackageReader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;

namespace {

/// Where a tensor's axes lie: strides of batch, head and row for tensors of
/// `heads` heads and `rows` rows.
struct Strides {
  std::string batch, head, row;
};

Strides stridesOf(const std::string &layout, const std::string &heads,
                  const std::string &rows) {
  if (layout == "bshd")
    return {heads + "*dim*" + rows, "dim", heads + "*dim"};
  if (layout == "sbhd")
    return {heads + "*dim", "dim", "batch*" + heads + "*dim"};
  return {heads + "*dim*" + rows, "dim*" + rows, "dim"};
}

/// Key-query pairs of one head that count, for the credited operations: the
/// half of a square is usual for causal masks.
std::string pairsOf(const std::string &mask) {
  const std::string q = "seqlen_q", k = "seqlen_k";
  if (mask == "causal-top-left")
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_q / 2.0"
           " : seqlen_q * seqlen_k - seqlen_k * seqlen_k / 2.0)";
  if (mask == "causal-bottom-right")
    return "(seqlen_q <= seqlen_k ? seqlen_q * seqlen_k - seqlen_q * seqlen_q "
           "/ 2.0"
           " : seqlen_k * seqlen_k / 2.0)";
  return "(1.0 * seqlen_q * seqlen_k)";
}

class Packed : public Subject {
public:
  Packed(std::shared_ptr<PackageReader> reader, const KernelRecord &record,
         const PackageQuery &query, std::string label)
      : reader(std::move(reader)), record(record), query(query),
        name(std::move(label)) {}
  std::string label() const override { return name; }

  bool problem(const describe::Overrides &overrides, describe::Problem &result,
               std::string &error) const override {
    if (record.abiVersion != abi::kForwardAbiVersion) {
      error = reader->path() + ": the kernel takes arguments of version " +
              std::to_string(record.abiVersion) + ", this program knows " +
              std::to_string(abi::kForwardAbiVersion) + "; compile it again";
      return false;
    }
    const std::string text = forwardDescription(
        query, reader->target().str(), reader->path() + ":" + record.schedule,
        record.symbol, record.blockM, record.threads);
    if (!describe::parse(text, reader->path(), "", overrides, result, error))
      return false;
    result.name = record.problem.str() + " (" + record.schedule + ")";
    return true;
  }

  bool image(const std::string &, std::vector<char> &bytes,
             std::string &error) const override {
    Expected<std::vector<uint8_t>> image = reader->loadImage(record);
    if (!image) {
      error = image.status().message();
      return false;
    }
    bytes.assign(image->begin(), image->end());
    return true;
  }

private:
  std::shared_ptr<PackageReader> reader;
  const KernelRecord &record;
  PackageQuery query;
  std::string name;
};

bool packageFiles(const std::string &path, std::vector<std::string> &files,
                  std::string &error) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) {
    files.push_back(path);
    return true;
  }
  for (std::filesystem::directory_iterator entry(path, code), end;
       !code && entry != end; entry.increment(code))
    if (entry->path().extension() == kPackageExtension)
      files.push_back(entry->path().string());
  std::sort(files.begin(), files.end());
  if (files.empty())
    error = "folder '" + path + "' holds no package (*" + kPackageExtension +
            "); make one with aot-compile --emit=package";
  return !files.empty();
}

} // namespace

std::string timing::forwardDescription(const PackageQuery &query,
                                       const std::string &target,
                                       const std::string &codeObject,
                                       const std::string &kernel, int blockM,
                                       int threads) {
  const std::string type = query.dtype == "fp16" ? "f16" : "bf16";
  const Strides wide = stridesOf(query.layout, "heads", "seqlen_q");
  const Strides keys = stridesOf(query.layout, "heads_k", "seqlen_k");
  const std::map<std::string, std::string> values = {
      {"q_stride_batch", wide.batch},
      {"q_stride_head", wide.head},
      {"q_stride_seq", wide.row},
      {"k_stride_batch", keys.batch},
      {"k_stride_head", keys.head},
      {"k_stride_seq", keys.row},
      {"v_stride_batch", keys.batch},
      {"v_stride_head", keys.head},
      {"v_stride_seq", keys.row},
      {"out_stride_batch", wide.batch},
      {"out_stride_head", wide.head},
      {"out_stride_seq", wide.row},
      {"lse_stride_batch", "heads*seqlen_q"},
      {"lse_stride_head", "seqlen_q"},
      {"seqlen_q", "seqlen_q"},
      {"seqlen_k", "seqlen_k"},
      {"heads_q", "heads"},
      {"group_size", "heads / heads_k"},
      {"scale", "1 / sqrt(dim)"}};
  json arguments = json::array();
  for (const abi::ArgInfo &arg : abi::kForwardArgs) {
    static const char *const kinds[] = {"buffer", "i64", "i32", "f32"};
    const bool pointer = arg.kind == abi::ArgKind::Pointer;
    arguments.push_back({{"offset", arg.offset},
                         {"kind", kinds[int(arg.kind)]},
                         {"name", arg.name},
                         {"value", pointer ? arg.name : values.at(arg.name)}});
  }
  auto tensor = [&](const char *heads, const char *rows, int seed) {
    json fill = "nan";
    if (seed)
      fill = {{"kind", "normal"}, {"seed", seed}};
    return json{{"type", type},
                {"shape", {"batch", heads, rows, "dim"}},
                {"fill", fill}};
  };
  const json description = {
      {"version", 1},
      {"target", target.substr(0, target.find(':'))},
      {"variables",
       {{"batch", 1},
        {"heads", 16},
        {"heads_k", "heads"},
        {"seqlen", 4096},
        {"seqlen_q", "seqlen"},
        {"seqlen_k", "seqlen"},
        {"dim", query.headDim}}},
      {"require",
       {"heads_k > 0 && heads % heads_k == 0",
        "dim == " + std::to_string(query.headDim)}},
      {"buffers",
       {{"q", tensor("heads", "seqlen_q", 1)},
        {"k", tensor("heads_k", "seqlen_k", 2)},
        {"v", tensor("heads_k", "seqlen_k", 3)},
        {"out", tensor("heads", "seqlen_q", 0)},
        {"lse",
         {{"type", "f32"},
          {"shape", {"batch", "heads", "seqlen_q"}},
          {"fill", "nan"}}}}},
      {"launches",
       {{{"code_object", codeObject},
         {"kernel", kernel},
         {"grid",
          {"heads", "ceildiv(seqlen_q, " + std::to_string(blockM) + ")",
           "batch"}},
         {"block", {threads, 1, 1}},
         {"arguments", arguments},
         {"work",
          {{"flops",
            "4.0 * batch * heads * dim * " + pairsOf(query.mask)}}}}}}};
  return description.dump(1);
}

bool timing::packageSubjects(const PackageQuery &query,
                             std::vector<std::unique_ptr<Subject>> &subjects,
                             std::string &error) {
  std::string mask = query.mask;
  std::replace(mask.begin(), mask.end(), '-', '_');
  Expected<ProblemKey> key =
      ProblemKey::parse("forward;dtype=" + query.dtype + ";head_dim=" +
                        std::to_string(query.headDim) + ";mask=" + mask);
  if (!key) {
    error = key.status().message();
    return false;
  }
  std::vector<std::string> files;
  if (!packageFiles(query.package, files, error))
    return false;
  std::set<std::string> schedules, targets;
  const size_t before = subjects.size();
  for (const std::string &file : files) {
    Expected<PackageReader> opened = PackageReader::open(file);
    if (!opened) {
      error = opened.status().message();
      return false;
    }
    auto reader = std::make_shared<PackageReader>(std::move(*opened));
    const std::string &arch = reader->target().arch;
    targets.insert(arch);
    if (!query.target.empty() && arch != query.target)
      continue;
    const std::vector<const KernelRecord *> found = reader->candidates(*key);
    for (const KernelRecord *record : found) {
      schedules.insert(record->schedule);
      if (!query.schedule.empty() && record->schedule != query.schedule)
        continue;
      std::string label = "fovea";
      if (files.size() > 1 && query.target.empty())
        label += " " + arch;
      if (found.size() > 1 && query.schedule.empty())
        label += " " + record->schedule;
      subjects.push_back(
          std::make_unique<Packed>(reader, *record, query, std::move(label)));
    }
  }
  if (subjects.size() > before)
    return true;
  auto list = [](const std::set<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text += "\n  " + name;
    return text;
  };
  if (!query.target.empty() && !targets.count(query.target))
    error = "'" + query.package + "' has no package of " + query.target +
            "; there are:" + list(targets);
  else if (schedules.empty())
    error = "'" + query.package + "' has no kernel of '" + key->str() +
            "'; compile one with aot-compile, or see aot-run --list";
  else
    error = "no kernel of '" + key->str() + "' has the schedule '" +
            query.schedule + "'; there are:" + list(schedules);
  return false;
}

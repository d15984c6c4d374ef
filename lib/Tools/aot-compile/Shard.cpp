//===- Shard.cpp - a library in parts, for several machines ---------------===//

#include "Shard.h"
#include "fovea/Package/Counted.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

using namespace fovea;
using namespace fovea::tools;

/// More machines than anybody has at a build.
static constexpr uint32_t kMostShards = 9999;

llvm::Expected<Shard> fovea::tools::parseShard(llvm::StringRef text) {
  auto [index, count] = text.split('/');
  Shard shard;
  if (index.getAsInteger(10, shard.index) ||
      count.getAsInteger(10, shard.count) || shard.count < 1 ||
      shard.count > kMostShards || shard.index < 1 ||
      shard.index > shard.count)
    return llvm::createStringError(
        "takes I/N, the I-th of N parts, with I from 1 to N and N to " +
        llvm::Twine(kMostShards) + ", found '" + text + "'");
  return shard;
}

static std::string nameOf(const target::TargetInfo &target,
                          const ProblemKey &problem) {
  return target.name.str() + "\n" + problem.str();
}

/// A hash of all that is planned for a chip, 32 hexadecimal digits.
static std::string planOf(const Request &request,
                          const target::TargetInfo &target) {
  std::vector<std::string> lines;
  for (const Job &job : request.jobs)
    if (job.target == &target)
      lines.push_back("kernel\n" + job.problem.str() + "\n" + job.schedule +
                      "\n" + job.symbol + "\n" + job.score.text);
  for (const auto &[of, row] : request.tuningRows)
    if (of == &target)
      lines.push_back("row\n" + row.problem.str() + "\n" +
                      std::to_string(row.maxSeqlenQ) + "\n" +
                      std::to_string(row.maxSeqlenK) + "\n" +
                      std::to_string(row.maxBatchHeads) + "\n" + row.schedule);
  llvm::sort(lines);
  const std::string text = llvm::join(lines, "\n\n");
  const llvm::XXH128_hash_t hash =
      llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  auto hex = [](uint64_t value) {
    std::string digits = llvm::utohexstr(value, /*LowerCase=*/true);
    return std::string(16 - digits.size(), '0') + digits;
  };
  return hex(hash.high64) + hex(hash.low64);
}

llvm::Error fovea::tools::takeShard(Request &request) {
  const Shard &shard = *request.shard;
  for (const Job &job : request.jobs)
    if (!request.plans.contains(job.target))
      request.plans.insert({job.target, planOf(request, *job.target)});

  llvm::MapVector<std::string, double, llvm::StringMap<unsigned>> costs;
  for (const Job &job : request.jobs)
    costs[nameOf(*job.target, job.problem)] += job.cost.cpuMs;
  if (shard.count > costs.size())
    return llvm::createStringError(
        "--shard: there are " + std::to_string(shard.count) + " parts and " +
        counted(costs.size(), "problem") +
        " to share out, of which each stays in one part; take fewer");
  // The most expensive first, each to the part that has least.
  std::vector<const std::pair<std::string, double> *> order;
  for (const auto &entry : costs)
    order.push_back(&entry);
  llvm::stable_sort(order, [](const auto *a, const auto *b) {
    return a->second > b->second;
  });
  std::vector<double> sums(shard.count, 0.0);
  llvm::StringSet<> mine;
  for (const auto *entry : order) {
    const auto least = llvm::min_element(sums);
    *least += entry->second;
    if (least - sums.begin() + 1 == shard.index)
      mine.insert(entry->first);
  }
  llvm::erase_if(request.jobs, [&](const Job &job) {
    return !mine.contains(nameOf(*job.target, job.problem));
  });
  llvm::erase_if(request.tuningRows, [&](const auto &row) {
    return !mine.contains(nameOf(*row.first, row.second.problem));
  });
  return llvm::Error::success();
}

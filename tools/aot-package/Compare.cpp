//===- Compare.cpp - aot-package diff -------------------------------------===//

#include "Commands.h"
#include "Fields.h"
#include "fovea/Package/Counted.h"

#include <map>
#include <ostream>

using nlohmann::ordered_json;

namespace fovea::pkg {
namespace {

/// What identifies a row in a package, and what it says.
using Rows = std::map<std::string, ordered_json>;

Rows rowsOf(const PackageReader &package) {
  Rows rows;
  for (const KernelRecord &kernel : package.kernels()) {
    ordered_json &row = rows["kernel '" + kernel.problem.str() + "' ('" +
                             kernel.schedule + "')"];
    for (const Field &field : kernelFields())
      if (field.isPartOfDiff && field.isOf(kernel))
        row[field.name] = field.value(kernel);
  }
  for (const TuningRow &tuning : package.tuning()) {
    ordered_json row = toJson(tuning);
    ordered_json bucket = row;
    bucket.erase("schedule");
    rows["tuning row " + bucket.dump()] = row;
  }
  return rows;
}

} // namespace

std::string contentDigest(const PackageReader &package) {
  std::string text = package.target().str() + "\n";
  for (const auto &[name, row] : rowsOf(package))
    text += row.dump() + "\n";
  return toString(hashImage(text.data(), text.size()));
}

int diff(const std::string &first, const std::string &second, Streams io) {
  Expected<PackageReader> a = PackageReader::open(first);
  if (!a)
    return complain(a.status(), io);
  Expected<PackageReader> b = PackageReader::open(second);
  if (!b)
    return complain(b.status(), io);
  int differences = 0;
  auto tell = [&](const std::string &line) {
    io.out << line << "\n";
    ++differences;
  };
  if (a->target() != b->target())
    tell("target: " + a->target().str() + " | " + b->target().str());
  const Rows left = rowsOf(*a), right = rowsOf(*b);
  for (const auto &[name, row] : left) {
    auto other = right.find(name);
    if (other == right.end()) {
      tell("only in " + first + ": " + name);
      continue;
    }
    std::string fields;
    for (const auto &[key, value] : row.items())
      if (const ordered_json &there = other->second[key]; there != value)
        fields += "\n  " + key + ": " + value.dump() + " | " + there.dump();
    if (!fields.empty())
      tell(name + ":" + fields);
  }
  for (const auto &[name, row] : right)
    if (!left.count(name))
      tell("only in " + second + ": " + name);
  if (differences == 0)
    io.out << "the same " << counted(a->kernels().size(), "kernel") << " and "
           << counted(a->tuning().size(), "tuning row") << "\n";
  return differences ? kFound : kGood;
}

} // namespace fovea::pkg

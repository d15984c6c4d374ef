//===- ComparisonHtml.cpp - a comparison as a page ------------------------===//
//
// What belongs into one chart, and the figures; the drawing is
// Comparison.html's.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "Page.h"
#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

using namespace fovea;
using namespace fovea::timing;
using nlohmann::json;

namespace {

/// Variables that are a length, the one to draw over first.
constexpr const char *kLengths[] = {"seqlen", "seqlen_k", "seqlen_q"};

/// The variable that the charts are drawn over: the sweep of a length, else the
/// last sweep; without sweeps a length that some kernel has. Empty where there
/// is none.
std::string axisOf(const ComparedPoint &point) {
  for (const char *length : kLengths)
    for (const auto &[name, value] : point.swept)
      if (name == length)
        return name;
  if (!point.swept.empty())
    return point.swept.back().first;
  for (const char *length : kLengths)
    for (const SubjectTime &subject : point.subjects)
      if (subject.problem.variables.count(length))
        return length;
  return "";
}

/// The other sweeps.
Swept withoutAxis(Swept swept, const std::string &axis) {
  swept.erase(
      std::remove_if(swept.begin(), swept.end(),
                     [&](const auto &one) { return one.first == axis; }),
      swept.end());
  return swept;
}

std::optional<double> variableOf(const describe::Problem &problem,
                                 const std::string &name) {
  const auto found = problem.variables.find(name);
  if (found == problem.variables.end())
    return std::nullopt;
  return found->second.integer ? double(found->second.whole)
                               : found->second.fraction;
}

std::optional<double> numberIn(const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Where a row stands on the axis. A problem that does not fit has no
/// variables, and a kernel may have the size under another name: the sweep's
/// own value then.
std::optional<double> positionOf(const SubjectTime &subject, const Swept &swept,
                                 const std::string &axis) {
  if (const std::optional<double> value = variableOf(subject.problem, axis))
    return value;
  for (const auto &[name, text] : swept)
    if (name == axis)
      return numberIn(text);
  for (const char *length : kLengths)
    if (const std::optional<double> value = variableOf(subject.problem, length))
      return value;
  return axis.empty() ? std::optional<double>(0) : std::nullopt;
}

/// What a problem is credited with, predicted or not; none when it did not fit.
std::optional<double> workOf(const SubjectTime &subject) {
  if (subject.problem.launches.empty())
    return std::nullopt;
  double flops = 0;
  for (const describe::Launch &launch : subject.problem.launches)
    flops += launch.flops;
  return flops;
}

/// Whether two kernels do the same work, as far as descriptions agree how to
/// count: some credit a causal mask with its diagonal and some without.
bool isSameWork(double a, double b) {
  return a == b ||
         (std::min(a, b) > 0 && std::max(a, b) <= 1.1 * std::min(a, b));
}

std::string chipOf(const SubjectTime &subject) {
  return subject.target.substr(0, subject.target.find(':'));
}

/// Rows that one chart joins by a line.
struct Curve {
  size_t subject = 0;
  std::string chip;
  std::map<double, double> work; ///< by position, where known
  std::vector<size_t> rows;
};

/// Kernels that do the same work on the same chip: one chart.
struct Group {
  std::string chip, computed, sizes;
  std::vector<Curve> curves;

  bool takes(const Curve &curve) const;
};

bool Group::takes(const Curve &curve) const {
  if (!chip.empty() && !curve.chip.empty() && chip != curve.chip)
    return false;
  for (const Curve &other : curves)
    for (const auto &[x, work] : curve.work) {
      const auto found = other.work.find(x);
      if (found != other.work.end() && !isSameWork(found->second, work))
        return false;
    }
  return true;
}

/// A row of the table: a subject at a point.
struct Place {
  const ComparedPoint *point;
  const SubjectTime *subject;
  size_t index; ///< of the subject
  std::optional<double> x;
};

class ComparisonData {
public:
  explicit ComparisonData(const std::vector<ComparedPoint> &points)
      : points(points), axis(axisOf(points.front())) {
    for (const ComparedPoint &point : points)
      for (const SubjectTime &subject : point.subjects)
        places.push_back({&point, &subject,
                          size_t(&subject - point.subjects.data()),
                          positionOf(subject, point.swept, axis)});
    findGroups();
  }

  json data() const;

private:
  std::vector<Curve> curvesOf(const std::string &sizes) const;
  void findGroups();
  json rowJson(const Place &place) const;
  json groupJson(const Group &group) const;
  json chipsJson() const;
  json workJson(const Group &group) const;

  const std::vector<ComparedPoint> &points;
  std::string axis;
  std::vector<Place> places;
  std::vector<Group> groups;
};

/// A curve a subject, over the points that share the values of all sweeps but
/// the axis's.
std::vector<Curve> ComparisonData::curvesOf(const std::string &sizes) const {
  std::vector<Curve> curves(points.front().subjects.size());
  for (size_t row = 0; row < places.size(); ++row) {
    const Place &place = places[row];
    if (nameOf(withoutAxis(place.point->swept, axis)) != sizes)
      continue;
    Curve &curve = curves[place.index];
    curve.subject = place.index;
    curve.rows.push_back(row);
    if (curve.chip.empty())
      curve.chip = chipOf(*place.subject);
    const std::optional<double> work = workOf(*place.subject);
    if (work && place.x)
      curve.work[*place.x] = *work;
  }
  // Kernels whose work is known decide which groups there are.
  std::sort(curves.begin(), curves.end(), [](const Curve &a, const Curve &b) {
    return std::pair(a.work.empty(), a.subject) <
           std::pair(b.work.empty(), b.subject);
  });
  return curves;
}

void ComparisonData::findGroups() {
  std::vector<std::string> sizes; // each once, in order
  for (const ComparedPoint &point : points) {
    const std::string name = nameOf(withoutAxis(point.swept, axis));
    if (std::find(sizes.begin(), sizes.end(), name) == sizes.end())
      sizes.push_back(name);
  }
  for (const std::string &size : sizes) {
    const size_t before = groups.size();
    for (Curve &curve : curvesOf(size)) {
      auto group =
          std::find_if(groups.begin() + std::ptrdiff_t(before), groups.end(),
                       [&](const Group &one) { return one.takes(curve); });
      if (group == groups.end())
        group = groups.insert(group, Group{curve.chip, "", size, {}});
      if (group->chip.empty())
        group->chip = curve.chip;
      for (size_t row : curve.rows)
        if (group->computed.empty())
          group->computed = places[row].subject->computed;
      group->curves.push_back(std::move(curve));
    }
  }
  for (Group &group : groups)
    std::sort(
        group.curves.begin(), group.curves.end(),
        [](const Curve &a, const Curve &b) { return a.subject < b.subject; });
}

json ComparisonData::rowJson(const Place &place) const {
  const SubjectTime &subject = *place.subject;
  json row = {{"subject", place.index},
              {"point", nameOf(place.point->swept)},
              {"chip", chipOf(subject)}};
  if (place.x)
    row["x"] = *place.x;
  if (!subject.problem.variables.empty())
    row["variables"] = variablesText(subject.problem);
  if (!subject.error.empty()) {
    row["error"] = subject.error;
    return row;
  }
  const ComparedRow figures =
      comparedRow(subject, place.point->subjects.front());
  const ComparedCells cells = cellsOf(figures);
  row["cells"] = {{"time", cells.time},   {"rate", cells.rate},
                  {"peak", cells.peak},   {"matrix", cells.chip},
                  {"clock", cells.clock}, {"ratio", cells.ratio}};
  row["time_error"] = figures.timeError;
  row["error_is_estimate"] = figures.errorIsEstimate;
  row["flops_per_second"] = figures.flopsPerSecond;
  row["doubtful"] = figures.doubtful;
  if (figures.hasRatio) {
    row["ratio"] = figures.ratio;
    row["ratio_error"] = figures.ratioError;
    row["tie"] = figures.tie;
  }
  if (figures.memoryBytes > 0) {
    row["memory_bytes"] = figures.memoryBytes;
    row["flops_per_byte"] = figures.flops / figures.memoryBytes;
  }
  return row;
}

/// What the longest problem of a group is credited with; null for nothing.
json ComparisonData::workJson(const Group &group) const {
  std::pair<double, double> longest; // position, operations
  for (const Curve &curve : group.curves)
    if (!curve.work.empty())
      longest =
          std::max<std::pair<double, double>>(longest, *curve.work.rbegin());
  if (longest.second <= 0)
    return nullptr;
  return {{"x", longest.first}, {"flops", longest.second}};
}

json ComparisonData::groupJson(const Group &group) const {
  json result = {{"chip", group.chip},
                 {"computed", group.computed},
                 {"sizes", group.sizes},
                 {"work", workJson(group)},
                 {"curves", json::array()}};
  for (const Curve &curve : group.curves)
    result["curves"].push_back(
        {{"subject", curve.subject}, {"rows", curve.rows}});
  return result;
}

/// The roofs of each chip: what its memory delivers, and the peak of the matrix
/// instructions that were executed, which differ in it by type.
json ComparisonData::chipsJson() const {
  json chips = json::array();
  for (size_t row = 0; row < places.size(); ++row) {
    const Place &place = places[row];
    if (!place.subject->error.empty())
      continue;
    const ComparedRow figures =
        comparedRow(*place.subject, place.point->subjects.front());
    const std::string name = chipOf(*place.subject);
    auto chip = std::find_if(chips.begin(), chips.end(), [&](const json &one) {
      return one["chip"] == name;
    });
    if (chip == chips.end())
      chip = chips.insert(
          chip,
          json::object({{"chip", name},
                        {"bytes_per_second", figures.memoryBytesPerSecond},
                        {"peak_clock_hz", figures.peakClockHz},
                        {"peaks", json::array()},
                        {"rows", json::array()}}));
    (*chip)["rows"].push_back(row);
    if (figures.flopsPerSecond <= 0)
      continue;
    json &peaks = (*chip)["peaks"];
    auto peak = std::find_if(peaks.begin(), peaks.end(), [&](const json &one) {
      return std::abs(one["flops_per_second"].get<double>() /
                          figures.peakFlops -
                      1) < 0.01;
    });
    if (peak == peaks.end())
      peak = peaks.insert(peak,
                          json::object({{"flops_per_second", figures.peakFlops},
                                        {"least_clock_hz", figures.clockHz},
                                        {"most_clock_hz", figures.clockHz}}));
    (*peak)["least_clock_hz"] =
        std::min((*peak)["least_clock_hz"].get<double>(), figures.clockHz);
    (*peak)["most_clock_hz"] =
        std::max((*peak)["most_clock_hz"].get<double>(), figures.clockHz);
  }
  return chips;
}

json ComparisonData::data() const {
  json result = {{"axis", axis}, {"subjects", json::array()}};
  for (size_t i = 0; i < points.front().subjects.size(); ++i) {
    const SubjectTime &subject = points.front().subjects[i];
    json one = {{"label", subject.label}};
    if (!subject.schedule.empty())
      one["schedule"] = subject.schedule;
    for (const ComparedPoint &point : points)
      if (!point.subjects[i].problem.name.empty())
        one["name"] = point.subjects[i].problem.name;
    result["subjects"].push_back(one);
  }
  json &rows = result["rows"] = json::array();
  for (const Place &place : places)
    rows.push_back(rowJson(place));
  json &charts = result["charts"] = json::array();
  for (const Group &group : groups)
    charts.push_back(groupJson(group));
  result["chips"] = chipsJson();
  return result;
}

} // namespace

std::string timing::comparisonHtml(const std::vector<ComparedPoint> &points) {
  return pageWith(kComparisonPage, ComparisonData(points).data());
}

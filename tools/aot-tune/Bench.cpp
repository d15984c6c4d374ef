//===- Bench.cpp - times of schedules -------------------------------------===//

#include "Bench.h"

#include "Children.h"
#include "fovea/Package/ReadFile.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>
#include <unistd.h>

using namespace fovea;
using namespace fovea::tune;
using nlohmann::json;
using tool::ChildResult;
using tool::runChildren;

bool Budget::parse(const std::string &text) {
  uint64_t number = 0;
  const char *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number == 0 || number > 1000000000)
    return false;
  const std::string unit(at, end);
  if (unit.empty()) {
    schedules = number;
    return true;
  }
  constexpr std::pair<const char *, double> kUnits[] = {
      {"s", 1}, {"m", 60}, {"h", 3600}};
  for (const auto &[name, factor] : kUnits)
    if (unit == name)
      seconds = double(number) * factor;
  return seconds > 0;
}

double Budget::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Budget::beginShare(size_t remaining) {
  const double left = std::max(0.0, seconds - elapsed());
  shareEnd = elapsed() + left / double(remaining);
  const uint64_t more = schedules > used ? schedules - used : 0;
  shareSchedules = used + (more + remaining - 1) / remaining;
}

bool Budget::isSpent() const {
  return (seconds > 0 && elapsed() >= shareEnd) ||
         (schedules > 0 && used >= shareSchedules);
}

size_t Budget::remaining() const {
  if (schedules == 0)
    return std::numeric_limits<size_t>::max();
  return shareSchedules > used ? shareSchedules - used : 0;
}

Bench::Bench(const Subject &subject, const ScheduleChoice &baseline,
             Session &session)
    : subject(subject), session(session) {
  this->baseline = plan(baseline);
}

std::string Bench::plan(const ScheduleChoice &choice) {
  const std::string text = toString(choice);
  auto at = plans.find(text);
  if (at == plans.end())
    at = plans
             .emplace(text, tools::planKernel(
                                {subject.target, subject.problem, choice}))
             .first;
  return at->second ? at->second->schedule : std::string();
}

std::string Bench::refusal(const ScheduleChoice &choice) {
  return plan(choice).empty() ? plans.at(toString(choice)).status().message()
                              : std::string();
}

bool Bench::stops(bool isLast) {
  return !session.error.empty() || session.isInterrupted() ||
         (!isLast && session.budget.isSpent());
}

bool Bench::isSpent() { return stops(/*isLast=*/false); }

json Bench::questionOf(const std::string &schedule) const {
  return {{"compiler", tools::compilerBuildId()},
          {"target", subject.target},
          {"problem", subject.problem.str()},
          {"schedule", schedule}};
}

json Bench::questionOf(const std::string &schedule, const Size &size,
                       const Condition &condition,
                       const std::vector<std::string> &together) const {
  json question = questionOf(schedule);
  question["by"] = session.method.name();
  question["model"] =
      session.method.isMeasured ? session.method.device : session.model;
  question["sizes"] = {size.batch, size.heads, size.headsK, size.seqlen};
  question["mask"] = condition.mask;
  question["clock_ghz"] = condition.clockGHz;
  if (!together.empty())
    question["together"] = together;
  return question;
}

std::string Bench::imagePath(const std::string &schedule) const {
  const size_t name = std::hash<std::string>()(
      subject.target + "\n" + subject.problem.str() + "\n" + schedule);
  return session.folder + "/" + std::to_string(name) + ".hsaco";
}

json Bench::build(const ScheduleChoice &choice, const std::string &schedule,
                  tools::BuiltKernel &kernel) {
  const std::string path = imagePath(schedule);
  const tools::KernelOrder order{subject.target, subject.problem, choice};
  if (Expected<std::string> image = readWhole(path, kMostImageMiB)) {
    kernel.image = std::move(*image);
    kernel.record = *plans.at(toString(choice));
    return json::object();
  }
  Expected<tools::BuiltKernel> built = tools::buildKernel(order);
  if (!built && built.status().code() == StatusCode::Io)
    throw std::runtime_error(built.status().message());
  if (!built)
    return {{"refused", built.status().message()}, {"compiled", true}};
  kernel = std::move(*built);
  // The default may have them, and which schedule that is depends on the run.
  const std::string faults = faultsOf(kernel.record);
  if (!faults.empty() && schedule != baseline)
    return {{"faults", faults}, {"compiled", true}};
  const std::string half = path + "." + std::to_string(getpid());
  std::ofstream(half, std::ios::binary)
      .write(kernel.image.data(), std::streamsize(kernel.image.size()));
  if (std::rename(half.c_str(), path.c_str()) != 0)
    throw std::runtime_error("cannot write '" + path + "'");
  json answer = {{"registers", kernel.record.resources.vgprs +
                                   kernel.record.resources.agprs},
                 {"lds_bytes", kernel.record.resources.ldsBytes}};
  if (!faults.empty())
    answer["faults"] = faults;
  return answer;
}

/// Why a schedule is no candidate, by an answer; empty if it may be one.
static std::string refusalIn(const json &answer) {
  return answer.value("refused", answer.value("faults", ""));
}

void Bench::keep(const json &question, const json &answer) {
  std::string error;
  if (!session.state.add(question, answer, error) && session.error.empty())
    session.error = error;
}

void Bench::keepOfCompiler(const std::string &schedule, const json &answer) {
  if (answer.contains("faults"))
    keep(questionOf(schedule),
         {{"faults", answer["faults"]}, {"compiled", true}});
  else if (answer.contains("compiled"))
    keep(questionOf(schedule), answer);
}

void Bench::tellOf(const ScheduleChoice &choice, const Size &size,
                   const json &answer) {
  std::string what = subject.target + " " + subject.problem.str() + ", " +
                     size.str() + ": " + toString(choice) + ": ";
  what += !answer.contains("seconds")
              ? "refused: " + refusalIn(answer)
              : timing::timeText(answer["seconds"].get<double>()) + ", " +
                    session.method.name();
  session.tell(what);
}

void Bench::predictAll(const std::vector<ScheduleChoice> &choices,
                       const std::vector<size_t> &wanted, const Size &size,
                       const Condition &condition, bool isLast) {
  std::vector<std::function<std::string()>> work;
  for (size_t place : wanted) {
    const ScheduleChoice &choice = choices[place];
    const std::string schedule = plan(choice);
    work.push_back([this, &choice, schedule, &size, &condition] {
      tools::BuiltKernel kernel;
      json answer = build(choice, schedule, kernel);
      if (!answer.contains("compiled"))
        answer.update(predict(kernel, subject.target, size, condition));
      return answer.dump();
    });
  }
  runChildren(
      work, session.workers,
      [&](size_t done, ChildResult result) {
        const ScheduleChoice &choice = choices[wanted[done]];
        const std::string schedule = plan(choice);
        json answer = {{"refused", result.failure}};
        if (result.failure.empty())
          answer = json::parse(result.output);
        ++session.tried;
        // What the compiler says holds for all sizes. How a child ended may be
        // the machine's doing, and is not written down.
        keepOfCompiler(schedule, answer);
        if (!result.failure.empty())
          failures[questionOf(schedule, size, condition).dump()] =
              result.failure;
        else if (!answer.contains("compiled")) {
          answer.erase("faults"); // the default's
          keep(questionOf(schedule, size, condition), answer);
        }
        tellOf(choice, size, answer);
      },
      [&] {
        const bool isEnd = stops(isLast);
        if (!isEnd) // one more is begun
          session.budget.count();
        return isEnd;
      },
      [&] { return session.isInterrupted(); });
}

std::vector<Evaluator::Members>
Bench::members(const std::vector<ScheduleChoice> &choices, const Size &size,
               const Condition &condition) {
  std::vector<json> questions;
  std::vector<size_t> wanted;
  std::vector<std::function<std::string()>> work;
  for (const ScheduleChoice &choice : choices) {
    const std::string schedule = plan(choice);
    questions.push_back(questionOf(schedule, size, condition));
    questions.back()["ensemble"] = true;
    if (session.state.find(questions.back()))
      continue;
    wanted.push_back(questions.size() - 1);
    work.push_back([this, &choice, schedule, &size, &condition] {
      tools::BuiltKernel kernel;
      json answer = build(choice, schedule, kernel);
      if (!answer.contains("compiled"))
        answer = predictMembers(kernel, subject.target, size, condition);
      return answer.dump();
    });
  }
  // A schedule that is about to be chosen: a spent budget lets it pass.
  runChildren(
      work, session.workers,
      [&](size_t done, ChildResult result) {
        if (!result.failure.empty())
          return;
        const json answer = json::parse(result.output);
        if (answer.contains("members"))
          keep(questions[wanted[done]], answer);
      },
      [&] { return stops(/*isLast=*/true); },
      [&] { return session.isInterrupted(); });
  std::vector<Members> all(choices.size());
  for (size_t i = 0; i != all.size(); ++i)
    if (const json *answer = session.state.find(questions[i]))
      for (const json &member : answer->value("members", json::array()))
        all[i].push_back({member.at(0), member.at(1)});
  return all;
}

std::vector<size_t> Bench::buildAll(const std::vector<ScheduleChoice> &choices,
                                    const std::vector<size_t> &wanted,
                                    bool isLast) {
  std::vector<std::function<std::string()>> work;
  for (size_t place : wanted)
    work.push_back([this, &choice = choices[place]] {
      tools::BuiltKernel kernel;
      return build(choice, plan(choice), kernel).dump();
    });
  std::vector<size_t> built;
  runChildren(
      work, session.workers,
      [&](size_t done, ChildResult result) {
        const size_t place = wanted[done];
        const std::string schedule = plan(choices[place]);
        if (!result.failure.empty()) {
          failures[questionOf(schedule).dump()] = result.failure;
          return;
        }
        const json answer = json::parse(result.output);
        keepOfCompiler(schedule, answer);
        if (!answer.contains("compiled"))
          built.push_back(place);
      },
      [&] { return stops(isLast); }, [&] { return session.isInterrupted(); });
  std::sort(built.begin(), built.end());
  return built;
}

json Bench::measureOnce(const std::vector<ScheduleChoice> &choices,
                        const std::vector<size_t> &places, const Size &size,
                        const Condition &condition) {
  // One process has the GPU, and no other work goes on beside it.
  auto work = [&] {
    std::vector<tools::BuiltKernel> kernels(places.size());
    std::vector<const tools::BuiltKernel *> pointers;
    std::vector<std::string> files;
    for (size_t i = 0; i != places.size(); ++i) {
      const std::string schedule = plan(choices[places[i]]);
      (void)build(choices[places[i]], schedule, kernels[i]);
      pointers.push_back(&kernels[i]);
      files.push_back(imagePath(schedule));
    }
    return session
        .measure(pointers, files, subject.target, size, condition,
                 session.method.hip)
        .dump();
  };
  json all = {{"error", "interrupted"}};
  runChildren(
      {work}, 1,
      [&](size_t, ChildResult result) {
        all = result.failure.empty() ? json::parse(result.output)
                                     : json{{"error", result.failure}};
      },
      [] { return false; }, [&] { return session.isInterrupted(); });
  return all;
}

void Bench::measureAll(const std::vector<ScheduleChoice> &choices,
                       const std::vector<size_t> &wanted, const Size &size,
                       const Condition &condition,
                       const std::vector<std::string> &together, bool isLast) {
  std::vector<size_t> built = buildAll(choices, wanted, isLast);
  if (built.empty() || stops(isLast))
    return;
  auto take = [&](size_t place, const std::vector<std::string> &beside,
                  const json &answer) {
    keep(questionOf(plan(choices[place]), size, condition, beside), answer);
    tellOf(choices[place], size, answer);
    ++session.tried;
    session.budget.count();
  };
  json all = measureOnce(choices, built, size, condition);
  // One that takes the device down, or does not come back, costs itself alone:
  // each by itself says which it is, and the others are measured once more.
  if (all.is_object() && built.size() > 1 && !session.isInterrupted()) {
    std::vector<size_t> sound;
    std::map<size_t, std::string> broken;
    for (size_t place : built) {
      const json one = measureOnce(choices, {place}, size, condition);
      if (session.isInterrupted())
        return;
      if (one.is_array())
        sound.push_back(place);
      else
        broken[place] = one["error"];
    }
    // Where none can be measured it is not theirs.
    if (!sound.empty()) {
      for (const auto &[place, error] : broken)
        take(place, {}, {{"refused", "fails on the device: " + error}});
      built = sound;
      // Of choices that are to be measured together one is out.
      if (!broken.empty() && !together.empty())
        return;
      all = measureOnce(choices, built, size, condition);
    }
  }
  if (session.isInterrupted())
    return;
  if (all.is_object()) {
    session.error =
        "measuring on the GPU failed: " + all["error"].get<std::string>();
    return;
  }
  for (size_t i = 0; i != built.size(); ++i)
    take(built[i], together, all[i]);
}

std::string Bench::check(const ScheduleChoice &choice,
                         const std::string &mask) {
  const std::string schedule = plan(choice);
  json question = questionOf(schedule);
  question["check"] =
      session.method.isMeasured ? session.method.device : session.model;
  question["mask"] = mask;
  if (const json *known = session.state.find(question))
    return known->value("wrong", "");
  std::string wrong = "interrupted before its results were checked";
  runChildren(
      {[&] {
        tools::BuiltKernel kernel;
        const json built = build(choice, schedule, kernel);
        if (built.contains("compiled"))
          return json{{"wrong", refusalIn(built)}}.dump();
        return checkKernel(kernel, imagePath(schedule), subject.target, mask,
                           session.method)
            .dump();
      }},
      1,
      [&](size_t, ChildResult result) {
        wrong = result.failure;
        if (!wrong.empty())
          return;
        const json answer = json::parse(result.output);
        wrong = answer.value("wrong", "");
        if (answer.contains("unchecked"))
          session.error = "results can't be checked: " +
                          answer["unchecked"].get<std::string>();
        else
          keep(question, answer);
      },
      [] { return false; }, [&] { return session.isInterrupted(); });
  if (!wrong.empty())
    session.tell(subject.target + " " + subject.problem.str() + ": " +
                 toString(choice) + ": " + wrong);
  return wrong;
}

std::string Bench::failureOf(const std::string &schedule, const Size &size,
                             const Condition &condition) const {
  for (const json &question :
       {questionOf(schedule, size, condition), questionOf(schedule)})
    if (const auto at = failures.find(question.dump()); at != failures.end())
      return at->second;
  return "";
}

const json *Bench::answerTo(const std::string &schedule, const Size &size,
                            const Condition &condition,
                            const std::vector<std::string> &together) const {
  const json *compiled = session.state.find(questionOf(schedule));
  // Of the default faults are told, and it is timed all the same.
  if (compiled && (compiled->contains("refused") || schedule != baseline))
    return compiled;
  const json *answer =
      session.state.find(questionOf(schedule, size, condition, together));
  if (!answer && !together.empty()) // it fails on the device
    if (const json *alone =
            session.state.find(questionOf(schedule, size, condition));
        alone && alone->contains("refused"))
      return alone;
  return answer;
}

std::vector<Timing> Bench::times(const std::vector<ScheduleChoice> &choices,
                                 const Size &size, const Condition &condition,
                                 bool isLast) {
  std::vector<std::string> schedules, together;
  for (const ScheduleChoice &choice : choices)
    schedules.push_back(plan(choice));
  if (isLast && session.method.isMeasured)
    together = schedules;
  std::vector<size_t> wanted;
  for (size_t i = 0; i != choices.size(); ++i)
    if (!answerTo(schedules[i], size, condition, together))
      wanted.push_back(i);
  session.known += choices.size() - wanted.size();
  if (!wanted.empty() && !together.empty()) {
    wanted.resize(choices.size());
    std::iota(wanted.begin(), wanted.end(), size_t(0));
  }
  if (!isLast && session.method.isMeasured)
    wanted.resize(std::min(wanted.size(), session.budget.remaining()));
  if (!wanted.empty() && session.method.isMeasured)
    measureAll(choices, wanted, size, condition, together, isLast);
  else if (!wanted.empty())
    predictAll(choices, wanted, size, condition, isLast);
  std::vector<Timing> timings(choices.size());
  for (size_t i = 0; i != choices.size(); ++i) {
    const json *answer = answerTo(schedules[i], size, condition, together);
    Timing &timing = timings[i];
    if (!answer)
      timing.refused = failureOf(schedules[i], size, condition);
    if (!answer)
      continue;
    timing.refused = refusalIn(*answer);
    timing.seconds = answer->value("seconds", 0.0);
    timing.tieError = answer->value("tie_error", 0.0);
    timing.isGuess = answer->value("guess", false);
  }
  return timings;
}

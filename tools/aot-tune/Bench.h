//===- Bench.h - times of schedules -----------------------------*- C++ -*-===//
//
// The evaluator of a subject: compiles, refuses what spills, predicts or
// measures, and writes down each answer.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTTUNE_BENCH_H
#define FOVEA_TOOLS_AOTTUNE_BENCH_H

#include "Device.h"
#include "Search.h"
#include "State.h"

#include <chrono>
#include <functional>

namespace fovea::tune {

/// How much more may be tried. A time, a number of schedules, or neither.
class Budget {
public:
  /// "90s", "10m", "2h", or "200": schedules. False if the text is none.
  bool parse(const std::string &text);
  bool isGiven() const { return seconds > 0 || schedules > 0; }
  /// The next bucket, of so many that remain, may use its share of the rest.
  void beginShare(size_t remaining);
  bool isSpent() const;
  void count() { ++used; }
  /// How many schedules the share has left.
  size_t remaining() const;

private:
  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  uint64_t schedules = 0, used = 0;
  Clock::time_point start = Clock::now();
  double shareEnd = 0;         ///< since the start
  uint64_t shareSchedules = 0; ///< of `used`
  double elapsed() const;
};

/// What all subjects of a run have in common.
struct Session {
  State state;
  Budget budget;
  unsigned workers = 1;
  Method method;      ///< how times are had
  std::string model;  ///< what predictions come of: a build's name
  std::string folder; ///< for code objects, until the run ends
  bool (*isInterrupted)() = nullptr;
  decltype(&tune::measure) measure = tune::measure; ///< as Device.h says
  /// Tells of one schedule that was tried: what it is, and what came of it.
  std::function<void(const std::string &line)> tell;
  uint64_t tried = 0, known = 0; ///< answered by trying, and by the state
  std::string error;             ///< not empty: the run can't go on, and why
};

class Bench : public Evaluator {
public:
  Bench(const Subject &subject, const ScheduleChoice &baseline,
        Session &session);

  std::string plan(const ScheduleChoice &choice) override;
  std::vector<Timing> times(const std::vector<ScheduleChoice> &choices,
                            const Size &size, const Condition &condition,
                            bool isLast) override;
  std::vector<Members> members(const std::vector<ScheduleChoice> &choices,
                               const Size &size,
                               const Condition &condition) override;
  bool hasEnsemble() const override { return !session.method.isMeasured; }
  std::string check(const ScheduleChoice &choice,
                    const std::string &mask) override;
  bool isSpent() override;
  /// Why the chip cannot run a choice; empty if it can.
  std::string refusal(const ScheduleChoice &choice);

private:
  nlohmann::json questionOf(const std::string &schedule) const;
  /// \param together  schedules that are measured in one step; empty: whichever
  nlohmann::json
  questionOf(const std::string &schedule, const Size &size,
             const Condition &condition,
             const std::vector<std::string> &together = {}) const;
  std::string imagePath(const std::string &schedule) const;
  /// Compiles in children, and returns which can be measured.
  std::vector<size_t> buildAll(const std::vector<ScheduleChoice> &choices,
                               const std::vector<size_t> &wanted, bool isLast);
  /// What a child must not write down: it may be the machine's doing.
  std::map<std::string, std::string> failures; ///< by question
  std::string failureOf(const std::string &schedule, const Size &size,
                        const Condition &condition) const;
  bool stops(bool isLast);
  /// In a child: the kernel, compiled now or before. {"refused"}, or its
  /// {"faults"}, if it has some.
  nlohmann::json build(const ScheduleChoice &choice,
                       const std::string &schedule, tools::BuiltKernel &kernel);
  void predictAll(const std::vector<ScheduleChoice> &choices,
                  const std::vector<size_t> &wanted, const Size &size,
                  const Condition &condition, bool isLast);
  void measureAll(const std::vector<ScheduleChoice> &choices,
                  const std::vector<size_t> &wanted, const Size &size,
                  const Condition &condition,
                  const std::vector<std::string> &together, bool isLast);
  /// Measures in a child: a list of answers, or {"error"}.
  nlohmann::json measureOnce(const std::vector<ScheduleChoice> &choices,
                             const std::vector<size_t> &places,
                             const Size &size, const Condition &condition);
  /// What the state has of a schedule, or null.
  const nlohmann::json *
  answerTo(const std::string &schedule, const Size &size,
           const Condition &condition,
           const std::vector<std::string> &together) const;
  void keep(const nlohmann::json &question, const nlohmann::json &answer);
  /// What holds for all sizes of what an answer has.
  void keepOfCompiler(const std::string &schedule,
                      const nlohmann::json &answer);
  void tellOf(const ScheduleChoice &choice, const Size &size,
              const nlohmann::json &answer);

  Subject subject;
  std::string baseline; ///< its schedule; it may spill
  Session &session;
  std::map<std::string, Expected<KernelRecord>> plans; ///< by the choice's text
};

} // namespace fovea::tune

#endif // FOVEA_TOOLS_AOTTUNE_BENCH_H

//===- OnDemand.h - kernels that are compiled when they are missing -*- C++
//-*-===//
//
// From an order to a package of one kernel in memory: from the cache where
// another process has compiled it, else from the compiler, which is then asked
// once however many threads want the kernel. docs/CompileOnDemand.md is its
// manual.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_ONDEMAND_H
#define FOVEA_RUNTIME_SRC_ONDEMAND_H

#include "CompilerApi.h"
#include "Log.h"
#include "Problem.h"
#include "fovea/Package/PackageReader.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace fovea::rt {

/// What is compiled for a problem on a chip.
/// \param splits  by the algorithm that splits keys
KernelOrder orderFor(const Problem &problem, const std::string &chip,
                     bool splits);

/// Why there is no kernel, where one could not be made.
enum class Failure : uint8_t {
  Passing,    ///< it may be made another time
  NoCompiler, ///< no library was found, or none that serves
  OfCompiler, ///< a fault of the compiler's
  Refused     ///< the compiler cannot make it
};

class OnDemand {
public:
  enum class Mode { Never, Auto, Always };

  /// Reads the variables; called once, first.
  /// \param given  the mode, or null: as the variable says
  Result configure(const char *given);

  Mode mode() const { return when; }

  /// A score program as the compiler knows it.
  struct FoundScore {
    Result result; ///< whether it does
    uint64_t digits = 0;
    std::string text; ///< canonical
    std::vector<spec::CaptureSpec> captures;
  };
  /// Finds the program that a call gives, by its text, or in the compiler's
  /// library by its name and what it captures.
  Result findScore(const Problem &problem, const Log &log, FoundScore &found);
  Result findScore(KernelOrder order, const Log &log, FoundScore &found);

  /// A kernel that was made, and how: "compiled on demand ...".
  struct Made {
    std::shared_ptr<const PackageReader> package;
    std::string origin;
  };
  /// Makes the kernel of an order, or waits for the thread that does.
  /// \param made  receives the kernel, if this is the thread that made it
  /// \param publish  called with it before others are told
  /// \param failure  receives of what kind a result that is not OK is
  template <typename Publish>
  Result get(const KernelOrder &order, const Log &log, Publish publish,
             Failure &failure);

private:
  /// An order that somebody has asked for.
  struct Entry {
    bool isRunning = false;
    uint64_t runs = 0; ///< that have ended
    Result last;       ///< of the latest run
    Failure failure = Failure::Passing; ///< its kind, if it failed

    /// It is not made again.
    bool isSettled() const {
      return runs != 0 && (last.ok() || failure == Failure::Refused);
    }
  };
  /// True: this thread is to make it, and to call end().
  bool begin(const std::string &name, Result &result, Failure &failure);
  /// Takes no memory: whoever waits would wait for ever.
  void end(const std::string &name, Result &&result, Failure failure) noexcept;
  Result make(const KernelOrder &order, const Log &log, Made &made,
              Failure &failure);
  Result openCompiler(const Log &log);

  Mode when = Mode::Never;
  std::string library;
  std::string folder;      ///< of the cache; empty: there is none
  std::string whyNoFolder; ///< then
  uint64_t mostBytes = 0;  ///< of all packages in it

  std::mutex compilerMutex;
  CompilerApi compiler;

  std::mutex mutex; ///< guards what follows
  std::condition_variable ended;
  std::map<std::string, Entry> entries;
  std::map<std::string, FoundScore> scores; ///< by type and what calls give
};

template <typename Publish>
Result OnDemand::get(const KernelOrder &order, const Log &log, Publish publish,
                     Failure &failure) {
  const std::string name = order.str();
  Result result, forOthers;
  if (!begin(name, result, failure))
    return result;
  failure = Failure::Passing;
  try {
    Made made;
    result = make(order, log, made, failure);
    if (result.ok())
      publish(std::move(made));
    forOthers = result;
  } catch (...) { // no memory, or the log function threw
    end(name, Result(FOVEA_STATUS_OUT_OF_MEMORY, {}), Failure::Passing);
    throw;
  }
  end(name, std::move(forOthers), failure);
  return result;
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_ONDEMAND_H

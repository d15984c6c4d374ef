//===- LaunchCache.h - launches that come again -----------------*- C++ -*-===//
//
// Most launches are like one before, with other addresses. A thread remembers
// some of its latest ones by all else that their calls gave: what was checked
// of that, chosen by it and filled into the kernels' arguments need not be
// found out again. Of addresses everything is checked each time. This way only
// ever launches what is right; what is not, or not known, goes the long one,
// which says what is wrong. A thread's memory is made by its first launch;
// nothing else here allocates or locks.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_LAUNCHCACHE_H
#define FOVEA_RUNTIME_SRC_LAUNCHCACHE_H

#include "Choice.h"
#include "fovea/Package/Replacement.h"

#include <array>

namespace fovea::rt {

/// A call's parameters: what may differ between launches that are alike, and
/// all else.
class Call {
public:
  /// A call of another version's size, with a score program, or with what the
  /// library does not know, is not taken apart: isKnown() is false.
  explicit Call(const fovea_forward_params_t *params);
  explicit Call(const fovea_backward_params_t *params);
  explicit Call(const fovea_dropout_mask_params_t *params);
  Call(const Call &) = delete;

  bool isKnown() const { return bytes != 0; }
  /// Of a place (Problem.h) for which there was something.
  uint64_t at(size_t place) const { return words[place]; }

  static constexpr size_t kMostBytes = 736; ///< with several groups

private:
  friend class LaunchCache;
  template <typename Params>
  void read(OpKind op, const Params *params);
  bool readGroup(OpKind op, const fovea_group_t *group);

  uint64_t tag;     ///< of the sizes, to tell most apart
  size_t bytes = 0; ///< of `rest`; 0: not known
  /// The structures one behind the other, zero, or which of their addresses
  /// are equal, for what differs.
  alignas(8) unsigned char rest[kMostBytes];
  std::array<uint64_t, kPlaces> words;
};

/// A launch that is remembered.
struct CachedLaunch {
  Plan plan;
  alignas(8) unsigned char arguments[640];
  size_t argumentBytes;

private:
  friend class LaunchCache;
  /// What is at an address of the call.
  struct Memory {
    uint64_t bytes;
    uint16_t lowBits; ///< of the address, which are 0
    uint8_t place;
  };
  struct Patch {
    uint16_t offset; ///< of an argument of 64 bits
    uint8_t place;
  };
  /// Two whose ranges meet without a byte of both, as interleaved tensors'.
  struct Apart {
    uint8_t first, second;
    uint64_t distance; ///< of the second from the first
  };
  /// There is room for so many addresses and scalars of a call.
  static constexpr size_t kMostPlaces = 28;
  uint64_t view = 0; ///< serial number; 0: nothing is remembered
  uint64_t tag;
  size_t bytes;
  alignas(8) unsigned char rest[Call::kMostBytes];
  uint8_t memoryCount, writtenCount, apartCount, patchCount;
  std::array<Memory, kMostPlaces> memories; ///< written ones first
  std::array<Apart, 4> aparts;
  std::array<Patch, kMostPlaces> patches;

  void add(const Memory &memory, bool isWritten) {
    memories[memoryCount++] = memory;
    if (isWritten)
      std::swap(memories[memoryCount - 1], memories[writtenCount++]);
  }
  /// Calls `visit` with the numbers and the distance of memories whose ranges
  /// meet, unless both are read only, until it returns false. False then, or if
  /// an address breaks a rule.
  template <typename Visit>
  bool checkMemories(const Call &call, Visit visit) const;
};

class LaunchCache {
public:
  /// The calling thread's; null: it has launched nothing yet.
  static LaunchCache *ofThread();
  /// The same, made if there is none. Null: memory ran out.
  static LaunchCache *makeOfThread();

  /// The launch like this call by that device's view; null: there is none.
  /// \param viewOf  gives the view or null; is only asked if a call was alike
  template <typename ViewOf>
  CachedLaunch *find(const Call &call, ViewOf viewOf) {
    const DeviceView *view = nullptr;
    for (CachedLaunch &launch : launches) {
      if (launch.tag != call.tag || !isLike(launch, call))
        continue;
      if (!view && !(view = viewOf()))
        return nullptr;
      if (launch.view != view->serial())
        continue;
      replacement.use(size_t(&launch - launches.data()));
      return &launch;
    }
    return nullptr;
  }

  /// Puts a call's addresses into the arguments. False: they break a rule, or
  /// memory meets, and nobody knows yet whether that is wrong.
  static bool fill(CachedLaunch &launch, const Call &call);

  /// Remembers a launch that was made, in the place of another (Replacement.h),
  /// if there is room for all of it and sizes like it were there lately: where
  /// they change from launch to launch it would be for nothing.
  void keep(const Call &call, const DeviceView &view, const Problem &problem,
            const Plan &plan, const unsigned char *arguments);

private:
  static bool isLike(const CachedLaunch &launch, const Call &call) {
    return launch.bytes == call.bytes &&
           std::memcmp(launch.rest, call.rest, call.bytes) == 0;
  }
  static constexpr size_t kLaunches = 12;
  std::array<CachedLaunch, kLaunches> launches;
  Replacement<kLaunches> replacement;
  /// Tags of calls, of more than those among which some are found again.
  std::array<uint64_t, 2 * kLaunches> seen;
  size_t oldestSeen;
};

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_LAUNCHCACHE_H

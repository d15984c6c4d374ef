//===- Handles.h - objects that programs name by handles --------*- C++ -*-===//
//
// Handles are looked up among the live ones before they are followed.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_HIPSIM_HANDLES_H
#define FOVEA_HIPSIM_HANDLES_H

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace fovea::hipsim {

/// The live handles of one kind and their objects. Any thread may call.
template <typename Handle, typename Object>
class Handles {
public:
  using Pointer = std::shared_ptr<Object>;

  /// One that is never destroyed: threads may outlive main().
  static Handles &make() { return *new Handles; }

  void add(Handle handle, Pointer object) {
    std::lock_guard<std::mutex> lock(mutex);
    live[handle] = std::move(object);
  }
  /// The same under the object's own address.
  Handle add(Pointer object) {
    const auto handle = reinterpret_cast<Handle>(object.get());
    add(handle, std::move(object));
    return handle;
  }

  /// Null when \p handle is none of these.
  Pointer find(Handle handle) const {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = live.find(handle);
    return it == live.end() ? nullptr : it->second;
  }

  /// Ends \p handle. \return its object; null when it is none of these.
  Pointer take(Handle handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = live.find(handle);
    if (it == live.end())
      return nullptr;
    Pointer object = std::move(it->second);
    live.erase(it);
    return object;
  }

  /// Ends those whose objects `wanted(object)` holds for. \return the objects.
  template <typename Predicate>
  std::vector<Pointer> takeIf(Predicate wanted) {
    std::vector<Pointer> taken;
    std::lock_guard<std::mutex> lock(mutex);
    for (auto it = live.begin(); it != live.end();) {
      if (!wanted(*it->second)) {
        ++it;
        continue;
      }
      taken.push_back(std::move(it->second));
      it = live.erase(it);
    }
    return taken;
  }

private:
  Handles() = default;
  mutable std::mutex mutex;
  std::map<Handle, Pointer> live;
};

} // namespace fovea::hipsim

#endif // FOVEA_HIPSIM_HANDLES_H

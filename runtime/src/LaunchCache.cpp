//===- LaunchCache.cpp - launches that come again -------------------------===//

#include "LaunchCache.h"

#include "Groups.h"
#include "OfThread.h"

namespace fovea::rt {
namespace {

template <typename T>
T load(const unsigned char *from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
void store(unsigned char *to, uint64_t value) {
  std::memcpy(to, &value, sizeof(value));
}

} // namespace

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

template <typename Params>
inline void Call::read(OpKind op, const Params *params) {
  static_assert(sizeof(Params) <= kMostBytes && sizeof(Params) % 8 == 0);
  uint32_t size = 0;
  if (params)
    std::memcpy(&size, params, sizeof(size));
  if (size != sizeof(Params))
    return;
  std::memcpy(rest, params, sizeof(Params));
  const auto *group =
      load<const fovea_group_t *>(rest + offsetof(Params, groups));
  // In the place of a size that is always the same.
  const uint32_t number = uint32_t(op);
  std::memcpy(rest, &number, sizeof(number));
  store(rest + offsetof(Params, groups), 0);
  store(rest + offsetof(Params, stream), 0); // of calls that plan
  const spec::Rows<params::TensorField> fields = params::tensorFieldsOf(op);
  for (size_t i = 0; i != fields.size(); ++i) {
    const uint64_t address = load<uint64_t>(rest + fields[i].data);
    words[fields[i].strides ? i : kWorkspacePlace] = address;
    store(rest + fields[i].data, address != 0);
  }
  tag = 0;
  constexpr uint64_t factor = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i != 8; ++i)
    tag += load<uint64_t>(rest + 8 * i) * (factor << 2 * i | 1);
  bytes = sizeof(Params);
  for (; group; group = group->next)
    if (!readGroup(op, group)) {
      bytes = 0;
      return;
    }
}

bool Call::readGroup(OpKind op, const fovea_group_t *group) {
  const ReaderRow *row = findReader(group->group);
  if (!row || !row->reader->neutral)
    return false;
  const GroupReader &reader = *row->reader;
  const size_t size = reader.neutral->struct_size;
  if (group->struct_size != size || bytes + size > kMostBytes)
    return false;
  unsigned char *copy = rest + bytes;
  std::memcpy(copy, group, size);
  bytes += size;
  store(copy + offsetof(fovea_group_t, next), 0);
  const size_t first = spec::specOf(op).base.tensors.size() + row->firstTensor;
  for (size_t i = 0; i != reader.tensors.size(); ++i)
    words[first + i] = load<uint64_t>(copy + reader.tensors[i].data);
  for (size_t i = 0; i != reader.tensors.size(); ++i) {
    size_t same = 0;
    while (words[first + same] != words[first + i])
      ++same;
    store(copy + reader.tensors[i].data, words[first + i] ? same + 1 : 0);
  }
  for (const VaryingField &field : reader.varying) {
    words[kFirstScalarPlace + row->firstScalar + field.scalar] =
        load<uint64_t>(copy + field.offset);
    store(copy + field.offset, 0);
  }
  return true;
}

Call::Call(const fovea_forward_params_t *params) {
  read(OpKind::Forward, params);
}
Call::Call(const fovea_backward_params_t *params) {
  read(OpKind::Backward, params);
}
Call::Call(const fovea_dropout_mask_params_t *params) {
  read(OpKind::DropoutMask, params);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

LaunchCache *LaunchCache::ofThread() { return OfThread<LaunchCache>::get(); }

LaunchCache *LaunchCache::makeOfThread() {
  return OfThread<LaunchCache>::make();
}

template <typename Visit>
inline bool CachedLaunch::checkMemories(const Call &call, Visit visit) const {
  uint64_t begins[std::tuple_size<decltype(memories)>()],
      ends[std::tuple_size<decltype(memories)>()];
  const size_t count = memoryCount;
  uint64_t wrong = 0;
  for (size_t i = 0; i != count; ++i) {
    const Memory &memory = memories[i];
    begins[i] = call.at(memory.place);
    ends[i] = begins[i] + memory.bytes;
    wrong |= (begins[i] & memory.lowBits) | uint64_t(ends[i] < begins[i]);
  }
  if (wrong)
    return false;
  for (size_t i = 0; i != writtenCount; ++i)
    for (size_t j = i + 1; j != count; ++j)
      if (begins[i] < ends[j] && begins[j] < ends[i] &&
          !visit(i, j, begins[j] - begins[i]))
        return false;
  return true;
}

bool LaunchCache::fill(CachedLaunch &launch, const Call &call) {
  using Apart = CachedLaunch::Apart;
  const bool isRight = launch.checkMemories(
      call, [&](size_t first, size_t second, uint64_t distance) {
        return std::any_of(launch.aparts.begin(),
                           launch.aparts.begin() + launch.apartCount,
                           [&](const Apart &apart) {
                             return apart.first == first &&
                                    apart.second == second &&
                                    apart.distance == distance;
                           });
      });
  if (isRight)
    for (size_t i = 0; i != launch.patchCount; ++i)
      store(launch.arguments + launch.patches[i].offset,
            call.at(launch.patches[i].place));
  return isRight;
}

void LaunchCache::keep(const Call &call, const DeviceView &view,
                       const Problem &problem, const Plan &plan,
                       const unsigned char *arguments) {
  const Candidate &candidate = *plan.candidate;
  auto isThere = [](const TensorParam &tensor) {
    return !tensor.unwanted && tensor.data;
  };
  // A workspace may be two arguments: of the base group and of the algorithm.
  const size_t places = size_t(std::count_if(problem.tensors.begin(),
                                             problem.tensors.end(), isThere)) +
                        size_t(__builtin_popcount(problem.varies)) + 2;
  if (!call.isKnown() || places > CachedLaunch::kMostPlaces ||
      candidate.argumentBytes > sizeof(CachedLaunch::arguments))
    return;
  CachedLaunch *known = find(call, [&] { return &view; });
  if (!known && std::find(seen.begin(), seen.end(), call.tag) == seen.end()) {
    seen[oldestSeen] = call.tag;
    oldestSeen = (oldestSeen + 1) % seen.size();
    return;
  }
  const size_t place =
      known ? size_t(known - launches.data()) : replacement.take();
  CachedLaunch &launch = launches[place];
  launch.view = 0;
  launch.memoryCount = launch.writtenCount = launch.apartCount =
      launch.patchCount = 0;
  for (const TensorParam &tensor : problem.tensors)
    if (isThere(tensor)) {
      const int64_t elements = tensor.hasElements() ? tensor.extent : 0;
      launch.add({uint64_t(elements * tensor.elementBytes),
                  uint16_t(tensor.elementBytes - 1), tensor.place},
                 tensor.written && elements > 0);
    }
  if (problem.workspace.data)
    launch.add({plan.workspaceBytes, uint16_t(spec::kWorkspaceAlignment - 1),
                kWorkspacePlace},
               plan.workspaceBytes > 0);
  const bool areAllKnown = launch.checkMemories(
      call, [&](size_t first, size_t second, uint64_t distance) {
        if (launch.apartCount == launch.aparts.size())
          return false;
        launch.aparts[launch.apartCount++] = {uint8_t(first), uint8_t(second),
                                              distance};
        return true;
      });
  if (!areAllKnown) {
    replacement.leave(place);
    return;
  }
  auto patch = [&](const ArgumentFill &fill, size_t place) {
    launch.patches[launch.patchCount++] = {fill.offset, uint8_t(place)};
  };
  for (const ArgumentFill &fill : candidate.arguments)
    if (fill.source == spec::Source::Address) {
      if (const TensorParam &tensor = problem.tensors[fill.index]; tensor.data)
        patch(fill, tensor.place);
    } else if (fill.source == spec::Source::Feature &&
               (problem.varies >> fill.index & 1)) {
      patch(fill, kFirstScalarPlace + fill.index);
    }
  launch.plan = plan;
  launch.argumentBytes = candidate.argumentBytes;
  std::memcpy(launch.arguments, arguments, candidate.argumentBytes);
  launch.tag = call.tag;
  launch.bytes = call.bytes;
  std::memcpy(launch.rest, call.rest, call.bytes);
  launch.view = view.serial();
}

} // namespace fovea::rt

//===- SessionImpl.h - what the runs of a session share ---------*- C++ -*-===//
//
// The device behind a session, and what a run of any operation does with it:
// tensors filled from cases, launches that are timed and counted. Private to
// this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H
#define FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H

#include "ForwardRun.h"
#include "Groups.h"
#include "Tensors.h"

#include "fovea/Parameters.h"

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>

namespace fovea::run {

struct Session::Impl {
  fovea_context_t *context = nullptr;
  HipCalls hip;
  int device = 0;
  bool simulated = false;
  /// A fault leaves the device unusable until it is reset.
  bool faulted = false;
  std::string arch, library;
  ~Impl() {
    fovea_context_destroy(context);
    if (faulted)
      (void)hip.reset();
  }

  RunReport run(const ForwardCase &problem, const RunOptions &options);
  RunReport run(const BackwardCase &problem, const RunOptions &options);

  /// Bytes on each side of a tensor.
  int64_t guardBytes(Guards guards) const;

  /// Whether there is memory for tensors of so many bytes, on the host and the
  /// device; else `report` refuses the case.
  bool fitsMemory(uint64_t bytes, RunReport &report) const;

  /// Launches as often as asked for, each time waiting for the end; keeps the
  /// least time and the counts. False after a failure, which `report` has.
  bool launch(const RunOptions &options,
              const std::function<fovea_status_t()> &enqueue,
              RunReport &report);

  /// False when the call failed, which `report` has.
  bool check(const char *what, HipStatus status, RunReport &report);
};

/// Adds a reason; the outcome is the latest.
RunReport &fail(RunReport &report, Outcome outcome, const std::string &why);

/// Empty, or why no kernel's results can be held to the oracle's: where a
/// row's log-sum-exp, here in fp64, is beyond fp32, kernels have infinities.
std::string beyondFloat(const std::vector<double> &lse);

/// Whether strides of the case, and a few times its sizes, fit 64 bits; else
/// `report` refuses it.
bool isCountable(const ForwardCase &c, RunReport &report);

/// The elements of a group's tensor, dense.
std::vector<double> elementsOf(const ForwardCase &c, const CaseGroup &group);

/// The forward problem of a part of a case (Sequences.h), with its q, k and v
/// of those.
reference::ForwardProblem problemOf(const ForwardCase &part,
                                    const Tensors &tensors, size_t number = 0);

/// Fills q, k and v of a problem as the case says, or with what is given.
void fill(const ForwardCase &c, const GivenInputs &given,
          reference::ForwardProblem &problem);

/// How much of its budget a comparison takes, at most.
double useOf(const reference::Comparison &comparison);

/// Encodes dense values into a tensor, if there are any.
void fillGiven(const reference::Tensor &tensor,
               const std::vector<double> &values);
/// A tensor's elements, dense.
std::vector<float> valuesOf(const reference::Tensor &tensor);

/// The group of a window.
inline fovea_window_t groupOf(const Window &window) {
  fovea_window_t group = {};
  group.header.struct_size = sizeof(group);
  group.header.group = FOVEA_GROUP_WINDOW;
  group.left = window.left;
  group.right = window.right;
  group.left_alignment = int32_t(window.leftAlignment);
  group.right_alignment = int32_t(window.rightAlignment);
  return group;
}

/// The group of dropout, with seed and offset as values.
inline fovea_dropout_t groupOf(const reference::Dropout &dropout) {
  fovea_dropout_t group = {};
  group.header.struct_size = sizeof(group);
  group.header.group = FOVEA_GROUP_DROPOUT;
  group.p = dropout.p;
  group.word_order = dropout.swapsWords ? FOVEA_PHILOX_0213 : FOVEA_PHILOX_0123;
  group.seed_value = dropout.seed;
  group.offset_value = dropout.offset;
  return group;
}

/// The groups of a call, which its parameters point to.
class CallGroups {
public:
  CallGroups() = default;
  CallGroups(const CallGroups &) = delete;

  /// The first one; null: there is none.
  const fovea_group_t *first() const { return head; }
  void add(fovea_group_t &group) {
    group.next = head;
    head = &group;
  }
  void add(const CaseGroup &group) {
    const size_t bytes = group.option->bytes;
    fovea_group_t *header = make(bytes);
    group.option->fill(group.values, header);
    header->struct_size = uint32_t(bytes);
    add(*header);
    given.push_back({group.option, header});
  }
  /// The structure of a group that was added.
  void *structureOf(const GroupOption *option) const {
    for (const auto &[other, header] : given)
      if (other == option)
        return header;
    return nullptr;
  }
  void addCopy(const fovea_group_t &group) {
    fovea_group_t *header = make(group.struct_size);
    std::memcpy(header, &group, group.struct_size);
    add(*header);
  }

  fovea_window_t window = {};
  fovea_dropout_t dropout = {};
  fovea_head_dims_t dims = {};

private:
  fovea_group_t *make(size_t bytes) {
    memory.emplace_back(bytes / sizeof(std::max_align_t) + 1);
    return reinterpret_cast<fovea_group_t *>(memory.back().data());
  }

  std::deque<std::vector<std::max_align_t>> memory;
  std::vector<std::pair<const GroupOption *, fovea_group_t *>> given;
  const fovea_group_t *head = nullptr;
};

/// Type, mask, groups of the operation and sizes of a case, in parameters that
/// are all zero.
/// \param groups  without any yet; keeps those that the parameters point to
template <typename Params>
void fillSizes(const ForwardCase &c, Params &params, CallGroups &groups) {
  params.struct_size = sizeof(params);
  params.dtype = dataTypeNumber(c.type);
  groups.window = groupOf(c.mask);
  if (const MaskInfo *mask = findMask(c.mask))
    params.mask = int32_t(mask->kind);
  else
    groups.add(groups.window.header);
  for (const CaseGroup &group : c.groups)
    if (specOf(*group.option).isOf(params::Interface<Params>::op))
      groups.add(group);
  for (const fovea_group_t *group : c.given)
    groups.addCopy(*group);
  if (c.dropout) {
    groups.dropout = c.dropoutGroup.value_or(groupOf(*c.dropout));
    groups.add(groups.dropout.header);
  }
  if (c.headDimV) {
    groups.dims = {{sizeof(groups.dims), FOVEA_GROUP_HEAD_DIMS, nullptr},
                   c.headDimV};
    groups.add(groups.dims.header);
  }
  params.groups = groups.first();
  params.scale = c.scaleOrDefault();
  for (const spec::Extent extent : spec::kExtents)
    params.*params::sizeField<Params>(extent) = extentOf(c, extent);
}

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SESSIONIMPL_H

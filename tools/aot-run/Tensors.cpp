//===- Tensors.cpp - the tensors of a run ---------------------------------===//

#include "Tensors.h"

#include "SessionImpl.h"

#include <algorithm>
#include <cstring>

using namespace fovea;
using namespace fovea::run;
using spec::Shape;
using spec::TensorSpec;

namespace {

/// One row a head; heads as far apart as a multiple of 4 elements.
Rows vectorOf(int64_t batch, int64_t heads, int64_t row) {
  const int64_t head = std::max<int64_t>(4, (row + 3) / 4 * 4);
  return {batch, heads, 1, row, heads * head, head, 0};
}

} // namespace

int64_t fovea::run::extentOf(const ForwardCase &c, spec::Extent extent) {
  switch (extent) {
  case spec::Extent::Batch:
    return c.batch;
  case spec::Extent::HeadsQ:
    return c.heads;
  case spec::Extent::HeadsK:
    return c.headsK;
  case spec::Extent::SeqlenQ:
    return c.seqQ;
  case spec::Extent::SeqlenK:
    return c.seqK;
  case spec::Extent::HeadDim:
    return c.headDim;
  }
  return 0;
}

Tensors::Tensors(OpKind op, const ForwardCase &c)
    : offset(c.offset), rowPadding(c.rowPadding) {
  // In the order of the fields of their parameters.
  const params::TensorField *field = params::tensorFieldsOf(op).begin();
  auto add = [&](const TensorSpec &spec, const params::TensorField &field,
                 const GroupOption *group) {
    // The only ones that may be absent are log-sum-exps, and those of groups
    // that are not given.
    const bool wanted = group || !spec.optional || c.lse;
    Entry entry{&spec, wanted, field, group, {}, {}, nullptr, nullptr};
    const int64_t heads = extentOf(c, spec.heads),
                  rows = extentOf(c, spec.rows);
    if (spec.shape == Shape::Rows) {
      const reference::Tensor &t = entry.tensor = reference::describe(
          c.type, c.layout, c.batch, heads, rows, c.headDim, c.rowPadding);
      entry.rows = {t.batch,       t.heads,      t.seq,      t.dim,
                    t.strideBatch, t.strideHead, t.strideSeq};
    } else if (spec.shape == Shape::Vector) {
      entry.rows = vectorOf(c.batch, heads, rows);
    } else if (spec.shape == Shape::Heads) {
      entry.rows = {1, heads, 1, 1, 0, /*strideHead=*/2, 0};
    }
    entries.push_back(std::move(entry));
  };
  for (const TensorSpec &spec : spec::specOf(op).base.tensors)
    add(spec, *field++, nullptr);
  for (const spec::AlgorithmSpec &algorithm : spec::specOf(op).algorithms)
    for (const TensorSpec &spec : algorithm.own.tensors)
      add(spec, *field++, nullptr);
  for (const CaseGroup &group : c.groups)
    for (size_t i = 0; i != group.option->tensors.size(); ++i)
      if (specOf(*group.option).isOf(op))
        add(specOf(*group.option).tensors[i], group.option->tensors[i],
            group.option);
}

const Tensors::Entry &Tensors::find(std::string_view name) const {
  return *std::find_if(entries.begin(), entries.end(), [&](const Entry &entry) {
    return name == entry.spec->name;
  });
}

uint64_t Tensors::bytes() const {
  uint64_t bytes = 0;
  for (const Entry &entry : entries)
    if (const Rows &rows = entry.rows; entry.spec->shape == Shape::Rows)
      bytes += uint64_t(rows.batch * rows.heads * rows.seq *
                        (rows.row + rowPadding)) *
               sizeof(uint16_t);
  return bytes;
}

void Tensors::describe(void *params, const CallGroups &groups) const {
  for (const Entry &entry : entries) {
    const int64_t strides[] = {entry.rows.strideBatch, entry.rows.strideHead,
                               entry.rows.strideSeq};
    const size_t first = entry.spec->shape == Shape::Heads ? 1 : 0;
    void *structure = entry.group ? groups.structureOf(entry.group) : params;
    if (entry.wanted)
      for (size_t dim = 0; dim != params::strideCount(entry.spec->shape); ++dim)
        entry.field.setStride(structure, dim, strides[first + dim]);
  }
}

void *Tensors::addressOf(const Entry &entry) {
  return entry.halves ? entry.halves->device() : entry.words->device();
}

void Tensors::setAddresses(void *params, const CallGroups &groups) const {
  for (const Entry &entry : entries)
    if (entry.wanted)
      entry.field.setAddress(entry.group ? groups.structureOf(entry.group)
                                         : params,
                             addressOf(entry));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Tensors::allocate(int64_t guardBytes, uint64_t workspaceBytes) {
  for (Entry &entry : entries) {
    const TensorSpec &spec = *entry.spec;
    // To what was not asked for, nothing may be written.
    const Role role = spec.written && entry.wanted ? Role::Output : Role::Input;
    if (spec.shape == Shape::Bytes)
      entry.rows = {1, 1, 1, int64_t(workspaceBytes / sizeof(uint32_t)),
                    0, 0, 0};
    if (spec.elements == spec::Elements::Problem) {
      entry.halves = std::make_unique<Halves>(
          spec.name, role, entry.rows, guardBytes / int64_t(sizeof(uint16_t)),
          offset);
      entry.tensor.data = entry.halves->host();
    } else {
      entry.words = std::make_unique<Words>(
          spec.name, role, entry.rows, guardBytes / int64_t(sizeof(uint32_t)),
          /*offset=*/0);
    }
  }
}

HipStatus Tensors::upload(const HipCalls &hip) {
  for (Entry &entry : entries)
    if (HipStatus status =
            entry.halves ? entry.halves->upload(hip) : entry.words->upload(hip))
      return status;
  return 0;
}

HipStatus Tensors::download() {
  for (Entry &entry : entries)
    if (HipStatus status =
            entry.halves ? entry.halves->download() : entry.words->download())
      return status;
  return 0;
}

std::vector<std::string> Tensors::changes() const {
  std::vector<std::string> changes;
  for (const Entry &entry : entries)
    if (std::string change =
            entry.halves ? entry.halves->changes() : entry.words->changes();
        !change.empty())
      changes.push_back(std::move(change));
  return changes;
}

template <typename Function>
void Tensors::forEachVector(const char *name, Function function) const {
  const Entry &entry = find(name);
  const Rows &rows = entry.rows;
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      function(entry.words->host() + b * rows.strideBatch + h * rows.strideHead,
               (b * rows.heads + h) * rows.row,
               size_t(rows.row) * sizeof(float));
}

std::vector<float> Tensors::vector(const char *name) const {
  const Rows &rows = find(name).rows;
  std::vector<float> values(size_t(rows.batch * rows.heads * rows.row));
  forEachVector(name, [&](const uint32_t *row, int64_t at, size_t bytes) {
    std::memcpy(values.data() + at, row, bytes);
  });
  return values;
}

void Tensors::setVector(const char *name, const std::vector<float> &values) {
  forEachVector(name, [&](uint32_t *row, int64_t at, size_t bytes) {
    std::memcpy(row, values.data() + at, bytes);
  });
}

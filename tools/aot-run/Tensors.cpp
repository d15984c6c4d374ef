//===- Tensors.cpp - the tensors of a run ---------------------------------===//

#include "Tensors.h"

#include "Sequences.h"
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
  case spec::Extent::HeadDimV:
    return c.dimOfV();
  }
  return 0;
}

Tensors::Tensors(OpKind op, const ForwardCase &c)
    : type(c.type), offset(c.offset), rowPadding(c.rowPadding),
      sequences(c.sequences) {
  // In the order of the fields of their parameters.
  const params::TensorField *field = params::tensorFieldsOf(op).begin();
  auto add = [&](const TensorSpec &spec, const params::TensorField &field,
                 const GroupOption *group) {
    // The only ones that may be absent are log-sum-exps, and those of groups
    // that are not given.
    const bool wanted = group || !spec.optional || c.lse;
    Entry entry{&spec, wanted, field, group, {}, {}, nullptr, nullptr};
    const SequenceSide *side =
        sequences && (spec.shape == Shape::Rows || spec.shape == Shape::Vector)
            ? &sequences->side(spec.rows)
            : nullptr;
    const bool isPacked =
        side && side->isPacked &&
        (spec.shape == Shape::Rows || !sequences->isLseBatched);
    const int64_t heads = extentOf(c, spec.heads),
                  rows = isPacked ? side->total : extentOf(c, spec.rows),
                  batch = isPacked ? 1 : c.batch;
    if (spec.shape == Shape::Rows) {
      reference::Tensor &t = entry.tensor =
          reference::describe(c.type, c.layout, batch, heads, rows,
                              extentOf(c, spec.columns), c.rowPadding);
      if (spec.name == c.equalRows)
        t.strideSeq = 0;
      entry.rows = {t.batch,       t.heads,      t.seq,      t.dim,
                    t.strideBatch, t.strideHead, t.strideSeq};
    } else if (spec.shape == Shape::Vector) {
      entry.rows = vectorOf(batch, heads, rows);
      if (side) {
        entry.rows.seq = rows;
        entry.rows.row = entry.rows.strideSeq = 1;
        if (sequences->isLseByRow)
          entry.rows = {batch, heads, rows, 1, rows * heads, 1, heads};
      }
    } else if (spec.shape == Shape::Heads) {
      entry.rows = {1, heads, 1, 1, 0, /*strideHead=*/2, 0};
    }
    if (side)
      placeSequences(entry);
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

Tensors::Place Tensors::placeOf(const Entry &entry, size_t part) const {
  const Rows &rows = entry.rows;
  if (!sequences || entry.spec->shape == Shape::Heads)
    return {0, rows.batch, 0, rows.seq};
  const SequenceSide &side = sequences->side(entry.spec->rows);
  const bool isOfLse = entry.spec->shape == Shape::Vector,
             isPacked = side.isPacked && !(isOfLse && sequences->isLseBatched);
  const bool isFromStart = isOfLse && sequences->isLseBatched;
  return {isPacked ? 0 : int64_t(part), 1, isFromStart ? 0 : side.starts[part],
          side.lengths[part]};
}

void Tensors::placeSequences(Entry &entry) const {
  Rows &rows = entry.rows;
  rows.used.assign(size_t(rows.batch * rows.seq), false);
  for (size_t part = 0; part != sequences->q.lengths.size(); ++part) {
    const Place place = placeOf(entry, part);
    for (int64_t s = 0; s != place.rows; ++s)
      rows.used[size_t(place.batch * rows.seq + place.start + s)] = true;
  }
}

reference::Tensor Tensors::part(const char *name, size_t number) const {
  const Entry &entry = find(name);
  const Place place = placeOf(entry, number);
  reference::Tensor part = entry.tensor;
  part.batch = place.batches;
  part.seq = place.rows;
  if (part.data)
    part.data = entry.tensor.row(place.batch, 0, place.start).data;
  return part;
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
               uint64_t(elementSize(type));
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
    const bool isOfProblem = spec.elements == spec::Elements::Problem;
    if (isOfProblem && elementSize(type) == sizeof(uint16_t)) {
      entry.halves = std::make_unique<Halves>(
          spec.name, role, entry.rows, guardBytes / int64_t(sizeof(uint16_t)),
          offset);
      entry.tensor.data = entry.halves->host();
    } else {
      entry.words = std::make_unique<Words>(
          spec.name, role, entry.rows, guardBytes / int64_t(sizeof(uint32_t)),
          isOfProblem ? offset : 0);
      if (isOfProblem)
        entry.tensor.data = entry.words->host();
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
void Tensors::forEachVector(const char *name, size_t part,
                            Function function) const {
  const Entry &entry = find(name);
  const Rows &rows = entry.rows;
  const Place place = placeOf(entry, part);
  size_t at = 0;
  for (int64_t b = 0; b < place.batches; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      for (int64_t s = 0; s < place.rows; ++s)
        for (int64_t i = 0; i < rows.row; ++i)
          function(entry.words->host()[(place.batch + b) * rows.strideBatch +
                                       h * rows.strideHead +
                                       (place.start + s) * rows.strideSeq + i],
                   at++);
}

std::vector<float> Tensors::vector(const char *name, size_t part) const {
  std::vector<float> values;
  forEachVector(name, part, [&](uint32_t word, size_t) {
    values.emplace_back();
    std::memcpy(&values.back(), &word, sizeof(word));
  });
  return values;
}

void Tensors::setVector(const char *name, const std::vector<float> &values,
                        size_t part) {
  forEachVector(name, part, [&](uint32_t &word, size_t at) {
    std::memcpy(&word, &values[at], sizeof(word));
  });
}

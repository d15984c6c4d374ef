//===- Groups.h - feature groups of the C interface -------------*- C++ -*-===//
//
// What reads a group among a call's parameters into a problem. The rows are
// alone in Groups.cpp; docs/AddingAFeature.md walks through a new one.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_GROUPS_H
#define FOVEA_RUNTIME_SRC_GROUPS_H

#include "Problem.h"

namespace fovea::rt {

/// A number as a kernel is passed it; what a type cannot hold is cut off.
template <typename T>
uint64_t argumentBits(spec::ArgKind kind, T value) {
  uint64_t bits = 0;
  auto copy = [&bits](auto argument) {
    std::memcpy(&bits, &argument, sizeof(argument));
  };
  switch (kind) {
  case spec::ArgKind::I32:
    copy(int32_t(value));
    break;
  case spec::ArgKind::F32:
    copy(float(value));
    break;
  case spec::ArgKind::I64:
  case spec::ArgKind::Pointer:
    copy(int64_t(value));
    break;
  }
  return bits;
}

class GroupArguments;

/// A field of 64 bits that may be another at each launch, such as a seed.
struct VaryingField {
  size_t offset; ///< in the structure
  size_t scalar; ///< of the group's row, which is filled with it as it is
};

struct GroupReader {
  uint32_t group;     ///< FOVEA_GROUP_...
  const char *symbol; ///< the same for messages
  const char *name;   ///< of the row in spec::featureGroups()
  /// Checks the structure that begins with `group`, of whatever version, and
  /// sets the arguments. Sizes of the problem have been checked. What it does
  /// may depend on which of the tensors' addresses are null or equal, and on no
  /// more of them (LaunchCache.h).
  Result (*read)(const fovea_group_t *group, Problem &problem,
                 GroupArguments &arguments);
  /// A whole structure that leaves results as they are without it, for tests.
  const fovea_group_t *neutral;
  /// The structure's fields for the group's tensors, in the order of its row.
  spec::Rows<params::TensorField> tensors = {};
  /// It says how the tensors of others lie, and is read before them.
  bool shapesTensors = false;
  /// What goes into an argument and decides nothing.
  spec::Rows<VaryingField> varying = {};
};

/// A reader and the numbers of what is its group's.
struct ReaderRow {
  const GroupReader *reader;
  size_t row;         ///< in spec::featureGroups()
  size_t firstTensor; ///< among those of all feature groups
  size_t firstScalar; ///< likewise
};
/// By FOVEA_GROUP_...; null: there is none.
const ReaderRow *findReader(uint32_t group);

/// The arguments of one group of a problem: neutral scalars and no tensors
/// before they are set.
class GroupArguments {
public:
  /// \param fields   of the tensors, in the order of the row
  /// \param varying  of the scalars
  GroupArguments(size_t row, Problem &problem,
                 spec::Rows<params::TensorField> fields = {},
                 spec::Rows<VaryingField> varying = {})
      : specs(spec::featureGroups()[row]), problem(problem), fields(fields),
        varying(varying),
        bits(problem.features.data() + spec::firstScalarOf(row)) {}
  /// \param index  of the scalar in the group's row
  template <typename T>
  void set(size_t index, T value) {
    bits[index] = argumentBits(specs.scalars[index].kind, value);
    for (const VaryingField &field : varying)
      if (field.scalar == index)
        problem.varies |= 1u << (bits + index - problem.features.data());
  }
  /// Takes all tensors from a structure of this version. Addresses and strides
  /// are checked with those of the base group. An output is wanted unless
  /// address and strides are all zero.
  void setTensors(const void *known) {
    for (size_t i = 0; i != specs.tensors.size(); ++i) {
      const spec::TensorSpec &spec = specs.tensors[i];
      TensorParam tensor = readTensor(known, fields[i], spec, problem);
      if (spec.output != spec::kNoOutput) {
        tensor.unwanted = !tensor.isDescribed();
        problem.describesOutputs |= !tensor.unwanted;
        if (!tensor.unwanted && tensor.hasElements())
          problem.wanted |= spec.output;
      }
      const size_t number = spec::numberOf(problem.key.op, spec);
      tensor.place = uint8_t(number);
      problem.tensors[number] = tensor;
    }
  }

  /// One of them, to fill in what the structure alone says of its shape.
  TensorParam &tensor(size_t index) {
    return problem
        .tensors[spec::numberOf(problem.key.op, specs.tensors[index])];
  }

private:
  const spec::GroupSpec &specs;
  Problem &problem;
  const spec::Rows<params::TensorField> fields;
  spec::Rows<VaryingField> varying;
  uint64_t *const bits;
};

spec::Rows<GroupReader> groupReaders();

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_GROUPS_H

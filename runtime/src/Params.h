//===- Params.h - an operation's parameters -----------------*- C++ -*-===//
//
// Reads the C interface's structures by tables of their fields: one row a
// tensor, in the order of the operation's table (OperationSpec.h), so that
// checks, launches and the filling of arguments know no operation by name.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_PARAMS_H
#define FOVEA_RUNTIME_SRC_PARAMS_H

#include "Problem.h"

namespace fovea::rt {

/// Where a structure has a tensor: its address, and its strides, int64_t of
/// batch, head and, of one with rows, sequence.
struct TensorField {
  const char *name;
  size_t data, strides;
};

/// The fields of an operation's parameters, for tests: those of its tensors.
struct TensorFields {
  const TensorField *first;
  size_t count;
};
TensorFields tensorFieldsOf(OpKind op);

/// Reads `params` of whatever version and checks everything but addresses.
Result readParams(const fovea_forward_params_t *params, Problem &problem);
Result readParams(const fovea_backward_params_t *params, Problem &problem);

/// Checks the addresses, also of the workspace; for a launch.
Result checkLaunchAddresses(Problem &problem);

/// One argument of a kernel, and where it comes from.
struct ArgumentFill {
  uint16_t offset;
  spec::Source source;
  uint8_t bytes;
  uint8_t index; ///< as in spec::Argument
};

/// Fills in the argument segment of a launch.
void fillArguments(const Problem &problem,
                   const std::vector<ArgumentFill> &fills, unsigned char *to);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_PARAMS_H

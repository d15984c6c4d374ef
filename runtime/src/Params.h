//===- Params.h - an operation's parameters -----------------*- C++ -*-===//
//
// Reads the C interface's structures by the tables of their fields
// (fovea/Parameters.h), so that checks, launches and the filling of arguments
// know no operation by name.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_PARAMS_H
#define FOVEA_RUNTIME_SRC_PARAMS_H

#include "Problem.h"

namespace fovea::rt {

/// Reads `params` of whatever version and checks everything but addresses.
Result readParams(const fovea_forward_params_t *params, Problem &problem);
Result readParams(const fovea_backward_params_t *params, Problem &problem);
Result readParams(const fovea_dropout_mask_params_t *params, Problem &problem);

/// Checks the addresses, also of the workspace; for a launch.
Result checkLaunchAddresses(Problem &problem);

/// One argument of a kernel, and where it comes from.
struct ArgumentFill {
  uint16_t offset;
  spec::Source source;
  uint8_t bytes;
  uint8_t index; ///< as in spec::Argument, of a tensor by spec::numberOf()
  uint8_t dim;   ///< of a capture
};

/// Fills in the argument segment of a launch.
/// \param splits  shares of the keys
/// \param packsHeads  whether rows of the heads of a group are those of one
void fillArguments(const Problem &problem, int32_t splits, bool packsHeads,
                   const std::vector<ArgumentFill> &fills, unsigned char *to);

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_PARAMS_H

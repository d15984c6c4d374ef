//===- Slopes.h - derivatives by differences --------------------*- C++ -*-===//
//
// What both the kernels and the oracle could have wrong in the same way, the
// derivative of a program: held to differences of what the program gives.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_SLOPES_H
#define FOVEA_TEST_SLOPES_H

#include "BackwardRun.h"
#include "fovea/Reference/ScoreProgram.h"

namespace fovea::test {

/// Holds the oracle's derivatives of a program, for the product and for the
/// captured elements that are read, to central differences in fp64 at places by
/// chance of a case.
void expectDerivatives(const std::string &text,
                       std::vector<reference::CapturedValues> captured,
                       const run::ForwardCase &sizes);

/// Holds dq, dk and dv of the device to differences of the loss, sum(dout *
/// out) in fp64 by the formula, along directions by chance. The program has no
/// steps.
void expectSlopesOfLoss(run::Session &session, run::BackwardCase c,
                        run::RunOptions options);

} // namespace fovea::test

#endif // FOVEA_TEST_SLOPES_H

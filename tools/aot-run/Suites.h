//===- Suites.h - named sets of problems ------------------------*- C++ -*-===//
//
// Problems that belong together and are run by one name.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_SUITES_H
#define FOVEA_TOOLS_AOTRUN_SUITES_H

#include "BackwardRun.h"

#include <string>
#include <vector>

namespace fovea::run {

/// The problems of a suite ("demo"); empty when there is none of that name.
std::vector<ForwardCase> suiteCases(const std::string &name);
/// The same of backward passes.
std::vector<BackwardCase> backwardSuiteCases(const std::string &name);

/// Names and what they are, for --help.
std::string suiteHelp();

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SUITES_H

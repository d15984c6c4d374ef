//===- Version.h - every command's --version --------------------*- C++ -*-===//

#ifndef FOVEA_TOOLS_CLI_VERSION_H
#define FOVEA_TOOLS_CLI_VERSION_H

namespace CLI {
class App;
}

namespace fovea::cli {

/// Adds --version, which prints the program's name and the project's version.
void addVersion(CLI::App &app);

} // namespace fovea::cli

#endif // FOVEA_TOOLS_CLI_VERSION_H

//===- Version.cpp - every command's --version ----------------------------===//

#include "Version.h"

#include <CLI/CLI.hpp>

void fovea::cli::addVersion(CLI::App &app) {
  app.set_version_flag("--version", app.get_name() + " " FOVEA_PROJECT_VERSION,
                       "Print the version and exit");
}

//===- aot-package.cpp - looks into kernel packages -----------------------===//
//
// The command line over Commands.h.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"
#include "Main.h"
#include "Packages.h"
#include "Version.h"

#include <iostream>

using namespace fovea::pkg;

static constexpr const char *kDescription =
    R"(Looks into kernel packages, checks them, and makes packages of packages.

A package is a file *.fovea that holds the kernels of one chip or generic
target; aot-compile --emit=package builds it (docs/PackageFormat.md).)";

static constexpr const char *kFooter = R"(
Kernels are selected by --match=TEXT: those in whose symbol, problem and schedule
each given text occurs ("head_dim=128", "causal", "block_m=64", "attn_bwd").

Exit status: 0 done, sound or without difference; 1 damage, a difference, or no
such kernel; 2 a wrong request, or a file that can't be read or written.

Examples:
  aot-package list kernels/gfx942.fovea --match=head_dim=64
  aot-package verify kernels/*.fovea
  aot-package extract kernels/gfx942.fovea --match=attn_fwd_bf16_d128 -o code
  aot-package merge forward.fovea backward.fovea -o gfx942.fovea
  aot-package merge shards/*/gfx942.fovea -o gfx942.fovea
  aot-package diff before/gfx942.fovea after/gfx942.fovea)";

static int runCommand(int argc, char **argv) {
  CLI::App app(kDescription, "aot-package");
  app.footer(kFooter);
  fovea::cli::addVersion(app);
  app.require_subcommand(1);
  Streams io{std::cout, std::cerr};
  int result = kGood;

  std::vector<std::string> paths;
  std::string path, second, output;
  Selection selection;
  bool json = false;
  auto addPaths = [&](CLI::App *command) {
    return command->add_option("package", paths, "Packages")->required();
  };
  auto addPath = [&](CLI::App *command) {
    return command->add_option("package", path, "The package")->required();
  };
  // Commands that only look take the packages that there are anyway.
  auto addPathsOrInstalled = [&](CLI::App *command) {
    addPaths(command)->required(false)->description(
        "Packages (default: those of FOVEA_PACKAGE, or else the installed "
        "ones)");
  };
  auto found = [&] {
    std::string place, error;
    if (!paths.empty() || (fovea::cli::findPackages(place, error) &&
                           fovea::cli::packageFiles(place, paths, error)))
      return true;
    io.err << "aot-package: error: " << error << "\n";
    result = kUsage;
    return false;
  };
  auto addMatch = [&](CLI::App *command) {
    command->add_option("--match", selection.texts,
                        "Only kernels in whose symbol, problem and schedule "
                        "this occurs; may be given several times");
  };
  auto addJson = [&](CLI::App *command) {
    command->add_flag("--json", json, "For programs");
  };

  CLI::App *listing = app.add_subcommand("list", "Lists kernels, one a line");
  addPathsOrInstalled(listing);
  addMatch(listing);
  addJson(listing);
  listing->callback([&] {
    if (found())
      result = list(paths, selection, json, io);
  });

  CLI::App *showing =
      app.add_subcommand("show", "Shows all that is known of kernels");
  addPath(showing);
  addMatch(showing);
  addJson(showing);
  showing->callback([&] { result = show(path, selection, json, io); });

  VerifyOptions verifyOptions;
  CLI::App *verifying = app.add_subcommand(
      "verify",
      "Checks every row and image, and loads every image on a device");
  addPathsOrInstalled(verifying);
  verifying
      ->add_option("--load", verifyOptions.load,
                   "HIP library to load images with: sim (the simulated device "
                   "of each package's chip), rocm, a path, or none")
      ->capture_default_str();
  verifying->callback([&] {
    if (found())
      result = verify(paths, verifyOptions, io);
  });

  CLI::App *extracting =
      app.add_subcommand("extract", "Writes code objects as files");
  addPath(extracting);
  addMatch(extracting);
  extracting
      ->add_option("-o,--output", output,
                   "Folder for the files, <symbol>.<target>.hsaco")
      ->required();
  extracting->callback([&] { result = extract(path, selection, output, io); });

  Prefer prefer = Prefer::Neither;
  CLI::App *merging = app.add_subcommand(
      "merge",
      "Makes one package of several for the same target, or of all parts of "
      "aot-compile --shard");
  addPaths(merging);
  merging->add_option("-o,--output", output, "The new package")->required();
  merging
      ->add_option_function<std::string>(
          "--prefer",
          [&](const std::string &which) {
            prefer = which == "first" ? Prefer::First : Prefer::Last;
          },
          "Of kernels of one problem and schedule that differ take the "
          "first or the last; without it they are an error")
      ->check(CLI::IsMember({"first", "last"}).description(""))
      ->type_name("first|last");
  merging->callback([&] { result = merge(paths, output, prefer, io); });

  CLI::App *comparing = app.add_subcommand(
      "diff", "Compares what two packages hold; compile times do not count");
  comparing->add_option("first", path, "A package")->required();
  comparing->add_option("second", second, "Another")->required();
  comparing->callback([&] { result = diff(path, second, io); });

  std::string rows;
  CLI::App *tuning = app.add_subcommand(
      "tune", "Prints the tuning table, or replaces rows of it");
  addPath(tuning);
  CLI::Option *given =
      tuning->add_option("--rows", rows,
                         "JSON file with a list of rows as printed; they take "
                         "the place of all rows "
                         "of their problems");
  tuning->callback([&] {
    result = tune(path, *given ? std::optional(rows) : std::nullopt, io);
  });

  return fovea::tool::parse(app, argc, argv, kUsage).value_or(result);
}

int main(int argc, char **argv) {
  return fovea::tool::run("aot-package", kUsage,
                          [&] { return runCommand(argc, argv); });
}

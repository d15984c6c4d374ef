//===- Commands.h - what aot-package does -----------------------*- C++ -*-===//
//
// One function a command over kernel packages (docs/PackageFormat.md). Each
// returns the program's exit status; what is found goes to `out`, what keeps a
// command from its work to `err`, a line each.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTPACKAGE_COMMANDS_H
#define FOVEA_TOOLS_AOTPACKAGE_COMMANDS_H

#include "fovea/Package/PackageReader.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace fovea::pkg {

enum ExitCode {
  kGood = 0,  ///< done; sound; no difference
  kFound = 1, ///< damage or a difference was found, or a kernel is not there
  kUsage = 2  ///< wrong request, or a file that can't be read or written
};

struct Streams {
  std::ostream &out, &err;
};

/// Which kernels of a package are meant: those in whose symbol, problem and
/// schedule each of the texts occurs; no texts: all.
struct Selection {
  std::vector<std::string> texts;
  std::vector<const KernelRecord *> of(const PackageReader &package) const;
};

/// One line a kernel, and the figures of each package; with `json` the same for
/// programs.
int list(const std::vector<std::string> &paths, const Selection &selection,
         bool json, Streams io);

/// All that the package says of the selected kernels.
int show(const std::string &path, const Selection &selection, bool json,
         Streams io);

struct VerifyOptions {
  /// "none", or the HIP library on whose devices every image is loaded: "sim"
  /// (devices of the packages' chips), "rocm" or a path.
  std::string load = "sim";
};

/// Checks every row and image; then loads every image through libfovea, as a
/// launch would, and finds all of its kernels in it.
int verify(const std::vector<std::string> &paths, const VerifyOptions &options,
           Streams io);

/// Writes the code objects of the selected kernels into a folder, as
/// `<symbol>.<target>.hsaco`.
int extract(const std::string &path, const Selection &selection,
            const std::string &folder, Streams io);

/// Which of two kernels of one problem and schedule a merge takes.
enum class Prefer { Neither, First, Last };

/// Makes the package `output` of the kernels and tuning rows of several for one
/// target. `output` appears whole or not at all.
int merge(const std::vector<std::string> &paths, const std::string &output,
          Prefer prefer, Streams io);

/// Compares what two packages hold; not how long kernels took to compile, nor
/// how images are compressed.
int diff(const std::string &first, const std::string &second, Streams io);

/// Prints the tuning table as JSON; with `rows`, a file of that form, replaces
/// the rows of the problems in it.
int tune(const std::string &path, const std::optional<std::string> &rows,
         Streams io);

/// Hash of what diff() compares, but for the path: equal texts, equal contents.
std::string contentDigest(const PackageReader &package);

/// Says that a selection leaves nothing of a package, and returns kFound.
int complainOfNone(const std::string &path, Streams io);

/// Prints a failure and returns kUsage; kFound when the package is damaged.
int complain(const Status &status, Streams io);

} // namespace fovea::pkg

#endif // FOVEA_TOOLS_AOTPACKAGE_COMMANDS_H

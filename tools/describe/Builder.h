//===- Builder.h - from JSON to numbers -------------------------*- C++ -*-===//
//
// Reads the parts of a description one after the other: variables, buffers,
// launches, check. The first error ends it.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_BUILDER_H
#define FOVEA_TOOLS_DESCRIBE_BUILDER_H

#include "Description.h"
#include "Reader.h"

namespace fovea::describe {

/// 2^46 bytes: beyond any memory, and far from overflow in sums and products.
constexpr int64_t kMaxBytes = int64_t(1) << 46;
constexpr int64_t kMaxOverlapping = int64_t(1) << 32;
constexpr int64_t kMaxGrid = (int64_t(1) << 32) - 1;
constexpr int64_t kMaxBlock = 1024;
constexpr int64_t kMaxArguments = 1 << 16; // far above any kernel's

/// The type of that name; false when there is none.
bool findType(const std::string &name, Type &type);
/// All names, with commas between them.
std::string typeNames();
/// Least and largest value of an integer type, as far as expressions reach.
void integerRange(Type type, int64_t &least, int64_t &most);

class Builder {
public:
  Builder(const nlohmann::json &json, const std::string &path,
          const std::string &directory, Problem &problem)
      : diagnostics{path, {}}, directory(directory),
        top(&json, "", scope, diagnostics), problem(problem) {
    problem = {};
    problem.path = path;
  }

  bool run(const Overrides &overrides, std::string &error);

private:
  bool ok() const { return diagnostics.error.empty(); }
  /// `path`, from the description's folder if it is relative.
  std::string relative(const std::string &path) const;
  size_t findBuffer(const Node &node);
  void readVariables(const Overrides &overrides);
  void readRequirements();

  void readBuffer(const std::string &name, const Node &node);
  /// Strides and size.
  void layOut(Buffer &buffer, const Node &node);
  void readFill(Buffer &buffer, const Node &node);
  /// Integers that a fill names must fit.
  void checkRange(const Buffer &buffer, const Node &node);

  void readLaunches();
  void readLaunch(const Node &node);
  void readExtent(const Node &node, int64_t least, int64_t most,
                  std::array<uint32_t, 3> &extent);
  void readArgument(const Node &node, Launch &launch);
  std::vector<uint8_t> encode(Type type, const Node &value);
  void readBytes(const Node &value, std::vector<uint8_t> &bytes);

  void readCheck(const Node &node);
  void readWindow(const Node &node);
  void readScore(const Node &node);
  void readCheckBuffer(const Node &node, const char *role, bool needed);

  Diagnostics diagnostics;
  Scope scope;
  std::string directory;
  Node top;
  Problem &problem;
  /// Bytes of the current launch's arguments that some argument has.
  std::vector<bool> covered;
};

} // namespace fovea::describe

#endif // FOVEA_TOOLS_DESCRIBE_BUILDER_H

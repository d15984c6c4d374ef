//===- Description.h - what to launch, and on what --------------*- C++ -*-===//
//
// Reads a kernel description (docs/KernelDescription.md) and evaluates it for
// given variables: buffers with their extents and contents, launches with their
// grids and argument bytes, and what the results should be. Knows nothing of
// code objects and devices.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_DESCRIBE_DESCRIPTION_H
#define FOVEA_TOOLS_DESCRIBE_DESCRIPTION_H

#include "Expression.h"
#include "fovea/Package/Visibility.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fovea::describe {

enum class Type { F16, BF16, F32, F64, I8, U8, I16, U16, I32, U32, I64, U64 };

/// "f16"…
const char *typeName(Type type);
/// Bytes of an element.
size_t typeSize(Type type);
bool isFloat(Type type);

/// What a buffer holds before the first launch.
struct Fill {
  enum Kind {
    Zeros,
    NaN,
    Iota,
    Normal,
    Uniform,
    Value,
    Values,
    File,
    Reference
  };
  Kind kind = Zeros;
  uint64_t seed = 1;
  double a = 0, b = 1;        ///< mean and scale; low and high; a: the value
  std::vector<Number> values; ///< of Values
  std::string path;           ///< of File
};

struct Buffer {
  std::string name;
  Type type = Type::U8;
  std::vector<int64_t> shape;   ///< slowest first
  std::vector<int64_t> strides; ///< in elements
  uint64_t bytes = 0;           ///< up to and with the last element
  Fill fill;

  /// Product of the shape.
  int64_t elements() const;
};

/// Where a buffer's address goes in a launch's arguments.
struct Pointer {
  uint64_t offset = 0; ///< in the arguments, bytes
  size_t buffer = 0;   ///< index in Problem::buffers
  int64_t plus = 0;    ///< bytes added to the address
};

struct Launch {
  std::string name;
  std::string codeObject;                 ///< path, openable as it is
  std::string kernel;                     ///< empty: the code object's only one
  std::array<uint32_t, 3> grid{1, 1, 1};  ///< workgroups
  std::array<uint32_t, 3> block{1, 1, 1}; ///< work-items
  uint32_t dynamicLds = 0;                ///< bytes
  std::vector<uint8_t> arguments;         ///< 0 where pointers go
  std::vector<Pointer> pointers;
  double flops = 0, bytes = 0; ///< what it is credited with; 0: not said

  /// The arguments with the buffers at `addresses`, by index.
  std::vector<uint8_t> bind(const std::vector<uint64_t> &addresses) const;
};

struct Check {
  enum Kind { AttentionForward, AttentionBackward };
  Kind kind = AttentionForward;
  /// Role ("q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv") to index in
  /// Problem::buffers; roles that the description leaves out are missing.
  std::map<std::string, size_t> buffers;
  double scale = 1;
  Window mask; ///< what each query sees
  std::string axes = "bhsd";
  std::vector<int64_t> startsQ, startsK; ///< empty: one length for all
  /// What a score program captures: a buffer, or a value.
  struct Capture {
    std::optional<size_t> buffer; ///< index in Problem::buffers
    double value = 0;
  };
  std::string score; ///< canonical text of the program; empty: none
  std::vector<Capture> captures;
  /// Of the keys, whose results are rounded before they are combined; and keys
  /// of one addition to a dq that is summed in its own type, 0: it is not. Both
  /// widen the budget (docs/Accuracy.md).
  int64_t shares = 1, narrowSumKeys = 0;
  /// What matrix instructions take for zeros, of gradients.
  bool flushSubnormals = false, flushScoreGradients = false;
  double tolerance = 1;
};

/// A description evaluated: everything is a number.
struct Problem {
  std::string path; ///< of the description
  std::string name;
  std::string target; ///< may be empty
  std::map<std::string, Number> variables;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  std::optional<Check> check;
};

/// `{"seqlen": "4096"}`: expressions in place of the description's own.
using Overrides = std::map<std::string, std::string>;

/// Reads the description at `path`. False with `error` set: the file, the place
/// in it (a JSON pointer) and what is wrong there.
bool load(const std::string &path, const Overrides &overrides, Problem &problem,
          std::string &error);

/// The same for text; relative paths in it start at `directory`.
bool parse(const std::string &text, const std::string &path,
           const std::string &directory, const Overrides &overrides,
           Problem &problem, std::string &error);

/// Takes "a=1,b=2*c" apart into `overrides`.
bool parseOverrides(const std::string &text, Overrides &overrides,
                    std::string &error);

/// The descriptions of a folder (its *.json that have a "version", sorted), or
/// the file itself. False with `error` set when there are none.
bool findDescriptions(const std::string &path, std::vector<std::string> &files,
                      std::string &error);

/// The first contents of a buffer, Buffer::bytes of them. `reference`: elements
/// in order of their index, for Fill::Reference.
bool fillBuffer(const Buffer &buffer, const std::vector<double> *reference,
                std::vector<uint8_t> &bytes, std::string &error);

} // namespace fovea::describe

#endif // FOVEA_TOOLS_DESCRIBE_DESCRIPTION_H

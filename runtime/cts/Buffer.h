//===- Buffer.h - a tensor of a suite's problem -----------------*- C++ -*-===//
//
// A strided tensor on host and device, by its row of an operation's table. What
// lies around it and between its rows is checked after a run, and all of it
// when it is an input.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_CTS_BUFFER_H
#define FOVEA_RUNTIME_CTS_BUFFER_H

#include "Suite.h"

#include "fovea/Parameters.h"

namespace fovea::cts {

/// A device allocation whose content is checked on both sides of what it is
/// for: 4096 bytes of a pattern before and behind.
class Guarded {
public:
  explicit Guarded(size_t bytes);
  ~Guarded();
  Guarded(const Guarded &) = delete;
  void *data() const { return base + kGuard; }
  size_t size() const { return bytes; }
  void upload(const void *from);
  /// Reads the content back and expects the guards to be as they were.
  void download(void *to) const;

private:
  static constexpr size_t kGuard = 4096;
  size_t bytes;
  uint8_t *base = nullptr;
};

/// Of an element.
int64_t bytesOf(const spec::TensorSpec &spec, DataType type);

/// A tensor of a problem's sizes, type and layout. Outputs hold NaN before.
class Buffer {
public:
  /// \param value  of an input
  Buffer(const Problem &problem, const spec::TensorSpec &spec,
         const Problem::Value &value);

  const spec::TensorSpec &spec;

  /// Fills in its strides and address.
  void describe(const params::TensorField &field, void *params) const;

  /// After the run: expects that nothing changed but the elements of an output;
  /// gives the elements in the order of the shape.
  std::vector<float> finish();

private:
  template <typename Function>
  void forEachElement(Function function) const;
  bool isF32() const;
  void encode(size_t at, float value);
  float decode(size_t at) const;

  const DataType type;
  const int64_t batch, heads, rows, row; ///< one row a head of a vector
  int64_t elementBytes;
  int64_t strides[3];
  std::vector<uint8_t> host;
  std::optional<Guarded> memory;
};

} // namespace fovea::cts

#endif // FOVEA_RUNTIME_CTS_BUFFER_H

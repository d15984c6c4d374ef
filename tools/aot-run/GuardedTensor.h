//===- GuardedTensor.h - device memory with its surroundings ----*- C++ -*-===//
//
// A strided tensor in device memory whose gaps and surroundings hold a pattern:
// for an input a NaN, so that reading it shows; for an output a number that no
// kernel computes, while its elements hold NaN until they are written. What is
// no element of an output must stay as it is; of an input, everything.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_GUARDEDTENSOR_H
#define FOVEA_TOOLS_AOTRUN_GUARDEDTENSOR_H

#include "HipCalls.h"
#include "Main.h"

#include <string>
#include <vector>

namespace fovea::run {

/// Strides of a tensor in elements; rows of `row` elements lie dense.
struct Rows {
  int64_t batch = 0, heads = 0, seq = 0, row = 0;
  int64_t strideBatch = 0, strideHead = 0, strideSeq = 0;
  /// Of sequences of different lengths: which rows of each batch belong to one,
  /// [batch, seq]. Others are as what lies between rows. Empty: all do.
  std::vector<bool> used = {};
  bool isUsed(int64_t b, int64_t s) const {
    return used.empty() || used[size_t(b * seq + s)];
  }
  int64_t span() const;
};

enum class Role { Input, Output };

/// `Word` has the bits of an element: 16, or 32 as log-sum-exps have.
template <typename Word>
class GuardedTensor {
public:
  /// In every half all bits set but the sign's: NaN in fp16, bf16 and fp32.
  static constexpr Word kNaN = Word(0x7fff7fff7fff7fffull);
  /// Not a NaN: a kernel may well pass one on that it read.
  static constexpr Word kCanary = Word(0x5bd75bd75bd75bd7ull);

  /// `guard` words on each side; the first element is `offset` words further.
  GuardedTensor(const char *name, Role role, const Rows &rows, int64_t guard,
                int64_t offset);
  GuardedTensor(const GuardedTensor &) = delete;
  GuardedTensor &operator=(const GuardedTensor &) = delete;
  ~GuardedTensor() {
    if (memory)
      (void)hip->free(memory);
  }

  /// The elements on the host: filled before upload(), read after download().
  Word *host() { return words.data() + front; }
  /// The first element on the device.
  void *device() const { return static_cast<Word *>(memory) + front; }

  HipStatus upload(const HipCalls &calls) {
    hip = &calls;
    if (!memory)
      // A tensor without elements still has an address.
      if (HipStatus status = calls.malloc(&memory, bytes() ? bytes() : 16))
        return status;
    before = tool::allocating(("a copy of " + name).c_str(), bytes(),
                              [&] { return words; });
    return bytes() ? calls.memcpy(memory, words.data(), bytes(), HostToDevice)
                   : 0;
  }
  HipStatus download() {
    return bytes() ? hip->memcpy(words.data(), memory, bytes(), DeviceToHost)
                   : 0;
  }

  /// Empty when nothing changed since upload() but, of an output, elements;
  /// otherwise the first word that did.
  std::string changes() const;

private:
  size_t bytes() const { return words.size() * sizeof(Word); }
  std::vector<bool> elements() const;
  static int64_t spareOf(const Rows &rows);

  std::string name;
  Role role;
  Rows rows;
  int64_t front;
  std::vector<Word> words, before;
  void *memory = nullptr;
  const HipCalls *hip = nullptr;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_GUARDEDTENSOR_H

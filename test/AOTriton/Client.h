//===- Client.h - what the clients of the tests have in common --*- C++ -*-===//
//
// A program that calls AOTriton's interface as a stranger would: from its
// headers and HIP alone. Tensors have memory on both sides and, as reference
// tensors, a layout; a Problem holds those of one attention and judges results
// by the oracle's error budget (docs/Accuracy.md).
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_AOTRITON_CLIENT_H
#define FOVEA_TEST_AOTRITON_CLIENT_H

#include "fovea/Reference/Backward.h"
#include "fovea/Reference/Dropout.h"
#include "fovea/Reference/Inputs.h"

#include <aotriton/flash.h>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// HIP, as far as the clients use it.
extern "C" {
hipError_t hipMalloc(void **memory, size_t bytes);
hipError_t hipFree(void *memory);
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind);
hipError_t hipMemset(void *memory, int value, size_t bytes);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDevice(int device);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamBeginCapture(hipStream_t stream, int mode);
hipError_t hipStreamEndCapture(hipStream_t stream, void **graph);
hipError_t hipGraphInstantiate(void **exec, void *graph, void **errorNode,
                               char *log, size_t logBytes);
hipError_t hipGraphLaunch(void *exec, hipStream_t stream);
hipError_t hipGraphExecDestroy(void *exec);
hipError_t hipGraphDestroy(void *graph);
}

namespace client {

namespace ref = fovea::reference;
namespace v3 = aotriton::v3::flash;

/// Device memory, filled with NaN (all bits set); null if it is empty.
class Memory {
public:
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  void *data() const { return address; }
  size_t size() const { return bytes; }
  void write(const void *from);
  void read(void *to) const;

private:
  void *address = nullptr;
  size_t bytes;
};

/// A tensor on host and device.
class Buffer {
public:
  Buffer(ref::ElemType type, ref::Layout layout, int64_t batch, int64_t heads,
         int64_t seq, int64_t dim, int64_t rowPadding = 0);
  ref::Tensor host; ///< its data are `values`
  std::vector<uint16_t> values;
  Memory memory;

  aotriton::TensorView<4> view() const;
  void upload() { memory.write(values.data()); }
  void download() { memory.read(values.data()); }
};

/// fp32 (rows, columns) without gaps.
class Floats {
public:
  Floats(int64_t rows, int64_t columns);
  int64_t rows, columns;
  Memory memory;
  aotriton::TensorView<2> view() const;
  std::vector<float> download() const;
  void upload(const std::vector<double> &values);
};

struct Shape {
  ref::ElemType type = ref::ElemType::BF16;
  ref::Layout layout = ref::Layout::BHSD;
  int64_t batch = 1, headsQ = 2, headsK = 2, seqlenQ = 70, seqlenK = 70;
  int64_t dim = 64;
  fovea::Window mask = {}; ///< what each query sees
  int64_t dimV = 0;   ///< of v and out; 0: dim
  int64_t dimOfV() const { return dimV ? dimV : dim; }
};

/// One attention with normal inputs.
class Problem {
public:
  explicit Problem(const Shape &shape, uint64_t seed = 1);

  Shape shape;
  Buffer q, k, v, out, dout, dq, dk, dv;
  Floats lse;
  float scale;
  /// Of the oracle alone; null: none.
  std::shared_ptr<const ref::ScoreFunction> score;
  std::optional<ref::Dropout> dropout; ///< likewise

  /// The oracle's output and log-sum-exp, in `out` and `lse`.
  void fillForwardResults();
  /// Empty, or what is wrong with what the device has in `out` and, if told so,
  /// `lse`; with `dq`, `dk` and `dv`.
  std::string judgeForward(bool withLse = true);
  std::string judgeBackward();
  /// The same of the gradient of what `score` adds, its capture 0: as a tensor
  /// whose rows are queries and whose columns are keys.
  std::string judgeBias(const Buffer &dbias);

private:
  ref::ForwardProblem problem() const;
};

/// Numbers of 64 bits on the device.
class Words {
public:
  explicit Words(const std::vector<uint64_t> &values);
  aotriton::TensorView<0> at(size_t i,
                             aotriton::DType type = aotriton::kUInt64) const;
  std::vector<uint64_t> download() const;
  void upload(const std::vector<uint64_t> &values);

private:
  size_t count;
  Memory memory;
};

/// A call in a graph, as frameworks record them: it has run outside before, and
/// into what it writes all bits are set again before it is recorded.
class Recording {
public:
  /// \param result  which the call writes
  Recording(const std::function<hipError_t(hipStream_t)> &call,
            const Buffer &result);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;
  /// Of all that was called so far the first that failed.
  hipError_t status() const { return first; }
  hipError_t replay();

private:
  void check(hipError_t status) {
    if (first == hipSuccess)
      first = status;
  }
  hipStream_t stream = nullptr;
  void *graph = nullptr, *exec = nullptr;
  hipError_t first = hipSuccess;
};

/// A tensor that is added to the scores, on the device and for the oracle; what
/// is between its elements is NaN.
class Bias : public ref::ScoreFunction {
public:
  using Four = std::array<uint64_t, 4>;
  /// \param strides  0 of what is broadcast
  /// \param hides    some elements are -infinity
  Bias(ref::ElemType type, Four sizes, Four strides, bool hides = false);
  aotriton::TensorView<4> view() const;
  Result<double> apply(double product, const Place &place) const override {
    return {product + at(place), 1};
  }
  Result<float> apply(float product, const Place &place) const override {
    return {product + float(at(place)), 1};
  }
  /// One for each batch, head, query and key.
  Term termOf(int, double, const Place &place) const override {
    return {1, ((place.batch * int64_t(sizes[1]) + place.head) * place.seqlenQ +
                place.query) *
                       place.seqlenK +
                   place.key};
  }

private:
  static std::vector<char> valuesFor(ref::ElemType type, Four sizes,
                                     Four strides, bool hides);
  double at(const Place &place) const;

  ref::ElemType type;
  Four sizes, strides;
  std::vector<char> values; ///< bytes
  Memory memory;
};

/// Gives fp32 memory for LazyTensors, and counts.
struct Lazy {
  struct Thrown {}; ///< of a client's own
  enum class Fails { Never, GivesNull, Throws };
  Fails fails = Fails::Never;
  int64_t rows = 0, columns = 0;
  int acquired = 0, disposed = 0;
  std::unique_ptr<Floats> floats;

#if AOTRITON_VERSION_MINOR >= 11
  template <int Rank>
  using Tensor = aotriton::LazyTensor<Rank>;
#else
  template <int Rank>
  using Tensor = aotriton::TensorView<Rank>; ///< allocated there and then
#endif
  /// A LazyTensor that allocates rows x columns, in its two innermost
  /// dimensions.
  template <int Rank>
  Tensor<Rank> tensor();
};

v3::attn_fwd_params forwardParams(const Problem &problem);
/// `delta` becomes D; DQ_ACC stays empty.
v3::attn_bwd_params backwardParams(const Problem &problem, Lazy &delta);

/// The interface's calls with their versions.
hipError_t attnFwd(const v3::attn_fwd_params &params, hipStream_t stream = {},
                   const v3::attn_options *options = nullptr);
hipError_t attnBwd(const v3::attn_bwd_params &params, hipStream_t stream = {},
                   const v3::attn_options *options = nullptr);

} // namespace client

#endif // FOVEA_TEST_AOTRITON_CLIENT_H

//===- ForwardCheck.cpp - checks of a forward pass's parameters -----------===//
//
// Every rule of docs/KernelAbi.md that a launcher must check, with a message
// that names the parameter, its value and the limit.
//
//===----------------------------------------------------------------------===//

#include "Forward.h"

#include "Versioned.h"

#include <array>
#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea::rt {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

Result outOfRange(const std::string &name, int64_t value, int64_t least,
                  int64_t most) {
  return invalid(name + " is " + std::to_string(value) + ", not in " +
                 std::to_string(least) + " to " + std::to_string(most));
}

/// A tensor as the checks see it.
struct View {
  const char *name;
  int64_t strideBatch, strideHead, strideSeq;
  int64_t batch, heads, rows, rowElements;
  bool written;
};

/// Elements between the first and one past the last; false on overflow.
bool extent(const View &view, int64_t &elements) {
  elements = view.rowElements;
  const std::pair<int64_t, int64_t> dims[] = {{view.batch, view.strideBatch},
                                              {view.heads, view.strideHead},
                                              {view.rows, view.strideSeq}};
  for (const auto &[size, stride] : dims) {
    int64_t distance;
    if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &distance) ||
                     __builtin_add_overflow(elements, distance, &elements)))
      return false;
  }
  return true;
}

/// One dimension of a view.
struct Dimension {
  const char *name;
  int64_t stride, size, most;
};

/// Reading a row twice is a broadcast; writing one twice is a race. Dimensions
/// may nest in any order: each must step over all that the finer ones reach.
Result checkNoOverlap(const View &view, std::array<Dimension, 3> dims) {
  std::sort(dims.begin(), dims.end(),
            [](const Dimension &a, const Dimension &b) {
              return a.stride < b.stride;
            });
  int64_t reach = view.rowElements;
  for (const Dimension &dim : dims) {
    if (dim.size <= 1)
      continue;
    if (dim.stride < reach)
      return invalid(view.name + std::string(dim.name) + " is " +
                     std::to_string(dim.stride) +
                     ": rows would overlap; it must be at least " +
                     std::to_string(reach) +
                     ", what the dimensions of smaller stride span");
    reach += (dim.size - 1) * dim.stride;
  }
  return Result();
}

Result checkView(const View &view) {
  const std::array<Dimension, 3> dims = {{
      {".stride_batch", view.strideBatch, view.batch,
       std::numeric_limits<int64_t>::max()},
      {".stride_head", view.strideHead, view.heads,
       std::numeric_limits<int64_t>::max()},
      {".stride_seq", view.strideSeq, view.rows, abi::kMaxSeqStride},
  }};
  for (const Dimension &dim : dims) {
    if (dim.stride < 0 || dim.stride > dim.most)
      return outOfRange(view.name + std::string(dim.name), dim.stride, 0,
                        dim.most);
  }
  int64_t elements;
  if (!extent(view, elements) || elements > (int64_t(1) << 56))
    return invalid(std::string(view.name) +
                   " spans more than 2^56 elements by its strides and shape");
  return view.written ? checkNoOverlap(view, dims) : Result();
}

Result readKey(const fovea_forward_params_t &p, ProblemKey &key) {
  switch (p.dtype) {
  case FOVEA_DTYPE_F16:
    key.dtype = DataType::F16;
    break;
  case FOVEA_DTYPE_BF16:
    key.dtype = DataType::BF16;
    break;
  default:
    return invalid("dtype is " + std::to_string(p.dtype) +
                   ", not FOVEA_DTYPE_F16 (1) or FOVEA_DTYPE_BF16 (2)");
  }
  switch (p.mask) {
  case FOVEA_MASK_NONE:
    key.mask = MaskKind::None;
    break;
  case FOVEA_MASK_CAUSAL_TOP_LEFT:
    key.mask = MaskKind::CausalTopLeft;
    break;
  case FOVEA_MASK_CAUSAL_BOTTOM_RIGHT:
    key.mask = MaskKind::CausalBottomRight;
    break;
  default:
    return invalid("mask is " + std::to_string(p.mask) +
                   ", not a FOVEA_MASK_ value (0 to 2)");
  }
  if (p.head_dim < kMinHeadDim || p.head_dim > kMaxHeadDim ||
      p.head_dim % kHeadDimStep != 0)
    return invalid("head_dim is " + std::to_string(p.head_dim) +
                   ", not 16 to 512 in steps of 8");
  key.headDim = int32_t(p.head_dim);
  return Result();
}

Result checkShape(const fovea_forward_params_t &p) {
  const struct {
    const char *name;
    int64_t value, least, most;
  } sizes[] = {
      {"batch", p.batch, 0, 65535}, // the grid's z extent
      {"heads_q", p.heads_q, 0, kInt32Max},
      {"heads_k", p.heads_k, 0, kInt32Max},
      {"seqlen_q", p.seqlen_q, 0, abi::kMaxSeqlen},
      {"seqlen_k", p.seqlen_k, 0, abi::kMaxSeqlen},
  };
  for (const auto &size : sizes)
    if (size.value < size.least || size.value > size.most)
      return outOfRange(size.name, size.value, size.least, size.most);
  if (p.heads_q > 0 && (p.heads_k == 0 || p.heads_q % p.heads_k != 0))
    return invalid("heads_q (" + std::to_string(p.heads_q) +
                   ") must be a multiple of heads_k (" +
                   std::to_string(p.heads_k) + ")");
  if (!std::isfinite(p.scale))
    return invalid("scale is " + std::to_string(p.scale) +
                   "; it must be a finite number");
  if (p.reserved != 0)
    return invalid("reserved is " + std::to_string(p.reserved) +
                   "; set the structure to zero before filling it");
  return Result();
}

} // namespace

Result readForward(const fovea_forward_params_t *params,
                   ForwardProblem &problem) {
  // The first version's size is sizeof now; a later version keeps this number.
  constexpr uint32_t kFirstSize = sizeof(fovea_forward_params_t);
  if (Result result =
          readVersioned("params", params, kFirstSize, problem.params);
      !result.ok())
    return result;
  const fovea_forward_params_t &p = problem.params;
  if (Result result = readKey(p, problem.key); !result.ok())
    return result;
  if (Result result = checkShape(p); !result.ok())
    return result;
  problem.empty = p.batch == 0 || p.heads_q == 0 || p.seqlen_q == 0;

  auto view = [&](const char *name, const auto &t, int64_t heads, int64_t rows,
                  bool written) {
    return View{name,  t.stride_batch, t.stride_head, t.stride_seq, p.batch,
                heads, rows,           p.head_dim,    written};
  };
  const View views[] = {view("q", p.q, p.heads_q, p.seqlen_q, false),
                        view("k", p.k, p.heads_k, p.seqlen_k, false),
                        view("v", p.v, p.heads_k, p.seqlen_k, false),
                        view("out", p.out, p.heads_q, p.seqlen_q, true)};
  for (const View &v : views)
    if (Result result = checkView(v); !result.ok())
      return result;
  if (p.lse)
    // The sequence is contiguous: one row of seqlen_q elements a head.
    if (Result result = checkView({"lse", p.lse_stride_batch, p.lse_stride_head,
                                   0, p.batch, p.heads_q, 1, p.seqlen_q, true});
        !result.ok())
      return result;
  return Result();
}

Result checkAddresses(const ForwardProblem &problem) {
  const fovea_forward_params_t &p = problem.params;
  const struct {
    const char *name;
    const void *data;
    int64_t alignment;
    bool needed;
  } pointers[] = {
      {"q.data", p.q.data, elementSize(problem.key.dtype), true},
      {"k.data", p.k.data, elementSize(problem.key.dtype), p.seqlen_k > 0},
      {"v.data", p.v.data, elementSize(problem.key.dtype), p.seqlen_k > 0},
      {"out.data", p.out.data, elementSize(problem.key.dtype), true},
      {"lse", p.lse, int64_t(sizeof(float)), false},
  };
  for (const auto &pointer : pointers) {
    if (pointer.needed && !pointer.data)
      return invalid(std::string(pointer.name) + " is NULL");
    if (reinterpret_cast<uintptr_t>(pointer.data) % pointer.alignment != 0)
      return invalid(std::string(pointer.name) + " is " +
                     std::to_string(reinterpret_cast<uintptr_t>(pointer.data)) +
                     ", no multiple of the element size (" +
                     std::to_string(pointer.alignment) + " bytes)");
  }
  return Result();
}

abi::ForwardArgs makeForwardArgs(const ForwardProblem &problem) {
  const fovea_forward_params_t &p = problem.params;
  auto address = [](const void *pointer) {
    return uint64_t(reinterpret_cast<uintptr_t>(pointer));
  };
  abi::ForwardArgs args{};
  args.q = address(p.q.data);
  args.k = address(p.k.data);
  args.v = address(p.v.data);
  args.out = address(p.out.data);
  args.lse = address(p.lse);
  args.qStrideBatch = p.q.stride_batch;
  args.qStrideHead = p.q.stride_head;
  args.qStrideSeq = p.q.stride_seq;
  args.kStrideBatch = p.k.stride_batch;
  args.kStrideHead = p.k.stride_head;
  args.kStrideSeq = p.k.stride_seq;
  args.vStrideBatch = p.v.stride_batch;
  args.vStrideHead = p.v.stride_head;
  args.vStrideSeq = p.v.stride_seq;
  args.outStrideBatch = p.out.stride_batch;
  args.outStrideHead = p.out.stride_head;
  args.outStrideSeq = p.out.stride_seq;
  args.lseStrideBatch = p.lse_stride_batch;
  args.lseStrideHead = p.lse_stride_head;
  args.seqlenQ = int32_t(p.seqlen_q);
  args.seqlenK = int32_t(p.seqlen_k);
  args.headsQ = int32_t(p.heads_q);
  args.groupSize = int32_t(p.heads_q / p.heads_k);
  args.scale = p.scale;
  return args;
}

std::string describe(const ForwardProblem &problem) {
  const fovea_forward_params_t &p = problem.params;
  return "'" + problem.key.str() + "', batch " + std::to_string(p.batch) +
         ", heads " + std::to_string(p.heads_q) + "/" +
         std::to_string(p.heads_k) + ", lengths " + std::to_string(p.seqlen_q) +
         "x" + std::to_string(p.seqlen_k);
}

} // namespace fovea::rt

//===- Check.cpp - what the buffers should hold at the end ----------------===//
//
// Packed sequences are checked one after the other, each as a problem of batch
// 1 on part of the tensors. Where values have other dimensions than keys, the
// oracle gets what has fewer padded with zeros, and so do the results.
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "fovea/Reference/Backward.h"
#include "fovea/Reference/ScoreProgram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

using namespace fovea::describe;
namespace ref = fovea::reference;

namespace {

/// A tensor in memory of its own.
struct Copy {
  std::vector<uint8_t> bytes;
  ref::Tensor tensor;
};

/// `from` with rows of `dim` elements, those behind its own zeros.
Copy padded(const ref::Tensor &from, int64_t dim) {
  Copy copy;
  int64_t bytes = fovea::elementSize(from.type);
  for (int64_t extent : {dim, from.batch, from.heads, from.seq})
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw std::bad_alloc(); // fewer would be too many
  copy.bytes.assign(size_t(bytes), 0);
  copy.tensor = ref::describe(from.type, ref::Layout::BHSD, from.batch,
                              from.heads, from.seq, dim);
  copy.tensor.data = copy.bytes.data();
  for (int64_t b = 0; b < from.batch; ++b)
    for (int64_t h = 0; h < from.heads; ++h)
      for (int64_t s = 0; s < from.seq; ++s)
        std::memcpy(
            copy.tensor.row(b, h, s).data, from.row(b, h, s).data,
            size_t(std::min(dim, from.dim) * fovea::elementSize(from.type)));
  return copy;
}

/// A buffer's elements as they lie in memory.
std::vector<double> valuesOf(const Buffer &buffer,
                             const std::vector<uint8_t> &bytes) {
  const size_t size = typeSize(buffer.type);
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i != values.size(); ++i) {
    auto read = [&](auto value) {
      std::memcpy(&value, bytes.data() + i * size, size);
      return value;
    };
    switch (buffer.type) {
    case Type::F16:
      values[i] = ref::decode(ref::ElemType::F16, read(uint16_t()));
      break;
    case Type::BF16:
      values[i] = ref::decode(ref::ElemType::BF16, read(uint16_t()));
      break;
    case Type::F32:
      values[i] = read(float());
      break;
    case Type::I32:
      values[i] = read(int32_t());
      break;
    default: // a boolean
      values[i] = bytes[i] != 0;
    }
  }
  return values;
}

/// One sequence's problem and its answers.
struct Sequence {
  Copy q, k, v, dout;
  ref::Expectation forward;
  ref::BackwardResult exact, plain;
  ref::GradientSlack slack;
};

} // namespace

struct Checker::Impl {
  explicit Impl(const Problem &problem)
      : problem(problem), check(*problem.check) {}

  const Problem &problem;
  const Check &check;
  std::vector<Sequence> sequences;
  /// What the score program reads.
  std::vector<ref::CapturedValues> captured;
  std::shared_ptr<const ref::ScoreFunction> score;

  bool has(const char *role) const { return check.buffers.count(role) != 0; }
  const Buffer &buffer(const char *role) const {
    return problem.buffers[check.buffers.at(role)];
  }

  /// Sequence `n` of a role's buffer; "lse" has no dimension axis.
  ref::Tensor view(const char *role, const Contents &contents, size_t n) const {
    const Buffer &from = buffer(role);
    ref::Tensor t;
    t.type = from.type == Type::BF16  ? ref::ElemType::BF16
             : from.type == Type::F16 ? ref::ElemType::F16
                                      : ref::ElemType::F32;
    t.batch = 1;
    t.dim = 1;
    for (size_t i = 0; i < from.shape.size(); ++i)
      switch (check.axes[i]) {
      case 'b':
        t.batch = from.shape[i];
        t.strideBatch = from.strides[i];
        break;
      case 'h':
        t.heads = from.shape[i];
        t.strideHead = from.strides[i];
        break;
      case 's':
        t.seq = from.shape[i];
        t.strideSeq = from.strides[i];
        break;
      default:
        t.dim = from.shape[i];
      }
    const std::string name = role;
    const bool keys =
        name == "k" || name == "v" || name == "dk" || name == "dv";
    const std::vector<int64_t> &starts = keys ? check.startsK : check.startsQ;
    t.data = const_cast<uint8_t *>(contents[check.buffers.at(role)].data());
    if (!starts.empty()) {
      t.data = t.row(0, 0, starts[n]).data;
      t.seq = starts[n + 1] - starts[n];
    }
    return t;
  }

  bool checkShapes(std::string &error) const {
    for (const auto &[roles, starts] :
         {std::pair{std::vector<const char *>{"q", "out", "lse", "dout", "dq"},
                    &check.startsQ},
          std::pair{std::vector<const char *>{"k", "v", "dk", "dv"},
                    &check.startsK}}) {
      const Contents none(problem.buffers.size());
      for (const char *role : roles) {
        if (!has(role))
          continue;
        const Buffer &found = buffer(role);
        const size_t axis = check.axes.find('s');
        if (!starts->empty() && starts->back() > found.shape[axis])
          return refuse(error, std::string("buffer '") + found.name + "' has " +
                                   std::to_string(found.shape[axis]) +
                                   " rows, the last sequence ends at " +
                                   std::to_string(starts->back()));
        // Like the first of its group, but for the dimension.
        const Buffer &model = buffer(roles[0]);
        for (size_t i = 0; i < found.shape.size(); ++i)
          if (check.axes[i] != 'd' && found.shape[i] != model.shape[i])
            return refuse(error, "buffers '" + model.name + "' and '" +
                                     found.name + "' differ in axis '" +
                                     check.axes[i] + "'");
      }
    }
    return true;
  }

  bool refuse(std::string &error, const std::string &why) const {
    error = problem.path + ": /check: " + why;
    return false;
  }

  bool readScore(const Contents &contents, std::string &error) {
    if (check.score.empty())
      return true;
    captured.clear();
    for (const Check::Capture &capture : check.captures) {
      ref::CapturedValues &values = captured.emplace_back();
      if (!capture.buffer) {
        values.values = {capture.value};
        continue;
      }
      const Buffer &buffer = problem.buffers[*capture.buffer];
      if (buffer.type != Type::F16 && buffer.type != Type::BF16 &&
          buffer.type != Type::F32 && buffer.type != Type::I32 &&
          buffer.type != Type::U8)
        return refuse(error, "buffer '" + buffer.name + "' has type " +
                                 typeName(buffer.type) +
                                 "; what a score program captures is f16, "
                                 "bf16, f32, i32 or, of booleans, u8");
      values.extents = buffer.shape;
      values.strides = buffer.strides;
      values.values = valuesOf(buffer, contents[*capture.buffer]);
    }
    std::string wrong;
    score = ref::readScoreProgram(check.score, captured, wrong);
    return score || refuse(error, "score: " + wrong);
  }

  bool prepare(Contents &contents, std::string &error) {
    if (!checkShapes(error) || !readScore(contents, error))
      return false;
    const bool backward = check.kind == Check::AttentionBackward;
    const size_t count = check.startsQ.empty() ? 1 : check.startsQ.size() - 1;
    sequences.clear();
    sequences.resize(count);
    for (size_t n = 0; n < count; ++n) {
      Sequence &sequence = sequences[n];
      const ref::Tensor q = view("q", contents, n), k = view("k", contents, n),
                        v = view("v", contents, n);
      if (k.dim != q.dim)
        return refuse(error, "head dimensions of queries (" +
                                 std::to_string(q.dim) + ") and keys (" +
                                 std::to_string(k.dim) + ") differ");
      const int64_t dim = std::max(q.dim, v.dim);
      // Copies: kernels may write to their inputs.
      sequence.q = padded(q, dim);
      sequence.k = padded(k, dim);
      sequence.v = padded(v, dim);
      ref::BackwardProblem both;
      both.forward.q = sequence.q.tensor;
      both.forward.k = sequence.k.tensor;
      both.forward.v = sequence.v.tensor;
      both.forward.mask = check.mask;
      both.forward.scale = float(check.scale);
      both.forward.score = score;
      std::string wrong = both.forward.check();
      if (wrong.empty() && backward) {
        both.narrowSumKeys = check.narrowSumKeys;
        both.flushSubnormals = check.flushSubnormals;
        both.flushScoreGradients = check.flushScoreGradients;
        sequence.dout = padded(view("dout", contents, n), dim);
        both.dout = sequence.dout.tensor;
        wrong = both.check();
      }
      if (!wrong.empty())
        return refuse(error, wrong);
      sequence.forward = ref::expectForward(both.forward);
      if (backward) {
        sequence.exact =
            ref::attentionBackwardF64(both, /*threads=*/0, &sequence.slack);
        sequence.plain = ref::attentionBackwardPlain(both);
      }
    }
    return fillReferences(contents, error);
  }

  bool fillReferences(Contents &contents, std::string &error) const {
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer &to = problem.buffers[i];
      if (to.fill.kind != Fill::Reference)
        continue;
      const bool isLse = has("lse") && check.buffers.at("lse") == i;
      if (!isLse && check.buffers.at("out") != i)
        return refuse(error, "buffer '" + to.name +
                                 "' with fill 'reference' is neither 'out' "
                                 "nor 'lse'");
      // First the gaps and zeros, then the rows at their places.
      Buffer empty = to;
      empty.fill.kind = Fill::Zeros;
      if (!fillBuffer(empty, nullptr, contents[i], error))
        return false;
      for (size_t n = 0; n < sequences.size(); ++n)
        place(isLse, contents, n);
    }
    return true;
  }

  void place(bool isLse, Contents &contents, size_t n) const {
    const ref::ForwardResult &exact = sequences[n].forward.exact;
    const ref::Tensor t = view(isLse ? "lse" : "out", contents, n);
    const int64_t dim = sequences[n].q.tensor.dim;
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t h = 0; h < t.heads; ++h)
        for (int64_t s = 0; s < t.seq; ++s) {
          const int64_t row = (b * t.heads + h) * t.seq + s;
          if (isLse) {
            t.row(b, h, s).set(0, exact.lse[size_t(row)]);
            continue;
          }
          for (int64_t d = 0; d < t.dim; ++d)
            t.row(b, h, s).set(d, exact.out[size_t(row * dim + d)]);
        }
  }

  void add(Verdict &verdict, const std::string &what, ref::Comparison found,
           const ref::Figure &figure, bool withRms) const {
    Compared line;
    line.what = what;
    line.error = figure.error;
    line.budget = figure.budget;
    if (withRms) {
      line.rms = found.rms.error;
      line.rmsBudget = found.rms.budget;
    }
    // Of several sequences the one that used most of its budget.
    for (Compared &other : verdict.compared)
      if (other.what == what) {
        if (line.error * other.budget > other.error * line.budget)
          other = line;
        return;
      }
    verdict.compared.push_back(line);
  }

  void compareForward(const Contents &contents, size_t n,
                      Verdict &verdict) const {
    const Sequence &sequence = sequences[n];
    const Copy out = padded(view("out", contents, n), sequence.q.tensor.dim);
    std::vector<float> lse;
    if (has("lse")) {
      const ref::Tensor t = view("lse", contents, n);
      for (int64_t b = 0; b < t.batch; ++b)
        for (int64_t h = 0; h < t.heads; ++h)
          for (int64_t s = 0; s < t.seq; ++s)
            lse.push_back(float(t.row(b, h, s)[0]));
    }
    ref::Comparison found = ref::compareForward(
        sequence.forward, out.tensor, lse.empty() ? nullptr : lse.data(),
        uint32_t(check.shares));
    for (ref::Figure *figure : {&found.max, &found.rms, &found.lse})
      figure->budget *= check.tolerance;
    const bool pass = found.wrongClass == 0 && found.max.ok() &&
                      found.rms.ok() && (lse.empty() || found.lse.ok());
    add(verdict, "out", found, found.max, true);
    if (!lse.empty())
      add(verdict, "lse", found, found.lse, false);
    note(verdict, pass, found.message, n);
  }

  void compareBackward(const Contents &contents, size_t n,
                       Verdict &verdict) const {
    const Sequence &sequence = sequences[n];
    struct Row {
      const char *role;
      const std::vector<double> &exact, &plain;
      const std::vector<ref::RowSlack> &slack;
    };
    const Row rows[] = {
        {"dq", sequence.exact.dq, sequence.plain.dq, sequence.slack.dq},
        {"dk", sequence.exact.dk, sequence.plain.dk, sequence.slack.dk},
        {"dv", sequence.exact.dv, sequence.plain.dv, sequence.slack.dv}};
    for (const Row &row : rows) {
      if (!has(row.role))
        continue;
      const Copy found =
          padded(view(row.role, contents, n), sequence.q.tensor.dim);
      const ref::Comparison result =
          ref::compareGradient(row.role, found.tensor, row.exact, row.plain,
                               row.slack, check.tolerance);
      add(verdict, row.role, result, result.max, true);
      note(verdict, result.pass, result.message, n);
    }
  }

  void note(Verdict &verdict, bool pass, const std::string &message,
            size_t n) const {
    if (pass)
      return;
    verdict.pass = false;
    if (sequences.size() > 1)
      verdict.message += "sequence " + std::to_string(n) + ": ";
    verdict.message += message + "\n";
  }
};

Checker::Checker(const Problem &problem)
    : impl(std::make_unique<Impl>(problem)) {}
Checker::~Checker() = default;

bool Checker::prepare(Contents &contents, std::string &error) {
  return impl->prepare(contents, error);
}

Verdict Checker::compare(const Contents &contents) const {
  Verdict verdict;
  for (size_t n = 0; n < impl->sequences.size(); ++n)
    if (impl->check.kind == Check::AttentionForward)
      impl->compareForward(contents, n, verdict);
    else
      impl->compareBackward(contents, n, verdict);
  return verdict;
}

//===- Sequences.cpp - sequences of different lengths ---------------------===//

#include "Sequences.h"

#include <algorithm>
#include <charconv>

namespace fovea::run {
namespace {

/// Numbers with an x between them or not; nullopt: none.
std::optional<std::pair<int64_t, int64_t>> readPair(const std::string &text) {
  int64_t q = 0, k = 0;
  const char *end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, q);
  if (error != std::errc() || q < 0)
    return std::nullopt;
  if (at == end)
    return std::pair(q, q);
  if (*at != 'x')
    return std::nullopt;
  auto [last, second] = std::from_chars(at + 1, end, k);
  if (second != std::errc() || last != end || k < 0)
    return std::nullopt;
  return std::pair(q, k);
}

std::vector<std::string> splitAt(const std::string &text, char separator) {
  std::vector<std::string> words(1);
  for (char c : text)
    if (c == separator)
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

/// Places sequences one behind the other, so many rows apart, and some behind
/// the last.
void pack(SequenceSide &side, int64_t gap) {
  side.isPacked = true;
  side.starts.clear();
  for (int64_t length : side.lengths) {
    side.total += gap;
    side.starts.push_back(side.total);
    side.total += length;
  }
  side.total += 5; // that no sequence has
}

/// Another batch's program and lists, for a part that is batch 0.
class ScoreOfBatch : public reference::ScoreFunction {
public:
  ScoreOfBatch(std::shared_ptr<const ScoreFunction> all, int64_t batch)
      : all(std::move(all)), batch(batch) {}
  Result<double> apply(double product, const Place &place) const override {
    return all->apply(product, moved(place));
  }
  Result<float> apply(float product, const Place &place) const override {
    return all->apply(product, moved(place));
  }
  Term termOf(int capture, double product, const Place &place) const override {
    return all->termOf(capture, product, moved(place));
  }

private:
  Place moved(Place place) const {
    place.batch += batch;
    return place;
  }
  std::shared_ptr<const ScoreFunction> all;
  int64_t batch;
};

} // namespace

std::optional<SequencesShape> parseSequences(const std::string &text) {
  std::vector<std::string> words = splitAt(text, ':');
  SequencesShape shape;
  shape.text = text;
  for (; words.size() > 2; words.pop_back()) {
    if (words.back() == "th")
      shape.isLseByRow = true;
    else if (words.back() == "batched")
      shape.isLseBatched = true;
    else
      return std::nullopt;
  }
  if (words.size() != 2)
    return std::nullopt;
  for (const std::string &word : splitAt(words[1], ',')) {
    const auto lengths = readPair(word);
    if (!lengths)
      return std::nullopt;
    shape.q.lengths.push_back(lengths->first);
    shape.k.lengths.push_back(lengths->second);
  }
  const std::string &layout = words[0];
  SequenceSide &q = shape.q, &k = shape.k;
  const size_t count = q.lengths.size();
  q.starts.assign(count, 0);
  k.starts.assign(count, 0);
  q.isCumulative = true;
  k.isCumulative = layout != "used" && layout != "cached";
  if (layout == "packed") {
    pack(q, 0);
    pack(k, 0);
  } else if (layout == "strided") {
    pack(q, 3);
    pack(k, 7);
    q.hasStarts = k.hasStarts = true;
  } else if (layout == "used") {
    pack(q, 0);
    pack(k, 2);
    k.hasStarts = true;
  } else if (layout == "cached") {
    pack(q, 0);
  } else if (layout == "shifted") {
    q.isCumulative = k.isCumulative = false;
    for (SequenceSide *side : {&q, &k}) {
      side->hasStarts = true;
      const int64_t most =
          *std::max_element(side->lengths.begin(), side->lengths.end());
      for (size_t i = 0; i != count; ++i)
        side->starts[i] = most - side->lengths[i];
    }
  } else if (layout != "padded") {
    return std::nullopt;
  }
  return shape;
}

CaseSequences::CaseSequences(const SequencesShape &shape, ForwardCase &c) {
  auto most = [](const std::vector<int64_t> &lengths) {
    return *std::max_element(lengths.begin(), lengths.end());
  };
  c.sequences = std::make_shared<SequencesShape>(shape);
  c.batch = int64_t(shape.q.lengths.size());
  c.seqQ = most(shape.q.lengths);
  c.seqK = most(shape.k.lengths);
  varlen.header = {sizeof(varlen), FOVEA_GROUP_VARLEN, nullptr};
  varlen.lse_layout = shape.isLseBatched ? FOVEA_LSE_BATCHED : FOVEA_LSE_AS_Q;
  varlen.lse_stride_seq = shape.isLseByRow ? c.heads : 0;
  describe(shape.q, varlen.q);
  describe(shape.k, varlen.k);
}

void CaseSequences::describe(const SequenceSide &side,
                             fovea_sequences_t &given) {
  given.kind =
      side.isCumulative ? FOVEA_LENGTHS_CUMULATIVE : FOVEA_LENGTHS_EACH;
  given.layout = side.isPacked ? FOVEA_ROWS_PACKED : FOVEA_ROWS_BATCHED;
  given.total = side.total;
  if (side.hasLengths) {
    Memory lengths = {&given.lengths, {}};
    int32_t sum = 0;
    for (int64_t length : side.lengths) {
      lengths.values.push_back(side.isCumulative ? sum : int32_t(length));
      sum += int32_t(length);
    }
    if (side.isCumulative)
      lengths.values.push_back(sum);
    memory.push_back(std::move(lengths));
  }
  if (side.hasStarts)
    memory.push_back({&given.starts, {side.starts.begin(), side.starts.end()}});
}

std::string CaseSequences::upload(Session &session) {
  if (std::string error = copies.open(session.context()); !error.empty())
    return error;
  for (Memory &tensor : memory) {
    void *address = nullptr;
    if (std::string error =
            copies.put(tensor.values.data(),
                       tensor.values.size() * sizeof(int32_t), address);
        !error.empty())
      return error;
    *tensor.address = static_cast<const int32_t *>(address);
  }
  return "";
}

size_t countParts(const ForwardCase &c) {
  return c.sequences ? size_t(c.batch) : 1;
}

ForwardCase partOf(const ForwardCase &c, size_t number) {
  ForwardCase part = c;
  if (!c.sequences)
    return part;
  part.sequences = nullptr;
  part.batch = 1;
  part.seqQ = c.sequences->q.lengths[number];
  part.seqK = c.sequences->k.lengths[number];
  part.seed = c.seed + number;
  const int64_t batch = int64_t(number);
  if (part.dropout)
    part.dropout->firstBatch = batch;
  if (c.score)
    part.score = std::make_shared<ScoreOfBatch>(c.score, batch);
  if (c.listed)
    part.listed = [listed = c.listed, batch](int64_t b, int64_t head, int64_t i,
                                             int64_t j) {
      return listed(batch + b, head, i, j);
    };
  return part;
}

} // namespace fovea::run

//===- Sequences.cpp - sequences of different lengths ---------------------===//

#include "Sequences.h"

#include "Text.h"

#include <algorithm>
#include <charconv>
#include <tuple>

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

/// How queries or keys lie, and what is passed of that.
struct SideLayout {
  bool isPacked, isCumulative, hasStarts;
  int64_t gap = 0;       ///< packed: rows ahead of each sequence
  int64_t before = 0;    ///< packed: rows ahead of the first one besides
  bool isAtEnd = false;  ///< in batches: each ends with its batch
  bool areAlike = false; ///< no lengths are passed
};

struct SequencesLayout {
  const char *name, *help;
  SideLayout q, k;
};
constexpr SideLayout kPacked = {true, true, false},
                     kBatches = {false, true, false},
                     kLengths = {false, false, false},
                     kAlike = {false, false, false, 0, 0, false, true};
constexpr SequencesLayout kLayouts[] = {
    {"packed", "one behind the other", kPacked, kPacked},
    {"sliced",
     "packed, behind others: cumulative lengths that do not begin at 0",
     {true, true, false, 0, 9},
     {true, true, false, 0, 4}},
    {"padded", "each in a batch", kBatches, kBatches},
    {"strided",
     "packed with gaps, at rows of their own",
     {true, true, true, 3},
     {true, true, true, 7}},
    {"used",
     "queries packed, keys at rows of their own, with lengths",
     kPacked,
     {true, false, true, 2}},
    {"cached", "queries packed, keys in batches, with lengths", kPacked,
     kLengths},
    {"shifted",
     "each in a batch, from a row of its own on, with lengths",
     {false, false, true, 0, 0, /*isAtEnd=*/true},
     {false, false, true, 0, 0, /*isAtEnd=*/true}},
    {"keys", "in batches, of keys alone the lengths", kAlike, kLengths},
    {"queries", "queries packed, keys in batches and all as many", kPacked,
     kAlike},
};

/// Places the sequences of a side.
void place(const SideLayout &layout, SequenceSide &side) {
  side.isPacked = layout.isPacked;
  side.isCumulative = layout.isCumulative;
  side.hasStarts = layout.hasStarts;
  side.hasLengths = !layout.areAlike;
  const int64_t most =
      *std::max_element(side.lengths.begin(), side.lengths.end());
  int64_t total = layout.before;
  for (int64_t length : side.lengths) {
    total += layout.gap;
    side.starts.push_back(layout.isPacked  ? total
                          : layout.isAtEnd ? most - length
                                           : 0);
    total += length;
  }
  if (side.isPacked)
    side.total = total + 5; // that no sequence has
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

std::string layoutsOfSequences() {
  std::string text;
  for (const SequencesLayout &layout : kLayouts)
    text += std::string(text.empty() ? "" : ", ") + layout.name + " (" +
            layout.help + ")";
  return text;
}

std::optional<SequencesShape> parseSequences(const std::string &text,
                                             std::string &error) {
  const std::string given = "'" + text + "'";
  error = given + " is no LAYOUT:Q,QxK,..., as packed:100,0,37x80, with :th or "
                  ":batched behind it or not";
  std::vector<std::string> words = tool::splitAt(text, ':');
  SequencesShape shape;
  shape.text = text;
  for (; words.size() > 2; words.pop_back()) {
    bool &flag = words.back() == "th" ? shape.isLseByRow : shape.isLseBatched;
    if ((words.back() != "th" && words.back() != "batched") || flag)
      return std::nullopt;
    flag = true;
  }
  if (words.size() != 2)
    return std::nullopt;
  for (const std::string &word : tool::splitAt(words[1], ',')) {
    const auto lengths = readPair(word);
    if (!lengths)
      return std::nullopt;
    shape.q.lengths.push_back(lengths->first);
    shape.k.lengths.push_back(lengths->second);
  }
  const SequencesLayout *layout = std::find_if(
      std::begin(kLayouts), std::end(kLayouts),
      [&](const SequencesLayout &row) { return row.name == words[0]; });
  if (layout == std::end(kLayouts)) {
    error = given + " has no layout that there is; take one of:";
    for (const SequencesLayout &row : kLayouts)
      error += std::string(" ") + row.name;
    return std::nullopt;
  }
  for (auto [name, side, how] : {std::tuple("queries", &shape.q, &layout->q),
                                 std::tuple("keys", &shape.k, &layout->k)}) {
    int64_t sum = 0;
    for (int64_t length : side->lengths)
      if (__builtin_add_overflow(sum, length, &sum) || sum > spec::kMaxSeqlen) {
        error = given + " has more than " + std::to_string(spec::kMaxSeqlen) +
                " " + name + " in all sequences together";
        return std::nullopt;
      }
    if (how->areAlike &&
        sum != side->lengths[0] * int64_t(side->lengths.size())) {
      error = given + " has different numbers of " + name + "; in layout " +
              layout->name + " all sequences have as many";
      return std::nullopt;
    }
    place(*how, *side);
  }
  error.clear();
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
    DeviceCopies::Integers lengths = {&given.lengths, {}};
    // Of packed ones the first need not be 0.
    int32_t sum =
        side.isPacked && !side.hasStarts ? int32_t(side.starts[0]) : 0;
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
  return copies.putAll(session.context(), memory);
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

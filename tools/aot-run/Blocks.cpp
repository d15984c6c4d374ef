//===- Blocks.cpp - lists of blocks of a case -----------------------------===//

#include "Blocks.h"

#include "Sequences.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace fovea::run {

std::optional<BlocksFill> parseBlocks(const std::string &text) {
  std::vector<std::string> words(1);
  for (char c : text)
    if (c == ':')
      words.emplace_back();
    else
      words.back() += c;
  BlocksFill fill;
  if (words.back() == "shared") {
    fill.isShared = true;
    words.pop_back();
  }
  auto read = [](const std::string &word, auto &value) {
    const char *end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, value);
    return error == std::errc() && at == end;
  };
  if (words.empty())
    return std::nullopt;
  const size_t x = words[0].find('x');
  if (x == std::string::npos || !read(words[0].substr(0, x), fill.qBlock) ||
      !read(words[0].substr(x + 1), fill.kvBlock) || fill.qBlock < 1 ||
      fill.kvBlock < 1)
    return std::nullopt;
  if (words.size() == 2 && words[1] == "mask")
    return fill;
  if (words.size() != 3 || words[1] != "random" || !read(words[2], fill.part) ||
      !(fill.part >= 0 && fill.part <= 1))
    return std::nullopt;
  fill.part = -fill.part;
  return fill;
}

CaseBlocks::CaseBlocks(const BlocksFill &fill, const ForwardCase &c)
    : fill(fill), batches(fill.isShared ? 1 : c.batch),
      heads(fill.isShared ? 1 : c.heads),
      blocksQ((c.seqQ + fill.qBlock - 1) / fill.qBlock),
      blocksK((c.seqK + fill.kvBlock - 1) / fill.kvBlock),
      kinds(std::make_shared<std::vector<Kind>>(
          size_t(batches * heads * blocksQ * blocksK), None)),
      chance(c.seed + 0xb10c) {
  auto lengthsOf = [&](int64_t b) {
    return c.sequences ? std::pair(c.sequences->q.lengths[size_t(b)],
                                   c.sequences->k.lengths[size_t(b)])
                       : std::pair(c.seqQ, c.seqK);
  };
  /// What mask and program show of a pair of blocks: something, and all.
  auto shown = [&](int64_t b, int64_t head, int64_t q, int64_t kv) {
    const auto [seqQ, seqK] = lengthsOf(b);
    std::pair<bool, bool> some = {false, (q + 1) * fill.qBlock <= seqQ &&
                                             (kv + 1) * fill.kvBlock <= seqK};
    const int64_t endQ = std::min(seqQ, (q + 1) * fill.qBlock),
                  endK = std::min(seqK, (kv + 1) * fill.kvBlock);
    for (int64_t i = q * fill.qBlock; i < endQ; ++i) {
      const reference::KeyRange seen =
          reference::visibleKeys(c.mask, i, seqQ, seqK);
      for (int64_t j = kv * fill.kvBlock; j < endK; ++j) {
        bool isSeen = j >= seen.begin && j < seen.end;
        if (isSeen && c.score) {
          const auto scored = c.score->apply(0.0, {b, head, i, j, seqQ, seqK});
          isSeen = (scored.seen || fill.isAllFull) && scored.score != -INFINITY;
        }
        some.first |= isSeen;
        some.second &= isSeen;
      }
    }
    return some;
  };
  /// Whether a sequence has a pair of blocks.
  auto has = [&](int64_t b, int64_t q, int64_t kv) {
    const auto [seqQ, seqK] = lengthsOf(b);
    return q * fill.qBlock < seqQ && kv * fill.kvBlock < seqK;
  };
  for (int64_t b = 0; b != batches; ++b)
    for (int64_t head = 0; head != heads; ++head)
      for (int64_t q = 0; q != blocksQ; ++q)
        for (int64_t kv = 0; kv != blocksK; ++kv) {
          // A program that differs by batch or head, or lengths that do, show
          // no block in whole that is not so for all.
          auto [some, all] = shown(b, head, q, kv);
          for (int64_t at = 1; fill.isShared && at < c.batch * c.heads; ++at) {
            const auto [more, whole] =
                c.score || c.sequences
                    ? shown(at / c.heads, at % c.heads, q, kv)
                    : std::pair(some, all);
            some |= more;
            all &= whole;
          }
          const bool isListed =
              fill.lists ? fill.lists(b, head, q, kv)
                         : (fill.part < 0 || some) &&
                               (fill.isShared || has(b, q, kv)) &&
                               chance.uniform() < std::fabs(fill.part);
          kindOf(b, head, q, kv) = !isListed ? None : all ? Full : Part;
          count += isListed;
          fullCount += isListed && all;
        }
  blocks.header = {sizeof(blocks), FOVEA_GROUP_BLOCKS, nullptr};
  blocks.q_block = fill.qBlock;
  blocks.kv_block = fill.kvBlock;
  list(blocks.kv, Part, true);
  list(blocks.full_kv, Full, true);
  list(blocks.q, Part, false);
  list(blocks.full_q, Full, false);
}

CaseBlocks::Kind &CaseBlocks::kindOf(int64_t b, int64_t head, int64_t q,
                                     int64_t kv) {
  return (*kinds)[size_t(((b * heads + head) * blocksQ + q) * blocksK + kv)];
}

/// Makes the lists of a kind, of blocks of keys or of queries. Rows of lists
/// are padded.
void CaseBlocks::list(fovea_block_lists_t &lists, Kind kind, bool isOfKeys) {
  const int64_t rows = isOfKeys ? blocksQ : blocksK,
                columns = isOfKeys ? blocksK : blocksQ;
  lists.entries = columns + 1;
  lists.indices_stride_block = columns + 3;
  lists.indices_stride_head = fill.isShared ? 0 : rows * (columns + 3) + 5;
  lists.indices_stride_batch =
      fill.isShared ? 0 : heads * lists.indices_stride_head;
  lists.num_blocks_stride_head = fill.isShared ? 0 : rows + 1;
  lists.num_blocks_stride_batch =
      fill.isShared ? 0 : heads * lists.num_blocks_stride_head;
  if (batches * heads * rows == 0)
    return;
  constexpr int32_t junk = 0x5a5a5a5a; // that does not count
  auto extent = [&](int64_t batch, int64_t head, int64_t rest) {
    return size_t((batches - 1) * batch + (heads - 1) * head + rest);
  };
  DeviceCopies::Integers counts = {&lists.num_blocks, {}},
                         entries = {&lists.indices, {}};
  counts.values.assign(
      extent(lists.num_blocks_stride_batch, lists.num_blocks_stride_head, rows),
      junk);
  entries.values.assign(
      extent(lists.indices_stride_batch, lists.indices_stride_head,
             (rows - 1) * lists.indices_stride_block + lists.entries),
      junk);
  for (int64_t b = 0; b != batches; ++b)
    for (int64_t head = 0; head != heads; ++head)
      for (int64_t row = 0; row != rows; ++row) {
        std::vector<int32_t> listed;
        for (int64_t column = 0; column != columns; ++column)
          if (kindOf(b, head, isOfKeys ? row : column,
                     isOfKeys ? column : row) == kind)
            listed.insert(listed.begin() + int64_t(chance.uniform() *
                                                   double(listed.size() + 1)),
                          int32_t(column));
        if (fill.hasStrays && kind == Part) {
          constexpr int32_t strays[] = {-1, junk, INT32_MIN, INT32_MAX};
          listed.push_back(row % 5 == 4 ? int32_t(columns) : strays[row % 5]);
        }
        counts.values[size_t(b * lists.num_blocks_stride_batch +
                             head * lists.num_blocks_stride_head + row)] =
            int32_t(listed.size());
        std::copy(listed.begin(), listed.end(),
                  entries.values.begin() + b * lists.indices_stride_batch +
                      head * lists.indices_stride_head +
                      row * lists.indices_stride_block);
      }
  memory.push_back(std::move(counts));
  memory.push_back(std::move(entries));
}

decltype(ForwardCase::listed) CaseBlocks::listed() const {
  return [kinds = kinds, fill = fill, heads = heads, blocksQ = blocksQ,
          blocksK = blocksK](int64_t b, int64_t head, int64_t i, int64_t j) {
    const int64_t row = fill.isShared ? 0 : b * heads + head;
    switch ((*kinds)[size_t((row * blocksQ + i / fill.qBlock) * blocksK +
                            j / fill.kvBlock)]) {
    case Part:
      return reference::Listed::InPart;
    case Full:
      return reference::Listed::InWhole;
    default:
      return reference::Listed::No;
    }
  };
}

std::string CaseBlocks::upload(Session &session) {
  return copies.putAll(session.context(), memory);
}

} // namespace fovea::run

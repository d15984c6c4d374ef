//===- Groups.cpp - the table of feature groups ---------------------------===//
//
// Arguments that kernels have besides their operation's base group, by the
// groups that their key names. docs/AddingAFeature.md walks through a new row.
//
//===----------------------------------------------------------------------===//

#include "fovea/Package/OperationSpec.h"

#include <limits>

namespace fovea::spec {
namespace {

constexpr double kInfinite = windowArgument(Window::kInfinite);

constexpr ScalarSpec kWindow[] = {
    {"window_left",
     ArgKind::I32,
     "keys",
     "keys before the left diagonal that a row sees; negative: those up to so "
     "many past it are hidden; 2147483647: all before it",
     {},
     kInfinite},
    {"window_right",
     ArgKind::I32,
     "keys",
     "keys past the right diagonal that a row sees; negative: so many before "
     "it are hidden; 2147483647: all past it",
     {},
     kInfinite},
    {"window_alignment", ArgKind::I32, "bits",
     "1: the left diagonal is bottom right, j = i + seqlen_k - seqlen_q, else "
     "top left, j = i; 2: the same of the right one"},
};

constexpr TensorSpec kDlse[] = {{"dlse", "the gradient of lse", Shape::Vector,
                                 Extent::HeadsQ, Extent::SeqlenQ, Elements::F32,
                                 /*written=*/false, /*optional=*/true,
                                 kNoOutput, "f32; null: zeros"}};

constexpr TensorSpec kSinks[] = {
    {"sinks", "the sinks", Shape::Heads, Extent::HeadsQ, Extent::SeqlenQ,
     Elements::F32, /*written=*/false, /*optional=*/true, kNoOutput,
     "f32, logits of the natural logarithm; null: -infinity"}};

constexpr TensorSpec kSinkGradients[] = {
    {"sinks", "the sinks", Shape::Heads, Extent::HeadsQ, Extent::SeqlenQ,
     Elements::F32, /*written=*/false, /*optional=*/true, kNoOutput,
     "f32, those of the forward pass; null: -infinity"},
    {"dsinks", "the gradient of the sinks", Shape::Heads, Extent::HeadsQ,
     Extent::SeqlenQ, Elements::F32, /*written=*/true, /*optional=*/true,
     kDsinks, "f32; null: not written"}};

constexpr ScalarSpec kBatches[] = {
    {"batches", ArgKind::I32, "batches",
     "batch, which the gradient of a sink is summed over"}};

constexpr LaunchSpec kSinkSums[] = {{"dsinks", false, kDsinks, 0, 0, 0, 0,
                                     /*splitsKeys=*/false,
                                     /*ownsHeads=*/true}};

constexpr TensorSpec listOf(const char *name, const char *title, Shape shape,
                            Extent rows, const char *note) {
  return {name,
          title,
          shape,
          Extent::HeadsQ,
          rows,
          Elements::I32,
          /*written=*/false,
          /*optional=*/true,
          kNoOutput,
          note};
}
constexpr TensorSpec countsOf(const char *name, const char *title, Extent rows,
                              const char *note) {
  return listOf(name, title, Shape::BlockCounts, rows, note);
}
constexpr TensorSpec entriesOf(const char *name, const char *title, Extent rows,
                               const char *note) {
  return listOf(name, title, Shape::BlockLists, rows, note);
}

constexpr TensorSpec kBlocks[] = {
    countsOf("kv_num_blocks",
             "the numbers of blocks of keys that are seen in part",
             Extent::SeqlenQ, "i32; null: every block is"),
    entriesOf("kv_indices", "the blocks of keys that are seen in part",
              Extent::SeqlenQ, "i32; null with the numbers"),
    countsOf("full_kv_num_blocks",
             "the numbers of blocks of keys that are seen in whole",
             Extent::SeqlenQ, "i32; null: no block is"),
    entriesOf("full_kv_indices", "the blocks of keys that are seen in whole",
              Extent::SeqlenQ, "i32; null with the numbers"),
    countsOf("q_num_blocks",
             "the numbers of blocks of queries that see in part",
             Extent::SeqlenK, "i32; null: every block does"),
    entriesOf("q_indices", "the blocks of queries that see in part",
              Extent::SeqlenK, "i32; null with the numbers"),
    countsOf("full_q_num_blocks",
             "the numbers of blocks of queries that see in whole",
             Extent::SeqlenK, "i32; null: no block does"),
    entriesOf("full_q_indices", "the blocks of queries that see in whole",
              Extent::SeqlenK, "i32; null with the numbers"),
};

constexpr ScalarSpec kBlockSizes[] = {
    {"q_block",
     ArgKind::I32,
     "rows",
     "queries of a block, a multiple of 128",
     {},
     kListBlockUnit},
    {"kv_block",
     ArgKind::I32,
     "rows",
     "keys of a block, a multiple of 128",
     {},
     kListBlockUnit},
    {"kv_entries", ArgKind::I32, "entries", "entries of a row of kv_indices"},
    {"full_kv_entries", ArgKind::I32, "entries",
     "entries of a row of full_kv_indices"},
    {"q_entries", ArgKind::I32, "entries", "entries of a row of q_indices"},
    {"full_q_entries", ArgKind::I32, "entries",
     "entries of a row of full_q_indices"},
};

constexpr TensorSpec ofSequences(const char *name, const char *title,
                                 Extent rows, const char *note) {
  return {name,
          title,
          Shape::Sequences,
          Extent::HeadsQ,
          rows,
          Elements::I32,
          /*written=*/false,
          /*optional=*/true,
          kNoOutput,
          note};
}

constexpr TensorSpec kVarlen[] = {
    ofSequences("seqlens_q", "the queries of each sequence", Extent::SeqlenQ,
                "i32; null: all have seqlen_q"),
    ofSequences("seqlens_k", "the keys of each sequence", Extent::SeqlenK,
                "i32; null: all have seqlen_k"),
    ofSequences("starts_q", "the row of each sequence's first query",
                Extent::SeqlenQ, "i32, in its batch; null: 0"),
    ofSequences("starts_k", "the row of each sequence's first key",
                Extent::SeqlenK, "i32, in its batch; null: 0"),
};

constexpr ScalarSpec kVarlenSizes[] = {
    {"varlen_flags", ArgKind::I32, "bits",
     "1: seqlens_q, and 2: seqlens_k, are [batch + 1], of which a sequence has "
     "the difference; 4: starts_q are those of lse and dlse too; 8: y of grids "
     "by queries, and 16: of those by keys, counts the blocks of all "
     "sequences"},
    {"lse_stride_seq",
     ArgKind::I32,
     "elements",
     "distance of queries in lse and dlse",
     {},
     1},
    {"packed_rows_q", ArgKind::I32, "rows",
     "queries of all sequences, that lie in one batch behind starts_q; 0: each "
     "has a batch of its own"},
    {"sequences", ArgKind::I32, "sequences", "batch"},
};

constexpr TensorSpec numberOf(const char *name, const char *title, bool written,
                              const char *note) {
  return {name,
          title,
          Shape::Number,
          Extent::HeadsQ,
          Extent::SeqlenQ,
          Elements::I64,
          written,
          /*optional=*/true,
          kNoOutput,
          note};
}

constexpr TensorSpec kDropout[] = {
    numberOf("philox_seed", "the generator's seed", /*written=*/false,
             "i64, added to dropout_seed; null: 0"),
    numberOf("philox_offset", "the generator's offset", /*written=*/false,
             "i64, added to dropout_offset; null: 0"),
    numberOf("philox_seed_out", "the seed that was used", /*written=*/true,
             "i64; null: not written, as never by backward kernels"),
    numberOf("philox_offset_out", "the offset that was used", /*written=*/true,
             "i64; null: not written, as never by backward kernels"),
};

constexpr ScalarSpec kDropoutScalars[] = {
    {"dropout_threshold",
     ArgKind::I32,
     "",
     "a weight is kept if its random word, with sign, is at least this",
     {},
     double(std::numeric_limits<int32_t>::min())},
    {"dropout_scale", ArgKind::F32, "factor", "1 / (1 - p)", {}, 1},
    {"dropout_flags", ArgKind::I32, "bits",
     "1: the words of four keys are in the order 0, 2, 1, 3"},
    {"dropout_seed", ArgKind::I64, "", "the generator's key"},
    {"dropout_offset", ArgKind::I64, "", "the generator's first counter"},
};

constexpr double kAllColumns = std::numeric_limits<int32_t>::max();

constexpr ScalarSpec kHeadDims[] = {
    {"head_dim_qk",
     ArgKind::I32,
     "elements",
     "those of a row of q and k that there are; at least head_dim: all",
     {},
     kAllColumns},
    {"head_dim_v",
     ArgKind::I32,
     "elements",
     "those of a row of v and out that there are; at least head_dim: all",
     {},
     kAllColumns},
};

constexpr GroupSpec kGroups[] = {
    {"window", kWindowVersion, {}, kWindow},
    {"dlse", 1, kDlse, {}, only(OpKind::Backward)},
    {"sinks", 1, kSinks, {}, only(OpKind::Forward)},
    {"dsinks", 1, kSinkGradients, kBatches, only(OpKind::Backward), kSinkSums},
    {"blocks", 1, kBlocks, kBlockSizes},
    {"varlen", 1, kVarlen, kVarlenSizes},
    {"dropout", 1, kDropout, kDropoutScalars,
     kOfAttention | only(OpKind::DropoutMask)},
    {"head_dims", kHeadDimsVersion, {}, kHeadDims},
};
static_assert(std::size(kGroups) <= kMaxGroups);

} // namespace

Rows<GroupSpec> featureGroups() { return kGroups; }

} // namespace fovea::spec

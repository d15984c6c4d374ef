//===- Groups.cpp - the table of feature groups of the C interface --------===//

#include "Groups.h"

namespace fovea::rt {
namespace {

Result readWindow(const fovea_group_t *group, Problem &problem,
                  GroupArguments &) {
  fovea_window_t given;
  if (Result result = readVersioned(
          "window.header", reinterpret_cast<const fovea_window_t *>(group),
          kWindowFirstSize, given);
      !result.ok())
    return result;
  for (const auto &[name, alignment] :
       {std::pair("window.left_alignment", given.left_alignment),
        {"window.right_alignment", given.right_alignment}})
    if (alignment != FOVEA_ALIGN_TOP_LEFT &&
        alignment != FOVEA_ALIGN_BOTTOM_RIGHT)
      return invalid(std::string(name) + " is " + std::to_string(alignment) +
                     ", not FOVEA_ALIGN_TOP_LEFT (0) or "
                     "FOVEA_ALIGN_BOTTOM_RIGHT (1)");
  problem.window = {given.left, given.right, Alignment(given.left_alignment),
                    Alignment(given.right_alignment)};
  return Result();
}

constexpr fovea_window_t kNeutralWindow = {
    {sizeof(fovea_window_t), FOVEA_GROUP_WINDOW, nullptr},
    FOVEA_WINDOW_INFINITE,
    FOVEA_WINDOW_INFINITE,
    FOVEA_ALIGN_TOP_LEFT,
    FOVEA_ALIGN_TOP_LEFT};

/// A group of tensors alone.
template <typename Given>
Result readTensors(const char *header, const fovea_group_t *group,
                   uint32_t firstSize, GroupArguments &arguments) {
  Given given;
  if (Result result = readVersioned(
          header, reinterpret_cast<const Given *>(group), firstSize, given);
      !result.ok())
    return result;
  arguments.setTensors(&given);
  return Result();
}

Result readDlse(const fovea_group_t *group, Problem &,
                GroupArguments &arguments) {
  return readTensors<fovea_dlse_t>("dlse.header", group, kDlseFirstSize,
                                   arguments);
}
constexpr fovea_dlse_t kNoDlse = {
    {sizeof(fovea_dlse_t), FOVEA_GROUP_DLSE, nullptr}, nullptr, 0, 0};

Result readSinks(const fovea_group_t *group, Problem &,
                 GroupArguments &arguments) {
  return readTensors<fovea_sinks_t>("sinks.header", group, kSinksFirstSize,
                                    arguments);
}
constexpr fovea_sinks_t kNoSinks = {
    {sizeof(fovea_sinks_t), FOVEA_GROUP_SINKS, nullptr}, nullptr, 0};

Result readDsinks(const fovea_group_t *group, Problem &problem,
                  GroupArguments &arguments) {
  arguments.set(0, problem.sizes.batch);
  return readTensors<fovea_dsinks_t>("dsinks.header", group, kDsinksFirstSize,
                                     arguments);
}
constexpr fovea_dsinks_t kNoDsinks = {
    {sizeof(fovea_dsinks_t), FOVEA_GROUP_DSINKS, nullptr},
    nullptr,
    0,
    nullptr,
    0};

/// The lists of a structure, in the order of its row's pairs of tensors.
struct ListField {
  const char *name;
  fovea_block_lists_t fovea_blocks_t::*field;
  int64_t fovea_blocks_t::*other; ///< size of the blocks that have a list each
  int64_t fovea_blocks_t::*own;   ///< and of those in the lists
  spec::Extent rows;
  bool isBackward;
  int needs; ///< lists that are there if these are; -1: none
};
constexpr ListField kLists[] = {
    {"kv", &fovea_blocks_t::kv, &fovea_blocks_t::q_block,
     &fovea_blocks_t::kv_block, spec::Extent::SeqlenQ, false, -1},
    {"full_kv", &fovea_blocks_t::full_kv, &fovea_blocks_t::q_block,
     &fovea_blocks_t::kv_block, spec::Extent::SeqlenQ, false, 0},
    {"q", &fovea_blocks_t::q, &fovea_blocks_t::kv_block,
     &fovea_blocks_t::q_block, spec::Extent::SeqlenK, true, 0},
    {"full_q", &fovea_blocks_t::full_q, &fovea_blocks_t::kv_block,
     &fovea_blocks_t::q_block, spec::Extent::SeqlenK, true, 1},
};
static_assert(std::size(params::kBlocksTensors) == 2 * std::size(kLists));
/// Number of the group's first scalar that is a list's `entries`.
constexpr size_t kFirstEntries = 2;

Result checkBlockSize(const char *name, int64_t size) {
  if (size >= spec::kListBlockUnit && size <= spec::kMostListBlock &&
      size % spec::kListBlockUnit == 0)
    return Result();
  return invalid(std::string("blocks.") + name + " is " + std::to_string(size) +
                 ", no multiple of " + std::to_string(spec::kListBlockUnit) +
                 " up to " + std::to_string(spec::kMostListBlock) +
                 "; smaller blocks have to be joined");
}

/// Whether lists are there.
bool isGiven(const fovea_block_lists_t &lists) {
  return lists.num_blocks || lists.indices;
}

Result checkLists(const ListField &list, const fovea_blocks_t &given) {
  const std::string name = std::string("blocks.") + list.name;
  const fovea_block_lists_t &lists = given.*list.field;
  if (!lists.num_blocks || !lists.indices)
    return invalid(name + (lists.indices ? ".num_blocks" : ".indices") +
                   " is NULL and the other is not; give both or neither");
  if (list.needs >= 0 && !isGiven(given.*kLists[list.needs].field))
    return invalid(name + " is given without blocks." +
                   kLists[list.needs].name +
                   "; give that too, with num_blocks of 0 if it lists nothing");
  const int64_t most = spec::mostListEntries(given.*list.own);
  if (lists.entries < 0 || lists.entries > most)
    return invalid(name + ".entries is " + std::to_string(lists.entries) +
                   ", not in 0 to " + std::to_string(most) + " for blocks of " +
                   std::to_string(given.*list.own) +
                   "; of powers of two there may be most");
  return Result();
}

Result readBlocks(const fovea_group_t *group, Problem &problem,
                  GroupArguments &arguments) {
  fovea_blocks_t given;
  if (Result result = readVersioned(
          "blocks.header", reinterpret_cast<const fovea_blocks_t *>(group),
          kBlocksFirstSize, given);
      !result.ok())
    return result;
  size_t scalar = 0;
  for (const auto &[name, size] :
       {std::pair("q_block", given.q_block), {"kv_block", given.kv_block}}) {
    if (Result result = checkBlockSize(name, size); !result.ok())
      return result;
    arguments.set(scalar++, int32_t(size));
  }
  arguments.setTensors(&given);
  for (size_t i = 0; i != std::size(kLists); ++i) {
    const ListField &list = kLists[i];
    const fovea_block_lists_t &lists = given.*list.field;
    TensorParam &counts = arguments.tensor(2 * i),
                &entries = arguments.tensor(2 * i + 1);
    const bool isWanted =
        !list.isBackward || problem.key.op == OpKind::Backward;
    if (isWanted && isGiven(lists))
      if (Result result = checkLists(list, given); !result.ok())
        return result;
    if (!isWanted || !isGiven(lists)) {
      counts.unwanted = entries.unwanted = true;
      counts.data = entries.data = nullptr;
      continue;
    }
    const int64_t rows = problem.sizes.of(list.rows), block = given.*list.other;
    counts.rowElements = entries.rows = (rows + block - 1) / block;
    entries.rowElements = lists.entries;
    arguments.set(kFirstEntries + i, lists.entries);
  }
  const bool isListed = isGiven(given.kv);
  if (problem.key.op == OpKind::Backward && isListed && !isGiven(given.q))
    return invalid("blocks.q is not given and blocks.kv is; gradients of keys "
                   "and values need the lists the other way round too");
  if (problem.key.op == OpKind::Backward && isGiven(given.full_kv) &&
      !isGiven(given.full_q))
    return invalid("blocks.full_q is not given and blocks.full_kv is; "
                   "gradients of keys and values need the lists the other way "
                   "round too");
  problem.headsDiffer |= isListed;
  return Result();
}
constexpr fovea_blocks_t kNoBlocks = {
    {sizeof(fovea_blocks_t), FOVEA_GROUP_BLOCKS, nullptr},
    spec::kListBlockUnit,
    spec::kListBlockUnit,
    {},
    {},
    {},
    {}};

/// One side of a structure.
/// \param most     rows by the call
/// \param packed   receives those of packed tensors
/// \param batched  receives those of each batch that are not the call's
Result readSequences(const std::string &name, const fovea_sequences_t &given,
                     int64_t most, int64_t &packed, int64_t &batched) {
  if (given.kind != FOVEA_LENGTHS_EACH &&
      given.kind != FOVEA_LENGTHS_CUMULATIVE)
    return invalid(name + ".kind is " + std::to_string(given.kind) +
                   ", not FOVEA_LENGTHS_EACH (0) or FOVEA_LENGTHS_CUMULATIVE "
                   "(1)");
  if (given.layout != FOVEA_ROWS_BATCHED && given.layout != FOVEA_ROWS_PACKED)
    return invalid(name + ".layout is " + std::to_string(given.layout) +
                   ", not FOVEA_ROWS_BATCHED (0) or FOVEA_ROWS_PACKED (1)");
  if (given.total < 0 || given.total > spec::kMaxSeqlen)
    return invalid(name + ".total is " + std::to_string(given.total) +
                   ", not in 0 to " + std::to_string(spec::kMaxSeqlen));
  if (given.layout == FOVEA_ROWS_BATCHED) {
    if (given.total == 0)
      return Result();
    if (!given.lengths && given.total < most)
      return invalid(name + ".total is " + std::to_string(given.total) +
                     ", and without lengths each sequence has the call's " +
                     std::to_string(most) + " rows; give lengths");
    batched = given.total;
    return Result();
  }
  if (!given.starts &&
      (!given.lengths || given.kind != FOVEA_LENGTHS_CUMULATIVE))
    return invalid(name +
                   ".starts is NULL, and packed rows have no cumulative "
                   "lengths to say where each sequence begins; give either");
  packed = given.total;
  return Result();
}

/// Whether a grid of one side is better one of blocks of all sequences: if most
/// workgroups would find that theirs has ended. Only where the sums say where
/// sequences begin, which are in order then.
bool packsGrid(const fovea_sequences_t &side, int64_t batch, int64_t most) {
  if (side.layout != FOVEA_ROWS_PACKED ||
      side.kind != FOVEA_LENGTHS_CUMULATIVE || side.starts != side.lengths)
    return false;
  constexpr int64_t rows = 128, leastRows = 16; // of a workgroup, about
  const int64_t packed = side.total / rows + batch,
                all = batch * ((most + rows - 1) / rows);
  return all > 2 * packed && side.total / leastRows + batch <= spec::kMaxGridYZ;
}

Result readVarlen(const fovea_group_t *group, Problem &problem,
                  GroupArguments &arguments) {
  fovea_varlen_t given;
  if (Result result = readVersioned(
          "varlen.header", reinterpret_cast<const fovea_varlen_t *>(group),
          kVarlenFirstSize, given);
      !result.ok())
    return result;
  Sizes &sizes = problem.sizes;
  if (Result result = readSequences("varlen.q", given.q, sizes.seqlenQ,
                                    sizes.packedQ, sizes.batchedQ);
      !result.ok())
    return result;
  if (Result result = readSequences("varlen.k", given.k, sizes.seqlenK,
                                    sizes.packedK, sizes.batchedK);
      !result.ok())
    return result;
  if (given.lse_layout != FOVEA_LSE_AS_Q &&
      given.lse_layout != FOVEA_LSE_BATCHED)
    return invalid("varlen.lse_layout is " + std::to_string(given.lse_layout) +
                   ", not FOVEA_LSE_AS_Q (0) or FOVEA_LSE_BATCHED (1)");
  if (given.lse_stride_seq < 0 ||
      given.lse_stride_seq > spec::maxSeqStride(sizeof(float)))
    return invalid("varlen.lse_stride_seq is " +
                   std::to_string(given.lse_stride_seq) + ", not in 0 to " +
                   std::to_string(spec::maxSeqStride(sizeof(float))));
  if (given.reserved != 0)
    return invalid("varlen.reserved is " + std::to_string(given.reserved) +
                   "; set the structure to zero before filling it");
  bool startsAreSums[2] = {};
  for (size_t i = 0; i != 2; ++i) {
    fovea_sequences_t &side = i == 0 ? given.q : given.k;
    startsAreSums[i] = side.layout == FOVEA_ROWS_PACKED && !side.starts;
    if (startsAreSums[i])
      side.starts = side.lengths;
  }
  arguments.setTensors(&given);
  for (size_t i = 0; i != 2; ++i) {
    const bool isCumulative =
        (i == 0 ? given.q : given.k).kind == FOVEA_LENGTHS_CUMULATIVE;
    arguments.tensor(i).rowElements += isCumulative;
    if (startsAreSums[i])
      arguments.tensor(2 + i).place = arguments.tensor(i).place;
  }
  problem.lengthsDiffer = true;
  problem.queriesDiffer = given.q.lengths || given.q.starts;
  problem.lseIsPacked =
      sizes.packedQ >= 0 && given.lse_layout == FOVEA_LSE_AS_Q;
  if (given.lse_stride_seq != 0)
    problem.lseStrideSeq = given.lse_stride_seq;
  const bool lseHasStarts =
      given.lse_layout == FOVEA_LSE_AS_Q && given.q.starts;
  auto flag = [](bool isSet, int32_t bit) { return isSet ? bit : 0; };
  problem.packsGridQ = packsGrid(given.q, sizes.batch, sizes.seqlenQ);
  problem.packsGridK = packsGrid(given.k, sizes.batch, sizes.seqlenK);
  arguments.set(0, flag(problem.packsGridQ, spec::kGridIsPackedQ) |
                       flag(problem.packsGridK, spec::kGridIsPackedK) |
                       flag(given.q.kind == FOVEA_LENGTHS_CUMULATIVE,
                            spec::kSeqlensQAreSums) |
                       flag(given.k.kind == FOVEA_LENGTHS_CUMULATIVE,
                            spec::kSeqlensKAreSums) |
                       flag(lseHasStarts, spec::kLseHasStarts));
  arguments.set(1, problem.lseStrideSeq);
  arguments.set(2, std::max<int64_t>(sizes.packedQ, 0));
  arguments.set(3, sizes.batch);
  return Result();
}
constexpr fovea_varlen_t kNoVarlen = {
    {sizeof(fovea_varlen_t), FOVEA_GROUP_VARLEN, nullptr},
    {},
    {},
    0,
    FOVEA_LSE_AS_Q,
    0};

/// The least word, with sign, of a weight that is kept. In fp32 as AOTriton's
/// kernels have it (modules/flash/kernel/dropout.py).
int32_t thresholdOf(float p) {
  const float bound = (p - 0.5f) * 4294967296.0f;
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  return bound >= float(most) ? most : int32_t(bound) + 1;
}

Result readDropout(const fovea_group_t *group, Problem &problem,
                   GroupArguments &arguments) {
  fovea_dropout_t given;
  if (Result result = readVersioned(
          "dropout.header", reinterpret_cast<const fovea_dropout_t *>(group),
          kDropoutFirstSize, given);
      !result.ok())
    return result;
  if (!(given.p >= 0 && given.p <= 1))
    return invalid("dropout.p is " + std::to_string(given.p) +
                   ", not in 0 to 1");
  if (given.word_order != FOVEA_PHILOX_0123 &&
      given.word_order != FOVEA_PHILOX_0213)
    return invalid("dropout.word_order is " + std::to_string(given.word_order) +
                   ", not FOVEA_PHILOX_0123 (0) or FOVEA_PHILOX_0213 (1)");
  if (problem.key.op != OpKind::Forward && (given.seed_out || given.offset_out))
    return invalid(std::string("dropout.") +
                   (given.seed_out ? "seed_out" : "offset_out") +
                   " is not NULL in a " + toString(problem.key.op) +
                   " call; only forward calls write it");
  if (given.p == 0) { // kernels without it serve the call
    problem.key.groups[size_t(spec::findGroup("dropout"))] = 0;
    return Result();
  }
  arguments.setTensors(&given);
  arguments.set(0, thresholdOf(given.p));
  arguments.set(1, given.p == 1 ? 0.0f : 1 / (1 - given.p));
  arguments.set(2, given.word_order);
  arguments.set(3, given.seed_value);
  arguments.set(4, given.offset_value);
  problem.headsDiffer = true;
  return Result();
}
constexpr VaryingField kDropoutVarying[] = {
    {offsetof(fovea_dropout_t, seed_value), 3},
    {offsetof(fovea_dropout_t, offset_value), 4}};
constexpr fovea_dropout_t kNoDropout = {
    {sizeof(fovea_dropout_t), FOVEA_GROUP_DROPOUT, nullptr},
    0,
    FOVEA_PHILOX_0123,
    0,
    0,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

Result readHeadDims(const fovea_group_t *group, Problem &problem,
                    GroupArguments &) {
  fovea_head_dims_t given;
  if (Result result =
          readVersioned("head_dims.header",
                        reinterpret_cast<const fovea_head_dims_t *>(group),
                        kHeadDimsFirstSize, given);
      !result.ok())
    return result;
  if (given.head_dim_v < 0 || given.head_dim_v > kMaxHeadDimV)
    return invalid("head_dims.head_dim_v is " +
                   std::to_string(given.head_dim_v) + ", not in 0 to " +
                   std::to_string(kMaxHeadDimV));
  if (given.head_dim_v > 0)
    problem.sizes.headDimV = given.head_dim_v;
  return Result();
}
constexpr fovea_head_dims_t kSameHeadDims = {
    {sizeof(fovea_head_dims_t), FOVEA_GROUP_HEAD_DIMS, nullptr}, 0};

constexpr GroupReader kReaders[] = {
    {FOVEA_GROUP_WINDOW, "FOVEA_GROUP_WINDOW", "window", readWindow,
     &kNeutralWindow.header},
    {FOVEA_GROUP_DLSE, "FOVEA_GROUP_DLSE", "dlse", readDlse, &kNoDlse.header,
     params::kDlseTensors},
    {FOVEA_GROUP_SINKS, "FOVEA_GROUP_SINKS", "sinks", readSinks,
     &kNoSinks.header, params::kSinksTensors},
    {FOVEA_GROUP_DSINKS, "FOVEA_GROUP_DSINKS", "dsinks", readDsinks,
     &kNoDsinks.header, params::kDsinksTensors},
    {FOVEA_GROUP_BLOCKS, "FOVEA_GROUP_BLOCKS", "blocks", readBlocks,
     &kNoBlocks.header, params::kBlocksTensors},
    {FOVEA_GROUP_VARLEN, "FOVEA_GROUP_VARLEN", "varlen", readVarlen,
     &kNoVarlen.header, params::kVarlenTensors, /*shapesTensors=*/true},
    {FOVEA_GROUP_DROPOUT, "FOVEA_GROUP_DROPOUT", "dropout", readDropout,
     &kNoDropout.header, params::kDropoutTensors, /*shapesTensors=*/false,
     kDropoutVarying},
    {FOVEA_GROUP_HEAD_DIMS,
     "FOVEA_GROUP_HEAD_DIMS",
     "head_dims",
     readHeadDims,
     &kSameHeadDims.header,
     {},
     /*shapesTensors=*/true},
};

} // namespace

spec::Rows<GroupReader> groupReaders() { return kReaders; }

} // namespace fovea::rt

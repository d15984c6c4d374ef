//===- VarlenRefusedTest.cpp - lengths and places that are refused --------===//

#include "VarlenPack.h"

using namespace client;

namespace {

/// One way to break a call, which is refused and writes nothing.
struct Broken {
  const char *name;
  hipError_t status;
  const char *reason;
  void (*breakIt)(v3::attn_fwd_params &);
};
using Fwd = v3::attn_fwd_params;

template <int Rank>
aotriton::TensorView<Rank> with(const aotriton::TensorView<Rank> &view,
                                uint64_t size,
                                aotriton::DType type = aotriton::kInt32) {
  std::array<uint64_t, Rank> sizes = view.sizes();
  sizes[0] = size;
  return {reinterpret_cast<intptr_t>(view.data_ptr()), sizes, view.strides(),
          type};
}

const Broken kBroken[] = {
    {"Most", hipErrorInvalidValue, "Max_seqlen_q is -1",
     [](Fwd &p) { p.Max_seqlen_q = -1; }},
    {"NoMost", hipErrorInvalidValue,
     "Max_seqlen_q is 0, and Q has 55 rows, of which none would be computed",
     [](Fwd &p) { p.Max_seqlen_q = 0; }},
    {"LseOfBatches", hipErrorInvalidValue, "L has shape",
     [](Fwd &p) { p.L = {0x1000, {7, 7}, {7, 1}, aotriton::kFloat32}; }},
    {"LseOfOneSequence", hipErrorInvalidValue,
     "which AOTriton writes beyond its end; FOVEA_AOTRITON_WORKSPACE=allocate",
     [](Fwd &p) {
       p.L = {
           0x1000, {uint64_t(Pack::kHeadsQ), 40}, {40, 1}, aotriton::kFloat32};
     }},
    {"Batches", hipErrorInvalidValue, "Q has shape (2, ",
     [](Fwd &p) { p.Q = with<4>(p.Q, 2, p.Q.dtype()); }},
    {"Dropout", hipErrorNotSupported, "dropout_p",
     [](Fwd &p) { p.dropout_p = 0.5f; }},
#if AOTRITON_VERSION_MINOR < 14
    {"Type", hipErrorInvalidValue, "varlen_type is 4",
     [](Fwd &p) { p.varlen_type = 4; }},
    {"NoLengthsOfKeys", hipErrorInvalidValue, "cu_seqlens_k has no data",
     [](Fwd &p) { p.cu_seqlens_k = {}; }},
    {"NoLengthsOfQueries", hipErrorInvalidValue,
     "cu_seqlens_k has data, and cu_seqlens_q none",
     [](Fwd &p) { p.cu_seqlens_q = {}; }},
    {"TooFewLengths", hipErrorInvalidValue,
     "cu_seqlens_k has 2 entries; 3 are needed",
     [](Fwd &p) { p.cu_seqlens_k = with<1>(p.cu_seqlens_k, 2); }},
    {"NoSequences", hipErrorInvalidValue, "0 sequences by cu_seqlens_q",
     [](Fwd &p) { p.cu_seqlens_q = with<1>(p.cu_seqlens_q, 1); }},
    {"LongLengths", hipErrorInvalidValue, "cu_seqlens_q has type number 13",
     [](Fwd &p) {
       p.cu_seqlens_q = with<1>(p.cu_seqlens_q, 3, aotriton::kInt64);
     }},
    {"PaddedByOthers", hipErrorInvalidValue, "there must be one entry more",
     [](Fwd &p) { p.varlen_type = v3::VarlenType::PaddedVarlen; }},
#if AOTRITON_VERSION_MINOR >= 12
    {"PositionsOfKeysAlone", hipErrorInvalidValue,
     "seq_strides_k has data, and seq_strides_q none",
     [](Fwd &p) { p.seq_strides_k = p.cu_seqlens_k; }},
    {"PositionsOfPadded", hipErrorInvalidValue,
     "seq_strides_q has data, and varlen_type is 2 (padded)",
     [](Fwd &p) {
       p.varlen_type = v3::VarlenType::PaddedVarlen;
       p.seq_strides_q = p.seq_strides_k = p.cu_seqlens_q;
     }},
#endif
#else
    {"Reserved", hipErrorInvalidValue, "reserved bits, 18 to 31",
     [](Fwd &p) { p.varlen_bits.reserved = 1; }},
    {"ReservedOfSide", hipErrorInvalidValue,
     "varlen_bits.kmode is 0x002b; its reserved bits",
     [](Fwd &p) { p.varlen_bits.kmode.reserved = 1; }},
    {"LseLayout", hipErrorInvalidValue, "lse_layout is 2",
     [](Fwd &p) { p.varlen_bits.lse_layout = 2; }},
    {"Length", hipErrorInvalidValue, "varlen_bits.qmode is 0x000f",
     [](Fwd &p) { p.varlen_bits.qmode.length = 3; }},
    {"Position", hipErrorInvalidValue, "varlen_bits.qmode is 0x001b",
     [](Fwd &p) { p.varlen_bits.qmode.position = 3; }},
    {"ReuseOfEach", hipErrorInvalidValue, "(REUSE) that are not CUMULATIVE",
     [](Fwd &p) { p.varlen_bits.kmode.length = v3::VarlenLength::INDIVIDUAL; }},
    {"LengthsBesideMost", hipErrorInvalidValue, "seqinfo_k0 has data",
     [](Fwd &p) { p.varlen_bits.kmode = {}; }},
    {"NoLengths", hipErrorInvalidValue, "seqinfo_q0 has no data",
     [](Fwd &p) { p.seqinfo_q0 = {}; }},
    {"NoPositions", hipErrorInvalidValue, "seqinfo_q1 has no data",
     [](Fwd &p) { p.varlen_bits.qmode.position = v3::VarlenPosition::ARRAY; }},
    {"TooFewPositions", hipErrorInvalidValue,
     "seqinfo_q1 has 2 entries; 3 are needed",
     [](Fwd &p) {
       p.varlen_bits.qmode.position = v3::VarlenPosition::ARRAY;
       p.seqinfo_q1 = with<1>(p.seqinfo_q0, 2);
     }},
    {"NotAMultiple", hipErrorInvalidValue,
     "Q has 55 rows and Max_seqlen_q is 40",
     [](Fwd &p) {
       p.varlen_bits.qmode = {};
       p.varlen_bits.qmode.stacked = 1;
       p.seqinfo_q0 = {};
     }},
    {"UniformKeysTooFew", hipErrorInvalidValue,
     "K has 43 rows, and 2 sequences that begin 33 rows apart (Max_seqlen_k) "
     "end at 66",
     [](Fwd &p) {
       p.varlen_bits.kmode.position = v3::VarlenPosition::IMPLIED;
     }},
    {"TooFewBatches", hipErrorInvalidValue, "K has shape (1, ",
     [](Fwd &p) {
       p.varlen_bits.kmode = {};
       p.seqinfo_k0 = {};
     }},
#endif
};

TEST(VarlenRefused, BrokenCalls) {
  Pack pack(kPlain);
  for (const Broken &row : kBroken) {
    SCOPED_TRACE(row.name);
    v3::attn_fwd_params params = pack.forwardParams();
    row.breakIt(params);
    EXPECT_EQ(attnFwd(params), row.status);
    EXPECT_NE(std::string(why()).find(row.reason), std::string::npos) << why();
  }
  pack.out->buffer.download();
  EXPECT_TRUE(pack.out->isUntouchedElsewhere());
  EXPECT_EQ(attnFwd(pack.forwardParams()), hipSuccess) << why();
}

} // namespace

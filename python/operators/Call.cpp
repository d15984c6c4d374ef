//===- Call.cpp - structures of fovea.h, made of tensors ------------------===//

#include "Call.h"

#include <torch/csrc/stable/accelerator.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sstream>

namespace fovea::operators {
namespace {

// What an empty tensor has for an address, which nothing reads.
void *const kNowhere = reinterpret_cast<void *>(256);

constexpr const char *kDimNames[kDims] = {
    "batch",    "heads_q",    "heads_k", "seqlen_q", "seqlen_k",
    "head_dim", "head_dim_v", "total_q", "total_k"};

const std::array<ElementType, 7> &elementTypes() {
  static const std::array<ElementType, 7> types{{
      {aoti_torch_dtype_float16(), "float16", 2, FOVEA_DTYPE_F16,
       FOVEA_CAPTURE_F16},
      {aoti_torch_dtype_bfloat16(), "bfloat16", 2, FOVEA_DTYPE_BF16,
       FOVEA_CAPTURE_BF16},
      {aoti_torch_dtype_float32(), "float32", 4, FOVEA_DTYPE_F32,
       FOVEA_CAPTURE_F32},
      {aoti_torch_dtype_int32(), "int32", 4, 0, FOVEA_CAPTURE_I32},
      {aoti_torch_dtype_bool(), "bool", 1, 0, FOVEA_CAPTURE_BOOL},
      {aoti_torch_dtype_int64(), "int64", 8, 0, 0},
      {aoti_torch_dtype_uint64(), "uint64", 8, 0, 0},
  }};
  return types;
}

/// The name of a type that no argument takes, for a message.
std::string nameOfForeign(int32_t code) {
  static const std::pair<int32_t, const char *> types[] = {
      {aoti_torch_dtype_float64(), "float64"},
      {aoti_torch_dtype_uint8(), "uint8"},
      {aoti_torch_dtype_uint16(), "uint16"},
      {aoti_torch_dtype_uint32(), "uint32"},
      {aoti_torch_dtype_int8(), "int8"},
      {aoti_torch_dtype_int16(), "int16"},
      {aoti_torch_dtype_complex32(), "complex32"},
      {aoti_torch_dtype_complex64(), "complex64"},
      {aoti_torch_dtype_complex128(), "complex128"},
      {aoti_torch_dtype_float8_e5m2(), "float8_e5m2"},
      {aoti_torch_dtype_float8_e4m3fn(), "float8_e4m3fn"},
      {aoti_torch_dtype_float8_e5m2fnuz(), "float8_e5m2fnuz"},
      {aoti_torch_dtype_float8_e4m3fnuz(), "float8_e4m3fnuz"},
  };
  for (const auto &[known, name] : types)
    if (known == code)
      return name;
  return "of PyTorch's type " + std::to_string(code);
}

// What arguments take.
constexpr const char *kOfAttention = "one of float16, bfloat16, float32";
constexpr const char *kOfCaptures =
    "one of float32, float16, bfloat16, int32, bool";
constexpr const char *kOfSeeds = "one of int64, uint64";

// The numbers of names that arguments are.
struct Choice {
  const char *name;
  int32_t number;
};
constexpr Choice kMasks[] = {
    {"none", FOVEA_MASK_NONE},
    {"causal-top-left", FOVEA_MASK_CAUSAL_TOP_LEFT},
    {"causal-bottom-right", FOVEA_MASK_CAUSAL_BOTTOM_RIGHT}};
constexpr Choice kAlignments[] = {{"top-left", FOVEA_ALIGN_TOP_LEFT},
                                  {"bottom-right", FOVEA_ALIGN_BOTTOM_RIGHT}};

template <size_t N>
int32_t numberOf(const char *what, const std::string &value,
                 const Choice (&choices)[N]) {
  std::string known;
  for (const Choice &choice : choices) {
    if (value == choice.name)
      return choice.number;
    known += std::string(known.empty() ? "'" : ", '") + choice.name + "'";
  }
  refuse(std::string(what) + " is '" + value + "', not one of " + known);
}

std::string listOf(const std::vector<std::string> &items) {
  std::string text = "(";
  for (size_t i = 0; i < items.size(); ++i)
    text += (i ? ", " : "") + items[i];
  return text + (items.size() == 1 ? ",)" : ")");
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream given(text);
  for (std::string part; std::getline(given, part, separator);)
    parts.push_back(part);
  return parts;
}

double scalarOf(const Tensor &tensor, bool &isWhole) {
  int32_t code = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &code));
  const auto item = [&](auto get, auto value) -> double {
    STABLE_TORCH_ERROR_CODE_CHECK(get(tensor.get(), &value));
    return static_cast<double>(value);
  };
  isWhole = true;
  if (code == aoti_torch_dtype_int32())
    return item(aoti_torch_item_int32, int32_t());
  if (code == aoti_torch_dtype_int64())
    return item(aoti_torch_item_int64, int64_t());
  if (code == aoti_torch_dtype_bool())
    return item(aoti_torch_item_bool, false);
  isWhole = false;
  if (code == aoti_torch_dtype_float64())
    return item(aoti_torch_item_float64, 0.0);
  if (code == aoti_torch_dtype_float16())
    return item(aoti_torch_item_float16, c10::Half());
  if (code == aoti_torch_dtype_bfloat16())
    return item(aoti_torch_item_bfloat16, c10::BFloat16());
  if (code == aoti_torch_dtype_float32())
    return item(aoti_torch_item_float32, 0.0f);
  throw TypeError("a number that a score program captures is neither a float nor "
                  "int32, int64 or bool");
}

/// The library of PyTorch's for ROCm, if the process has it.
void *rocmLibrary() {
  static void *const opened = dlopen("libtorch_hip.so", RTLD_LAZY | RTLD_NOLOAD);
  return opened;
}

void *currentStream(int32_t device) {
  if (!rocmLibrary())
    return nullptr; // tensors of the host, taken for a device's
  // In no library that every PyTorch has, so it is not linked.
  using Function = AOTITorchError (*)(int32_t, void **);
  static const auto get = reinterpret_cast<Function>(
      dlsym(rocmLibrary(), "aoti_torch_get_current_cuda_stream"));
  if (!get)
    throw Error(FOVEA_STATUS_INCOMPATIBLE,
                "this PyTorch's libtorch_hip.so has no "
                "aoti_torch_get_current_cuda_stream; FOVEA_TORCH_OPERATORS=python "
                "does without it");
  void *stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(get(device, &stream));
  return stream;
}

std::atomic<bool> hostIsDevice;

} // namespace

void refuse(const std::string &message) {
  throw Error(FOVEA_STATUS_INVALID_ARGUMENT, message);
}

bool isRocm() { return rocmLibrary(); }

View::View(const Tensor &tensor, const std::string &name, const char *wanted)
    : data(static_cast<char *>(tensor.data_ptr())), rank(tensor.dim()),
      sizes(tensor.sizes().data()), strides(tensor.strides().data()),
      type(nullptr), device(-1), span(0) {
  int32_t code = 0, kind = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &code));
  for (const ElementType &known : elementTypes())
    if (known.code == code)
      type = &known;
  if (!type)
    throw TypeError(name + ": its elements are " + nameOfForeign(code) +
                    ", not " + wanted);
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &kind));
  if (kind != aoti_torch_device_type_cpu()) {
    if (!isRocm())
      throw TypeError(name + ": it is in memory of a GPU, and this PyTorch is none "
                             "of ROCm's; copy it to the host");
    STABLE_TORCH_ERROR_CODE_CHECK(
        aoti_torch_get_device_index(tensor.get(), &device));
  } else if (hostIsDevice) {
    device = 0;
  }
  size_t last = 0;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (strides[dim] < 0)
      refuse(name + ": a stride is negative; copy it");
    if (sizes[dim] == 0)
      return;
    last += static_cast<size_t>(sizes[dim] - 1) * strides[dim];
  }
  span = (1 + last) * type->bytes;
}

std::string View::shape() const {
  std::vector<std::string> extents;
  for (int64_t dim = 0; dim < rank; ++dim)
    extents.push_back(std::to_string(sizes[dim]));
  return listOf(extents);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

CallBase::CallBase(const Features &features)
    : features(features), names(split(features.listed, ',')) {
  sizes.fill(-1);
  if (names.size() != features.lists.size() || features.sizes.size() != 4)
    refuse("listed is '" + features.listed + "' beside " +
           std::to_string(features.lists.size()) + " lists and " +
           std::to_string(features.sizes.size()) + " sizes, not 4");
  // Most rows of a side are of varlen, too, and not to be lost without lists.
  if (features.packs() || features.sizes[0] >= 0 || features.sizes[1] >= 0)
    varlen.emplace();
}

std::pair<std::array<Dim, 4>, unsigned> CallBase::dims(const Kind &kind) const {
  std::pair<std::array<Dim, 4>, unsigned> made{{}, 0};
  const auto has = [&](Dim dim) {
    return std::find(kind.dims, kind.dims + kind.rank, dim) !=
           kind.dims + kind.rank;
  };
  const bool isPacked = (packedQ && has(kSeqQ)) || (packedK && has(kSeqK));
  for (unsigned i = 0; i < kind.rank; ++i) {
    const Dim dim = kind.dims[i];
    if (isPacked && dim == kBatch)
      continue;
    made.first[made.second++] = !isPacked       ? dim
                                : dim == kSeqQ ? kTotalQ
                                : dim == kSeqK ? kTotalK
                                               : dim;
  }
  return made;
}

View CallBase::see(const Kind &kind, const Tensor &tensor) {
  const View seen(tensor, kind.name, kind.isF32 ? "float32" : kOfAttention);
  if (varlen && seen.rank == kind.rank - 1) {
    packedQ |= &kind == &kinds::q;
    packedK |= &kind == &kinds::k;
  }
  const auto [expected, rank] = dims(kind);
  std::vector<std::string> all;
  if (seen.rank != rank) {
    for (unsigned i = 0; i < rank; ++i)
      all.push_back(kDimNames[expected[i]]);
    const bool mayBePacked =
        seen.rank == 3 && (&kind == &kinds::q || &kind == &kinds::k);
    refuse(std::string(kind.name) + " has shape " + seen.shape() + ", not " +
           listOf(all) +
           (mayBePacked ? "; packed sequences take varlen=" : ""));
  }
  for (unsigned i = 0; i < rank; ++i) {
    int64_t &known = sizes[expected[i]];
    if (known < 0)
      known = seen.sizes[i];
    if (known == seen.sizes[i])
      continue;
    const std::string dim = kDimNames[expected[i]];
    for (unsigned j = 0; j < rank; ++j)
      all.push_back(sizes[expected[j]] < 0 ? kDimNames[expected[j]]
                                           : std::to_string(sizes[expected[j]]));
    refuse(std::string(kind.name) + " has shape " + seen.shape() + ", not " +
           listOf(all) + ": its " + dim + " is " + std::to_string(seen.sizes[i]) +
           ", others' " + std::to_string(known));
  }
  if (!kind.isF32 && !type)
    type = seen.type;
  const bool fits = kind.isF32 ? seen.type->dtype == FOVEA_DTYPE_F32
                               : seen.type == type;
  if (!fits)
    throw TypeError(std::string(kind.name) + " is " + seen.type->name + ", not " +
                    (kind.isF32 ? "float32" : type->name));
  return seen;
}

template <typename Pointer>
void CallBase::address(Pointer &field, const View &view, const char *name,
                       bool written) {
  places.push_back(
      {&field, view.data, view.span, written, view.device, name});
  store(places.back(), kNowhere);
}

void CallBase::store(const Place &place, void *address) {
  std::memcpy(place.field, &address, sizeof(address));
}

template <typename Structure>
void CallBase::tensor(Structure &field, const Kind &kind, const Tensor &tensor,
                      bool written) {
  const View seen = see(kind, tensor);
  // (batch, heads, rows, columns), or packed without the first.
  const int64_t *strides = seen.strides + seen.rank - 3;
  if (strides[2] != 1 && seen.sizes[seen.rank - 1] > 1 && seen.span)
    refuse(std::string(kind.name) + ": its last stride is " +
           std::to_string(strides[2]) + ", not 1; copy it");
  field.stride_batch = seen.rank == 4 ? seen.strides[0] : 0;
  field.stride_head = strides[0];
  field.stride_seq = strides[1];
  address(field.data, seen, kind.name, written);
}

template <typename Pointer>
void CallBase::rows(Pointer &field, int64_t *strideBatch, int64_t &strideHead,
                    const Kind &kind, const Tensor &tensor, bool written) {
  const View seen = see(kind, tensor);
  if (strideBatch) {
    const int64_t stride = seen.strides[seen.rank - 1];
    if (varlen) {
      int64_t &known = varlen->lse_stride_seq;
      if (known && known != stride && seen.span)
        refuse(std::string(kind.name) + ": its last stride is " +
               std::to_string(stride) + ", that of lse " + std::to_string(known) +
               "; with varlen both are the same");
      known = stride;
    } else if (stride != 1 && sizes[kSeqQ] > 1 && seen.span) {
      refuse(std::string(kind.name) + ": its last stride is " +
             std::to_string(stride) + ", not 1; copy it");
    }
    *strideBatch = seen.rank == 3 ? seen.strides[0] : 0;
  }
  strideHead = seen.strides[seen.rank - (strideBatch ? 2 : 1)];
  address(field, seen, kind.name, written);
}

int32_t CallBase::place() const {
  for (const Place &other : places) {
    const Place &first = places.front();
    const auto where = [](const Place &of) {
      return std::string(of.name) + " is " +
             (of.device < 0 ? "the host's"
                            : "on device " + std::to_string(of.device));
    };
    if (other.device != first.device)
      refuse("arrays of a call are all in the host's memory or all on one device: " +
             where(first) + ", " + where(other));
  }
  return places.front().device;
}

//===----------------------------------------------------------------------===//
// Feature groups
//===----------------------------------------------------------------------===//

template <typename Group>
void CallBase::group(Group &made, uint32_t number) {
  made.header = {sizeof(made), number, groups};
  groups = &made.header;
}

const Tensor *CallBase::listed(const char *name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return &features.lists[i];
  return nullptr;
}

void CallBase::sequences(fovea_sequences_t &side, const char *name, Dim seq,
                         Dim total, int64_t most) {
  const std::string prefix = std::string(name) + ".";
  const bool isPacked = seq == kSeqQ ? packedQ : packedK;
  struct {
    const char *field;
    int64_t more;
    const Tensor *given;
  } rows[] = {{"lengths", 0, nullptr}, {"cumulative", 1, nullptr},
              {"starts", 0, nullptr}};
  int64_t batch = -1;
  for (auto &row : rows)
    if ((row.given = listed((prefix + row.field).c_str())) && batch < 0)
      batch = row.given->dim() == 1 ? row.given->sizes()[0] - row.more : -1;
  if (rows[0].given && rows[1].given)
    refuse(std::string("varlen.") + name + " has both lengths and cumulative lengths");
  if (!isPacked) {
    if (most >= 0 && most != sizes[seq])
      refuse("varlen.max_" + std::string(name) + " is " + std::to_string(most) +
             ", and " + name + " has " + std::to_string(sizes[seq]) +
             " rows; give None");
  } else {
    if (most < 0 || batch < 0)
      refuse(std::string(name) + " is packed and varlen has no " +
             (most < 0 ? std::string("max_") : std::string("lengths of ")) + name);
    sizes[seq] = most;
    if (sizes[kBatch] < 0)
      sizes[kBatch] = batch;
    if (sizes[kBatch] != batch)
      refuse(std::string("varlen.") + name + " has " + std::to_string(batch) +
             " sequences, others " + std::to_string(sizes[kBatch]));
    side.layout = FOVEA_ROWS_PACKED;
    side.total = sizes[total];
  }
  for (const auto &row : rows) {
    if (!row.given)
      continue;
    const std::string &called = told.emplace_back("varlen." + prefix + row.field);
    const View seen(*row.given, called, "int32");
    const int64_t count = sizes[kBatch] + row.more;
    if (seen.rank != 1 || seen.sizes[0] != count)
      refuse(called + " has shape " + seen.shape() + ", not (" +
             std::to_string(count) + ",)");
    if (seen.type->capture != FOVEA_CAPTURE_I32)
      throw TypeError(called + " is " + seen.type->name + ", not int32");
    if (count > 1 && seen.strides[0] != 1)
      refuse(called + " has a stride of " + std::to_string(seen.strides[0]) +
             "; copy it");
    if (row.field[0] == 's') {
      address(side.starts, seen, called.c_str());
      continue;
    }
    address(side.lengths, seen, called.c_str());
    side.kind = row.more ? FOVEA_LENGTHS_CUMULATIVE : FOVEA_LENGTHS_EACH;
  }
}

void CallBase::lengths() {
  if (!varlen)
    return;
  group(*varlen, FOVEA_GROUP_VARLEN);
  varlen->lse_layout = FOVEA_LSE_AS_Q;
  // A packed side says how many sequences there are.
  const auto ofQ = [&] {
    sequences(varlen->q, "q", kSeqQ, kTotalQ, features.sizes[0]);
  };
  if (packedQ)
    ofQ();
  sequences(varlen->k, "k", kSeqK, kTotalK, features.sizes[1]);
  if (!packedQ)
    ofQ();
}

void CallBase::window() {
  if (features.window.empty())
    return;
  const std::vector<std::string> parts = split(features.window, ':');
  const auto bound = [&](const std::string &text) -> int64_t {
    if (text == "inf")
      return FOVEA_WINDOW_INFINITE;
    char *end = nullptr;
    errno = 0;
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end || errno)
      refuse("window is '" + features.window + "', whose bound '" + text +
             "' is neither a number of 64 bits nor 'inf'");
    return number;
  };
  if (parts.size() != 2 && parts.size() != 4)
    refuse("window is '" + features.window +
           "', not 'left:right' or 'left:right:alignment:alignment'");
  group(windowGroup, FOVEA_GROUP_WINDOW);
  windowGroup.left = bound(parts[0]);
  windowGroup.right = bound(parts[1]);
  windowGroup.left_alignment = windowGroup.right_alignment =
      FOVEA_ALIGN_BOTTOM_RIGHT;
  if (parts.size() == 4) {
    windowGroup.left_alignment =
        numberOf("window.left_alignment", parts[2], kAlignments);
    windowGroup.right_alignment =
        numberOf("window.right_alignment", parts[3], kAlignments);
  }
}

void CallBase::score(const std::vector<const Tensor *> &gradients) {
  if (features.score.empty())
    return;
  group(scoreGroup, FOVEA_GROUP_SCORE);
  scoreGroup.program = features.score.c_str();
  scoreGroup.text = features.scoreText.empty() ? nullptr : features.scoreText.c_str();
  captures.resize(features.captures.size()); // its elements stay where they are
  scoreGroup.captures = captures.data();
  scoreGroup.capture_count = static_cast<uint32_t>(captures.size());
  scoreGroup.capture_size = sizeof(fovea_capture_t);
  for (size_t i = 0; i < captures.size(); ++i) {
    fovea_capture_t &made = captures[i];
    const std::string &name =
        told.emplace_back("score.captures[" + std::to_string(i) + "]");
    const Tensor &capture = features.captures[i];
    if (capture.dim() == 0) {
      bool isWhole = false;
      made.value = scalarOf(capture, isWhole);
      made.type = isWhole ? FOVEA_CAPTURE_I32 : FOVEA_CAPTURE_F32;
    } else {
      const View seen(capture, name, kOfCaptures);
      if (seen.rank > 4)
        refuse(name + " has " + std::to_string(seen.rank) +
               " dimensions, not 1 to 4");
      if (!seen.type->capture)
        refuse("the type of " + name + " is '" + seen.type->name +
               "', not one of 'float32', 'float16', 'bfloat16', 'int32', 'bool'");
      made.type = seen.type->capture;
      made.rank = static_cast<int32_t>(seen.rank);
      std::copy_n(seen.sizes, seen.rank, made.extents);
      std::copy_n(seen.strides, seen.rank, made.strides);
      address(made.data, seen, name.c_str());
    }
    if (i < gradients.size() && gradients[i]) {
      const std::string &called = told.emplace_back(name + ".gradient");
      const View gradient(*gradients[i], called, kOfAttention);
      std::copy_n(gradient.strides, gradient.rank, made.gradient_strides);
      address(made.gradient, gradient, called.c_str(), true);
    }
  }
}

void CallBase::dropout() {
  if (!features.seed)
    return;
  group(dropoutGroup, FOVEA_GROUP_DROPOUT);
  dropoutGroup.p = static_cast<float>(features.dropoutP);
  dropoutGroup.word_order = FOVEA_PHILOX_0123;
  const View seen(*features.seed, "dropout.seed", kOfSeeds);
  if (seen.type->bytes != 8 || seen.span != 8)
    refuse(std::string("dropout.seed is ") + seen.type->name + " of shape " +
           seen.shape() + ", not one element of int64 or uint64");
  address(dropoutGroup.seed, seen, "dropout.seed");
}

void CallBase::lists(fovea_block_lists_t &made, const char *name, int64_t blocks) {
  const std::string prefix = name;
  const Tensor *counts = listed((prefix + "_num_blocks").c_str());
  if (!counts)
    return;
  const Tensor *indices = listed((prefix + "_indices").c_str());
  if (!indices)
    refuse("blocks." + prefix + "_indices is missing beside blocks." + prefix +
           "_num_blocks");
  const int64_t shape[3] = {sizes[kBatch], sizes[kHeadsQ], blocks};
  const auto see = [&](const Tensor &given, const char *field, int64_t rank) {
    const std::string &called = told.emplace_back("blocks." + prefix + field);
    const View seen(given, called, "int32");
    bool fits = seen.type->capture == FOVEA_CAPTURE_I32 && seen.rank == rank;
    for (int dim = 0; fits && dim < 3; ++dim)
      fits = seen.sizes[dim] == shape[dim] || (dim < 2 && seen.sizes[dim] == 1);
    if (!fits)
      refuse(called + " is " + seen.type->name + " of shape " + seen.shape() +
             ", not int32 of (" + std::to_string(shape[0]) + ", " +
             std::to_string(shape[1]) + ", " + std::to_string(shape[2]) +
             (rank > 3 ? ", entries" : "") + "), where the first two may be 1");
    if (seen.sizes[rank - 1] > 1 && seen.strides[rank - 1] != 1)
      refuse(called + ": its last stride is " +
             std::to_string(seen.strides[rank - 1]) + "; copy it");
    return seen;
  };
  const auto stride = [](const View &seen, int dim) {
    return seen.sizes[dim] == 1 ? 0 : seen.strides[dim];
  };
  const View ofCounts = see(*counts, "_num_blocks", 3);
  made.num_blocks_stride_batch = stride(ofCounts, 0);
  made.num_blocks_stride_head = stride(ofCounts, 1);
  address(made.num_blocks, ofCounts, told.back().c_str());
  const View ofIndices = see(*indices, "_indices", 4);
  made.indices_stride_batch = stride(ofIndices, 0);
  made.indices_stride_head = stride(ofIndices, 1);
  made.indices_stride_block = stride(ofIndices, 2);
  made.entries = ofIndices.sizes[3];
  address(made.indices, ofIndices, told.back().c_str());
}

void CallBase::blocks() {
  if (!listed("kv_num_blocks") && !listed("full_kv_num_blocks"))
    return;
  group(blocksGroup, FOVEA_GROUP_BLOCKS);
  blocksGroup.q_block = features.sizes[2];
  blocksGroup.kv_block = features.sizes[3];
  const auto count = [&](Dim seq, int64_t rows) {
    return (sizes[seq] + std::max<int64_t>(rows, 1) - 1) /
           std::max<int64_t>(rows, 1);
  };
  const int64_t ofQ = count(kSeqQ, blocksGroup.q_block),
                ofK = count(kSeqK, blocksGroup.kv_block);
  lists(blocksGroup.kv, "kv", ofQ);
  lists(blocksGroup.full_kv, "full_kv", ofQ);
  lists(blocksGroup.q, "q", ofK);
  lists(blocksGroup.full_q, "full_q", ofK);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

template <typename Params>
Call<Params>::Call(const Features &features, const Tensor &q, const Tensor &k,
                   const Tensor &v, const std::vector<const Tensor *> &gradients)
    : CallBase(features) {
  places.reserve(32);
  tensor(params.q, kinds::q, q);
  tensor(params.k, kinds::k, k);
  tensor(params.v, kinds::v, v);
  lengths();
  if (!type->dtype)
    refuse(std::string("the type of q is '") + type->name +
           "', not one of 'float16', 'bfloat16', 'float32'");
  params.dtype = type->dtype;
  params.batch = sizes[kBatch];
  params.heads_q = sizes[kHeadsQ];
  params.heads_k = sizes[kHeadsK];
  params.seqlen_q = sizes[kSeqQ];
  params.seqlen_k = sizes[kSeqK];
  params.head_dim = sizes[kHeadDim];
  params.scale = static_cast<float>(features.scale);
  params.mask = numberOf("mask", features.mask, kMasks);
  if (sizes[kHeadDimV] != sizes[kHeadDim]) {
    if (sizes[kHeadDimV] == 0) // which stands for head_dim in the structure
      refuse("head_dim_v is 0; rows of v have at least one element");
    group(headDims, FOVEA_GROUP_HEAD_DIMS);
    headDims.head_dim_v = sizes[kHeadDimV];
  }
  window();
  score(gradients);
  dropout();
  blocks();
}

template <typename Params>
void Call<Params>::run() {
  using Calls = CallsOf<Params>;
  params.groups = groups;
  fovea_context_t *const used = context();
  // The kernel with the workspace that it needs: another may be compiled before the
  // launch and be the better choice.
  const auto plan = [&] {
    auto found = fovea::make<typename Calls::Plan>();
    check(Calls::select(used, &params, -1, &found));
    params.kernel = found.kernel;
    params.workspace_bytes = found.workspace_bytes;
    return found.workspace_bytes;
  };
  if (const int32_t device = place(); device >= 0) {
    std::optional<torch::stable::accelerator::DeviceGuard> guard;
    if (isRocm())
      guard.emplace(device);
    for (const Place &place : places)
      if (place.span)
        store(place, place.data);
    std::optional<Tensor> workspace;
    params.stream = currentStream(device);
    if (const uint64_t bytes = plan()) {
      // PyTorch's own allocator: of the current stream, also while it is captured.
      const int64_t extent = static_cast<int64_t>(bytes), step = 1;
      AtenTensorHandle made = nullptr;
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
          1, &extent, &step, aoti_torch_dtype_uint8(),
          isRocm() ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu(),
          device, &made));
      workspace.emplace(made);
      params.workspace = workspace->data_ptr();
    }
    check(Calls::launch(used, &params, params.stream));
    return;
  }
  const Hip hip(used);
  Mirror mirror(hip);
  for (const Place &place : places)
    if (place.span)
      mirror.add(place.data, place.span, place.written);
  mirror.copyIn();
  if (const uint64_t bytes = plan())
    params.workspace = mirror.block(bytes);
  for (const Place &place : places)
    if (place.span)
      store(place, mirror.address(place.data));
  check(Calls::launch(used, &params, nullptr));
  hip.check("hipStreamSynchronize", hip.streamSynchronize(nullptr));
  mirror.copyOut();
}

template class Call<fovea_forward_params_t>;
template class Call<fovea_backward_params_t>;

ForwardCall::ForwardCall(const Features &features, const Tensor &q,
                         const Tensor &k, const Tensor &v, const Tensor &out,
                         const Tensor &lse, int64_t splits)
    : Call(features, q, k, v, {}) {
  params.splits = static_cast<uint32_t>(splits);
  if (splits < 0 || splits > UINT32_MAX)
    refuse("splits is " + std::to_string(splits) + ", not in 0 to 1024");
  if (features.sinks) {
    group(sinksGroup, FOVEA_GROUP_SINKS);
    rows(sinksGroup.sinks, nullptr, sinksGroup.sinks_stride_head, kinds::sinks,
         *features.sinks);
  }
  tensor(params.out, kinds::out, out, true);
  rows(params.lse, &params.lse_stride_batch, params.lse_stride_head, kinds::lse,
       lse, true);
}

BackwardCall::BackwardCall(const Features &features, const Tensors &tensors,
                           bool deterministic)
    : Call(features, tensors.q, tensors.k, tensors.v, tensors.ofCaptures) {
  params.deterministic = deterministic;
  tensor(params.out, kinds::out, tensors.out);
  tensor(params.dout, kinds::dout, tensors.dout);
  rows(params.lse, &params.lse_stride_batch, params.lse_stride_head, kinds::lse,
       tensors.lse);
  if (tensors.dlse) {
    group(dlseGroup, FOVEA_GROUP_DLSE);
    rows(dlseGroup.dlse, &dlseGroup.dlse_stride_batch, dlseGroup.dlse_stride_head,
         kinds::dlse, *tensors.dlse);
  }
  if (tensors.dsinks) {
    if (!features.sinks)
      refuse("the gradient of sinks is wanted, and there are no sinks");
    group(dsinksGroup, FOVEA_GROUP_DSINKS);
    rows(dsinksGroup.sinks, nullptr, dsinksGroup.sinks_stride_head, kinds::sinks,
         *features.sinks);
    rows(dsinksGroup.dsinks, nullptr, dsinksGroup.dsinks_stride_head,
         kinds::dsinks, *tensors.dsinks, true);
  }
  if (tensors.dq)
    tensor(params.dq, kinds::dq, *tensors.dq, true);
  if (tensors.dk)
    tensor(params.dk, kinds::dk, *tensors.dk, true);
  if (tensors.dv)
    tensor(params.dv, kinds::dv, *tensors.dv, true);
}

} // namespace fovea::operators

/// For measurements: tensors of the host are taken for a device's.
extern "C" FOVEA_API void fovea_torch_host_is_device(int given) {
  fovea::operators::hostIsDevice = given;
}

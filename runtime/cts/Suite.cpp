//===- Suite.cpp - setting up and running the suite's problems ------------===//

#include "Suite.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fovea::cts {
namespace {

enum { kHostToDevice = 1, kDeviceToHost = 2 };
constexpr uint8_t kGuardByte = 0xa5;
/// What outputs hold before: a NaN in fp16, bf16 and fp32 alike.
constexpr uint8_t kUnwrittenByte = 0xff;

std::vector<std::string> packagePaths;

[[noreturn]] void stop(const char *what) {
  std::fprintf(stderr, "fovea-cts: %s: %s\n", what, fovea_last_message());
  std::exit(2);
}

template <typename Function>
void resolve(const char *name, Function &function) {
  function = reinterpret_cast<Function>(fovea_hip_symbol(context(), name));
  if (!function)
    stop(name);
}

uint16_t toF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000;
  const float size = std::fabs(value);
  if (size >= 65520.0f)
    return uint16_t(sign | 0x7c00);
  if (size < 6.103515625e-5f) // subnormal: units of 2^-24
    return uint16_t(sign | uint32_t(std::nearbyint(size * 16777216.0f)));
  bits &= 0x7fffffff;
  bits += 0xfff + (bits >> 13 & 1);
  return uint16_t(sign | ((bits >> 13) - (112 << 10)));
}
float fromF16(uint16_t value) {
  const int exponent = value >> 10 & 31, mantissa = value & 1023;
  float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent == 0
                   ? std::ldexp(float(mantissa), -24)
                   : std::ldexp(float(mantissa + 1024), exponent - 25);
  return value & 0x8000 ? -size : size;
}
uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float fromBf16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

/// One tensor of a problem: strides, memory and host copy.
struct Buffer {
  int64_t heads, rows, dim;
  int64_t strideBatch, strideHead, strideSeq;
  std::vector<uint16_t> host;

  Buffer(const Problem &p, int64_t heads, int64_t rows)
      : heads(heads), rows(rows), dim(p.kernel.headDim) {
    const int64_t row = dim + p.padding;
    strideHead = p.sequenceFirst ? row : rows * row;
    strideSeq = p.sequenceFirst ? heads * row : row;
    strideBatch = heads * rows * row;
    host.resize(size_t(p.batch * strideBatch));
    std::memset(host.data(), kUnwrittenByte, host.size() * 2);
  }
  size_t at(int64_t b, int64_t h, int64_t r, int64_t d) const {
    return size_t(b * strideBatch + h * strideHead + r * strideSeq + d);
  }
  void fill(const Problem &p, const Problem::Value &value) {
    const bool bf16 = p.kernel.dtype == FOVEA_DTYPE_BF16;
    for (int64_t b = 0; b != p.batch; ++b)
      for (int64_t h = 0; h != heads; ++h)
        for (int64_t r = 0; r != rows; ++r)
          for (int64_t d = 0; d != dim; ++d) {
            const float x = value(b, h, r, d);
            host[at(b, h, r, d)] = bf16 ? toBf16(x) : toF16(x);
          }
  }
  template <typename Tensor>
  void describe(Tensor &tensor, void *data) const {
    tensor.data = data;
    tensor.stride_batch = strideBatch;
    tensor.stride_head = strideHead;
    tensor.stride_seq = strideSeq;
  }
};

bool startsAt(const std::string &text, const char *key, std::string &value) {
  const size_t at = text.find(key);
  if (at == std::string::npos)
    return false;
  value = text.substr(at + std::strlen(key));
  value = value.substr(0, value.find(';'));
  return true;
}

} // namespace

fovea_context_t *context() {
  static fovea_context_t *shared = [] {
    fovea_context_t *made = nullptr;
    if (fovea_context_create(nullptr, &made) != FOVEA_STATUS_OK)
      stop("creating a context");
    for (const std::string &path : packagePaths)
      if (fovea_package_open(made, path.c_str()) != FOVEA_STATUS_OK)
        stop("opening a package");
    return made;
  }();
  return shared;
}

const HipFunctions &hip() {
  static const HipFunctions functions = [] {
    HipFunctions f;
    resolve("hipMalloc", f.hipMalloc);
    resolve("hipFree", f.hipFree);
    resolve("hipMemcpy", f.hipMemcpy);
    resolve("hipStreamCreate", f.hipStreamCreate);
    resolve("hipStreamDestroy", f.hipStreamDestroy);
    resolve("hipStreamSynchronize", f.hipStreamSynchronize);
    resolve("hipDeviceSynchronize", f.hipDeviceSynchronize);
    resolve("hipModuleLoadData", f.hipModuleLoadData);
    resolve("hipModuleUnload", f.hipModuleUnload);
    resolve("hipModuleGetFunction", f.hipModuleGetFunction);
    resolve("hipGetErrorName", f.hipGetErrorName);
    return f;
  }();
  return functions;
}

const std::vector<KernelCase> &kernelCases() {
  static const std::vector<KernelCase> cases = [] {
    std::vector<KernelCase> found;
    const size_t count = fovea_kernel_count(context());
    for (uint32_t id = 1; id <= count; ++id) {
      fovea_kernel_info_t info{};
      info.struct_size = sizeof(info);
      if (fovea_kernel_info(context(), id, &info) != FOVEA_STATUS_OK)
        stop("asking for a kernel");
      const std::string problem = info.problem;
      std::string dtype, dim, mask;
      if (!startsAt(problem, "dtype=", dtype) ||
          !startsAt(problem, "head_dim=", dim))
        stop(info.problem);
      KernelCase kernel;
      kernel.id = id;
      kernel.dtype = dtype == "bf16" ? FOVEA_DTYPE_BF16 : FOVEA_DTYPE_F16;
      kernel.headDim = std::atoll(dim.c_str());
      kernel.mask = !startsAt(problem, "mask=", mask) ? FOVEA_MASK_NONE
                    : mask == "causal_top_left"
                        ? FOVEA_MASK_CAUSAL_TOP_LEFT
                        : FOVEA_MASK_CAUSAL_BOTTOM_RIGHT;
      kernel.name = "k" + std::to_string(id) + "_" + problem;
      for (char &c : kernel.name)
        if (!std::isalnum(static_cast<unsigned char>(c)))
          c = '_';
      fovea_forward_params_t params{};
      params.struct_size = sizeof(params);
      params.dtype = kernel.dtype;
      params.mask = kernel.mask;
      params.head_dim = kernel.headDim;
      params.scale = 1;
      params.batch = params.heads_q = params.heads_k = 1;
      params.seqlen_q = params.seqlen_k = 1;
      params.kernel = id;
      if (fovea_forward_select(context(), &params, 0, nullptr) ==
          FOVEA_STATUS_OK)
        found.push_back(kernel);
      else
        std::fprintf(stderr, "fovea-cts: left out: %s\n", fovea_last_message());
    }
    return found;
  }();
  return cases;
}

Guarded::Guarded(size_t bytes) : bytes(bytes) {
  void *memory = nullptr;
  EXPECT_EQ(hip().hipMalloc(&memory, bytes + 2 * kGuard), 0);
  base = static_cast<uint8_t *>(memory);
  const std::vector<uint8_t> pattern(bytes + 2 * kGuard, kGuardByte);
  EXPECT_EQ(
      hip().hipMemcpy(base, pattern.data(), pattern.size(), kHostToDevice), 0);
}
Guarded::~Guarded() { EXPECT_EQ(hip().hipFree(base), 0); }
void Guarded::upload(const void *from) {
  if (bytes != 0)
    EXPECT_EQ(hip().hipMemcpy(data(), from, bytes, kHostToDevice), 0);
}
void Guarded::download(void *to) const {
  std::vector<uint8_t> all(bytes + 2 * kGuard);
  EXPECT_EQ(hip().hipMemcpy(all.data(), base, all.size(), kDeviceToHost), 0);
  auto isGuard = [](uint8_t byte) { return byte == kGuardByte; };
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + kGuard, isGuard))
      << "written before its beginning";
  EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), isGuard))
      << "written behind its end";
  if (bytes != 0)
    std::memcpy(to, all.data() + kGuard, bytes);
}

int64_t Problem::visibleKeys(int64_t row) const {
  int64_t keys = seqlenK;
  if (kernel.mask == FOVEA_MASK_CAUSAL_TOP_LEFT)
    keys = row + 1;
  else if (kernel.mask == FOVEA_MASK_CAUSAL_BOTTOM_RIGHT)
    keys = row + 1 + seqlenK - seqlenQ;
  return std::clamp<int64_t>(keys, 0, seqlenK);
}

Outcome run(const Problem &p) {
  Buffer q(p, p.headsQ, p.seqlenQ), k(p, p.headsK, p.seqlenK),
      v(p, p.headsK, p.seqlenK), out(p, p.headsQ, p.seqlenQ);
  q.fill(p, p.q);
  k.fill(p, p.k);
  v.fill(p, p.v);
  std::vector<float> lse(size_t(p.batch * p.headsQ * p.seqlenQ), NAN);
  Guarded deviceQ(q.host.size() * 2), deviceK(k.host.size() * 2),
      deviceV(v.host.size() * 2), deviceOut(out.host.size() * 2),
      deviceLse(lse.size() * 4);
  deviceQ.upload(q.host.data());
  deviceK.upload(k.host.data());
  deviceV.upload(v.host.data());
  deviceOut.upload(out.host.data());
  deviceLse.upload(lse.data());

  fovea_forward_params_t params{};
  params.struct_size = sizeof(params);
  params.dtype = p.kernel.dtype;
  params.mask = p.kernel.mask;
  params.scale = p.scale;
  params.batch = p.batch;
  params.heads_q = p.headsQ;
  params.heads_k = p.headsK;
  params.seqlen_q = p.seqlenQ;
  params.seqlen_k = p.seqlenK;
  params.head_dim = p.kernel.headDim;
  q.describe(params.q, deviceQ.data());
  k.describe(params.k, deviceK.data());
  v.describe(params.v, deviceV.data());
  out.describe(params.out, deviceOut.data());
  if (p.wantLse) {
    params.lse = static_cast<float *>(deviceLse.data());
    params.lse_stride_head = p.seqlenQ;
    params.lse_stride_batch = p.headsQ * p.seqlenQ;
  }
  params.kernel = p.kernel.id;
  EXPECT_FOVEA(fovea_forward(context(), &params, p.stream), FOVEA_STATUS_OK);
  EXPECT_EQ(hip().hipStreamSynchronize(p.stream), 0);

  const Buffer before = out;
  deviceOut.download(out.host.data());
  deviceLse.download(lse.data());
  for (const auto &[device, host] : {std::pair{&deviceQ, &q.host},
                                     {&deviceK, &k.host},
                                     {&deviceV, &v.host}}) {
    std::vector<uint16_t> after(host->size());
    device->download(after.data());
    EXPECT_EQ(after, *host) << "an input was written";
  }

  Outcome outcome;
  std::vector<bool> used(out.host.size());
  for (int64_t b = 0; b != p.batch; ++b)
    for (int64_t h = 0; h != p.headsQ; ++h)
      for (int64_t r = 0; r != p.seqlenQ; ++r)
        for (int64_t d = 0; d != p.kernel.headDim; ++d) {
          const size_t at = out.at(b, h, r, d);
          used[at] = true;
          outcome.out.push_back(p.kernel.dtype == FOVEA_DTYPE_BF16
                                    ? fromBf16(out.host[at])
                                    : fromF16(out.host[at]));
        }
  for (size_t at = 0; at != used.size(); ++at)
    if (!used[at] && out.host[at] != before.host[at]) {
      ADD_FAILURE() << "element " << at << " between rows was written";
      break;
    }
  outcome.lse = std::move(lse);
  return outcome;
}

void forEachRow(const Problem &p, const Outcome &outcome,
                const std::function<void(int64_t, int64_t, int64_t,
                                         const float *, float)> &check) {
  size_t row = 0;
  for (int64_t b = 0; b != p.batch; ++b)
    for (int64_t h = 0; h != p.headsQ; ++h)
      for (int64_t r = 0; r != p.seqlenQ; ++r, ++row)
        check(b, h, r, outcome.out.data() + row * size_t(p.kernel.headDim),
              outcome.lse[row]);
}

double roundoff(int32_t dtype) {
  return dtype == FOVEA_DTYPE_BF16 ? 1.0 / 256 : 1.0 / 2048;
}

} // namespace fovea::cts

int main(int argc, char **argv) {
  // GoogleTest lists the parameters before main's own reading of the command
  // line, so the packages are taken out first.
  for (int arg = 1; arg < argc; ++arg)
    if (argv[arg][0] != '-')
      fovea::cts::packagePaths.push_back(argv[arg]);
  if (fovea::cts::packagePaths.empty()) {
    std::fprintf(stderr, "usage: fovea-cts PACKAGE... [GoogleTest's options]\n"
                         "FOVEA_HIP_LIBRARY chooses the HIP library.\n");
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  fovea_hip_library_info_t info{};
  info.struct_size = sizeof(info);
  if (fovea_hip_library_info(fovea::cts::context(), &info) != FOVEA_STATUS_OK)
    fovea::cts::stop("looking for HIP");
  std::printf("HIP library %s: %s\n", info.path, info.reason);
  if (fovea::cts::kernelCases().empty()) {
    std::fprintf(stderr, "fovea-cts: no kernel of the packages runs on device "
                         "0\n");
    return 2;
  }
  const int result = RUN_ALL_TESTS();
  fovea_context_destroy(fovea::cts::context());
  return result;
}

//===- LaunchLoad.h - packages and problems to launch -----------*- C++ -*-===//
//
// What tests and benchmarks of launches on the empty HIP library share: a
// package like a compiled one, problems for it, and what HIP must have been
// given for a launch, worked out here once more.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EMPTYHIP_LAUNCHLOAD_H
#define FOVEA_TEST_EMPTYHIP_LAUNCHLOAD_H

#include "../Unit/Package/TestPackage.h"
#include "EmptyHip.h"

#include "../Support/KernelArgs.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/Package.h"
#include "fovea/fovea.h"

#include <dlfcn.h>

namespace fovea::test {

inline constexpr int32_t kBlocks[] = {32, 64, 128}; // of query rows

/// Stores kernels as aot-compile does: for both types, all masks and each head
/// dimension forward kernels of several block sizes and the gradients by both
/// algorithms. All images are alike but for their payload.
inline void writeLibrary(const std::string &path,
                         const std::vector<int32_t> &headDims,
                         const std::vector<TuningRow> &tuning = {},
                         size_t payloadBytes = 20000) {
  Expected<PackageWriter> writer =
      PackageWriter::open(path, *TargetId::parse("gfx942"));
  ASSERT_TRUE(writer) << writer.status().message();
  auto store = [&](const KernelRecord &record) {
    std::string payload = record.problem.str() + record.schedule;
    for (uint32_t x = 1; payload.size() < payloadBytes; x = x * 1664525 + 1)
      payload += char(x >> 24 & 63); // compresses a little, as code does
    const std::vector<uint8_t> image = makeImage("gfx942", payload);
    FOVEA_ASSERT_OK(writer->put(record, image.data(), image.size()));
  };
  for (DataType dtype : {DataType::F16, DataType::BF16})
    for (MaskKind mask :
         {MaskKind::None, MaskKind::CausalTopLeft, MaskKind::CausalBottomRight})
      for (int32_t headDim : headDims) {
        const ProblemKey problem = makeProblem(headDim, dtype, mask);
        for (int32_t block : kBlocks)
          store(makeRecord(problem, block));
        KernelRecord gradients = makeBackwardRecord(headDim);
        gradients.problem.dtype = dtype;
        gradients.problem.mask = mask;
        store(gradients);
        gradients.schedule = "atomic";
        gradients.symbol = "atomic";
        gradients.launches = {
            {"prepare", 64, 256}, {"fused", 128, 256}, {"convert", 64, 256}};
        store(gradients);
      }
  for (const TuningRow &row : tuning)
    FOVEA_ASSERT_OK(writer->putTuning(row));
}

/// bf16, head dimension 128, no mask: batch 2, heads 16 over 4, lengths 1000 x
/// 900, packed in the order of the shape; `shift` moves all addresses.
template <typename Params>
Params makeLoad(uintptr_t shift = 0) {
  auto at = [&](uintptr_t address) {
    return reinterpret_cast<void *>(address + shift);
  };
  Params p{};
  p.struct_size = sizeof(p);
  p.dtype = FOVEA_DTYPE_BF16;
  p.mask = FOVEA_MASK_NONE;
  p.scale = 0.125f;
  p.batch = 2;
  p.heads_q = 16;
  p.heads_k = 4;
  p.seqlen_q = 1000;
  p.seqlen_k = 900;
  p.head_dim = 128;
  p.q = {at(0x1000000), 16 * 1000 * 128, 1000 * 128, 128};
  p.k = {at(0x2000000), 4 * 900 * 128, 900 * 128, 128};
  p.v = {at(0x3000000), 4 * 900 * 128, 900 * 128, 128};
  p.out = {at(0x4000000), 16 * 1000 * 128, 1000 * 128, 128};
  p.lse = static_cast<float *>(at(0x5000000));
  p.lse_stride_batch = 16 * 1000;
  p.lse_stride_head = 1000;
  return p;
}
inline fovea_forward_params_t makeForwardLoad(uintptr_t shift = 0) {
  return makeLoad<fovea_forward_params_t>(shift);
}
inline fovea_backward_params_t makeBackwardLoad(uintptr_t shift = 0) {
  auto p = makeLoad<fovea_backward_params_t>(shift);
  auto at = [&](uintptr_t address) {
    return reinterpret_cast<void *>(address + shift);
  };
  p.dout = {at(0x6000000), 16 * 1000 * 128, 1000 * 128, 128};
  p.dq = {at(0x7000000), 16 * 1000 * 128, 1000 * 128, 128};
  p.dk = {at(0x8000000), 4 * 900 * 128, 900 * 128, 128};
  p.dv = {at(0x9000000), 4 * 900 * 128, 900 * 128, 128};
  p.workspace = at(0xa000000);
  p.workspace_bytes = 2 * 16 * 1000 * 129 * 4;
  return p;
}

#define FOVEA_LOAD_TENSOR(args, p, name)                                       \
  args.name = uint64_t(reinterpret_cast<uintptr_t>(p.name.data));              \
  args.name##StrideBatch = p.name.stride_batch;                                \
  args.name##StrideHead = p.name.stride_head;                                  \
  args.name##StrideSeq = p.name.stride_seq

/// The argument segments that the kernels must get.
template <typename Args, typename Params>
Args commonArgs(const Params &p) {
  Args args{};
  FOVEA_LOAD_TENSOR(args, p, q);
  FOVEA_LOAD_TENSOR(args, p, k);
  FOVEA_LOAD_TENSOR(args, p, v);
  FOVEA_LOAD_TENSOR(args, p, out);
  args.lse = uint64_t(reinterpret_cast<uintptr_t>(p.lse));
  args.lseStrideBatch = p.lse_stride_batch;
  args.lseStrideHead = p.lse_stride_head;
  args.seqlenQ = int32_t(p.seqlen_q);
  args.seqlenK = int32_t(p.seqlen_k);
  args.headsQ = int32_t(p.heads_q);
  args.groupSize = int32_t(p.heads_q / p.heads_k);
  args.scale = p.scale;
  return args;
}
inline fovea::test::ForwardArgs expectedArgs(const fovea_forward_params_t &p) {
  return commonArgs<fovea::test::ForwardArgs>(p);
}
inline fovea::test::BackwardArgs
expectedArgs(const fovea_backward_params_t &p) {
  auto args = commonArgs<fovea::test::BackwardArgs>(p);
  FOVEA_LOAD_TENSOR(args, p, dout);
  FOVEA_LOAD_TENSOR(args, p, dq);
  FOVEA_LOAD_TENSOR(args, p, dk);
  FOVEA_LOAD_TENSOR(args, p, dv);
  args.workspace = uint64_t(reinterpret_cast<uintptr_t>(p.workspace));
  return args;
}

/// Empty: the thread's last launch is that of `args` with `grid`, `threads` and
/// `stream`, and its `launches` have gone up by `count`. Else what differs.
template <typename Args>
std::string checkLaunches(const EmptyHipThread &note, uint64_t before,
                          uint64_t count, const Args &args,
                          const uint32_t (&grid)[3], uint32_t threads,
                          const void *stream, int device) {
  if (note.launches - before != count)
    return std::to_string(note.launches - before) + " launches, not " +
           std::to_string(count);
  if (note.argumentBytes != sizeof(args) ||
      std::memcmp(note.arguments, &args, sizeof(args)) != 0)
    return "other arguments";
  if (std::memcmp(note.grid, grid, sizeof(grid)) != 0)
    return "another grid: " + std::to_string(note.grid[0]) + "x" +
           std::to_string(note.grid[1]) + "x" + std::to_string(note.grid[2]);
  if (note.block[0] != threads || note.block[1] != 1 || note.block[2] != 1 ||
      note.sharedBytes != 0)
    return "another workgroup";
  if (note.stream != stream || note.device != device)
    return "another stream or device";
  return "";
}

/// A function of the empty HIP library.
template <typename Function>
Function emptyHip(const char *name) {
  static void *handle = dlopen(EMPTY_HIP, RTLD_NOW | RTLD_LOCAL);
  void *address = handle ? dlsym(handle, name) : nullptr;
  EXPECT_TRUE(address) << EMPTY_HIP << ": " << name;
  return reinterpret_cast<Function>(address);
}
inline EmptyHipThread &emptyHipThread() {
  static auto get = emptyHip<EmptyHipThreadFn>("fovea_empty_hip_thread");
  return *get();
}

/// A context on the empty HIP library with a package, or null.
inline fovea_context_t *makeLoadContext(const std::string &package) {
  fovea_context_options_t options{};
  options.struct_size = sizeof(options);
  options.hip_library = EMPTY_HIP;
  options.log = "off";
  fovea_context_t *context = nullptr;
  EXPECT_EQ(fovea_context_create(&options, &context), FOVEA_STATUS_OK)
      << fovea_last_message();
  EXPECT_EQ(fovea_package_open(context, package.c_str()), FOVEA_STATUS_OK)
      << fovea_last_message();
  return context;
}

} // namespace fovea::test

#endif // FOVEA_TEST_EMPTYHIP_LAUNCHLOAD_H

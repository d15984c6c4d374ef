//===- main.cpp - attention from C++ --------------------------------------===//
//
// Opens a package, asks how a kernel for a problem would be chosen, loads it and
// captures two passes into a graph. With a scale of zero each key weighs the
// same, so each output must be the mean of the values, here 0.5.
//
//   cpp-client PACKAGE [HEAD_DIM]
//   cpp-client --version
//
//===----------------------------------------------------------------------===//

#include <fovea/fovea.hpp>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int64_t kBatch = 2, kHeads = 2, kQueries = 40, kKeys = 64;
constexpr uint16_t kBf16One = 0x3f80, kBf16Half = 0x3f00;

/// The few HIP functions that are called here directly.
class Hip {
public:
  explicit Hip(const fovea::Context &context) : context(context) {}

  /// Calls a function of the HIP library that the runtime uses.
  template <typename... Args>
  void call(const char *name, Args... args) const {
    const int error = context.hipSymbol<int (*)(Args...)>(name)(args...);
    if (error != 0)
      throw std::runtime_error(std::string(name) + ": HIP error " +
                               std::to_string(error));
  }

private:
  const fovea::Context &context;
};

/// bf16 elements in device memory.
class DeviceTensor {
public:
  DeviceTensor(const Hip &hip, const std::vector<uint16_t> &values)
      : hip(hip), bytes(values.size() * sizeof(uint16_t)) {
    hip.call("hipMalloc", &memory, bytes);
    hip.call("hipMemcpy", memory, static_cast<const void *>(values.data()),
             bytes, /*host to device=*/1);
  }
  ~DeviceTensor() {
    try {
      hip.call("hipFree", memory);
    } catch (const std::exception &error) {
      std::cerr << "cpp-client: " << error.what() << "\n";
    }
  }
  DeviceTensor(const DeviceTensor &) = delete;
  DeviceTensor &operator=(const DeviceTensor &) = delete;

  void *data() const { return memory; }
  std::vector<uint16_t> read() const {
    std::vector<uint16_t> values(bytes / sizeof(uint16_t));
    hip.call("hipMemcpy", static_cast<void *>(values.data()),
             static_cast<const void *>(memory), bytes, /*device to host=*/2);
    return values;
  }

private:
  const Hip &hip;
  size_t bytes;
  void *memory = nullptr;
};

int run(const std::string &package, int64_t headDim) {
  fovea::Context context;
  context.openPackage(package);
  std::cout << "HIP library " << context.hipLibrary().path << ", device "
            << context.device(0).arch << "\n";

  auto p = fovea::make<fovea_forward_params_t>();
  p.dtype = FOVEA_DTYPE_BF16;
  p.scale = 0;
  p.batch = kBatch;
  p.heads_q = p.heads_k = kHeads;
  p.seqlen_q = kQueries;
  p.seqlen_k = kKeys;
  p.head_dim = headDim;
  p.q.stride_seq = p.k.stride_seq = p.v.stride_seq = p.out.stride_seq = headDim;
  p.q.stride_head = p.out.stride_head = kQueries * headDim;
  p.k.stride_head = p.v.stride_head = kKeys * headDim;
  p.q.stride_batch = p.out.stride_batch = kHeads * p.q.stride_head;
  p.k.stride_batch = p.v.stride_batch = kHeads * p.k.stride_head;
  for (const fovea::Candidate &candidate : context.explain(p).candidates)
    std::cout << candidate.name << ": " << candidate.reason << "\n";
  context.prepare(p);

  const Hip hip(context);
  const auto elements = [&](int64_t rows) {
    return std::vector<uint16_t>(size_t(kBatch * kHeads * rows * headDim),
                                 kBf16One);
  };
  std::vector<uint16_t> values = elements(kKeys);
  for (size_t i = 0; i != values.size(); ++i) // every other key: mean 0.5
    values[i] = size_t(i) / size_t(headDim) % 2 ? kBf16One : 0;
  const DeviceTensor q(hip, elements(kQueries)), k(hip, elements(kKeys)),
      v(hip, values), out(hip, elements(kQueries));
  p.q.data = q.data();
  p.k.data = k.data();
  p.v.data = v.data();
  p.out.data = out.data();

  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  hip.call("hipStreamCreate", &stream);
  hip.call("hipStreamBeginCapture", stream, /*global=*/0);
  context.launch(p, stream);
  context.launch(p, stream);
  hip.call("hipStreamEndCapture", stream, &graph);
  hip.call("hipGraphInstantiate", &executable, graph,
           static_cast<void **>(nullptr), static_cast<char *>(nullptr),
           size_t(0));
  hip.call("hipGraphLaunch", executable, stream);
  hip.call("hipStreamSynchronize", stream);

  size_t right = 0;
  const std::vector<uint16_t> outputs = out.read();
  for (uint16_t value : outputs)
    right += value == kBf16Half;
  std::cout << right << " of " << outputs.size()
            << " outputs are exactly 0.5\n";
  hip.call("hipGraphExecDestroy", executable);
  hip.call("hipGraphDestroy", graph);
  hip.call("hipStreamDestroy", stream);
  return right == outputs.size() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    std::cerr << "usage: cpp-client PACKAGE [HEAD_DIM]\n";
    return 2;
  }
  if (args[0] == "--version") {
    std::cout << "built for " << FOVEA_VERSION << ", running with "
              << fovea::version() << "\n";
    return 0;
  }
  try {
    return run(args[0], args.size() > 1 ? std::atoi(args[1].c_str()) : 128);
  } catch (const fovea::Error &error) {
    std::cerr << "cpp-client: " << fovea_status_name(error.status()) << ": "
              << error.what() << "\n";
  } catch (const std::exception &error) {
    std::cerr << "cpp-client: " << error.what() << "\n";
  }
  return 1;
}

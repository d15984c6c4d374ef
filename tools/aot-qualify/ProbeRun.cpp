//===- ProbeRun.cpp - hardware beside the simulator -----------------------===//

#include "ProbeRun.h"

#include "ModuleCalls.h"
#include "Orders.h"
#include "fovea/Simulator/Launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace fovea;
using namespace fovea::qualify;
using nlohmann::json;
using run::HipCalls;

void UlpHistogram::add(uint64_t ulps) {
  most = std::max(most, ulps);
  size_t bucket = 0;
  while (ulps > (bucket == 0 ? 0 : uint64_t(1) << (bucket - 1)) &&
         bucket + 1 < kBuckets)
    ++bucket;
  ++counts[bucket];
}

json UlpHistogram::toJson() const {
  return {{"counts", counts}, {"most", most}};
}

uint64_t qualify::ulpsBetween(float a, float b) {
  auto ordered = [](float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const int64_t magnitude = bits & 0x7fffffff;
    return bits >> 31 ? -magnitude : magnitude;
  };
  return uint64_t(std::abs(ordered(a) - ordered(b)));
}

namespace {

using Words = std::vector<uint32_t>;

constexpr uint32_t kGroups = 1024; ///< each number of 16 bits once
constexpr uint32_t kTiles = 64;    ///< of a product
constexpr uint32_t kExactTiles = 8; ///< of these, hold small whole numbers
constexpr size_t kOrderResults = 1000; ///< of the others, to find the order by
/// What v_exp_f32 and its like may be apart: each is within 1 of the truth.
constexpr uint64_t kMostUlps = 2;

float asFloat(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t asBits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// A type of floats, as far as factors of products need it.
struct FloatFormat {
  unsigned bits, fraction;
  int bias;
  int spread; ///< exponents of factors are within it
};
FloatFormat formatOf(ProbeFill fill) {
  switch (fill) {
  case ProbeFill::F16:
    return {16, 10, 15, 6};
  case ProbeFill::BF16:
    return {16, 7, 127, 6};
  case ProbeFill::Fp8:
    return {8, 3, 7, 3};
  case ProbeFill::Fp8Fnuz:
    return {8, 3, 8, 3};
  case ProbeFill::Bf8:
    return {8, 2, 15, 3};
  default: // sums of 48-bit products must be exact in long double
    return {32, 23, 127, 2};
  }
}
uint32_t encode(const FloatFormat &f, bool negative, int exponent,
                uint32_t fraction) {
  return uint32_t(negative) << (f.bits - 1) |
         uint32_t(exponent + f.bias) << f.fraction | fraction;
}
float decode(const FloatFormat &f, uint32_t bits) {
  const uint32_t magnitude = bits & ((uint32_t(1) << (f.bits - 1)) - 1);
  if (magnitude == 0)
    return 0;
  const int exponent = int(magnitude >> f.fraction) - f.bias;
  const uint32_t fraction = magnitude & ((uint32_t(1) << f.fraction) - 1);
  const float value = std::ldexp(
      1 + std::ldexp(float(fraction), -int(f.fraction)), exponent);
  return bits >> (f.bits - 1) ? -value : value;
}
/// -4 to 4.
uint32_t encodeWhole(const FloatFormat &f, int value) {
  const int magnitude = std::abs(value);
  if (magnitude == 0)
    return 0;
  const int exponent = std::ilogb(double(magnitude));
  const bool hasHalf = magnitude == 3;
  return encode(f, value < 0, exponent,
                hasHalf ? uint32_t(1) << (f.fraction - 1) : 0);
}

const uint32_t kEdges[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
    0xffc12345, 0x3f800000, 0xbf800000, 0x7fffffff, 0xffffffff, 0x477fe000,
    0x477ff000, 0x477fefff, 0x38800000, 0x33800000, 0x33000000, 0x4f000000,
    0xcf000000, 0x4effffff, 0x3f000000, 0x3f808000, 0x3f818000, 0x38ffe000};

class Filler {
public:
  explicit Filler(uint64_t seed) : random(seed) {}

  Words elements(ProbeFill fill) {
    Words words(size_t(kGroups) * kProbeThreads * 3);
    for (size_t i = 0; i != words.size(); ++i)
      words[i] = fill == ProbeFill::Halves && i % 3 == 0
                     ? uint32_t(i / 3) & 0xffff
                     : word(fill);
    return words;
  }

  Words product(const Probe &probe) {
    const FloatFormat f = formatOf(probe.fill);
    std::vector<uint8_t> bytes;
    auto put = [&](uint32_t bits, unsigned size) {
      for (unsigned i = 0; i != size; ++i)
        bytes.push_back(uint8_t(bits >> (8 * i)));
    };
    const uint32_t factors = (probe.m + probe.n) * probe.k;
    for (uint32_t tile = 0; tile != kTiles; ++tile) {
      const bool isExact = tile < kExactTiles;
      for (uint32_t i = 0; i != factors; ++i)
        put(isExact ? encodeWhole(f, int(random() % 9) - 4) : factor(f),
            f.bits / 8);
      for (uint32_t i = 0; i != probe.m * probe.n; ++i)
        put(isExact ? asBits(float(int(random() % 2001) - 1000)) : sum(), 4);
    }
    Words words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }

private:
  uint32_t word(ProbeFill fill) {
    const uint64_t draw = random();
    const uint32_t low = uint32_t(draw);
    const uint32_t edge = kEdges[(draw >> 40) % std::size(kEdges)];
    switch (fill) {
    case ProbeFill::Exp:
      if ((draw >> 32) % 64 == 0)
        return edge;
      return asBits(float(double(low) / 4294967296.0 * 280 - 150));
    case ProbeFill::Positive:
      if ((draw >> 32) % 64 == 0)
        return edge & 0x7fffffff;
      return (low & 0x7fffffff) % 0x7f000000 + 0x00800000;
    default:
      switch ((draw >> 32) % 8) {
      case 0:
        return edge;
      case 1: // a small whole number, of either sign
        return uint32_t(int32_t(low % 200) - 100);
      case 2:
      case 3: // a float near 1
        return (low & 0x807fffff) | ((107 + (draw >> 48) % 40) << 23);
      default:
        return low;
      }
    }
  }
  uint32_t factor(const FloatFormat &f) {
    const uint64_t draw = random();
    const int exponent = int((draw >> 33) % unsigned(2 * f.spread + 1)) - f.spread;
    return encode(f, (draw >> 32) & 1, exponent,
                  uint32_t(draw) & ((uint32_t(1) << f.fraction) - 1));
  }
  uint32_t sum() {
    const uint64_t draw = random();
    const int exponent = int((draw >> 33) % 9) - 2;
    return encode({32, 23, 127, 0}, (draw >> 32) & 1, exponent,
                  uint32_t(draw) & 0x7fffff);
  }
  std::mt19937_64 random;
};

/// What both sides are given, and have to give.
struct Task {
  const Probe &probe;
  Words in;
  size_t outWords;
  describe::Launch launch;
};

Task taskOf(const Probe &probe, unsigned waveSize) {
  const bool isProduct = probe.kind == ProbeKind::Product;
  Filler filler(/*seed=*/uint64_t(probe.kind) * 100 + uint64_t(probe.fill) + 1);
  Task task{probe,
            isProduct ? filler.product(probe) : filler.elements(probe.fill),
            size_t(isProduct ? kTiles : kGroups * kProbeThreads) *
                probe.outWords,
            {}};
  task.launch.name = task.launch.kernel = probe.name;
  task.launch.grid = {isProduct ? kTiles : kGroups, 1, 1};
  task.launch.block = {isProduct ? waveSize : kProbeThreads, 1, 1};
  task.launch.arguments.resize(16);
  task.launch.pointers = {{0, 0, 0}, {8, 1, 0}};
  return task;
}

/// The simulated chip, in this process.
class Simulated {
public:
  bool open(const std::string &arch, const ChipProbes &probes,
            std::string &error) {
    sim::Status status = sim::Device::create(arch, device);
    if (status.ok())
      status = sim::CodeObject::load(device, probes.image, probes.imageBytes,
                                     code);
    error = status.ok() ? "" : "the simulator: " + status.message();
    return status.ok();
  }
  unsigned waveSize() const { return device->chip().waveSize; }
  bool run(const Task &task, Words &out, std::string &error) {
    sim::DeviceMemory &memory = device->memory();
    const size_t inBytes = task.in.size() * 4, outBytes = task.outWords * 4;
    uint64_t in = 0, to = 0;
    sim::Status status = memory.allocate(inBytes, 256, in);
    if (status.ok())
      status = memory.allocate(outBytes, 256, to);
    const sim::KernelInfo *kernel = code->findKernel(task.probe.name);
    if (status.ok() && kernel) {
      std::memcpy(reinterpret_cast<void *>(in), task.in.data(), inBytes);
      const std::vector<uint8_t> arguments = task.launch.bind({in, to});
      sim::LaunchConfig config;
      config.grid = task.launch.grid;
      config.block = task.launch.block;
      config.kernarg = arguments.data();
      config.kernargBytes = arguments.size();
      status = sim::launch(*code, *kernel, config);
      out.resize(task.outWords);
      std::memcpy(out.data(), reinterpret_cast<void *>(to), outBytes);
    }
    if (in)
      (void)memory.free(in);
    if (to)
      (void)memory.free(to);
    if (!kernel || !status.ok())
      error = "the simulator: " +
              (kernel ? status.message() : std::string("no such kernel"));
    return error.empty();
  }

private:
  std::shared_ptr<sim::Device> device;
  std::shared_ptr<sim::CodeObject> code;
};

/// The device of a HIP library.
class Hardware {
public:
  bool open(fovea_context_t *context, const ChipProbes &probes,
            std::string &error) {
    if (!hip.load(context, error) || !modules.find(context, error))
      return false;
    return call("hipModuleLoadData", modules.load(&module, probes.image), error);
  }
  ~Hardware() {
    if (module)
      (void)modules.unload(module);
  }
  bool run(const Task &task, Words &out, std::string &error) {
    void *function = nullptr, *in = nullptr, *to = nullptr;
    const size_t inBytes = task.in.size() * 4, outBytes = task.outWords * 4;
    // What is not written stays seen.
    const Words before(task.outWords, 0x7fa5a5a5);
    out.resize(task.outWords);
    const bool done =
        call("hipModuleGetFunction",
             modules.function(&function, module, task.probe.name), error) &&
        call("hipMalloc", hip.malloc(&in, inBytes), error) &&
        call("hipMalloc", hip.malloc(&to, outBytes), error) &&
        call("hipMemcpy",
             hip.memcpy(in, task.in.data(), inBytes, run::HostToDevice),
             error) &&
        call("hipMemcpy",
             hip.memcpy(to, before.data(), outBytes, run::HostToDevice),
             error) &&
        call("hipModuleLaunchKernel",
             modules.launchOf(function, task.launch, {in, to}), error) &&
        call("hipDeviceSynchronize", hip.synchronize(), error) &&
        call("hipMemcpy", hip.memcpy(out.data(), to, outBytes,
                                     run::DeviceToHost),
             error);
    for (void *memory : {in, to})
      if (memory)
        (void)hip.free(memory);
    return done;
  }

private:
  bool call(const char *what, run::HipStatus status, std::string &error) {
    if (status)
      error = std::string(what) + ": " + hip.explain(status);
    return status == 0;
  }
  HipCalls hip;
  launch::ModuleCalls modules;
  void *module = nullptr;
};

std::string hex(uint32_t word) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", word);
  return text;
}

bool isNaN(ProbeResult result, uint32_t word) {
  switch (result) {
  case ProbeResult::F32:
    return (word & 0x7fffffff) > 0x7f800000;
  case ProbeResult::F16:
    return (word & 0x7fff) > 0x7c00;
  case ProbeResult::BF16:
    return (word & 0x7fff) > 0x7f80;
  case ProbeResult::Bits:
    return false;
  }
  return false;
}

json firstOf(const Task &task, size_t at, uint32_t device, uint32_t simulated) {
  json first = {{"at", at}, {"device", hex(device)}, {"simulator", hex(simulated)}};
  if (task.probe.kind != ProbeKind::Product) {
    for (size_t word = 0; word != task.probe.inWords; ++word)
      first["inputs"].push_back(hex(task.in[at * task.probe.inWords + word]));
  } else {
    const size_t tile = at / task.probe.outWords, place = at % task.probe.outWords;
    first["tile"] = tile;
    first["row"] = place / task.probe.n;
    first["column"] = place % task.probe.n;
  }
  return first;
}

/// All bits must be the same, but for those of a NaN.
void compareBits(const Task &task, const Words &device, const Words &simulated,
                 json &row) {
  uint64_t differ = 0, nans = 0;
  for (size_t i = 0; i != device.size(); ++i) {
    if (device[i] == simulated[i])
      continue;
    if (isNaN(task.probe.result, device[i]) &&
        isNaN(task.probe.result, simulated[i])) {
      ++nans;
      continue;
    }
    if (differ++ == 0)
      row["first"] = firstOf(task, i, device[i], simulated[i]);
  }
  row["differ"] = differ;
  row["nan_bits_differ"] = nans;
  row["rule"] = "bit for bit the simulator's";
  row["result"] = differ ? "DIFFERS" : "pass";
}

double exactOf(const Probe &probe, double x) {
  const std::string name = probe.name;
  if (name == "exponential_exp2")
    return std::exp2(x);
  if (name == "exponential_log2")
    return std::log2(x);
  if (name == "exponential_rcp")
    return 1 / x;
  if (name == "exponential_rsq")
    return 1 / std::sqrt(x);
  return std::sqrt(x);
}

void compareExponentials(const Task &task, const Words &device,
                         const Words &simulated, json &row) {
  UlpHistogram between, ofDevice, ofSimulator;
  uint64_t differ = 0, flushed = 0;
  for (size_t i = 0; i != device.size(); ++i) {
    const float d = asFloat(device[i]), s = asFloat(simulated[i]);
    constexpr float kLeastNormal = 1.17549435e-38f;
    bool bad = std::isnan(d) != std::isnan(s);
    if (!bad && !std::isnan(d)) {
      if (std::abs(d) < kLeastNormal && std::abs(s) < kLeastNormal) {
        flushed += device[i] != simulated[i]; // one keeps denormals
        continue;
      }
      const uint64_t ulps = ulpsBetween(d, s);
      between.add(ulps);
      bad = ulps > kMostUlps;
      const double x = asFloat(task.in[i * task.probe.inWords]);
      const float exact = float(exactOf(task.probe, x));
      // Of denormals the hardware makes zeros.
      const bool isNormal = std::abs(x) >= kLeastNormal;
      if (isNormal && std::isfinite(exact) && std::abs(exact) >= kLeastNormal) {
        ofDevice.add(ulpsBetween(d, exact));
        ofSimulator.add(ulpsBetween(s, exact));
      }
    }
    if (bad && differ++ == 0)
      row["first"] = firstOf(task, i, device[i], simulated[i]);
  }
  row["differ"] = differ;
  row["denormals_differ"] = flushed;
  row["ulps"] = between.toJson();
  row["device_ulps"] = ofDevice.toJson();
  row["simulator_ulps"] = ofSimulator.toJson();
  row["rule"] = "within " + std::to_string(kMostUlps) + " ulps of the simulator's";
  row["result"] = differ ? "DIFFERS" : "pass";
}

/// The dot product behind an element of a result.
DotProduct productAt(const Task &task, size_t at) {
  const Probe &p = task.probe;
  const FloatFormat f = formatOf(p.fill);
  const unsigned bytes = f.bits / 8;
  const size_t tile = at / p.outWords, row = at % p.outWords / p.n,
               column = at % p.n;
  const auto *a = reinterpret_cast<const uint8_t *>(task.in.data()) +
                  tile * p.inWords * 4;
  const uint8_t *b = a + size_t(p.m) * p.k * bytes;
  auto element = [&](const uint8_t *from, size_t number) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + number * bytes, bytes);
    return decode(f, bits);
  };
  DotProduct product;
  for (size_t k = 0; k != p.k; ++k) {
    product.a.push_back(element(a, row * p.k + k));
    product.b.push_back(element(b, k * p.n + column));
  }
  std::memcpy(&product.c,
              b + size_t(p.k) * p.n * bytes + (row * p.n + column) * 4, 4);
  return product;
}

json orderJson(const OrderMatch &match) {
  return {{"order", match.order.text()},
          {"matches", match.matches},
          {"of", match.of},
          {"found", match.matches == match.of}};
}

void compareProducts(const Task &task, const Words &device,
                     const Words &simulated, json &row) {
  const Probe &p = task.probe;
  UlpHistogram between;
  uint64_t differ = 0;
  std::vector<DotProduct> products;
  std::vector<float> ofDevice, ofSimulator;
  for (size_t i = 0; i != device.size(); ++i) {
    const size_t tile = i / p.outWords;
    const float d = asFloat(device[i]), s = asFloat(simulated[i]);
    DotProduct product = productAt(task, i);
    double exact = product.c, size = std::abs(exact);
    for (size_t k = 0; k != p.k; ++k) {
      const double term = double(product.a[k]) * double(product.b[k]);
      exact += term;
      size += std::abs(term);
    }
    bool bad = false;
    if (tile < kExactTiles) {
      bad = double(d) != exact; // no order of such sums rounds
    } else {
      between.add(ulpsBetween(d, s));
      // A rounding a step, towards zero at worst.
      bad = !(std::abs(double(d) - exact) <=
              double(p.k + 2) * std::ldexp(size, -23));
    }
    if (bad && differ++ == 0) {
      row["first"] = firstOf(task, i, device[i], simulated[i]);
      row["first"]["exact"] = exact;
    }
    if (tile >= kExactTiles && products.size() < kOrderResults) {
      products.push_back(std::move(product));
      ofDevice.push_back(d);
      ofSimulator.push_back(s);
    }
  }
  row["differ"] = differ;
  row["ulps"] = between.toJson();
  row["order"] = {{"device", orderJson(findOrder(products, ofDevice, p.k))},
                  {"simulator", orderJson(findOrder(products, ofSimulator, p.k))}};
  row["rule"] = "exact for whole numbers and within the bound of any order for others";
  row["result"] = differ ? "DIFFERS" : "pass";
}

} // namespace

json qualify::runProbes(const run::Session &session) {
  const std::string &arch = session.arch();
  const std::string chip = arch.substr(0, arch.find(':'));
  json result = {{"chip", chip}, {"simulated_chip", arch}};
  const ChipProbes *probes = probesOf(chip.c_str());
  std::string error;
  if (!probes) {
    result["result"] = "not run";
    result["why"] = "there is no simulator of " + chip + ", and so no probes";
    return result;
  }
  Simulated simulated;
  Hardware hardware;
  if (!simulated.open(arch, *probes, error) ||
      !hardware.open(session.context(), *probes, error)) {
    result["result"] = "DEVICE ERROR";
    result["why"] = error;
    return result;
  }
  result["result"] = "pass";
  for (size_t i = 0; i != probes->count; ++i) {
    const Probe &probe = probes->probes[i];
    const Task task = taskOf(probe, simulated.waveSize());
    json row = {{"name", probe.name},
                {"kind", kProbeKinds[int(probe.kind)]},
                {"what", probe.what},
                {"count", task.outWords}};
    Words onDevice, onSimulator;
    if (!simulated.run(task, onSimulator, error) ||
        !hardware.run(task, onDevice, error)) {
      row["result"] = "DEVICE ERROR";
      row["why"] = error;
      result["result"] = "DEVICE ERROR";
      result["probes"].push_back(std::move(row));
      break; // a fault leaves the device unusable
    }
    if (probe.kind == ProbeKind::Product)
      compareProducts(task, onDevice, onSimulator, row);
    else if (probe.kind == ProbeKind::Exponential)
      compareExponentials(task, onDevice, onSimulator, row);
    else
      compareBits(task, onDevice, onSimulator, row);
    if (row["result"] != "pass")
      result["result"] = "DIFFERS";
    result["probes"].push_back(std::move(row));
  }
  return result;
}

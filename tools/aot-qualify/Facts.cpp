//===- Facts.cpp - what a machine's HIP and chips are ---------------------===//

#include "Facts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace fovea;
using namespace fovea::qualify;
using nlohmann::json;

namespace {

/// \p warns: what a value does to what the report says; null: nothing.
struct Variable {
  const char *name, *means, *warns = nullptr;
};

constexpr Variable kVariables[] = {
    {"HSA_OVERRIDE_GFX_VERSION",
     "the chip that ROCm takes every GPU for, as 11.0.0 for gfx1100; unset: "
     "what the driver says",
     "kernels of another chip run on this one: a wrong result may be the "
     "override's doing"},
    {"HIP_VISIBLE_DEVICES",
     "which GPUs HIP shows, and in which order; unset: all",
     "device numbers are those of the GPUs that it leaves"},
    {"ROCR_VISIBLE_DEVICES", "the same, below HIP; unset: all",
     "device numbers are those of the GPUs that it leaves"},
    {"CUDA_VISIBLE_DEVICES", "HIP takes it for HIP_VISIBLE_DEVICES",
     "device numbers are those of the GPUs that it leaves"},
    {"GPU_DEVICE_ORDINAL", "the same, for OpenCL and HIP",
     "device numbers are those of the GPUs that it leaves"},
    {"AMD_SERIALIZE_KERNEL",
     "1: HIP waits before each launch, 2: after it, 3: both; for finding the "
     "launch that fails",
     "launches do not overlap, and times are longer"},
    {"AMD_SERIALIZE_COPY", "the same of copies",
     "copies do not overlap, and times are longer"},
    {"HIP_LAUNCH_BLOCKING", "1: each launch returns when the kernel has ended",
     "launches do not overlap, and times are longer"},
    {"AMD_LOG_LEVEL", "what HIP prints, 0 to 4",
     "HIP prints, and launches cost more"},
    {"HSA_XNACK", "1: GPUs may fault pages in, if the driver lets them",
     "code for xnack- does not run on it"},
    {"HSA_ENABLE_SDMA", "0: copies are made by kernels",
     nullptr},
    {"GPU_MAX_HW_QUEUES", "hardware queues that streams share", nullptr},
    {"TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL",
     "1: PyTorch takes AOTriton on chips where it is experimental", nullptr},
    {"TORCH_BLAS_PREFER_HIPBLASLT", "which BLAS PyTorch prefers", nullptr},
    {"FOVEA_HIP_LIBRARY",
     "the HIP library: auto, rocm, sim or a path; unset: auto", nullptr},
    {"FOVEA_PACKAGE", "kernel packages of commands that name none", nullptr},
    {"FOVEA_KERNELS", "kernel packages of programs", nullptr},
    {"FOVEA_COMPILE",
     "auto: what is missing is compiled; unset: Python's default library does so, "
     "the C library does not",
     nullptr},
    {"FOVEA_LOG", "what the library logs", nullptr},
    {"FOVEA_SIM_TARGET", "the chip that the simulated device is", nullptr},
    {"FOVEA_SIM_CHECK", "what kernels are watched for on the simulated device",
     nullptr},
    {"FOVEA_SIM_MFMA_FAULT",
     "a fault planted into the simulated matrix instructions",
     "the simulated device computes products wrongly"},
};

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

template <typename Function>
Function find(const run::Session &session, const char *name) {
  return reinterpret_cast<Function>(fovea_hip_symbol(session.context(), name));
}

std::string withoutFeatures(const std::string &arch) {
  return arch.substr(0, arch.find(':'));
}

} // namespace

json qualify::environmentFacts() {
  json facts = json::array();
  for (const Variable &variable : kVariables) {
    const char *value = std::getenv(variable.name);
    json fact = {{"name", variable.name}, {"means", variable.means}};
    fact["value"] = value ? json(value) : json();
    if (value && *value && variable.warns)
      fact["warns"] = variable.warns;
    facts.push_back(std::move(fact));
  }
  return facts;
}

std::string qualify::chipOfVersion(unsigned version) {
  if (version == 0)
    return "";
  // Decimal digits, of which the last two are one hexadecimal each in names.
  char text[32];
  std::snprintf(text, sizeof text, "gfx%u%x%x", version / 10000,
                version / 100 % 100, version % 100);
  return text;
}

std::vector<std::string> qualify::chipsOfDriver(const std::string &topology) {
  std::vector<std::string> nodes, chips;
  std::error_code none;
  for (const auto &node :
       std::filesystem::directory_iterator(topology, none))
    nodes.push_back(node.path().string());
  std::sort(nodes.begin(), nodes.end());
  for (const std::string &node : nodes) {
    std::ifstream file(node + "/properties");
    std::string name;
    unsigned long long value = 0;
    while (file >> name >> value)
      if (name == "gfx_target_version" && value)
        chips.push_back(chipOfVersion(unsigned(value)));
  }
  return chips;
}

json qualify::deviceFacts(const run::Session &session, int device) {
  json facts = {{"number", device},
                {"arch", session.arch()},
                {"simulated", session.simulated()}};
  json warnings = json::array();
  fovea_hip_library_info_t library{};
  library.struct_size = sizeof(library);
  if (fovea_hip_library_info(session.context(), &library) == FOVEA_STATUS_OK) {
    facts["hip"] = {{"library", library.path},
                    {"why", library.reason},
                    {"runtime_version", library.runtime_version},
                    {"devices", library.device_count}};
    for (int32_t i = 0; i != library.device_count; ++i) {
      fovea_device_info_t info{};
      info.struct_size = sizeof(info);
      if (fovea_device_info(session.context(), i, &info) == FOVEA_STATUS_OK)
        facts["hip"]["archs"].push_back(info.arch);
      else
        warnings.push_back("device " + std::to_string(i) + ": " +
                           fovea_last_message());
      if (i == device)
        facts["compute_units"] = info.compute_units;
    }
  }
  if (auto driver = find<int (*)(int *)>(session, "hipDriverGetVersion")) {
    int version = 0;
    if (driver(&version) == 0)
      facts["hip"]["driver_version"] = version;
  }
  if (auto name = find<int (*)(char *, int, int)>(session, "hipDeviceGetName")) {
    char text[256] = "";
    if (name(text, sizeof text, device) == 0)
      facts["name"] = text;
  }
  if (auto total = find<int (*)(size_t *, int)>(session, "hipDeviceTotalMem")) {
    size_t bytes = 0;
    if (total(&bytes, device) == 0)
      facts["memory_bytes"] = bytes;
  }
  // HIP's numbers of them.
  constexpr int kClockRate = 5, kMemoryClockRate = 60;
  if (auto attribute = find<int (*)(int *, int, int)>(
          session, "hipDeviceGetAttribute")) {
    int value = 0;
    if (attribute(&value, kClockRate, device) == 0)
      facts["clock_khz"] = value;
    if (attribute(&value, kMemoryClockRate, device) == 0)
      facts["memory_clock_khz"] = value;
  }
  const std::string driver = firstLine("/sys/module/amdgpu/version"),
                    rocm = firstLine("/opt/rocm/.info/version"),
                    kernel = firstLine("/proc/sys/kernel/osrelease");
  facts["driver"] = {{"amdgpu", driver.empty() ? json() : json(driver)},
                     {"rocm", rocm.empty() ? json() : json(rocm)},
                     {"kernel", kernel},
                     {"chips", chipsOfDriver()}};
  if (session.simulated()) {
    warnings.push_back("the device is the simulated one: nothing here is about "
                       "a GPU, and no time is one");
  } else {
    const std::vector<std::string> chips = chipsOfDriver();
    const std::string chip = withoutFeatures(session.arch());
    if (chips.empty())
      warnings.push_back("the kernel driver shows no GPU "
                         "(/sys/class/kfd/kfd/topology)");
    else if (std::find(chips.begin(), chips.end(), chip) == chips.end())
      warnings.push_back("HIP says the device is " + chip +
                         ", the driver knows " + chips.front() +
                         ": HSA_OVERRIDE_GFX_VERSION, or another machine's "
                         "library");
  }
  facts["warnings"] = std::move(warnings);
  return facts;
}

//===- HipCases.cpp - what the runtime relies on of a HIP library ---------===//
//
// Behaviour that the runtime takes for granted and that its fake library can
// only claim: what a real one does with good and bad arguments.
//
//===----------------------------------------------------------------------===//

#include "Buffer.h"

#include <cstring>

using namespace fovea::cts;

TEST(Hip, LibraryDescribesItself) {
  fovea_hip_library_info_t info{};
  info.struct_size = sizeof(info);
  EXPECT_FOVEA(fovea_hip_library_info(context(), &info), FOVEA_STATUS_OK);
  EXPECT_GT(info.device_count, 0);
  EXPECT_GT(info.runtime_version, 0);
  for (int device = 0; device != info.device_count; ++device) {
    fovea_device_info_t description{};
    description.struct_size = sizeof(description);
    EXPECT_FOVEA(fovea_device_info(context(), device, &description),
                 FOVEA_STATUS_OK);
    EXPECT_EQ(std::string(description.arch).rfind("gfx", 0), 0u);
    EXPECT_GT(description.compute_units, 0);
  }
}

TEST(Hip, MemoryComesBackAsItWas) {
  std::vector<uint8_t> bytes(100001), back(bytes.size());
  for (size_t i = 0; i != bytes.size(); ++i)
    bytes[i] = uint8_t(i * 7 + i / 256);
  Guarded memory(bytes.size());
  memory.upload(bytes.data());
  memory.download(back.data());
  EXPECT_EQ(back, bytes);
}

// An image that is ELF on the outside only. The runtime would not let it
// through; HIP must refuse it and go on working.
TEST(Hip, RefusesAnImageThatIsNone) {
  std::vector<uint8_t> image(4096, 0);
  std::memcpy(image.data(),
              "\x7f"
              "ELF\2\1\1",
              7);
  void *module = nullptr;
  EXPECT_NE(hip().hipModuleLoadData(&module, image.data()), 0);
  EXPECT_EQ(hip().hipDeviceSynchronize(), 0);
  Guarded memory(16);
  std::vector<uint8_t> back(16);
  memory.download(back.data());
}

TEST(Hip, ErrorsHaveNames) {
  EXPECT_STREQ(hip().hipGetErrorName(0), "hipSuccess");
  EXPECT_STREQ(hip().hipGetErrorName(1), "hipErrorInvalidValue");
  EXPECT_STREQ(hip().hipGetErrorName(100), "hipErrorNoDevice");
}

TEST(Hip, UnknownDeviceIsRefused) {
  fovea_device_info_t description{};
  description.struct_size = sizeof(description);
  EXPECT_FOVEA(fovea_device_info(context(), 1000, &description),
               FOVEA_STATUS_INVALID_ARGUMENT);
  EXPECT_FOVEA(fovea_device_info(context(), -1, &description), FOVEA_STATUS_OK);
}

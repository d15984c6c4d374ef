//===- FuzzChips.h - devices that fuzz targets share ------------*- C++ -*-===//
//
// One device of every known chip, made once a process.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_FUZZCHIPS_H
#define FOVEA_TEST_FUZZCHIPS_H

#include "fovea/Simulator/Device.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace fovea::test {

inline const std::vector<std::shared_ptr<sim::Device>> &fuzzDevices() {
  static const auto *devices = [] {
    auto *made = new std::vector<std::shared_ptr<sim::Device>>;
    for (const sim::ChipInfo &chip : sim::knownChips()) {
      made->emplace_back();
      if (sim::Status status = sim::Device::create(chip.target, made->back());
          !status) {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::abort(); // nothing could be tested
      }
    }
    return made;
  }();
  return *devices;
}

} // namespace fovea::test

#endif // FOVEA_TEST_FUZZCHIPS_H

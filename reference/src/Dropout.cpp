//===- Dropout.cpp - which weights are dropped ----------------------------===//

#include "fovea/Reference/Dropout.h"

#include <cmath>

using namespace fovea::reference;

std::array<uint32_t, 4> fovea::reference::philox(uint64_t seed,
                                                 uint64_t counter) {
  std::array<uint32_t, 4> c = {uint32_t(counter), uint32_t(counter >> 32), 0,
                               0};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xd2511f53) * c[0],
                   b = uint64_t(0xcd9e8d57) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b),
         uint32_t(a >> 32) ^ c[3] ^ k1, uint32_t(a)};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

bool Dropout::keeps(int64_t batch, int64_t head, int64_t query,
                    int64_t key) const {
  const uint64_t row =
      (uint64_t(firstBatch + batch) * uint64_t(heads) + uint64_t(head)) *
          uint64_t(seqQ) +
      uint64_t(query);
  const uint64_t counter =
      offset + row * uint64_t((seqK + 3) / 4) + uint64_t(key / 4);
  constexpr int swapped[] = {0, 2, 1, 3};
  const int word = swapsWords ? swapped[key % 4] : int(key % 4);
  const auto random = int32_t(philox(seed, counter)[size_t(word)]);
  // fp32 throughout, as the documented threshold is.
  const float bound = (p - 0.5f) * 0x1p32f;
  return double(random) > double(std::trunc(bound));
}

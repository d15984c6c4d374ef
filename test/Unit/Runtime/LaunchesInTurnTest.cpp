//===- LaunchesInTurnTest.cpp - more kinds of launches than are kept ------===//

#include "LaunchCache.h"
#include "RuntimeTest.h"

using namespace fovea;
using namespace fovea::test;

namespace {

using LaunchesInTurn = RuntimeTest;

/// Whether the thread remembers a launch like this call.
bool isRemembered(const fovea_forward_params_t &p) {
  rt::LaunchCache *cache = rt::LaunchCache::ofThread();
  bool isAlike = false;
  if (cache)
    (void)cache->find(rt::Call(&p), [&]() -> const rt::DeviceView * {
      isAlike = true;
      return nullptr;
    });
  return isAlike;
}

TEST_F(LaunchesInTurn, FindMostOfWhatIsRemembered) {
  write({makeRecord(makeProblem(128), 128)});
  const ContextPtr context = makeContext();
  for (const int kinds : {12, 13, 20, 24}) {
    int found = 0;
    for (int round = 0; round != 9; ++round)
      for (int kind = 0; kind != kinds; ++kind) {
        fovea_forward_params_t p = makeParams();
        p.seqlen_q -= kind;
        p.seqlen_k -= kinds;
        found += round == 8 && isRemembered(p);
        expectStatus(fovea_forward(context.get(), &p, nullptr),
                     FOVEA_STATUS_OK);
      }
    EXPECT_EQ(found, kinds == 12 ? 12 : 11) << kinds;
  }
}

} // namespace

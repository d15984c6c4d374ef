//===- Check.cpp - asks whether attention is served, without HIP ----------===//
//
// FoveaAotritonCheck [nodevice]: prints what check_gpu says in a process whose
// HIP library is the one that was loaded before it, if any. nodevice: takes the
// device of a fake one away first.
//
//===----------------------------------------------------------------------===//

#include "../Unit/Runtime/FakeHip.h"

#include <aotriton/flash.h>
#include <cstdio>
#include <dlfcn.h>

int main(int argc, char **) {
  if (argc > 1) {
    auto *state = reinterpret_cast<fovea::test::FakeHipStateFn>(
        dlsym(RTLD_DEFAULT, "fovea_fake_hip_state"));
    if (!state)
      return 1;
    state()->archs.clear();
  }
  const int status = int(aotriton::v2::flash::check_gpu(nullptr));
  auto *message = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "fovea_aotriton_last_message"));
  std::printf("check: status %d%s%s\n", status, status && message ? ", " : "",
              status && message ? message() : "");
}

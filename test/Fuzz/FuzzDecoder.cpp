//===- FuzzDecoder.cpp - any bytes as machine code ------------------------===//
//
// Decodes from every dword, as a jump to it would: disassembly, parsing and
// binding, without executing. The first byte chooses the chip and its wave size.
//
//===----------------------------------------------------------------------===//

#include "FuzzChips.h"
#include "decode/Program.h"

#include <cstring>

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 5)
    return 0;
  const auto &devices = test::fuzzDevices();
  const sim::ChipInfo &chip = devices[data[0] % devices.size()]->chip();
  std::vector<uint32_t> text((size - 1) / 4);
  std::memcpy(text.data(), data + 1, 4 * text.size());
  const bool other = chip.otherWaveSize != 0 && data[0] >= 128;
  std::unique_ptr<sim::Program> program;
  if (!sim::Program::create(chip, other ? chip.otherWaveSize : chip.waveSize,
                            reinterpret_cast<const uint8_t *>(text.data()),
                            4 * text.size(), program))
    __builtin_trap();
  for (uint32_t index = 0; index < program->dwords(); ++index) {
    program->decode(index);
    const sim::MicroOp &op = program->ops()[index];
    if (op.size == 0 ||
        op.fn.load(std::memory_order_relaxed) == sim::Program::undecoded())
      __builtin_trap();
    (void)program->text(index);
  }
  (void)program->unsupported();
  return 0;
}

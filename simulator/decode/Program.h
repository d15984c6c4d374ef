//===- Program.h - The decoded code of a code object ------------*- C++ -*-===//
//
// One MicroOp per dword of code, decoded when it is first executed: whatever
// lies between functions is never looked at. Shared by all launches.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_PROGRAM_H
#define FOVEA_SIMULATOR_DECODE_PROGRAM_H

#include "decode/InstInfo.h"
#include "exec/MicroOp.h"
#include "fovea/Simulator/Status.h"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fovea::sim {

struct ChipInfo;
class Disassembler;
struct ParsedInst;
class IsaTable;
class SourceLines;

class Program {
public:
  /// The code of \p bytes bytes at \p text (a multiple of 4), as waves of
  /// \p waveSize lanes read it: the same words can mean other operands.
  static Status create(const ChipInfo &chip, unsigned waveSize,
                       const uint8_t *text, uint64_t bytes,
                       std::unique_ptr<Program> &result);
  ~Program();

  MicroOp *ops() { return Ops.get(); }
  uint32_t dwords() const { return Dwords; }
  uint64_t begin() const { return reinterpret_cast<uint64_t>(Text); }
  const ChipInfo &chip() const { return Chip; }
  unsigned waveSize() const { return WaveSize; }

  /// The handler that marks instructions which are not decoded yet.
  static Handler undecoded();

  /// Decodes the instruction at dword \p index, if nobody has yet.
  void decode(uint32_t index);

  /// The disassembly of the instruction at dword \p index.
  std::string text(uint32_t index);

  /// Registers and counters of the instruction at dword \p index; lives as long
  /// as the program. Empty for what is no instruction.
  const InstInfo &info(uint32_t index);

  /// "kernel.cl:12" for the instruction at dword \p index; empty when the code
  /// object has no debug information.
  std::string sourceLine(uint32_t index);
  /// \p fileAddress: the code's address in the file that \p lines reads.
  void setSourceLines(std::shared_ptr<SourceLines> lines, uint64_t fileAddress);

  /// What checkers keep with the program; \p make makes it when first asked for.
  std::shared_ptr<void>
  extension(const std::function<std::shared_ptr<void>(Program &)> &make);

  /// Mnemonics in the code that have no row or do not bind to theirs.
  std::vector<std::string> unsupported();

private:
  Program(const ChipInfo &chip, unsigned waveSize, const uint8_t *text,
          uint32_t dwords);
  /// The handler of an instruction, or null.
  Handler bind(MicroOp &op, uint32_t index, const std::string &text);
  /// A constant spread over lanes; lives as long as the program.
  const uint32_t *constant(uint64_t value);

  friend class Binder;

  const ChipInfo &Chip;
  unsigned WaveSize;
  const uint8_t *Text;
  uint32_t Dwords;
  std::unique_ptr<MicroOp[]> Ops;
  std::unique_ptr<Disassembler> Decoder;
  const IsaTable *Table = nullptr;
  std::mutex Mutex;
  struct alignas(64) Spread {
    uint32_t words[2 * kLaneStride];
  };
  std::deque<std::array<MicroOp, 2>> Halves; ///< of dual-issue instructions
  std::map<uint64_t, const uint32_t *> Constants;
  std::deque<Spread> Pool;
  std::map<uint32_t, InstInfo> Infos;
  std::shared_ptr<SourceLines> Lines;
  uint64_t FileAddress = 0;
  std::mutex ExtensionMutex;
  std::shared_ptr<void> Extension;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_PROGRAM_H

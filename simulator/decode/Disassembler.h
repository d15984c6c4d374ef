//===- Disassembler.h - LLVM's AMDGPU disassembler --------------*- C++ -*-===//
//
// One machine instruction to its text, through LLVM's MC layer. Everything the
// simulator knows of an encoding it reads from this text, which is the same for
// all generations of the instruction set.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_DISASSEMBLER_H
#define FOVEA_SIMULATOR_DECODE_DISASSEMBLER_H

#include "decode/InstInfo.h"

#include <cstdint>
#include <memory>
#include <string>

namespace fovea::sim {

class Disassembler {
public:
  /// For the chip \p target with LLVM's \p features ("+wavefrontsize32"); null
  /// when LLVM does not know it.
  static std::unique_ptr<Disassembler> create(const std::string &target,
                                              const std::string &features);
  ~Disassembler();

  /// Disassembles what is at \p bytes (\p available of them, at \p address).
  /// \p size receives the bytes taken. False when it is no instruction.
  bool disassemble(const uint8_t *bytes, uint64_t available, uint64_t address,
                   std::string &text, uint64_t &size);

  /// What the instruction reads, writes, counts and waits for. False when it is
  /// no instruction.
  bool describe(const uint8_t *bytes, uint64_t available, uint64_t address,
                InstInfo &info);

private:
  struct Impl;
  Disassembler();
  std::unique_ptr<Impl> Self;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_DISASSEMBLER_H

//===- InstructionSampler.h - Random instructions of a chip -----*- C++ -*-===//
//
// Everything that LLVM's disassembler takes for an instruction of a chip, in a
// sample that reaches all encodings: each value of a word's upper half, with
// random bits for the rest. What is tried is the same in every run.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_TEST_UNIT_SIMULATOR_INSTRUCTIONSAMPLER_H
#define FOVEA_TEST_UNIT_SIMULATOR_INSTRUCTIONSAMPLER_H

#include "decode/Parser.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fovea::sim::test {

/// Calls \p visit with the text and the bytes of every decodable sample of
/// \p target ("gfx942"). \p rounds: samples for each upper half of the first
/// word; opcodes that lie elsewhere (SOP1, VOP1) get 512 times as many.
/// \return how many were decodable.
size_t sampleInstructions(
    const std::string &target, unsigned rounds,
    const std::function<void(const std::string &text,
                             const std::vector<uint32_t> &words)> &visit);

/// The operand form of an instruction: its mnemonic, the kinds and widths of
/// its operands and the names of its modifiers ("v_add_f32_e64 v1 s1 -v1
/// clamp").
std::string formOf(const ParsedInst &inst);

/// What the semantics table makes of a chip's sample.
struct Coverage {
  size_t decoded = 0;                         ///< samples
  std::map<std::string, size_t> forms;        ///< form -> samples
  std::map<std::string, std::string> unbound; ///< form -> text of one example
};
/// Decodes a sample of \p target and binds each instruction to its row.
Coverage coverageOf(const std::string &target, unsigned rounds);

/// Instructions that are refused on purpose.
struct Refusal {
  const char *form; ///< regular expression on the whole form
  const char *why;
};
/// The forms of \p coverage that neither bind nor match one of \p refusals;
/// \p used: how many forms each refusal stood for.
std::vector<std::string> unexplained(const Coverage &coverage,
                                     const std::vector<Refusal> &refusals,
                                     std::vector<size_t> &used);

} // namespace fovea::sim::test

#endif // FOVEA_TEST_UNIT_SIMULATOR_INSTRUCTIONSAMPLER_H

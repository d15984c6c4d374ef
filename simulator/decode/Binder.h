//===- Binder.h - From a parsed instruction to a MicroOp --------*- C++ -*-===//
//
// Finds the row of an instruction and fills in operands and modifiers.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_BINDER_H
#define FOVEA_SIMULATOR_DECODE_BINDER_H

#include "decode/Parser.h"
#include "decode/Program.h"
#include "isa/Table.h"

namespace fovea::sim {

class Binder {
public:
  /// \p index: dword of the instruction in its program; \p word: its first.
  Binder(Program &program, const IsaTable &table, uint32_t index, uint32_t word)
      : program(program), table(table), index(index), word(word) {}

  /// Fills in \p op and returns its handler; null when the table has no row for
  /// the instruction, or the row does not know an operand or modifier of it.
  Handler bind(MicroOp &op, const ParsedInst &inst);

private:
  bool bindVector(MicroOp &op, const ParsedInst &inst);
  bool bindCompare(MicroOp &op, const ParsedInst &inst);
  bool bindCustom(MicroOp &op, const ParsedInst &inst);
  bool bindConvert(MicroOp &op, const ParsedInst &inst);
  bool bindScalar(MicroOp &op, const ParsedInst &inst);
  bool bindBranch(MicroOp &op, const ParsedInst &inst);
  bool bindSmem(MicroOp &op, const ParsedInst &inst);
  bool bindFlat(MicroOp &op, const ParsedInst &inst);
  bool bindBuffer(MicroOp &op, const ParsedInst &inst);
  bool bindDs(MicroOp &op, const ParsedInst &inst);
  bool bindMfma(MicroOp &op, const ParsedInst &inst);
  /// What "v3.h" as a destination means.
  static void destinationHalf(const ParsedOperand &from, MicroOp &op);
  bool vectorModifiers(MicroOp &op, const ParsedInst &inst);
  bool dppModifier(MicroOp &op, const ParsedModifier &modifier);
  bool source(const ParsedOperand &from, Ty ty, Operand &to);
  bool scalar(const ParsedOperand &from, Operand &to);
  static bool vector(const ParsedOperand &from, Operand &to);

  Program &program;
  const IsaTable &table;
  uint32_t index, word;
  bool brain = false; ///< 16-bit float constants are bf16 (kBrain)
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_BINDER_H

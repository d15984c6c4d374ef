//===- Table.h - The semantics table ----------------------------*- C++ -*-===//
//
// All rows, by mnemonic. The vector rows come from the build of the engine that
// suits the host.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_ISA_TABLE_H
#define FOVEA_SIMULATOR_ISA_TABLE_H

#include "isa/Row.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace fovea::sim {

/// Rows of isa/ScalarOps.cpp and isa/ScalarMemory.cpp.
void addScalarRows(std::vector<Row> &rows);
void addScalarMemoryRows(std::vector<Row> &rows);
void addScalarRowsGfx11(std::vector<Row> &rows);
/// Copies of rows under the names that later generations gave them.
void addAliases(std::vector<Row> &rows);

/// What a build of the engine provides.
struct Variant {
  std::string_view name; ///< "x86-64-v4"
  bool (*supported)();   ///< can this host run it
  void (*addRows)(std::vector<Row> &rows);
  Handler vector, vectorSlow, compare, compareSlow; ///< the engine's handlers
  Handler flat, buffer, ds, dual;
};
/// The best build that this host can run; null when there is none.
const Variant *hostVariant();

class IsaTable {
public:
  /// The table; null when the host cannot run any build of the engine.
  static const IsaTable *get();

  /// The row of \p mnemonic (no encoding suffix) on a chip with \p traits, or
  /// null.
  const Row *find(const std::string &mnemonic, uint32_t traits) const;
  const std::vector<Row> &rows() const { return Rows; }
  const Variant &variant() const { return *Host; }

private:
  explicit IsaTable(const Variant &host);
  const Variant *Host;
  std::vector<Row> Rows;
  std::unordered_map<std::string, std::vector<uint32_t>> ByName;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_ISA_TABLE_H

//===- Table.cpp - The semantics table ------------------------------------===//
//
// Puts the rows together, once in a process, and picks the build of the engine
// that suits the host. FOVEA_SIM_VARIANTS lists the builds, best first.
//
//===----------------------------------------------------------------------===//
#include "isa/Table.h"

#include <cstdlib>

namespace fovea::sim {

#define FOVEA_VARIANT_ENTRY(NAME)                                              \
  namespace NAME {                                                             \
  extern const Variant kVariant;                                               \
  }
FOVEA_SIM_VARIANTS
#undef FOVEA_VARIANT_ENTRY

const Variant *hostVariant() {
#define FOVEA_VARIANT_ENTRY(NAME) &NAME::kVariant,
  static const Variant *const all[] = {FOVEA_SIM_VARIANTS};
#undef FOVEA_VARIANT_ENTRY
  // For tests and comparisons: the build to use, by name.
  const char *wanted = std::getenv("FOVEA_SIM_VARIANT");
  for (const Variant *variant : all)
    if (variant->supported() && (!wanted || variant->name == wanted))
      return variant;
  return nullptr;
}

IsaTable::IsaTable(const Variant &host) : Host(&host) {
  addScalarRows(Rows);
  addScalarMemoryRows(Rows);
  addScalarRowsGfx11(Rows);
  host.addRows(Rows);
  addAliases(Rows);
  for (size_t i = 0; i < Rows.size(); ++i)
    ByName[std::string(Rows[i].mnemonic)].push_back(static_cast<uint32_t>(i));
}

const Row *IsaTable::find(const std::string &mnemonic, uint32_t traits) const {
  auto it = ByName.find(mnemonic);
  if (it == ByName.end())
    return nullptr;
  const Row *best = nullptr;
  for (uint32_t index : it->second) {
    const Row &row = Rows[index];
    if ((row.traits & ~traits) == 0 &&
        (!best || __builtin_popcount(row.traits) >
                      __builtin_popcount(best->traits)))
      best = &row;
  }
  return best;
}

const IsaTable *IsaTable::get() {
  static const IsaTable *table = [] {
    const Variant *host = hostVariant();
    return host ? new IsaTable(*host) : nullptr;
  }();
  return table;
}

} // namespace fovea::sim

//===- VariantEntry.cpp - What one build of the engine provides -----------===//
//
// Compiled with each build; the only symbol of it that others name.
//
//===----------------------------------------------------------------------===//
#include "exec/Engine.h"
#include "isa/Table.h"

#define FOVEA_STRING_(X) #X
#define FOVEA_STRING(X) FOVEA_STRING_(X)

namespace fovea::sim::FOVEA_VARIANT {

namespace {
bool supported() {
#if defined(__x86_64__)
#if defined(__AVX512F__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
#else
  return true;
#endif
}

void addRows(std::vector<Row> &rows) {
  addVectorRows(rows);
  addCompareRows(rows);
  addLaneRows(rows);
  addLaneRowsGfx11(rows);
  addConvertRows(rows);
  addMemoryRows(rows);
  addMfmaRows(rows);
  addWmmaRows(rows);
  addScalarAtomicRows(rows);
}
} // namespace

extern const Variant kVariant;
const Variant kVariant = {
    FOVEA_STRING(FOVEA_VARIANT), supported,      addRows,
    execVector,                  execVectorSlow, execCompare,
    execCompareSlow,             execFlat,       execBuffer,
    execDs,                      execDual};

} // namespace fovea::sim::FOVEA_VARIANT

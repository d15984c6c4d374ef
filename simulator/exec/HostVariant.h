//===- HostVariant.h - Builds of the engine for host CPUs -------*- C++ -*-===//
//
// The vector half of the engine is compiled several times, each in a namespace
// FOVEA_VARIANT of its own with the instruction set that CMake gives it, and
// the best one that the host can run is chosen when the first code object is
// loaded.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_EXEC_HOSTVARIANT_H
#define FOVEA_SIMULATOR_EXEC_HOSTVARIANT_H

#ifndef FOVEA_VARIANT
#define FOVEA_VARIANT host
#endif

#endif // FOVEA_SIMULATOR_EXEC_HOSTVARIANT_H

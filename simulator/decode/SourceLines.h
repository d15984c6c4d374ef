//===- SourceLines.h - From program counters to source lines ----*- C++ -*-===//
//
// Reads the DWARF line tables of a code object that has some, when the first
// report asks for a line.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_SOURCELINES_H
#define FOVEA_SIMULATOR_DECODE_SOURCELINES_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fovea::sim {

class SourceLines {
public:
  /// Keeps a copy of the ELF file of \p bytes bytes at \p data; null when it
  /// has no line tables.
  static std::unique_ptr<SourceLines> create(const void *data, size_t bytes);
  ~SourceLines();

  /// "kernel.cl:12" for the address \p address of the file (not of device
  /// memory); empty when the tables do not say. Names are as the compiler was
  /// given them.
  std::string at(uint64_t address);

private:
  SourceLines();
  struct Impl;
  std::mutex Mutex;
  std::vector<char> Image;
  std::unique_ptr<Impl> Self; ///< made by the first at()
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_SOURCELINES_H

//===- Metadata.h - The metadata note of a code object ----------*- C++ -*-===//
//
// A reader of MessagePack into a plain tree. LLVM's own document class trusts
// its input; code objects come from anywhere.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_METADATA_H
#define FOVEA_SIMULATOR_DECODE_METADATA_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::sim {

/// A MessagePack value. Kinds that code objects do not use are Other.
struct MetaNode {
  enum Kind { Other, Int, String, Array, Map };
  Kind kind = Other;
  uint64_t integer = 0;
  std::string string;
  std::vector<MetaNode> items;                            ///< of an Array
  std::vector<std::pair<std::string, MetaNode>> fields;   ///< of a Map

  const MetaNode *find(std::string_view key) const;
  uint64_t number(std::string_view key, uint64_t otherwise) const;
  std::string text(std::string_view key) const;
  /// The array at \p key; an empty one when there is none.
  const std::vector<MetaNode> &array(std::string_view key) const;
};

/// Reads one value from \p bytes; false when they are damaged.
bool readMetadata(std::string_view bytes, MetaNode &root);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_METADATA_H

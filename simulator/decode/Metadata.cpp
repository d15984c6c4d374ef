//===- Metadata.cpp - The metadata note of a code object ------------------===//
//
// Builds the tree from LLVM's MessagePack token reader.
//
//===----------------------------------------------------------------------===//
#include "decode/Metadata.h"

#include "llvm/BinaryFormat/MsgPackReader.h"
#include "llvm/Support/Error.h"

namespace fovea::sim {

namespace {
constexpr unsigned kMaxDepth = 16;

bool readNode(llvm::msgpack::Reader &reader, MetaNode &node, unsigned depth) {
  llvm::msgpack::Object object;
  auto more = reader.read(object);
  if (!more) {
    llvm::consumeError(more.takeError());
    return false;
  }
  if (!*more || depth == kMaxDepth)
    return false;
  switch (object.Kind) {
  case llvm::msgpack::Type::Int:
    node.kind = MetaNode::Int;
    node.integer = static_cast<uint64_t>(object.Int);
    return true;
  case llvm::msgpack::Type::UInt:
    node.kind = MetaNode::Int;
    node.integer = object.UInt;
    return true;
  case llvm::msgpack::Type::String:
    node.kind = MetaNode::String;
    node.string = object.Raw.str();
    return true;
  case llvm::msgpack::Type::Array:
    node.kind = MetaNode::Array;
    // A wrong length ends with the input; nothing is reserved for it.
    for (size_t i = 0; i < object.Length; ++i) {
      node.items.emplace_back();
      if (!readNode(reader, node.items.back(), depth + 1))
        return false;
    }
    return true;
  case llvm::msgpack::Type::Map:
    node.kind = MetaNode::Map;
    for (size_t i = 0; i < object.Length; ++i) {
      MetaNode key;
      node.fields.emplace_back();
      if (!readNode(reader, key, depth + 1) || key.kind != MetaNode::String ||
          !readNode(reader, node.fields.back().second, depth + 1))
        return false;
      node.fields.back().first = std::move(key.string);
    }
    return true;
  default:
    return true;
  }
}
} // namespace

const MetaNode *MetaNode::find(std::string_view key) const {
  for (const auto &[name, node] : fields)
    if (name == key)
      return &node;
  return nullptr;
}

uint64_t MetaNode::number(std::string_view key, uint64_t otherwise) const {
  const MetaNode *node = find(key);
  return node && node->kind == Int ? node->integer : otherwise;
}

std::string MetaNode::text(std::string_view key) const {
  const MetaNode *node = find(key);
  return node && node->kind == String ? node->string : "";
}

const std::vector<MetaNode> &MetaNode::array(std::string_view key) const {
  static const std::vector<MetaNode> empty;
  const MetaNode *node = find(key);
  return node && node->kind == Array ? node->items : empty;
}

bool readMetadata(std::string_view bytes, MetaNode &root) {
  llvm::msgpack::Reader reader(llvm::StringRef(bytes.data(), bytes.size()));
  return readNode(reader, root, 0);
}

} // namespace fovea::sim

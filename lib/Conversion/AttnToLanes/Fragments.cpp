//===- Fragments.cpp - what lowerings of tiles share ----------------------===//

#include "Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fovea;
using layout::Coord;
using layout::TileLayout;

VectorType fovea::fragmentType(Type tile) {
  return VectorType::get(
      {attn::getTileLayout(tile).getLayout().elementsPerFragment()},
      cast<RankedTensorType>(tile).getElementType());
}

Value fovea::element(ImplicitLocOpBuilder &b, Value vector, int64_t index) {
  return vector::ExtractOp::create(b, vector, index);
}

static Value pass(ImplicitLocOpBuilder &b, Value value, StringRef constraints,
                  bool hasSideEffects) {
  return LLVM::InlineAsmOp::create(
             b, value.getType(), ValueRange{value},
             /*asm_string=*/"", constraints, hasSideEffects,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             /*asm_dialect=*/LLVM::AsmDialectAttr(),
             /*operand_attrs=*/ArrayAttr())
      .getResult(0);
}

Value fovea::passVectorRegister(ImplicitLocOpBuilder &b, Value value,
                                bool hasSideEffects) {
  return pass(b, value, "=v,0", hasSideEffects);
}

Value fovea::passAccumulators(ImplicitLocOpBuilder &b, Value value) {
  return pass(b, value, "=a,0", /*hasSideEffects=*/true);
}

int64_t fovea::lastColumn(const layout::TileLayout &layout) {
  int64_t last = 0;
  for (auto space : {layout::Space::Lane, layout::Space::Wave})
    for (const layout::Coord &basis : layout.get(space))
      last += basis[1];
  return last;
}

Value fovea::mapElements(ImplicitLocOpBuilder &b, Value fragment,
                         llvm::function_ref<Value(Value)> make) {
  auto type = cast<VectorType>(fragment.getType());
  SmallVector<Value> results;
  for (int64_t index = 0; index < type.getNumElements(); ++index)
    results.push_back(make(element(b, fragment, index)));
  return vector::FromElementsOp::create(b, type, results);
}

SmallVector<Value>
fovea::makeFragments(ImplicitLocOpBuilder &b, Type tile,
                     llvm::function_ref<Value(int, int)> make) {
  const TileLayout layout = attn::getTileLayout(tile).getLayout();
  VectorType type = fragmentType(tile);
  SmallVector<Value> fragments;
  for (int fragment = 0; fragment < layout.fragments(); ++fragment) {
    SmallVector<Value> elements;
    for (int reg = 0; reg < layout.elementsPerFragment(); ++reg)
      elements.push_back(make(fragment, reg));
    fragments.push_back(vector::FromElementsOp::create(b, type, elements));
  }
  return fragments;
}

Value fovea::callIntrinsic(ImplicitLocOpBuilder &b, Type type, StringRef name,
                           ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name),
                                       arguments)
      .getResult(0);
}

Value fovea::permuteBytes(ImplicitLocOpBuilder &b, Value high, Value low,
                          int64_t selector) {
  Value select = arith::ConstantIntOp::create(b, selector, 32).getResult();
  return callIntrinsic(b, b.getI32Type(), "llvm.amdgcn.perm",
                       {high, low, select});
}

Value fovea::gather(ImplicitLocOpBuilder &b, Value fragment,
                    ArrayRef<int64_t> elements) {
  auto type = cast<VectorType>(fragment.getType());
  int64_t count = elements.size();
  auto isPair = [&](int64_t first) {
    return elements[first] % 2 == 0 &&
           elements[first + 1] == elements[first] + 1;
  };
  bool pairs = true;
  for (int64_t first = 0; first + 1 < count; first += 2)
    pairs &= isPair(first);
  if (type.getElementTypeBitWidth() != 16 || count % 2 != 0 ||
      type.getNumElements() % 2 != 0 || pairs)
    return vector::ShuffleOp::create(b, fragment, fragment, elements);
  // Halves of words: one permute a word, which the backend does not always find
  // in a shuffle where it can also move halves of registers.
  auto words = VectorType::get({type.getNumElements() / 2}, b.getI32Type());
  Value bits = vector::BitCastOp::create(b, words, fragment);
  SmallVector<Value> result;
  for (int64_t first = 0; first < count; first += 2) {
    int64_t low = elements[first], high = elements[first + 1];
    Value lowWord = vector::ExtractOp::create(b, bits, low / 2);
    if (isPair(first)) {
      result.push_back(lowWord);
      continue;
    }
    Value highWord = vector::ExtractOp::create(b, bits, high / 2);
    int64_t selector =
        (low % 2 ? 0x0302 : 0x0100) | (high % 2 ? 0x0706 : 0x0504) << 16;
    result.push_back(permuteBytes(b, highWord, lowWord, selector));
  }
  Value packed = vector::FromElementsOp::create(
      b, VectorType::get({count / 2}, b.getI32Type()), result);
  return vector::BitCastOp::create(
      b, VectorType::get({count}, type.getElementType()), packed);
}

Value fovea::addBytes(ImplicitLocOpBuilder &b, Value address,
                      LLVM::GEPArg bytes) {
  return LLVM::GEPOp::create(b, address.getType(), b.getI8Type(), address,
                             ArrayRef<LLVM::GEPArg>{bytes},
                             LLVM::GEPNoWrapFlags::inbounds);
}

//===----------------------------------------------------------------------===//
// TileAccesses
//===----------------------------------------------------------------------===//

TileAccesses::TileAccesses(const TileLayout &layout, Type elementType)
    : TileAccesses(layout, elementType,
                   wideAccesses(layout, layout::kWideBytes /
                                            attn::bytesOf(elementType))) {}

TileAccesses::TileAccesses(const TileLayout &layout, Type elementType,
                           const layout::WideAccesses &accesses)
    : layout(layout), elementType(elementType),
      size(attn::bytesOf(elementType)), accesses(accesses) {}

VectorType TileAccesses::type() const {
  return VectorType::get({accesses.width}, elementType);
}

void TileAccesses::forEach(
    llvm::function_ref<void(int, const Registers &, Coord)> access) const {
  for (int fragment = 0; fragment < layout.fragments(); ++fragment)
    for (const Registers &regs : accesses.regs) {
      Coord origin = layout.fragmentOrigin(fragment);
      Coord inside = layout.map(regs[0], 0, 0);
      access(fragment, regs, {origin[0] + inside[0], origin[1] + inside[1]});
    }
}

SmallVector<Value>
TileAccesses::read(ImplicitLocOpBuilder &b,
                   llvm::function_ref<Value(Coord)> read) const {
  SmallVector<Value> fragments, parts;
  forEach([&](int, const Registers &, Coord at) {
    parts.push_back(read(at));
    if (parts.size() < accesses.regs.size())
      return;
    fragments.push_back(scatter(b, parts));
    parts.clear();
  });
  return fragments;
}

/// Puts the accesses of a fragment together: access a holds registers regs[a].
Value TileAccesses::scatter(ImplicitLocOpBuilder &b, ValueRange parts) const {
  int64_t count = layout.elementsPerFragment();
  if (parts.size() == 1 &&
      llvm::equal(accesses.regs[0], llvm::seq<int64_t>(0, count)))
    return parts[0];
  SmallVector<Value> elements(count);
  for (auto [part, regs] : llvm::zip(parts, accesses.regs))
    for (auto [number, reg] : llvm::enumerate(regs))
      elements[reg] = element(b, part, number);
  return vector::FromElementsOp::create(
      b, VectorType::get({count}, elementType), elements);
}

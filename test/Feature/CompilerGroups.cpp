//===- CompilerGroups.cpp - the made-up feature as IR ---------------------===//
//
// Takes the place of lib/Tools/aot-compile/Groups.cpp, whose rows it has as
// well. The part of visibility is an attribute of the dialect in a feature that
// ships; here it is a string that the interface is attached to.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

namespace fovea::tools {
spec::Rows<GroupPart> shippedParts();
} // namespace fovea::tools
#define groupParts shippedParts
#include "Groups.cpp"
#undef groupParts

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fovea::attn;

// place: the part of visibility, an attribute of the dialect
namespace {
struct Horizon : VisibilityAttrInterface::ExternalModel<Horizon, StringAttr> {
  StringRef getGroup(Attribute) const { return "horizon"; }

  SeenBounds keysOfRows(Attribute, VisibilityContext &, ValueRange bounds,
                        Value, Value) const {
    return {{nullptr, bounds[0]}, {nullptr, bounds[0]}};
  }
  SeenBounds rowsOfKeys(Attribute, VisibilityContext &context,
                        ValueRange bounds, Value first, Value last) const {
    return {{nullptr, rowsIf(context, first, bounds[0])},
            {nullptr, rowsIf(context, last, bounds[0])}};
  }
  Bounds keysOfEachRow(Attribute, VisibilityContext &context, ValueRange bounds,
                       Value, Value origin, Value places) const {
    Value end = arith::SubIOp::create(context.b, bounds[0], origin);
    return {nullptr,
            tensor::SplatOp::create(context.b, end, places.getType())};
  }
  Bounds rowsOfEachKey(Attribute, VisibilityContext &context, ValueRange bounds,
                       Value first, Value origin, Value places) const {
    ImplicitLocOpBuilder &b = context.b;
    // Rows up to the last one if the key's number is less than the horizon:
    // (key - horizon) >> 31 is -1 then, and 0 otherwise.
    auto splat = [&](Value value) -> Value {
      return tensor::SplatOp::create(b, value, places.getType());
    };
    Value key = arith::AddIOp::create(
        b, places,
        splat(arith::SubIOp::create(b, first, bounds[0])));
    Value sign = arith::ShRSIOp::create(
        b, key, splat(arith::ConstantIntOp::create(b, 31, 32)));
    Value rows = arith::AndIOp::create(b, sign, splat(context.seqlenQ));
    return {nullptr, arith::SubIOp::create(b, rows, splat(origin))};
  }

private:
  /// All rows if they see a key, else none.
  static Value rowsIf(VisibilityContext &context, Value key, Value horizon) {
    ImplicitLocOpBuilder &b = context.b;
    Value isSeen =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, key, horizon);
    return arith::SelectOp::create(b, isSeen, context.seqlenQ,
                                   arith::ConstantIntOp::create(b, 0, 32));
  }
};
} // namespace
// end

// place: the row of lib/Tools/aot-compile/Groups.cpp
static constexpr GroupPart kHorizonPart = {
    "horizon", [](MLIRContext &context) -> Attribute {
      StringAttr::attachInterface<Horizon>(context);
      return StringAttr::get(&context, "horizon");
    }};
// end

fovea::spec::Rows<GroupPart> fovea::tools::groupParts() {
  static const GroupPart all[] = {shippedParts()[0], kHorizonPart};
  return all;
}

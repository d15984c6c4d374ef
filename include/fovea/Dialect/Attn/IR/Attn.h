//===- Attn.h - the attn dialect --------------------------------*- C++ -*-===//

#ifndef FOVEA_DIALECT_ATTN_IR_ATTN_H
#define FOVEA_DIALECT_ATTN_IR_ATTN_H

#include "fovea/Dialect/Attn/IR/VisibilityContext.h"
#include "fovea/Layout/TileLayout.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/MatrixInstr.h"
#include "fovea/Target/TargetInfo.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fovea::layout {
/// Lets layouts be attribute parameters.
llvm::hash_code hash_value(const TileLayout &layout);
} // namespace fovea::layout

namespace fovea::attn {

/// Gives a tile a layout. Fails, with an error, if it has another already.
using SetLayout = llvm::function_ref<llvm::LogicalResult(
    mlir::Value tile, const layout::TileLayout &layout)>;

/// Whether a value is a two-dimensional tensor.
bool isTile(mlir::Value value);

/// The rule of ops whose tile operands and results all have one layout.
llvm::LogicalResult keepLayout(mlir::Operation *op,
                               const layout::TileLayout &layout, SetLayout set);

/// Adds LayoutOpInterface to the control flow that tiles may pass: scf.for and
/// scf.if.
void registerLayoutModels(mlir::DialectRegistry &registry);

/// Lets one-shot bufferization take attn.sdpa.
void registerBufferizationModels(mlir::DialectRegistry &registry);

} // namespace fovea::attn

#include "fovea/Dialect/Attn/IR/AttnDialect.h.inc"
#include "fovea/Dialect/Attn/IR/AttnEnums.h.inc"

#include "fovea/Dialect/Attn/IR/AttnAttrInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnInterfaces.h.inc"
#include "fovea/Dialect/Attn/IR/AttnTypes.h.inc"
#define GET_OP_CLASSES
#include "fovea/Dialect/Attn/IR/AttnOps.h.inc"

namespace fovea::attn {

/// Name of the discardable attribute that holds a TargetAttr.
inline constexpr llvm::StringLiteral kTargetAttrName = "attn.target";

/// Name of the attribute of a kernel that holds the ScheduleAttr it was tiled
/// by.
/// On the branch that holds the text of a kernel whose workgroups may have
/// nothing to do.
inline constexpr llvm::StringLiteral kTextAttrName = "attn.text";
inline constexpr llvm::StringLiteral kScheduleAttrName = "attn.schedule";

/// Name of the attribute of a module that marks it as one of kernels, of which
/// its neighbours are not.
inline constexpr llvm::StringLiteral kKernelsAttrName = "attn.kernels";

/// Names of the attributes of a function that stands for the launch of a
/// kernel: the symbol of that kernel, and the text of its ProblemKey. The
/// kernel has the latter too.
inline constexpr llvm::StringLiteral kKernelAttrName = "attn.kernel";
inline constexpr llvm::StringLiteral kKeyAttrName = "attn.key";

/// Names of the attributes of score programs that are functions and of their
/// captured arguments: strings, which kernels/scores.mlir explains.
inline constexpr llvm::StringLiteral kScoreKindAttrName = "attn.kind",
                                     kScoreSummaryAttrName = "attn.summary",
                                     kScoreVariantAttrName = "attn.variant_of",
                                     kCaptureNameAttrName = "attn.name",
                                     kCaptureElementAttrName = "attn.element";

/// A feature group that an op takes as operands together: its tensors and then
/// its scalars, in the order of the group's table. Of other groups tensors are
/// operands each, and scalars bounds of a part of visibility.
struct OperandGroup {
  llvm::StringLiteral name;       ///< of the group
  llvm::StringLiteral clause;     ///< under which ops have it in their text
  llvm::StringLiteral constraint; ///< the verifier's, of the ops' descriptions
  /// Empty: the op's kernels do not have the group.
  mlir::OperandRange (*operandsOf)(AttentionOpInterface op);
};
/// The row of a feature group; null if its operands are not together.
const OperandGroup *findOperandGroup(llvm::StringRef name);

/// The operation's row of an algorithm.
const spec::AlgorithmSpec &specOf(BackwardAlgorithm algorithm);

/// The key of an op's kernels in a package; fails, with an error on the op, if
/// it has none.
llvm::FailureOr<ProblemKey> keyOf(AttentionOpInterface op);

/// Whether a gradient of a capture is stored and not added up in memory: its
/// type says so.
bool isStoredGradient(mlir::Value gradient);

/// The tensors that an op's kernels are passed, each once: in the order of the
/// function's arguments that they are, what is left out behind the others.
std::vector<const spec::TensorSpec *> tensorsOf(AttentionOpInterface op);

/// Waves of a workgroup, and so the wave bits of a layout.
inline constexpr int kMaxWaves = 16, kMaxWaveBits = 4;

/// Elements of a unit of a tile that a lane may hold, as register bits, and of
/// all units of it. More than any chip has registers for; a tile on its way to
/// LDS without passing them has the most.
inline constexpr int kMaxRegisterBits = 12, kMaxLaneElements = 1 << 12;

/// Largest extent of a tile.
inline constexpr int64_t kMaxTileExtent = 1 << 16;
/// Rows of a view that loads and stores reach.
inline constexpr int64_t kMostViewedRows = 256;

/// Whether a tile may have this shape: two extents in [1, kMaxTileExtent].
bool isTileShape(llvm::ArrayRef<int64_t> shape);

/// The row of an MLIR type; null if it is none of the table's.
const target::ElementTypeInfo *lookupElementType(mlir::Type type);

/// The MLIR type of a row.
mlir::Type getElementType(mlir::MLIRContext *context, target::ElementType type);

/// Bytes of an element of a tile, view or LDS tile; at least one.
int64_t bytesOf(mlir::Type elementType);

/// The row of an instruction name for factors of an element type on a chip;
/// null if the chip has none.
const target::MatrixInstr *lookupMatrixInstr(const target::TargetInfo &target,
                                             llvm::StringRef name,
                                             mlir::Type elementType);

/// The row of an instruction for factors of an element type on a chip; null if
/// the chip has none.
const target::MatrixInstr *lookupMatrixInstr(const target::TargetInfo &target,
                                             InstAttr inst,
                                             mlir::Type elementType);

/// Says, through `emitError`, that the chip has not this instruction for the
/// element type, and which it has.
mlir::InFlightDiagnostic
emitNoMatrixInstr(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                  const target::TargetInfo &target, InstAttr inst,
                  mlir::Type elementType);

/// The layout in a tile's encoding; null if it has none yet.
LayoutAttr getTileLayout(mlir::Type type);

/// `type` with another encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  const layout::TileLayout &layout);

/// The same uniform scalar, but LLVM does not know so: what is computed from it
/// is computed where it is used instead of holding a register through a loop,
/// and what it is computed from need not last.
mlir::Value makeOpaque(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value scalar);

} // namespace fovea::attn

#endif // FOVEA_DIALECT_ATTN_IR_ATTN_H

//===- AttnAttrs.cpp - attributes and types of the attn dialect -----------===//

#include "fovea/Dialect/Attn/IR/Attn.h"
#include "fovea/Layout/DotLayouts.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Target/MatrixInstr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace fovea;
using namespace fovea::attn;
using layout::Bases;
using layout::Coord;
using layout::TileLayout;

llvm::hash_code layout::hash_value(const TileLayout &layout) {
  llvm::hash_code hash = llvm::hash_combine(layout.grid()[0], layout.grid()[1]);
  for (auto space :
       {layout::Space::Register, layout::Space::Lane, layout::Space::Wave}) {
    hash = llvm::hash_combine(hash, layout.get(space).size());
    for (const Coord &basis : layout.get(space))
      hash = llvm::hash_combine(hash, basis[0], basis[1]);
  }
  return hash;
}

#define GET_ATTRDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "fovea/Dialect/Attn/IR/AttnTypes.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fovea/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

void AttnDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fovea/Dialect/Attn/IR/AttnTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Target and schedule
//===----------------------------------------------------------------------===//

LogicalResult
TargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   StringRef chip) {
  if (!target::lookupTarget(chip))
    return emitError() << "unknown chip '" << chip
                       << "'; known: " << target::targetNames();
  return success();
}

const target::TargetInfo &TargetAttr::getInfo() const {
  return *target::lookupTarget(getChip());
}

Attribute InstAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  SMLoc at;
  if (parser.parseLess() || parser.getCurrentLocation(&at))
    return {};
  if (parser.parseOptionalKeyword(&name)) {
    parser.emitError(at) << "expected the name of a matrix instruction; use "
                            "one of "
                         << target::matrixInstrNames();
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<InstAttr>(at, parser.getContext(), name);
}

void InstAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << '>';
}

LogicalResult
InstAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 StringRef name) {
  if (!target::lookupMatrixShape(name))
    return emitError() << "unknown matrix instruction '" << name
                       << "'; use one of " << target::matrixInstrNames();
  return success();
}

const target::MatrixShape &InstAttr::getInfo() const {
  return *target::lookupMatrixShape(getName());
}

LogicalResult ScheduleAttr::verify(
    llvm::function_ref<InFlightDiagnostic()> emitError, int32_t blockM,
    int32_t blockN, int32_t waves, InstAttr inst, int32_t stages,
    int32_t wavesPerSimd, int32_t rescaleThreshold, int32_t valueSplit,
    int32_t queriesInLds, int32_t directCopy, int32_t columnChunk) {
  // What depends on the chip or the instruction is checked where both are
  // known, in attn-choose-schedule.
  if (blockM <= 0 || blockM > 256)
    return emitError() << "block_m must be in [1, 256], found " << blockM;
  if (blockN <= 0 || blockN > 256 || !llvm::isPowerOf2_32(blockN))
    return emitError() << "block_n must be a power of two up to 256, found "
                       << blockN;
  static_assert(kMaxWaves == 16 && 1 << kMaxWaveBits == kMaxWaves,
                "the text names them, and layouts have bits for them");
  if (waves <= 0 || waves > kMaxWaves || !llvm::isPowerOf2_32(waves))
    return emitError() << "waves must be 1, 2, 4, 8 or 16, found " << waves;
  if (stages < 1 || stages > 5)
    return emitError() << "stages must be 1, 2, 3, 4 or 5, found " << stages;
  if (wavesPerSimd < 1 || wavesPerSimd > 16)
    return emitError() << "waves_per_simd must be in [1, 16], found "
                       << wavesPerSimd;
  if (rescaleThreshold < 0 || rescaleThreshold > 8)
    return emitError() << "rescale_threshold must be in [0, 8], found "
                       << rescaleThreshold;
  if (valueSplit < 1 || valueSplit > waves || !llvm::isPowerOf2_32(valueSplit))
    return emitError() << "value_split must be a power of two up to waves ("
                       << waves << "), found " << valueSplit;
  if (queriesInLds < 0 || queriesInLds > 3)
    return emitError() << "queries_in_lds must be 0, 1, 2 or 3, found "
                       << queriesInLds;
  if (directCopy != 0 && directCopy != 1)
    return emitError() << "direct_copy must be 0 or 1, found " << directCopy;
  if (columnChunk < 0 || columnChunk > 512 || columnChunk % 32 != 0)
    return emitError() << "column_chunk must be 0 or a multiple of 32 up to "
                          "512, found "
                       << columnChunk;
  if (stages == 3 && !directCopy)
    return emitError() << "stages = 3 needs direct_copy = 1; use stages = 2";
  return success();
}

std::string ScheduleAttr::getKey() const {
  std::string key =
      llvm::formatv("block_m={0},block_n={1},waves={2},inst={3},stages={4},"
                    "waves_per_simd={5},rescale_threshold={6}",
                    getBlockM(), getBlockN(), getWaves(), getInst().getName(),
                    getStages(), getWavesPerSimd(), getRescaleThreshold());
  // What most schedules do not use is left out, as in the attribute's text.
  if (getValueSplit() != 1)
    key += llvm::formatv(",value_split={0}", getValueSplit());
  if (getQueriesInLds())
    key += llvm::formatv(",queries_in_lds={0}", getQueriesInLds());
  if (getDirectCopy())
    key += ",direct_copy=1";
  if (getColumnChunk())
    key += llvm::formatv(",column_chunk={0}", getColumnChunk());
  return key;
}

const spec::AlgorithmSpec &fovea::attn::specOf(BackwardAlgorithm algorithm) {
  const spec::AlgorithmSpec *found =
      spec::specOf(OpKind::Backward)
          .findAlgorithm(stringifyBackwardAlgorithm(algorithm));
  // A unit test asks for each.
  assert(found && "the operation's table has no row for the algorithm");
  return *found;
}

LogicalResult
BackwardScheduleAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                             BackwardAlgorithm algorithm,
                             ArrayRef<ScheduleAttr> kernels) {
  size_t expected = specOf(algorithm).launches.size();
  if (kernels.size() != expected)
    return emitError() << "algorithm " << stringifyBackwardAlgorithm(algorithm)
                       << " has " << expected << " kernels, found "
                       << kernels.size() << " schedules";
  return success();
}

Attribute BackwardScheduleAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  std::optional<BackwardAlgorithm> algorithm = symbolizeBackwardAlgorithm(name);
  if (!algorithm) {
    parser.emitError(at) << "unknown algorithm '" << name << "'; known: "
                         << spec::namesOf(
                                spec::specOf(OpKind::Backward).algorithms);
    return {};
  }
  SmallVector<ScheduleAttr> kernels;
  for (const spec::LaunchSpec &launch : specOf(*algorithm).launches)
    if (parser.parseComma() || parser.parseKeyword(launch.suffix) ||
        parser.parseEqual() ||
        parser.parseCustomAttributeWithFallback(kernels.emplace_back()))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BackwardScheduleAttr>(at, parser.getContext(),
                                                 *algorithm, kernels);
}

void BackwardScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyBackwardAlgorithm(getAlgorithm());
  for (auto [launch, kernel] :
       llvm::zip_equal(specOf(getAlgorithm()).launches, getKernels())) {
    printer << ", " << launch.suffix << " = ";
    printer.printStrippedAttrOrType(kernel);
  }
  printer << ">";
}

std::string BackwardScheduleAttr::getKey() const {
  std::string key = stringifyBackwardAlgorithm(getAlgorithm()).str();
  for (auto [launch, kernel] :
       llvm::zip_equal(specOf(getAlgorithm()).launches, getKernels()))
    key += std::string(";") + launch.suffix + ":" + kernel.getKey();
  return key;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static ParseResult parseBases(AsmParser &parser, StringRef name, Bases &bases) {
  if (parser.parseKeyword(name) || parser.parseEqual())
    return failure();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    Coord basis;
    if (parser.parseLSquare() || parser.parseInteger(basis[0]) ||
        parser.parseComma() || parser.parseInteger(basis[1]) ||
        parser.parseRSquare())
      return failure();
    bases.push_back(basis);
    return success();
  });
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  Bases registers, lanes, waves;
  Coord grid;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseBases(parser, "reg", registers) ||
      parser.parseComma() || parseBases(parser, "lane", lanes) ||
      parser.parseComma() || parseBases(parser, "wave", waves) ||
      parser.parseComma() || parser.parseKeyword("grid") ||
      parser.parseEqual() || parser.parseLSquare() ||
      parser.parseInteger(grid[0]) || parser.parseComma() ||
      parser.parseInteger(grid[1]) || parser.parseRSquare() ||
      parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(
      loc, parser.getContext(), TileLayout(registers, lanes, waves, grid));
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << getLayout().str() << '>';
}

LogicalResult
LayoutAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   TileLayout layout) {
  if (layout.grid()[0] < 1 || layout.grid()[1] < 1)
    return emitError() << "layout grid must be positive, found ["
                       << layout.grid()[0] << ", " << layout.grid()[1] << ']';
  if (layout.lanes().size() < 5 || layout.lanes().size() > 6)
    return emitError() << "a layout has 5 or 6 lane bits, found "
                       << layout.lanes().size();
  if (layout.registers().size() > kMaxRegisterBits ||
      layout.waves().size() > kMaxWaveBits)
    return emitError() << "a layout has at most " << kMaxRegisterBits
                       << " register and " << kMaxWaveBits
                       << " wave bits, found " << layout.registers().size()
                       << " and " << layout.waves().size();
  int64_t fragments = int64_t(layout.grid()[0]) * layout.grid()[1];
  if (fragments > kMaxLaneElements / layout.elementsPerFragment())
    return emitError() << "a lane holds at most " << kMaxLaneElements
                       << " elements, but a grid of [" << layout.grid()[0]
                       << ", " << layout.grid()[1] << "] gives it "
                       << layout.elementsPerFragment() << " of each unit";
  for (auto space :
       {layout::Space::Register, layout::Space::Lane, layout::Space::Wave})
    for (const Coord &basis : layout.get(space))
      for (int32_t coordinate : basis)
        if (coordinate < 0 || coordinate > kMaxTileExtent)
          return emitError() << "layout basis out of range: " << coordinate;
  if (!layout.isExact())
    return emitError() << "layout bases must be independent and cover the "
                          "unit of the tile";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  Coord covered = getLayout().shape();
  if (shape.size() != 2 || shape[0] != covered[0] || shape[1] != covered[1])
    return emitError() << "layout covers a " << covered[0] << "x" << covered[1]
                       << " tile, which is not the tensor's shape";
  return success();
}

LogicalResult
SwizzleAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    int32_t chunks, ArrayRef<int32_t> shifts, int32_t half) {
  if (chunks <= 0 || !llvm::isPowerOf2_32(chunks))
    return emitError() << "swizzle chunks must be a power of two, found "
                       << chunks;
  for (int32_t shift : shifts)
    if (shift < -8 || shift > 8)
      return emitError() << "swizzle shift must be in [-8, 8], found " << shift;
  if (half < -1 || half > 8)
    return emitError() << "swizzle half must be a bit of the row number in "
                          "[0, 8], or -1, found "
                       << half;
  return success();
}

/// Fails unless `what` may hold elements of this type: what memory accesses
/// move.
static LogicalResult
checkStored(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef what,
            Type elementType) {
  if (!elementType.isIntOrFloat())
    return emitError() << what << " holds integers or floats, found "
                       << elementType;
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (bits < 8 || bits > 64 || !llvm::isPowerOf2_32(bits))
    return emitError() << what << " holds elements of 8, 16, 32 or 64 bits, "
                       << "found " << elementType;
  return success();
}

LogicalResult
ViewType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 int32_t columns, Type elementType) {
  if (columns <= 0 || columns > kMaxTileExtent)
    return emitError() << "a view has columns in [1, " << kMaxTileExtent
                       << "], found " << columns;
  return checkStored(emitError, "a view", elementType);
}

int64_t LdsType::getBytes() const {
  return int64_t(getRows()) * getColumns() * bytesOf(getElementType());
}

LogicalResult
LdsType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                int32_t rows, int32_t columns, Type elementType,
                SwizzleAttr swizzle) {
  if (rows <= 0 || columns <= 0)
    return emitError() << "an LDS tile needs a positive shape, found " << rows
                       << "x" << columns;
  if (failed(checkStored(emitError, "an LDS tile", elementType)))
    return failure();
  int64_t rowBytes = columns * bytesOf(elementType);
  if (rowBytes > std::numeric_limits<int32_t>::max() / rows)
    return emitError() << "an LDS tile has less than 2^31 bytes, found " << rows
                       << " rows of " << rowBytes;
  if (!swizzle)
    return success();
  // Rows hold whole groups of chunks, or groups whole rows.
  int64_t group = int64_t(swizzle.getChunks()) * layout::kWideBytes;
  if (rowBytes % group != 0 &&
      (group % rowBytes != 0 || rows % (group / rowBytes) != 0))
    return emitError() << rows << " rows of " << rowBytes
                       << " bytes do not divide into the swizzle's groups of "
                       << swizzle.getChunks() << " chunks of 16 bytes";
  return success();
}

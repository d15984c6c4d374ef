//===- BuildProbes.cpp - compiles the probes when the project is built ----===//
//
// Writes a source file with the code objects of all chips that the simulator
// executes. Probes of matrix instructions come from the compiler's table of
// them, operand layouts included: what these kernels compute holds the layouts
// to the hardware, too.
//
//===----------------------------------------------------------------------===//

#include "Probes.h"
#include "fovea/Target/HSACO/Serialize.h"
#include "fovea/Target/MatrixInstr.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

#include <cstring>

using namespace fovea;
using namespace fovea::qualify;
using llvm::formatv;
using llvm::StringRef;
using target::ElementType;
using target::MatrixInstr;
using target::TargetInfo;

namespace {

/// A probe whose work-items work each by itself or with its wave: the body has
/// %a, %b and %c, words of its work-item, and %i, its number; %r is stored.
struct Row {
  const char *name;
  ProbeKind kind;
  ProbeFill fill;
  ProbeResult result;
  const char *what, *body;
  uint32_t feature = 0; ///< that the chip must have
};

constexpr ProbeKind kCopy = ProbeKind::Copy, kConvert = ProbeKind::Convert,
                    kInteger = ProbeKind::Integer, kMask = ProbeKind::Mask,
                    kArithmetic = ProbeKind::Arithmetic,
                    kExponential = ProbeKind::Exponential;
constexpr ProbeFill kAny = ProbeFill::Bits, kHalves = ProbeFill::Halves;
constexpr ProbeResult kBits = ProbeResult::Bits, kF32 = ProbeResult::F32,
                      kF16 = ProbeResult::F16, kBF16 = ProbeResult::BF16;

#define FLOATS                                                                 \
  "%x = bitcast i32 %a to float\n%y = bitcast i32 %b to float\n"               \
  "%z = bitcast i32 %c to float\n"
#define FROM_FLOAT "%r = bitcast float %f to i32\n"
#define HALVES                                                                 \
  "%xs = trunc i32 %a to i16\n%x = bitcast i16 %xs to half\n"                  \
  "%ys = trunc i32 %b to i16\n%y = bitcast i16 %ys to half\n"                  \
  "%zs = trunc i32 %c to i16\n%z = bitcast i16 %zs to half\n"
#define FROM_16(type)                                                          \
  "%s = bitcast " type " %f to i16\n%r = zext i16 %s to i32\n"

const Row kRows[] = {
    {"copy_word", kCopy, kAny, kBits, "a word, loaded and stored",
     "%r = add i32 %a, 0\n"},
    {"copy_lds", kCopy, kAny, kBits, "a word through LDS to another lane",
     "%to = getelementptr [64 x i32], ptr addrspace(3) @lds, i32 0, i32 %t\n"
     "store i32 %a, ptr addrspace(3) %to\n"
     "fence syncscope(\"workgroup\") release\n"
     "call void @llvm.amdgcn.s.barrier()\n"
     "fence syncscope(\"workgroup\") acquire\n"
     "%u = xor i32 %t, 21\n"
     "%from = getelementptr [64 x i32], ptr addrspace(3) @lds, i32 0, i32 %u\n"
     "%r = load i32, ptr addrspace(3) %from\n"},
    {"copy_byte", kCopy, kAny, kBits, "bytes of a word, loaded one by one",
     "%which = and i32 %i, 3\n%at = zext i32 %which to i64\n"
     "%pb = getelementptr i8, ptr addrspace(1) %pa, i64 %at\n"
     "%byte = load i8, ptr addrspace(1) %pb\n%r = sext i8 %byte to i32\n"},

    {"convert_f32_f16", kConvert, kAny, kF16, "fp32 to fp16, to nearest even",
     FLOATS "%f = fptrunc float %x to half\n" FROM_16("half")},
    {"convert_f32_bf16", kConvert, kAny, kBF16, "fp32 to bf16, to nearest even",
     FLOATS "%f = fptrunc float %x to bfloat\n" FROM_16("bfloat")},
    {"convert_f32_f16_rtz", kConvert, kAny, kBits,
     "two of fp32 to fp16, towards zero",
     FLOATS "%ok1 = fcmp ord float %x, %y\n"
            "%x1 = select i1 %ok1, float %x, float 1.0\n"
            "%y1 = select i1 %ok1, float %y, float 1.0\n"
            "%p = call <2 x half> @llvm.amdgcn.cvt.pkrtz(float %x1, float %y1)\n"
            "%r = bitcast <2 x half> %p to i32\n"},
    {"convert_f16_f32", kConvert, kHalves, kF32, "fp16 to fp32",
     HALVES "%f = fpext half %x to float\n" FROM_FLOAT},
    {"convert_bf16_f32", kConvert, kHalves, kF32, "bf16 to fp32",
     "%s = trunc i32 %a to i16\n%h = bitcast i16 %s to bfloat\n"
     "%f = fpext bfloat %h to float\n" FROM_FLOAT},
    {"convert_f32_i32", kConvert, kAny, kBits, "fp32 to int32, saturating",
     FLOATS "%r = call i32 @llvm.fptosi.sat.i32.f32(float %x)\n"},
    {"convert_i32_f32", kConvert, kAny, kF32, "int32 to fp32",
     "%f = sitofp i32 %a to float\n" FROM_FLOAT},
    {"convert_u32_f32", kConvert, kAny, kF32, "uint32 to fp32",
     "%f = uitofp i32 %a to float\n" FROM_FLOAT},
    {"convert_f32_fp8", kConvert, ProbeFill::Exp, kBits, "fp32 to OCP fp8",
     FLOATS "%r = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float %x, float %y, "
            "i32 0, i1 false)\n",
     target::kFp8},
    {"convert_f32_fp8_fnuz", kConvert, ProbeFill::Exp, kBits, "fp32 to FNUZ fp8",
     FLOATS "%r = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float %x, float %y, "
            "i32 0, i1 false)\n",
     target::kFp8Fnuz},

    {"integer_add", kInteger, kAny, kBits, "sum of three",
     "%s = add i32 %a, %b\n%r = add i32 %s, %c\n"},
    {"integer_mul", kInteger, kAny, kBits, "product, lower half",
     "%r = mul i32 %a, %b\n"},
    {"integer_mul_hi", kInteger, kAny, kBits,
     "product, upper half (the generator of dropout)",
     "%al = zext i32 %a to i64\n%bl = zext i32 %b to i64\n"
     "%p = mul i64 %al, %bl\n%h = lshr i64 %p, 32\n%r = trunc i64 %h to i32\n"},
    {"integer_shift", kInteger, kAny, kBits, "shifts left and right",
     "%n = and i32 %b, 31\n%l = shl i32 %a, %n\n%h = ashr i32 %c, %n\n"
     "%r = xor i32 %l, %h\n"},
    {"integer_bits", kInteger, kAny, kBits, "counts of bits and leading zeros",
     "%n = call i32 @llvm.ctpop.i32(i32 %a)\n"
     "%l = call i32 @llvm.ctlz.i32(i32 %b, i1 false)\n%m = shl i32 %l, 8\n"
     "%r = or i32 %n, %m\n"},
    {"integer_perm", kInteger, kAny, kBits, "bytes of two words, chosen",
     "%sel = and i32 %c, 117901063\n"
     "%r = call i32 @llvm.amdgcn.perm(i32 %a, i32 %b, i32 %sel)\n"},
    {"integer_field", kInteger, kAny, kBits, "a field of bits",
     "%o = and i32 %b, 31\n%w = and i32 %c, 31\n"
     "%r = call i32 @llvm.amdgcn.ubfe.i32(i32 %a, i32 %o, i32 %w)\n"},
    {"integer_min_max", kInteger, kAny, kBits, "median of three",
     "%l = call i32 @llvm.smin.i32(i32 %a, i32 %b)\n"
     "%h = call i32 @llvm.smax.i32(i32 %a, i32 %b)\n"
     "%m = call i32 @llvm.smin.i32(i32 %h, i32 %c)\n"
     "%r = call i32 @llvm.smax.i32(i32 %l, i32 %m)\n"},

    {"mask_compare", kMask, kAny, kBits, "comparisons of fp32, NaNs included",
     FLOATS "%lt = fcmp olt float %x, %y\n%uge = fcmp uge float %y, %z\n"
            "%uno = fcmp uno float %x, %z\n%s = select i1 %lt, i32 1, i32 2\n"
            "%t1 = select i1 %uge, i32 4, i32 8\n"
            "%v = select i1 %uno, i32 16, i32 32\n"
            "%st = or i32 %s, %t1\n%r = or i32 %st, %v\n"},
    {"mask_compare_integer", kMask, kAny, kBits,
     "comparisons of integers, as causal masks make them",
     "%lt = icmp slt i32 %a, %b\n%ule = icmp ule i32 %b, %c\n"
     "%both = and i1 %lt, %ule\n%r = select i1 %both, i32 %a, i32 %c\n"},
    {"mask_class", kMask, kAny, kBits, "classes of fp32",
     FLOATS "%n = call i1 @llvm.is.fpclass.f32(float %x, i32 519)\n"
            "%d = call i1 @llvm.is.fpclass.f32(float %y, i32 144)\n"
            "%s = select i1 %n, i32 1, i32 0\n%t1 = select i1 %d, i32 2, i32 0\n"
            "%r = or i32 %s, %t1\n"},
    {"mask_ballot", kMask, kAny, kBits, "a wave's votes",
     "%lt = icmp slt i32 %a, %b\n"
     "%m = call i64 @llvm.amdgcn.ballot.i64(i1 %lt)\n%h = lshr i64 %m, 32\n"
     "%l32 = trunc i64 %m to i32\n%h32 = trunc i64 %h to i32\n"
     "%p = mul i32 %h32, 3\n%r = add i32 %l32, %p\n"},
    {"mask_permute", kMask, kAny, kBits, "a word of another lane",
     "%l4 = and i32 %b, 124\n"
     "%r = call i32 @llvm.amdgcn.ds.bpermute(i32 %l4, i32 %a)\n"},
    {"mask_dpp", kMask, kAny, kBits, "a word of the neighbour in a row",
     "%r = call i32 @llvm.amdgcn.update.dpp.i32(i32 %b, i32 %a, i32 273, "
     "i32 15, i32 15, i1 false)\n"},
    {"mask_permlanex16", kMask, kAny, kBits, "rows of 16 lanes trade places",
     "%r = call i32 @llvm.amdgcn.permlanex16.i32(i32 %a, i32 %b, "
     "i32 1985229328, i32 -19088744, i1 false, i1 false)\n",
     target::kPermlaneX16},
    {"mask_permlane_swap", kMask, kAny, kBits, "halves of a wave trade places",
     "%p = call {i32, i32} @llvm.amdgcn.permlane32.swap(i32 %a, i32 %b, "
     "i1 false, i1 false)\n%l = extractvalue {i32, i32} %p, 0\n"
     "%h = extractvalue {i32, i32} %p, 1\n%h3 = mul i32 %h, 3\n"
     "%r = add i32 %l, %h3\n",
     target::kPermlaneSwap},

    {"arithmetic_add", kArithmetic, kAny, kF32, "fp32 sum, denormals kept",
     FLOATS "%f = fadd float %x, %y\n" FROM_FLOAT},
    {"arithmetic_mul", kArithmetic, kAny, kF32, "fp32 product",
     FLOATS "%f = fmul float %x, %y\n" FROM_FLOAT},
    {"arithmetic_fma", kArithmetic, kAny, kF32, "fp32 fused multiply-add",
     FLOATS "%f = call float @llvm.fma.f32(float %x, float %y, float %z)\n"
         FROM_FLOAT},
    {"arithmetic_max", kArithmetic, kAny, kF32, "fp32 maximum, NaNs passed over",
     FLOATS "%f = call float @llvm.maxnum.f32(float %x, float %y)\n" FROM_FLOAT},
    {"arithmetic_fma_f16", kArithmetic, kAny, kF16, "fp16 fused multiply-add",
     HALVES "%f = call half @llvm.fma.f16(half %x, half %y, half %z)\n" FROM_16(
         "half")},

    {"exponential_exp2", kExponential, ProbeFill::Exp, kF32, "v_exp_f32",
     FLOATS "%f = call float @llvm.amdgcn.exp2.f32(float %x)\n" FROM_FLOAT},
    {"exponential_log2", kExponential, ProbeFill::Positive, kF32, "v_log_f32",
     FLOATS "%f = call float @llvm.amdgcn.log.f32(float %x)\n" FROM_FLOAT},
    {"exponential_rcp", kExponential, ProbeFill::Positive, kF32, "v_rcp_f32",
     FLOATS "%f = call float @llvm.amdgcn.rcp.f32(float %x)\n" FROM_FLOAT},
    {"exponential_rsq", kExponential, ProbeFill::Positive, kF32, "v_rsq_f32",
     FLOATS "%f = call float @llvm.amdgcn.rsq.f32(float %x)\n" FROM_FLOAT},
    {"exponential_sqrt", kExponential, ProbeFill::Positive, kF32, "v_sqrt_f32",
     FLOATS "%f = call float @llvm.amdgcn.sqrt.f32(float %x)\n" FROM_FLOAT},
};

constexpr const char *kHead =
    R"(define amdgpu_kernel void @{0}(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) #{1} {{
%t = call i32 @llvm.amdgcn.workitem.id.x()
%group = call i32 @llvm.amdgcn.workgroup.id.x()
)";

std::string textOf(const Row &row) {
  std::string text = formatv(kHead, row.name, 0).str();
  text += R"(%first = mul i32 %group, 64
%i = add i32 %first, %t
%il = zext i32 %i to i64
%place = mul i64 %il, 3
%pa = getelementptr i32, ptr addrspace(1) %in, i64 %place
%pb0 = getelementptr i32, ptr addrspace(1) %pa, i64 1
%pc0 = getelementptr i32, ptr addrspace(1) %pa, i64 2
%a = load i32, ptr addrspace(1) %pa
%b = load i32, ptr addrspace(1) %pb0
%c = load i32, ptr addrspace(1) %pc0
)";
  text += row.body;
  return text + R"(%po = getelementptr i32, ptr addrspace(1) %out, i64 %il
store i32 %r, ptr addrspace(1) %po
ret void
}
)";
}

/// What a factor's register elements are to LLVM, and how the instruction's
/// name goes on.
struct FactorText {
  std::string name, type;
};
FactorText factorOf(const MatrixInstr &inst) {
  const int count = inst.a.elementsPerFragment();
  auto vector = [&](const char *of) {
    return formatv("<{0} x {1}>", count, of).str();
  };
  const bool isWmma = inst.family == target::MatrixFamily::Wmma;
  const bool hasDot = inst.feature == target::kMfmaDoubleK;
  switch (inst.type) {
  case ElementType::F32:
    return {"f32", "float"};
  case ElementType::F16:
    return {isWmma   ? formatv(".f16.v8f32.v{0}f16", count).str()
            : hasDot ? ".f16"
                     : "f16",
            vector("half")};
  case ElementType::BF16:
    if (isWmma)
      return {formatv(".bf16.v8f32.v{0}i16", count).str(), vector("i16")};
    return {hasDot                                       ? ".bf16"
            : inst.feature == target::kMfmaBf16_1k ? "bf16.1k"
                                                         : "bf16",
            vector(hasDot ? "bfloat" : "i16")};
  case ElementType::F8E4M3FN:
  case ElementType::F8E4M3FNUZ:
    return {isWmma ? ".fp8.fp8.v8f32.v2i32" : ".fp8.fp8",
            isWmma ? "<2 x i32>" : "i64"};
  case ElementType::F8E5M2:
    return {isWmma ? ".bf8.bf8.v8f32.v2i32" : ".bf8.bf8",
            isWmma ? "<2 x i32>" : "i64"};
  }
  return {};
}

/// Appends code that finds where the lane's first element of an operand lies,
/// in elements from the operand's begin; returns what its name is.
std::string placeOf(const layout::TileLayout &layout, int columns,
                    const std::string &operand, std::string &text) {
  std::string sum = "0";
  int bit = 0;
  for (const layout::Coord &base : layout.lanes()) {
    const int weight = base[0] * columns + base[1];
    if (weight) {
      const std::string name = formatv("%{0}l{1}", operand, bit).str();
      text += formatv("{0}s = lshr i32 %t, {1}\n{0}b = and i32 {0}s, 1\n"
                      "{0}w = mul i32 {0}b, {2}\n{0} = add i32 {0}w, {3}\n",
                      name, bit, weight, sum)
                  .str();
      sum = name;
    }
    ++bit;
  }
  return sum;
}

/// Addresses of an operand's elements that a lane holds.
std::vector<std::string> elementsOf(const layout::TileLayout &layout,
                                    int columns, const std::string &operand,
                                    const std::string &type,
                                    const std::string &from, std::string &text) {
  const std::string place = placeOf(layout, columns, operand, text);
  std::vector<std::string> names;
  for (int reg = 0; reg != layout.elementsPerFragment(); ++reg) {
    const layout::Coord at = layout.map(uint32_t(reg), 0, 0);
    const std::string name = formatv("%{0}e{1}", operand, reg).str();
    text += formatv("{0}i = add i32 {1}, {2}\n{0}x = zext i32 {0}i to i64\n"
                    "{0} = getelementptr {3}, ptr addrspace(1) {4}, i64 {0}x\n",
                    name, place, at[0] * columns + at[1], type, from)
                .str();
    names.push_back(name);
  }
  return names;
}

/// A vector of an operand's elements, called %OPERAND.
void loadOperand(const std::vector<std::string> &places,
                 const std::string &operand, const std::string &element,
                 const std::string &type, std::string &text) {
  std::string vector = "poison";
  const std::string loaded =
      formatv("<{0} x {1}>", places.size(), element).str();
  int number = 0;
  for (const std::string &place : places) {
    const std::string next = formatv("%{0}v{1}", operand, number).str();
    text += formatv("{0}x = load {1}, ptr addrspace(1) {2}\n"
                    "{0} = insertelement {3} {4}, {1} {0}x, i32 {5}\n",
                    next, element, place, loaded, vector, number)
                .str();
    vector = next;
    ++number;
  }
  if (loaded == type)
    text += formatv("%{0} = freeze {1} {2}\n", operand, type, vector).str();
  else
    text += formatv("%{0} = bitcast {1} {2} to {3}\n", operand, loaded, vector,
                    type)
                .str();
}

std::string textOf(const MatrixInstr &inst, const std::string &name) {
  std::string text = formatv(kHead, name, 1).str();
  const int bytes = target::elementTypeInfo(inst.type).bytes();
  const int aBytes = inst.m * inst.k * bytes, bBytes = inst.k * inst.n * bytes,
            dBytes = inst.m * inst.n * 4;
  text += formatv("%gl = zext i32 %group to i64\n%ina = mul i64 %gl, {0}\n"
                  "%pa = getelementptr i8, ptr addrspace(1) %in, i64 %ina\n"
                  "%pb = getelementptr i8, ptr addrspace(1) %pa, i64 {1}\n"
                  "%pc = getelementptr i8, ptr addrspace(1) %pb, i64 {2}\n"
                  "%od = mul i64 %gl, {3}\n"
                  "%pd = getelementptr i8, ptr addrspace(1) %out, i64 %od\n",
                  aBytes + bBytes + dBytes, aBytes, bBytes, dBytes)
              .str();
  const std::string element = formatv("i{0}", bytes * 8).str();
  const FactorText factor = factorOf(inst);
  loadOperand(elementsOf(inst.a, inst.k, "a", element, "%pa", text), "a",
              element, factor.type, text);
  loadOperand(elementsOf(inst.b, inst.n, "b", element, "%pb", text), "b",
              element, factor.type, text);
  const std::string sums =
      formatv("<{0} x float>", inst.d.elementsPerFragment()).str();
  loadOperand(elementsOf(inst.d, inst.n, "c", "float", "%pc", text), "c",
              "float", sums, text);
  const bool isWmma = inst.family == target::MatrixFamily::Wmma;
  text += formatv("%d = call {0} @llvm.amdgcn.{1}.f32.{2}x{3}x{4}{5}({6} %a, "
                  "{6} %b, {0} %c{7})\n",
                  sums, isWmma ? "wmma" : "mfma", inst.m, inst.n, inst.k,
                  factor.name, factor.type,
                  isWmma ? "" : ", i32 0, i32 0, i32 0")
              .str();
  int number = 0;
  for (const std::string &place :
       elementsOf(inst.d, inst.n, "d", "float", "%pd", text)) {
    text += formatv("%dv{0} = extractelement {1} %d, i32 {0}\n"
                    "store float %dv{0}, ptr addrspace(1) {2}\n",
                    number, sums, place)
                .str();
    ++number;
  }
  return text + "ret void\n}\n";
}

const char *fillOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "F32";
  case ElementType::F16:
    return "F16";
  case ElementType::BF16:
    return "BF16";
  case ElementType::F8E4M3FN:
    return "Fp8";
  case ElementType::F8E4M3FNUZ:
    return "Fp8Fnuz";
  case ElementType::F8E5M2:
    return "Bf8";
  }
  return "";
}

llvm::Error failed(const TargetInfo &target, const std::string &what) {
  return llvm::createStringError("probes for " + target.name + ": " + what);
}

llvm::Expected<std::string> compile(const TargetInfo &target,
                                    const std::string &text) {
  llvm::LLVMContext context;
  auto machine = hsaco::createTargetMachine(target, 2);
  if (!machine)
    return machine.takeError();
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(text, diagnostic, context);
  if (!module)
    return failed(target, (diagnostic.getMessage() + ": " +
                           diagnostic.getLineContents())
                              .str());
  module->setTargetTriple(llvm::Triple("amdgcn-amd-amdhsa"));
  module->setDataLayout((*machine)->createDataLayout());
  if (llvm::Error error = hsaco::optimize(*module, **machine, 2))
    return error;
  auto object = hsaco::emitObject(*module, **machine);
  if (!object)
    return object.takeError();
  return hsaco::link(*object);
}

llvm::Error writeChip(const TargetInfo &target, llvm::raw_ostream &os,
                      std::string &list) {
  std::string text = "@lds = internal addrspace(3) global [64 x i32] poison\n";
  std::string rows;
  auto addRow = [&](StringRef name, StringRef kind, StringRef fill,
                    StringRef result, StringRef what, const std::string &rest) {
    rows += formatv("    {{\"{0}\", ProbeKind::{1}, ProbeFill::{2}, "
                    "ProbeResult::{3}, \"{4}\", {5}},\n",
                    name, kind, fill, result, what, rest)
                .str();
  };
  constexpr const char *kKinds[] = {"Copy",       "Convert",     "Integer", "Mask",
                                    "Arithmetic", "Exponential", "Product"};
  constexpr const char *kFills[] = {"Bits", "Halves", "Exp", "Positive"};
  constexpr const char *kResults[] = {"Bits", "F32", "F16", "BF16"};
  for (const Row &row : kRows) {
    if (!target.has(row.feature))
      continue;
    text += textOf(row);
    addRow(row.name, kKinds[int(row.kind)], kFills[int(row.fill)],
           kResults[int(row.result)], row.what, "3, 1, 0, 0, 0");
  }
  for (const MatrixInstr &inst : target::allMatrixInstrs()) {
    if (inst.family == target::MatrixFamily::Lanes ||
        target::lookupMatrixInstr(target, inst.name, inst.type) != &inst)
      continue;
    const StringRef type = target::elementTypeInfo(inst.type).name;
    std::string name = ("product_" + inst.name + "_" + type).str();
    text += textOf(inst, name);
    const int bytes = target::elementTypeInfo(inst.type).bytes();
    const int in = (inst.m + inst.n) * inst.k * bytes / 4 + inst.m * inst.n;
    addRow(name, "Product", fillOf(inst.type), "F32",
           formatv("{0} of {1}", inst.name, type).str(),
           formatv("{0}, {1}, {2}, {3}, {4}", in, inst.m * inst.n, inst.m,
                   inst.n, inst.k)
               .str());
  }
  text += formatv("attributes #0 = {{ \"amdgpu-flat-work-group-size\"=\"64,64\" "
                  "\"uniform-work-group-size\"=\"true\" }\n"
                  "attributes #1 = {{ \"amdgpu-flat-work-group-size\"=\"{0},{0}\" "
                  "\"uniform-work-group-size\"=\"true\" }\n",
                  target.waveSize)
              .str();
  llvm::Expected<std::string> image = compile(target, text);
  if (!image)
    return image.takeError();
  const size_t bytes = image->size();
  image->resize((bytes + 7) / 8 * 8);
  os << "const uint64_t " << target.name << "Image[] = {";
  for (size_t at = 0; at != image->size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, image->data() + at, 8);
    os << (at % 64 ? " " : "\n    ") << formatv("{0:x},", word);
  }
  os << "};\nconst Probe " << target.name << "Probes[] = {\n"
     << rows << "};\n";
  list += formatv("    {{\"{0}\", {0}Image, {1}, {0}Probes, "
                  "std::size({0}Probes)},\n",
                  target.name, bytes)
              .str();
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    llvm::errs() << "usage: fovea-qualify-probes OUTPUT CHIP...\n";
    return 2;
  }
  std::error_code code;
  llvm::raw_fd_ostream os(argv[1], code);
  if (code) {
    llvm::errs() << argv[1] << ": " << code.message() << "\n";
    return 1;
  }
  os << "// Made by BuildProbes.cpp.\n#include \"Probes.h\"\n\n"
        "#include <cstring>\n#include <iterator>\n\n"
        "namespace fovea::qualify {\nnamespace {\n\n";
  std::string list;
  for (int arg = 2; arg != argc; ++arg) {
    const TargetInfo *target = target::lookupTarget(argv[arg]);
    llvm::Error error = target ? writeChip(*target, os, list)
                               : llvm::createStringError(
                                     StringRef(argv[arg]) + " is no chip");
    if (error) {
      llvm::errs() << "fovea-qualify-probes: "
                   << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  }
  os << "const ChipProbes kChips[] = {\n"
     << list
     << "};\n\n} // namespace\n\n"
        "const ChipProbes *probesOf(const char *chip) {\n"
        "  for (const ChipProbes &row : kChips)\n"
        "    if (!std::strcmp(row.chip, chip))\n      return &row;\n"
        "  return nullptr;\n}\n\n} // namespace fovea::qualify\n";
  return 0;
}

//===- CompiledKernel.h - kernels of MLIR text under test -------*- C++ -*-===//
//
// Compiles a function with an attention op for a chip, packs the code object
// and opens it on a simulated device of that chip.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_COMPILEDKERNEL_H
#define FOVEA_TEST_COMPILEDKERNEL_H

#include "../../Support/FullGrids.h"
#include "BackwardRun.h"
#include "ForwardRun.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Package/PackageWriter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include <filesystem>
#include <map>

namespace fovea::test {

/// The simulated devices, in this order.
inline const char *const kChips[] = {"gfx908", "gfx942", "gfx950", "gfx1100",
                                     "gfx1201"};
/// One more, which kernels can be opened on too.
inline constexpr const char *kOtherChip = "gfx90a";

/// A package with one kernel, in a folder that goes with it.
class CompiledKernel {
public:
  struct Request {
    std::string chip;
    std::string function; ///< named @kernel
    /// Has the problem and the version of the arguments; the rest is filled in.
    KernelRecord record;
    /// Options of attn-choose-schedule by name: {"block-n", "32"}.
    std::map<std::string, std::string> schedule;
    /// Changes each kernel's tile program.
    std::function<void(mlir::gpu::GPUFuncOp)> change;
    /// Sees the problem before it is compiled.
    std::function<void(mlir::ModuleOp)> look;
  };

  CompiledKernel();
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel &) = delete;

  /// The schedules that are chosen for a function, in text; empty: there are
  /// none.
  static std::string
  scheduleOf(const std::string &function, const std::string &chip,
             const std::map<std::string, std::string> &schedule);

  /// Why not; empty: the package is there.
  std::string compile(const Request &request);
  /// The kernel's score program, by the digits of its key; empty: it has none.
  const ScoreRecord &score() const { return program; }
  const std::vector<spec::CaptureSpec> &captures() const { return captured; }
  /// The code object in the package.
  const std::string &code() const { return image; }
  /// Puts another in its place; why not, or empty.
  std::string replaceCode(const std::string &code);
  /// The package's file.
  std::string package() const { return (folder / "kernel.fovea").string(); }
  /// A session on the chip with that package.
  std::unique_ptr<run::Session> open(std::string &error);

private:
  std::filesystem::path folder;
  std::string chip, image;
  KernelRecord record;
  ScoreRecord program;
  std::vector<spec::CaptureSpec> captured;
};

} // namespace fovea::test

#endif // FOVEA_TEST_COMPILEDKERNEL_H

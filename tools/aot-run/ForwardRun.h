//===- ForwardRun.h - run an attention problem and judge it -----*- C++ -*-===//
//
// Takes one problem from inputs to verdict on a device of whatever HIP
// library libfovea opened: fills guarded tensors, launches through the C
// interface, looks for writes where none belong, and compares with the oracle.
// Shared by aot-run and the execution tests.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_FORWARDRUN_H
#define FOVEA_TOOLS_AOTRUN_FORWARDRUN_H

#include "Outcome.h"
#include "fovea/Reference/ErrorBudget.h"
#include "fovea/Reference/Inputs.h"
#include "fovea/fovea.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::run {

/// What lies around each tensor in device memory.
///   Exact   nothing: the allocation ends with the tensor, so that a simulated
///           device stops any access beyond it
///   Canary  4 KiB of a NaN pattern on both sides, checked afterwards
///   Auto    Exact on the simulated device, Canary on a real one
enum class Guards { Auto, Exact, Canary };

struct GroupOption; // Groups.h
/// A feature group that a case gives.
struct CaseGroup {
  const GroupOption *option;
  std::vector<double> values; ///< as its option says it
};

class CaseScore; // Scores.h
struct SequencesShape; // Sequences.h

/// One problem with its data. Lengths may be 0.
struct ForwardCase {
  reference::ElemType type = reference::ElemType::BF16;
  int64_t headDim = 128;
  int64_t headDimV = 0; ///< of v and out; 0: headDim
  Window mask; ///< what each query sees
  std::vector<CaseGroup> groups;
  /// Of a kernel that was compiled with a score program: what that computes.
  std::shared_ptr<const reference::ScoreFunction> score;
  std::string scoreName; ///< for messages
  /// Of lists of blocks: which pairs of a query and a key have them.
  decltype(reference::ForwardProblem::listed) listed;
  std::string listsName; ///< for messages
  /// Of sequences of different lengths: those, of which the batch is the number
  /// and seqQ and seqK are the most. Null: all have these lengths.
  std::shared_ptr<const SequencesShape> sequences;
  std::optional<reference::Dropout> dropout; ///< of weights
  /// How the call says it; none: with numbers.
  std::optional<fovea_dropout_t> dropoutGroup;
  /// More groups for the call, as the C interface has them.
  std::vector<const fovea_group_t *> given;
  int64_t batch = 1, heads = 1, headsK = 1, seqQ = 128, seqK = 128;
  reference::Layout layout = reference::Layout::BHSD;
  int64_t rowPadding = 0; ///< elements between rows
  /// A tensor that is read and whose rows are one, with a stride of 0 along the
  /// sequence, as PyTorch's expand() makes them; empty: none.
  std::string equalRows;
  int64_t offset = 0;     ///< elements by which each tensor misses alignment
  std::optional<float> scale; ///< default: 1 / sqrt(headDim)
  reference::InputKind input = reference::InputKind::Normal;
  uint64_t seed = 1;
  /// Of a score program among `given` whose gradients a backward pass may ask
  /// for; null: of none.
  CaseScore *scored = nullptr;
  bool lse = true; ///< ask for the log-sum-exp

  float scaleOrDefault() const;
  int64_t dimOfV() const { return headDimV ? headDimV : headDim; }
  /// "causal-bottom-right", "128:0,bottom-right horizon=96"
  std::string seen() const;
  /// "forward bf16 d128 causal-bottom-right b1 h8/2 q1000 k1000 bhsd normal"
  std::string str() const;
};

/// Values from outside instead of generated ones: [batch, heads, seq, dim],
/// dense; empty: generated.
struct GivenInputs {
  std::vector<double> q, k, v;
  std::vector<double> dout; ///< as the output; of a backward pass
  bool isEmpty() const {
    return q.empty() && k.empty() && v.empty() && dout.empty();
  }
};

struct BackwardCase; // BackwardRun.h

struct RunOptions {
  Guards guards = Guards::Auto;
  bool check = true;
  int repeat = 1;       ///< launches; the least time is reported
  unsigned threads = 0; ///< of the oracle; 0: one for each CPU
  uint32_t kernel = 0;  ///< id of the kernel to use; 0: libfovea picks
  uint32_t splits = 0;  ///< shares of the keys, forward; 0: libfovea picks
  GivenInputs given;
  /// A backward pass starts from what the package's forward kernel computes on
  /// the device, not from the oracle's output and log-sum-exp.
  bool forwardOnDevice = false;
  /// A backward pass takes only kernels whose bits never differ.
  bool deterministic = true;
  /// It takes only kernels that sum dQ in 16 bits.
  bool narrowSums = false;
};

using tool::Outcome;

/// Wave instructions by class, as the simulated device counts them.
struct Executed {
  uint64_t instructions = 0, mfma = 0, valu = 0, trans = 0, salu = 0, smem = 0,
           vmem = 0, lds = 0, workgroups = 0, waves = 0;
};

/// One gradient of a backward pass.
struct GradientReport {
  std::string name; ///< "dq", "dk", "dv", "dsinks", "dcapture0"
  reference::Comparison comparison;
  std::vector<int64_t> shape;
  std::vector<float> values; ///< dense
  std::vector<double> exact; ///< likewise, the oracle's; if it was asked
};

struct RunReport {
  Outcome outcome = Outcome::Pass;
  std::string message;   ///< why it is no pass; lines
  std::string kernel;    ///< libfovea's description of its choice
  bool launched = false; ///< false when there was nothing to compute
  bool checked = false;
  /// Of a backward pass that of the gradient which used most of its budget.
  reference::Comparison comparison;
  std::vector<GradientReport> gradients; ///< of a backward pass
  std::optional<Executed> executed;      ///< of one launch; the simulator's
  double seconds = 0; ///< of one launch: the simulator's host time, or GPU time
  std::vector<float> out; ///< [batch, heads, seqQ, headDim], dense
  std::vector<float> lse; ///< [batch, heads, seqQ], dense
};

/// A device with packages open on it.
class Session {
public:
  struct Options {
    std::string package; ///< a file, or a folder of them
    /// "auto", "rocm", "sim" or a path; empty: as FOVEA_HIP_LIBRARY says.
    std::string hip;
    /// Chip that the device must be, and the simulated one becomes; empty: as
    /// FOVEA_SIM_TARGET says, or else one that runs the packages' kernels.
    std::string target;
    int device = 0;
  };
  /// Null when the device or a package can't be had; `error` says why and
  /// `deviceError` whether it was the device.
  static std::unique_ptr<Session> open(const Options &options,
                                       std::string &error, bool &deviceError);
  ~Session();

  /// After a device error the next run resets the device and opens it again.
  RunReport run(const ForwardCase &problem, const RunOptions &options);
  RunReport run(const BackwardCase &problem, const RunOptions &options);

  bool simulated() const;
  const std::string &arch() const;    ///< "gfx942:sramecc+:xnack-"
  const std::string &library() const; ///< path and reason of the HIP library
  fovea_context_t *context() const;

  struct Impl; ///< private to this folder

private:
  Impl *ready(RunReport &failure);
  Session(std::unique_ptr<Impl> impl, Options options);
  std::unique_ptr<Impl> impl;
  Options options;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_FORWARDRUN_H

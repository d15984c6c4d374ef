//===- Scores.h - score programs of a case ----------------------*- C++ -*-===//
//
// A call that names a score program, with values by chance for what it
// captures, on the device and as the oracle reads them. The program is the one
// that the kernels' package holds as text.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_SCORES_H
#define FOVEA_TOOLS_AOTRUN_SCORES_H

#include "DeviceCopies.h"
#include "ForwardRun.h"
#include "fovea/Package/OperationSpec.h"
#include "fovea/Reference/ScoreProgram.h"

namespace fovea::run {

/// How a capture is to be filled.
struct CaptureFill {
  /// Of a scalar the value; elements of floats lie in [-most, most], of
  /// integers in [0, most], and of booleans are not 0 in most cases.
  double most = 1;
  /// What elements of a tensor are, in the order of memory and over again;
  /// none: by chance. Of floats.
  std::vector<double> elements;
  /// Extent of a dimension that is indexed by nothing of the problem.
  int64_t extent = 256;
  bool isReversed = false; ///< the first dimension is the innermost in memory
  /// Dimensions, as bits by number, along which one element serves all.
  unsigned broadcast = 0;
  /// Floats that no query sees by the case's mask are NaN.
  bool poison = false;
};

/// What a program captures.
class CaseScore {
public:
  /// \param fills  of each capture; those that are missing are as they begin
  CaseScore(const std::string &program,
            const std::vector<spec::CaptureSpec> &captures,
            const std::vector<CaptureFill> &fills, const ForwardCase &sizes);

  /// Empty, or what the device's library answered: puts tensors into memory of
  /// a device, each into an allocation that ends with it.
  std::string upload(Session &session);

  /// Gives backward calls a place for the gradients of captures, as bits by
  /// number, to be added to numbers by chance or, of those in `stored`, to be
  /// stored over them. Before upload().
  void wantGradients(uint8_t captures, uint8_t stored = 0);
  /// Whether calls give it; a forward call must not.
  void askForGradients(bool asks);
  bool asks() const {
    return !wanted.empty() &&
           given[size_t(wanted.front().gradient.capture)].gradient;
  }
  /// A gradient, in the order of the capture's indices.
  struct Gradient {
    int capture;
    std::vector<int64_t> extents; ///< none: of a scalar
    std::vector<float> before, after;
    /// Of one that is stored: its type, and what indexes the dimensions, whose
    /// extents may have padding.
    std::optional<reference::ElemType> type;
    std::vector<spec::CaptureDim> dims;
  };
  /// What calls have added to them; none if they were not asked. Empty, or what
  /// the device's library answered.
  std::string readGradients(std::vector<Gradient> &read);

  /// Gives the call the program's own text too, for compiling on demand.
  void setText(const std::string &mlir) {
    ownText = mlir;
    score.text = ownText.c_str();
  }
  /// For ForwardCase::given, once uploaded.
  const fovea_group_t *group() const { return &score.header; }
  const std::vector<reference::CapturedValues> &values() const { return all; }

private:
  void fill(const spec::CaptureSpec &capture, const CaptureFill &fill,
            const ForwardCase &sizes);

  std::string name, ownText;
  std::vector<reference::CapturedValues> all;
  std::vector<std::vector<unsigned char>> memory; ///< of each on the host
  std::vector<fovea_capture_t> given;
  std::vector<spec::CaptureSpec> specs;
  fovea_score_t score = {};
  struct Wanted {
    Gradient gradient;
    void *address = nullptr;
  };
  std::vector<Wanted> wanted;
  DeviceCopies copies{"the captures"};
  uint64_t state;
};

/// The program of a name, or of the digits of a key, in a package or a folder
/// of them, of kernels for an operation, type and head dimension of a case; or,
/// where kernels are compiled on demand, of the compiler, and of MLIR text that
/// is not empty always.
struct ScoreText {
  std::string text;
  std::vector<spec::CaptureSpec> captures;
  uint8_t gradients = 0; ///< most that a kernel gives, as in a key
  uint8_t stored = 0;    ///< of these, likewise
};
std::optional<ScoreText> findScore(Session &session, const std::string &package,
                                   const std::string &program,
                                   const std::string &mlir, OpKind op,
                                   const ForwardCase &c, std::string &error);

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SCORES_H

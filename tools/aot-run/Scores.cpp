//===- Scores.cpp - score programs of a case ------------------------------===//

#include "Scores.h"

#include "Packages.h"

#include "fovea/Package/PackageReader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::run {
namespace {

/// How many of a dimension's elements the problem has; 0: it does not say.
int64_t extentOf(const spec::CaptureDim &dim, const ForwardCase &c) {
  const std::pair<spec::CaptureIndex, int64_t> sizes[] = {
      {spec::kByBatch, c.batch},
      {spec::kByHead, c.heads},
      {spec::kByQuery, c.seqQ},
      {spec::kByKey, c.seqK}};
  int64_t extent = 0;
  for (const auto &[index, size] : sizes)
    if (dim.indices & index)
      extent = std::max(extent, size);
  return extent;
}

/// Makes NaNs of what no query that sees the key reads.
void poison(const spec::CaptureSpec &capture, const ForwardCase &c,
            reference::CapturedValues &values) {
  auto dimOf = [&](uint8_t index) {
    size_t dim = 0;
    while (dim != capture.dims.size() && capture.dims[dim].indices != index)
      ++dim;
    return dim;
  };
  const size_t q = dimOf(spec::kByQuery), k = dimOf(spec::kByKey),
               rank = capture.dims.size();
  if (q == rank || k == rank || values.values.empty())
    return;
  std::vector<bool> isRead(values.values.size());
  std::vector<int64_t> at(rank);
  for (bool done = false; !done;) {
    int64_t place = 0;
    for (size_t dim = 0; dim != rank; ++dim)
      place += at[dim] * values.strides[dim];
    const reference::KeyRange seen =
        reference::visibleKeys(c.mask, at[q], c.seqQ, c.seqK);
    if (at[k] >= seen.begin && at[k] < seen.end)
      isRead[size_t(place)] = true;
    size_t dim = 0;
    while (dim != rank && ++at[dim] >= values.extents[dim])
      at[dim++] = 0;
    done = dim == rank;
  }
  for (size_t i = 0; i != isRead.size(); ++i)
    if (!isRead[i])
      values.values[i] = std::nan("");
}

} // namespace

CaseScore::CaseScore(const std::string &program,
                     const std::vector<spec::CaptureSpec> &captures,
                     const std::vector<CaptureFill> &fills,
                     const ForwardCase &sizes)
    : name(program), specs(captures), state(sizes.seed + 0x5c02e) {
  for (size_t i = 0; i != captures.size(); ++i)
    fill(captures[i], i < fills.size() ? fills[i] : CaptureFill(), sizes);
  score.header = {sizeof(score), FOVEA_GROUP_SCORE, nullptr};
  score.program = name.c_str();
  score.captures = given.data();
  score.capture_count = uint32_t(given.size());
  score.capture_size = sizeof(fovea_capture_t);
}

void CaseScore::fill(const spec::CaptureSpec &capture, const CaptureFill &fill,
                     const ForwardCase &sizes) {
  fovea_capture_t &made = given.emplace_back();
  made = {};
  made.type = int32_t(capture.element) + 1;
  made.rank = int32_t(capture.dims.size());
  reference::CapturedValues &values = all.emplace_back();
  std::vector<unsigned char> &bytes = memory.emplace_back();
  const bool isInteger = capture.element == spec::CaptureElement::I32,
             isBool = capture.element == spec::CaptureElement::I1;
  if (capture.isScalar()) {
    made.value = isInteger ? std::floor(fill.most) : float(fill.most);
    values.values = {made.value};
    return;
  }
  // Rows are padded, and of those that are read by words the extent is, too.
  const size_t rank = capture.dims.size();
  const bool isUnit = capture.dims.back().isUnit;
  for (const spec::CaptureDim &dim : capture.dims) {
    const int64_t extent = extentOf(dim, sizes);
    values.extents.push_back(dim.indices ? extent : fill.extent);
  }
  if (isUnit)
    values.extents.back() = (values.extents.back() + 3) / 4 * 4;
  values.strides.resize(rank);
  int64_t next = 1, size = 1;
  for (size_t i = 0; i != rank; ++i) {
    const size_t dim = fill.isReversed ? i : rank - 1 - i;
    const bool isBroadcast = fill.broadcast >> dim & 1;
    values.strides[dim] = isBroadcast ? 0 : next;
    if (!isBroadcast)
      next *= values.extents[dim];
    if (i == 0)
      next = (next + 7) / 4 * 4;
  }
  for (size_t dim = 0; dim != rank; ++dim) {
    made.extents[dim] = values.extents[dim];
    made.strides[dim] = values.strides[dim];
    size = values.extents[dim] == 0
               ? 0
               : size + (values.extents[dim] - 1) * values.strides[dim];
    if (size == 0)
      return;
  }
  reference::Random chance(state++);
  values.values.resize(size_t(size));
  std::vector<uint8_t> flags(isBool ? size_t(size) : 0);
  for (size_t i = 0; i != values.values.size(); ++i) {
    double &value = values.values[i];
    value = (2 * chance.uniform() - 1) * fill.most;
    if (!fill.elements.empty())
      value = fill.elements[i % fill.elements.size()];
    if (isInteger)
      value = std::floor(std::fabs(value) * (1 + 1 / std::max(fill.most, 1.)));
    if (isBool) { // any byte but 0 is true
      flags[i] = chance.uniform() < 0.75 ? uint8_t(1 + i % 255) : 0;
      value = flags[i] != 0;
    }
  }
  if (fill.poison && !isInteger && !isBool)
    poison(capture, sizes, values);
  const size_t width = size_t(spec::infoOf(capture.element).bytes);
  bytes.resize(size_t(size) * width);
  for (size_t i = 0; i != values.values.size(); ++i) {
    double &value = values.values[i];
    auto store = [&](auto stored) {
      std::memcpy(bytes.data() + i * width, &stored, width);
    };
    auto storeHalf = [&](reference::ElemType type) {
      const uint16_t bits = uint16_t(reference::encode(type, value));
      value = reference::decode(type, bits);
      store(bits);
    };
    switch (capture.element) {
    case spec::CaptureElement::F32:
      store(float(value));
      value = float(value);
      break;
    case spec::CaptureElement::F16:
      storeHalf(reference::ElemType::F16);
      break;
    case spec::CaptureElement::BF16:
      storeHalf(reference::ElemType::BF16);
      break;
    case spec::CaptureElement::I32:
      store(int32_t(value));
      break;
    case spec::CaptureElement::I1:
      store(flags[i]);
      break;
    }
  }
}

void CaseScore::wantGradients(uint8_t captures, uint8_t stored) {
  score.stored_gradients = stored;
  for (size_t i = 0; i != given.size(); ++i) {
    if (!(captures >> i & 1))
      continue;
    Gradient &gradient = wanted.emplace_back().gradient;
    gradient.capture = int(i);
    gradient.extents = all[i].extents;
    int64_t size = 1;
    for (size_t dim = gradient.extents.size(); dim-- != 0;) {
      given[i].gradient_strides[dim] = size;
      size *= gradient.extents[dim];
    }
    reference::Random chance(state++);
    gradient.before.resize(size_t(size));
    for (float &value : gradient.before)
      value = float(chance.normal());
    if (!(stored >> i & 1))
      continue;
    gradient.type = given[i].type == FOVEA_CAPTURE_F16
                        ? reference::ElemType::F16
                        : reference::ElemType::BF16;
    gradient.dims = specs[i].dims;
    for (float &value : gradient.before)
      value = float(reference::roundTo(*gradient.type, value));
  }
}

void CaseScore::askForGradients(bool asks) {
  for (const Wanted &one : wanted)
    given[size_t(one.gradient.capture)].gradient = asks ? one.address : nullptr;
}

std::string CaseScore::readGradients(std::vector<Gradient> &read) {
  for (Wanted &one : wanted) {
    Gradient &gradient = one.gradient;
    if (!given[size_t(gradient.capture)].gradient)
      continue;
    gradient.after.resize(gradient.before.size());
    std::vector<uint16_t> narrow(gradient.type ? gradient.after.size() : 0);
    if (std::string error =
            gradient.type
                ? copies.read(narrow.data(), one.address, narrow.size() * 2)
                : copies.read(gradient.after.data(), one.address,
                              gradient.after.size() * sizeof(float));
        !error.empty())
      return error;
    for (size_t i = 0; i != narrow.size(); ++i)
      gradient.after[i] = float(reference::decode(*gradient.type, narrow[i]));
    read.push_back(gradient);
  }
  return "";
}

std::string CaseScore::upload(Session &session) {
  if (std::string error = copies.open(session.context()); !error.empty())
    return error;
  for (size_t i = 0; i != given.size(); ++i) {
    void *address = nullptr;
    if (std::string error =
            copies.put(memory[i].data(), memory[i].size(), address);
        !error.empty())
      return error;
    given[i].data = address;
  }
  for (Wanted &one : wanted) {
    const std::vector<float> &before = one.gradient.before;
    std::vector<uint16_t> narrow;
    if (one.gradient.type)
      for (float value : before)
        narrow.push_back(reference::encode(*one.gradient.type, value));
    if (std::string error =
            one.gradient.type
                ? copies.put(narrow.data(), narrow.size() * 2, one.address)
                : copies.put(before.data(), before.size() * sizeof(float),
                             one.address);
        !error.empty())
      return error;
  }
  return "";
}

/// By the compiler, which makes kernels of all gradients that there are;
/// nullopt, and `error`, where it is not asked or knows none.
static std::optional<ScoreText> askCompiler(Session &session,
                                            const std::string &program,
                                            const std::string &mlir,
                                            DataType type, std::string &error) {
  const char *text = nullptr;
  if (fovea_score_text(session.context(), dataTypeInfo(type).number,
                       program.c_str(), mlir.empty() ? nullptr : mlir.c_str(),
                       &text)) {
    error = fovea_last_message();
    return std::nullopt;
  }
  auto captures = spec::capturesOfProgram(text);
  if (!captures) {
    error = captures.status().message();
    return std::nullopt;
  }
  ScoreText found{text, std::move(*captures)};
  for (size_t i = 0; i != found.captures.size(); ++i)
    if (found.captures[i].isFloat())
      found.gradients |= uint8_t(1u << i);
  return found;
}

std::optional<ScoreText> findScore(Session &session, const std::string &package,
                                   const std::string &program,
                                   const std::string &mlir, OpKind op,
                                   const ForwardCase &c, std::string &error) {
  if (!mlir.empty())
    return askCompiler(session, program, mlir, c.type, error);
  std::vector<std::string> files;
  if (!cli::packageFiles(package, files, error))
    return std::nullopt;
  std::string others;
  std::optional<ScoreText> found;
  for (const std::string &file : files) {
    Expected<PackageReader> reader = PackageReader::open(file);
    if (!reader) {
      error = reader.status().message();
      return std::nullopt;
    }
    for (const KernelRecord &kernel : reader->kernels()) {
      const ProblemKey &key = kernel.problem;
      if (!key.score)
        continue;
      if (program != kernel.score.name && program != scoreDigits(key.score)) {
        if (others.find(kernel.score.name) == std::string::npos)
          others += (others.empty() ? "" : ", ") + kernel.score.name;
        continue;
      }
      const bool holdsRows =
          key.cutsColumns() ? key.headDim >= std::max(c.headDim, c.dimOfV())
                            : key.headDim == c.headDim;
      if (key.op != op || key.dtype != c.type || !holdsRows)
        continue;
      auto captures = spec::capturesOfProgram(kernel.score.text);
      if (!captures) {
        error = captures.status().message();
        return std::nullopt;
      }
      if (!found)
        found = ScoreText{kernel.score.text, std::move(*captures)};
      if (found->text == kernel.score.text &&
          __builtin_popcount(key.scoreGradients) >
              __builtin_popcount(found->gradients)) {
        found->gradients = key.scoreGradients;
        found->stored = key.storedGradients;
      }
    }
  }
  if (found)
    return found;
  std::string why;
  if (auto found = askCompiler(session, program, mlir, c.type, why))
    return found;
  error = "no kernel of '" + package + "' for " + toString(op) + ", " +
          toString(c.type) + " and head dimension " +
          std::to_string(c.headDim) + " has the score program '" + program +
          "'" + (others.empty() ? "" : "; there are " + others) +
          "; aot-compile --score=" + program +
          " makes one, and on demand: " + why;
  return std::nullopt;
}

} // namespace fovea::run

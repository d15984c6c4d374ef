//===- Output.cpp - where kernels go --------------------------------------===//

#include "Output.h"
#include "Contract.h"
#include "fovea/Package/Description.h"
#include "fovea/Package/WriteFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fovea;
using namespace fovea::tools;

static Error cannotWrite(StringRef path, std::error_code code) {
  return createStringError(code,
                           "cannot write '" + path + "': " + code.message());
}

llvm::Error fovea::tools::writeFile(StringRef path, StringRef content) {
  if (path == "-") {
    outs() << content;
    outs().flush();
    if (std::error_code code = outs().error()) {
      outs().clear_error();
      return cannotWrite("standard output", code);
    }
    return Error::success();
  }
  const std::error_code code = fovea::writeWhole(path.str(), content);
  return code ? cannotWrite(path, code) : Error::success();
}

llvm::Error fovea::tools::checkWritable(StringRef path) {
  if (path == "-")
    return Error::success();
  sys::fs::file_status status;
  std::error_code code = sys::fs::status(path, status);
  if (!code && status.type() == sys::fs::file_type::directory_file)
    return createStringError("cannot write '" + path + "': it is a folder");
  if (code && code != std::errc::no_such_file_or_directory)
    return cannotWrite(path, code);
  if (!code && status.type() != sys::fs::file_type::regular_file)
    return Error::success();
  StringRef folder = sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (!sys::fs::is_directory(folder))
    return createStringError("cannot write '" + path + "': no folder '" +
                             folder + "'");
  if (std::error_code access =
          sys::fs::access(folder, sys::fs::AccessMode::Write))
    return cannotWrite(path, access);
  return Error::success();
}

llvm::Error fovea::tools::makeFolder(StringRef path) {
  // As mkdir -p does it: the umask says who may read it.
  if (std::error_code code = sys::fs::create_directories(
          path, /*IgnoreExisting=*/true, sys::fs::perms::all_all))
    return createStringError(code, "cannot make folder '" + path +
                                       "': " + code.message());
  if (!sys::fs::is_directory(path))
    return createStringError("cannot make folder '" + path +
                             "': a file of that name is there");
  if (std::error_code code = sys::fs::access(path, sys::fs::AccessMode::Write))
    return cannotWrite(path, code);
  return Error::success();
}

/// A description at `path` of a kernel whose code object lies beside it under
/// the same name.
static llvm::Expected<std::string> description(const Job &job, StringRef path) {
  SmallString<128> codeObject(path == "-" ? StringRef(job.symbol)
                                          : sys::path::filename(path));
  if (path != "-")
    sys::path::replace_extension(codeObject, "");
  codeObject += kCodeObjectExtension;
  DescriptionOptions options;
  options.name = job.problem.str();
  // What the simulated device and the reference do in a moment.
  options.heads = 2;
  options.seqlen = 256;
  options.isChecked = true;
  fovea::Expected<std::string> text = describeKernel(
      job.record(), job.target->name.str(), codeObject.str().str(), options);
  if (!text)
    return createStringError(text.status().message());
  return std::move(*text);
}

/// The bytes that a request's form has for a kernel. \param path  of the file
/// that takes them, or "-"
static llvm::Expected<std::string> content(const Request &request,
                                           const Job &job,
                                           const CompiledKernel &kernel,
                                           StringRef path) {
  switch (request.emit) {
  case Emit::Hsaco:
    return kernel.image;
  case Emit::Contract:
    return contractJson(job, kernel);
  case Emit::Description:
    return description(job, path);
  default:
    return kernel.artifact;
  }
}

static Error writeContent(StringRef path, const Request &request,
                          const Job &job, const CompiledKernel &kernel) {
  llvm::Expected<std::string> text = content(request, job, kernel, path);
  return text ? writeFile(path, *text) : text.takeError();
}

namespace {
/// Emit::None.
class NoOutput : public Output {
public:
  Error store(const Job &, const CompiledKernel &) override {
    return Error::success();
  }
};

/// One kernel to one file or to standard output.
class FileOutput : public Output {
public:
  explicit FileOutput(const Request &request) : request(request) {}
  Error store(const Job &job, const CompiledKernel &kernel) override {
    return writeContent(request.output.empty() ? "-" : request.output, request,
                        job, kernel);
  }

private:
  const Request &request;
};

/// A file a kernel, `symbol.chip.extension`.
class FolderOutput : public Output {
public:
  explicit FolderOutput(const Request &request) : request(request) {}
  Error store(const Job &job, const CompiledKernel &kernel) override {
    SmallString<128> path(request.output);
    sys::path::append(path, job.symbol + "." + job.target->name + "." +
                                emitInfo(request.emit).extension);
    return writeContent(path, request, job, kernel);
  }

private:
  const Request &request;
};
} // namespace

llvm::Expected<std::unique_ptr<Output>>
fovea::tools::makeOutput(const Request &request) {
  // A dry run looks into packages, if there are any, and nowhere else.
  const bool isCounted = request.dryRun && (request.emit != Emit::Package ||
                                            request.output.empty());
  if (request.emit == Emit::None || isCounted)
    return std::make_unique<NoOutput>();
  if (request.emit == Emit::Package)
    return makePackageOutput(request);
  const EmitInfo &info = emitInfo(request.emit);
  bool isFolder = StringRef(request.output).ends_with("/") ||
                  sys::fs::is_directory(request.output);
  if (request.jobs.size() > 1 || isFolder) {
    if (request.output.empty() || request.output == "-")
      return createStringError(
          Twine(request.jobs.size()) + " kernels need a folder: -o FOLDER, " +
          "which gets one '." + info.extension + "' file each" +
          (request.emit == Emit::Hsaco ? "; or --emit=package" : ""));
    if (Error error = makeFolder(request.output))
      return error;
    return std::make_unique<FolderOutput>(request);
  }
  if (!info.isText && request.output.empty())
    return createStringError("--emit=" + info.name +
                             " is binary and needs -o FILE; -o - writes it to "
                             "standard output");
  if (!info.isText && request.output == "-" && outs().is_displayed())
    return createStringError("--emit=" + info.name +
                             " is binary; not written to a terminal");
  if (Error error =
          checkWritable(request.output.empty() ? "-" : request.output))
    return error;
  return std::make_unique<FileOutput>(request);
}

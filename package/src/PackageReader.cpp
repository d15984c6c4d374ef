//===- PackageReader.cpp - opens a kernel package -------------------------===//

#include "fovea/Package/PackageReader.h"

#include "Database.h"
#include "fovea/Package/Counted.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <tuple>

namespace fovea {

using db::Database;
using db::Transaction;

namespace {

/// How long a reader waits for a writer's commit, milliseconds.
constexpr int32_t kReadTimeoutMs = 5000;

/// Says what is wrong with a path before SQLite is asked, in plain words. The
/// file is not opened here: closing it would drop the locks that another
/// connection of this process may hold on it.
Status checkFile(const std::string &path) {
  struct stat info;
  const std::string name = "package '" + path + "'";
  if (stat(path.c_str(), &info) != 0)
    return Status(StatusCode::NotFound,
                  name + ": no such file, or its folder can't be searched; "
                         "build it with aot-compile, or correct the path");
  if (!S_ISREG(info.st_mode))
    return Status(StatusCode::InvalidArgument,
                  name + " is a folder or a device, not a file");
  if (info.st_size == 0)
    return Status(StatusCode::Corrupt,
                  name + ": it is empty; build the package again");
  return Status();
}

} // namespace

struct PackageReader::Impl {
  mutable std::mutex mutex; ///< the connection's
  /// None of a package in memory.
  mutable std::optional<Database> file;
  std::string path;
  std::vector<uint8_t> image; ///< of the one kernel of a package in memory
  db::Meta meta;
  std::vector<KernelRecord> kernels;
  std::vector<TuningRow> tuning;

  Status load();
};

Status PackageReader::Impl::load() {
  Database &database = *file;
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  Expected<db::Meta> validated = db::validate(database);
  if (!validated)
    return validated.status();
  meta = *validated;
  // Rows with features of a later version are passed over: nobody here can ask
  // for them.
  size_t unknown = 0;
  Expected<std::vector<KernelRecord>> kernelRows =
      db::readKernels(database, meta.format, unknown);
  if (!kernelRows)
    return kernelRows.status();
  kernels = std::move(*kernelRows);
  Expected<std::vector<TuningRow>> tuningRows =
      db::readTunings(database, unknown);
  if (!tuningRows)
    return tuningRows.status();
  tuning = std::move(*tuningRows);
  Expected<int64_t> lost = database.queryInteger(
      "SELECT count(*) FROM kernel WHERE image_hash NOT IN (SELECT hash FROM "
      "image)");
  if (!lost)
    return lost.status();
  if (*lost != 0)
    return database.corrupt(counted(uint64_t(*lost), "kernel") +
                            " without an image in it");
  if (meta.format > 2) {
    Expected<int64_t> homeless = database.queryInteger(
        "SELECT count(*) FROM image WHERE block NOT IN (SELECT id FROM block)");
    if (!homeless)
      return homeless.status();
    if (*homeless != 0)
      return database.corrupt(std::to_string(*homeless) +
                              " images have no block in it");
  }
  return transaction.commit();
}

PackageReader::PackageReader(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
PackageReader::PackageReader(PackageReader &&) = default;
PackageReader &PackageReader::operator=(PackageReader &&) = default;
PackageReader::~PackageReader() = default;

Expected<PackageReader> PackageReader::open(const std::string &path,
                                            const std::string &expectedArch) {
  if (Status status = checkFile(path); !status.ok())
    return status;
  Expected<Database> database =
      Database::open(path, Database::Mode::ReadOnly, kReadTimeoutMs);
  if (!database)
    return database.status();
  auto impl = std::make_unique<Impl>();
  impl->file = std::move(*database);
  impl->path = path;
  if (Status status = impl->load(); !status.ok())
    return status;
  if (!expectedArch.empty() && impl->meta.target.arch != expectedArch)
    return impl->file->incompatible("it is for " + impl->meta.target.str() +
                                    ", not for " + expectedArch);
  return PackageReader(std::move(impl));
}

Expected<PackageReader> PackageReader::ofKernel(std::string name,
                                                std::string creator,
                                                KernelRecord record,
                                                std::vector<uint8_t> image) {
  if (Status status = checkKernelRecord(record); !status.ok())
    return status;
  Expected<CodeObjectInfo> info = inspectCodeObject(image.data(), image.size());
  if (!info)
    return info.status();
  record.imageHash = hashImage(image.data(), image.size());
  record.imageBytes = image.size();
  auto impl = std::make_unique<Impl>();
  impl->path = std::move(name);
  impl->meta.target = info->target;
  impl->meta.creator = std::move(creator);
  impl->meta.format = kPackageFormatVersion;
  impl->image = std::move(image);
  impl->kernels.push_back(std::move(record));
  return PackageReader(std::move(impl));
}

const std::string &PackageReader::path() const { return impl->path; }
const std::string &PackageReader::creator() const { return impl->meta.creator; }
const TargetId &PackageReader::target() const { return impl->meta.target; }
const std::optional<ShardInfo> &PackageReader::shard() const {
  return impl->meta.shard;
}
const std::vector<KernelRecord> &PackageReader::kernels() const {
  return impl->kernels;
}
const std::vector<TuningRow> &PackageReader::tuning() const {
  return impl->tuning;
}

std::vector<const KernelRecord *>
PackageReader::candidates(const ProblemKey &problem) const {
  std::vector<const KernelRecord *> found;
  for (const KernelRecord &kernel : impl->kernels)
    if (kernel.problem == problem)
      found.push_back(&kernel);
  return found;
}

Expected<std::vector<uint8_t>>
PackageReader::loadImage(const KernelRecord &kernel) const {
  if (!impl->file)
    return impl->image;
  std::lock_guard<std::mutex> lock(impl->mutex);
  Transaction transaction(*impl->file);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  // A build may have brought the file to another version since it was opened.
  Expected<int32_t> format = db::formatOf(*impl->file);
  if (!format)
    return format.status();
  return db::readImage(*impl->file, *format, kernel.imageHash,
                       kernel.imageBytes);
}

Status PackageReader::verifyImage(const KernelRecord &kernel) const {
  Expected<std::vector<uint8_t>> image = loadImage(kernel);
  if (!image)
    return image.status();
  return inspectCodeObject(image->data(), image->size()).status();
}

Status PackageReader::verifyImages() const {
  for (const KernelRecord &kernel : impl->kernels)
    if (Status status = verifyImage(kernel); !status.ok())
      return status;
  return Status();
}

} // namespace fovea

//===- CompileCache.cpp - compiled kernels for the next process -----------===//

#include "CompileCache.h"

#include "fovea/Package/PackageReader.h"
#include "fovea/Package/PackageWriter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace fovea::rt {
namespace {

/// Bytes of the lock file: the first for what touches packages, which is short;
/// the others for orders, by their hash.
constexpr uint64_t kFolderByte = 0, kOrderBytes = uint64_t(1) << 30;
constexpr int kFolderSeconds = 10, kOrderSeconds = 60;
constexpr long kPollNanoseconds = 10 * 1000 * 1000;

Result failed(const std::string &what, int error) {
  if (error == ENOMEM)
    throw std::bad_alloc();
  return Result(FOVEA_STATUS_IO, what + ": " + std::strerror(error));
}

/// Makes a folder and those above it, for their owner alone.
Result makeFolder(const std::string &path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat info;
      if (::stat(part.c_str(), &info) != 0) // it may be there all the same
        return failed("the cache's folder '" + part + "' can't be made", error);
    }
    if (slash == std::string::npos)
      return Result();
  }
}

std::string hexOf(const std::string &text) {
  return toString(hashImage(text.data(), text.size())).substr(0, 16);
}

/// Whether a file is named as the cache names its packages: nothing else in its
/// folder is ever removed.
bool isCached(const std::string &name) {
  const std::string extension = kPackageExtension;
  constexpr size_t kHash = 16;
  if (name.size() < extension.size() + kHash + 2 ||
      name.compare(name.size() - extension.size(), extension.size(),
                   extension) != 0)
    return false;
  const size_t hash = name.size() - extension.size() - kHash;
  return name[hash - 1] == '-' &&
         name.find_first_not_of("0123456789abcdef", hash) ==
             name.size() - extension.size();
}

void removePackage(const std::string &path) {
  (void)::unlink(path.c_str());
  (void)::unlink((path + "-journal").c_str());
}

} // namespace

BlockFileSizeSignal::BlockFileSizeSignal() {
  sigset_t pending, blocked;
  sigemptyset(&pending);
  (void)sigpending(&pending);
  wasPending = sigismember(&pending, SIGXFSZ) == 1;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGXFSZ);
  (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
}

BlockFileSizeSignal::~BlockFileSizeSignal() {
  if (!wasPending) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGXFSZ);
    const timespec now = {0, 0};
    while (sigtimedwait(&taken, nullptr, &now) == SIGXFSZ)
      ;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ByteLock::~ByteLock() {
  if (file < 0)
    return;
  // A process that was forked meanwhile has the open file description, too, and
  // closing it here alone would leave the lock held.
  struct flock none = {};
  none.l_type = F_UNLCK;
  none.l_whence = SEEK_SET;
  (void)::fcntl(file, F_OFD_SETLK, &none);
  (void)::close(file);
}

Result ByteLock::take(const std::string &path, uint64_t byte, int seconds) {
  file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return failed("the cache's lock '" + path + "' can't be opened", errno);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = off_t(byte);
  lock.l_len = 1;
  timespec now, end;
  (void)clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += seconds;
  for (;;) {
    if (::fcntl(file, F_OFD_SETLK, &lock) == 0)
      return Result();
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return failed("the cache's lock '" + path + "' can't be taken", errno);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > end.tv_sec ||
        (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
      return Result(FOVEA_STATUS_BUSY,
                    "another process holds the cache's lock '" + path +
                        "' for more than " + std::to_string(seconds) + " s");
    const timespec pause = {0, kPollNanoseconds};
    (void)::nanosleep(&pause, nullptr);
  }
}

CompileCache::CompileCache(const std::string &folder, uint64_t mostBytes,
                           const KernelOrder &order, const std::string &buildId)
    : folder(folder), mostBytes(mostBytes), order(order),
      file(folder + "/" + order.chip + "-" + hexOf(buildId) +
           kPackageExtension),
      print(buildId +
            (order.algorithm.empty() ? "" : ", algorithm=" + order.algorithm)) {
}

Result CompileCache::find(OrderedKernel &kernel, bool &found) {
  found = false;
  // One that can only be read is read; whoever writes it has the lock.
  Result usable = makeFolder(folder);
  ByteLock lock;
  if (usable.ok())
    usable = lock.take(lockPath(), kFolderByte, kFolderSeconds);
  Expected<PackageReader> package = PackageReader::open(file, order.chip);
  if (!package && package.status().code() == StatusCode::Io && usable.ok()) {
    // What a killed process has left is undone by whoever opens it to write.
    (void)PackageWriter::open(file, TargetId{order.chip, {}, {}});
    package = PackageReader::open(file, order.chip);
  }
  if (!package)
    return usable;
  for (const KernelRecord *record : package->candidates(order.problem)) {
    if (record->fingerprint != print)
      continue;
    // A damaged image is compiled again.
    Expected<std::vector<uint8_t>> image = package->loadImage(*record);
    if (!image)
      continue;
    kernel.record = *record;
    kernel.image = std::move(*image);
    found = true;
    (void)::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
    return Result();
  }
  return usable;
}

Result CompileCache::lockOrder() {
  uint64_t hash = 0;
  const std::string text = order.str() + print;
  const ImageHash bytes = hashImage(text.data(), text.size());
  std::memcpy(&hash, bytes.data(), sizeof(hash));
  return orderLock.take(lockPath(), kFolderByte + 1 + hash % kOrderBytes,
                        kOrderSeconds);
}

Result CompileCache::store(const OrderedKernel &kernel) {
  ByteLock lock;
  if (Result result = lock.take(lockPath(), kFolderByte, kFolderSeconds);
      !result.ok())
    return result;
  const TargetId target{order.chip, {}, {}};
  PackageWriter::Options options;
  options.creator = "libfovea " + print;
  options.compressionLevel = 3; // a launch waits
  // The package is closed again before others may touch it.
  auto put = [&] {
    Expected<PackageWriter> writer = PackageWriter::open(file, target, options);
    return writer ? writer->put(kernel.record, kernel.image.data(),
                                kernel.image.size())
                  : writer.status();
  };
  Status status = put();
  if (status.code() == StatusCode::Corrupt ||
      status.code() == StatusCode::Incompatible) {
    removePackage(file);
    status = put();
  }
  if (!status.ok())
    return Result(status);
  trim();
  return Result();
}

void CompileCache::trim() const {
  struct Entry {
    timespec used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t sum = 0;
  std::unique_ptr<DIR, int (*)(DIR *)> stream(::opendir(folder.c_str()),
                                              ::closedir);
  while (stream) {
    const dirent *entry = ::readdir(stream.get());
    if (!entry)
      break;
    struct stat info;
    const std::string path = folder + "/" + entry->d_name;
    if (!isCached(entry->d_name) || ::stat(path.c_str(), &info) != 0)
      continue;
    entries.push_back({info.st_mtim, path, uint64_t(info.st_size)});
    sum += uint64_t(info.st_size);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Entry &entry : entries) {
    if (sum <= mostBytes)
      return;
    removePackage(entry.path);
    sum -= entry.bytes;
  }
}

} // namespace fovea::rt

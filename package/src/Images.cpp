//===- Images.cpp - the package's code objects ----------------------------===//
//
// Images are zstd frames. While a package is being built each stands by itself;
// packing compresses all again with a dictionary of what they have in common,
// which is most of a kernel: prologue, argument loads, metadata.
//
//===----------------------------------------------------------------------===//

#include "Database.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zdict.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace fovea::db {
namespace {

// Measured with 234 kernels of gfx942 (3.9 MB, 1.59 MB in frames of their own):
// dictionaries of 64, 128, 256 and 384 KiB give 0.98, 0.91, 0.89 and 0.92 MB
// with the dictionary counted. Segments of 1 KiB beat 256 to 4096 bytes.
constexpr size_t kMostDictionaryBytes = 256 << 10;
constexpr unsigned kSegmentBytes = 1024;
/// A dictionary is at most this part of what it stands for, and of some
/// segments at least.
constexpr size_t kImageBytesADictionaryByte = 15;
constexpr size_t kLeastDictionaryBytes = 4 << 10;
/// Of larger packages only every nth image is looked at, so that memory stays
/// bounded.
constexpr size_t kMostSampleBytes = 64 << 20;

struct ImageName {
  ImageHash hash;
  uint64_t size;
};

/// All images in the order of their hashes.
Expected<std::vector<ImageName>> listImages(Database &database) {
  Expected<Statement> rows =
      database.prepare("SELECT hash, size FROM image ORDER BY hash");
  if (!rows)
    return rows.status();
  std::vector<ImageName> names;
  int code;
  while ((code = rows->step()) == SQLITE_ROW) {
    auto [hash, bytes] = rows->blob(0);
    ImageName name;
    if (bytes != name.hash.size())
      return database.corrupt("the hash of an image has " +
                              std::to_string(bytes) + " bytes, not 16");
    std::copy_n(hash, bytes, name.hash.begin());
    name.size = uint64_t(rows->integer(1));
    names.push_back(name);
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "listing its images");
  return names;
}

/// An image read in a transaction of its own, so that its frame and dictionary
/// belong together and nobody waits for longer than that.
Expected<std::vector<uint8_t>> readAlone(Database &database,
                                         const ImageName &name) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  return readImage(database, name.hash, name.size);
}

/// Stands for a set of images.
std::string digestOf(const std::vector<ImageName> &names) {
  std::vector<uint8_t> bytes;
  for (const ImageName &name : names)
    bytes.insert(bytes.end(), name.hash.begin(), name.hash.end());
  return toString(hashImage(bytes.data(), bytes.size()));
}

/// Empty when there is too little to learn from.
Expected<std::vector<uint8_t>>
makeDictionary(Database &database, const std::vector<ImageName> &names) {
  uint64_t total = 0;
  for (const ImageName &name : names)
    total += name.size;
  std::vector<uint8_t> dictionary(std::min<uint64_t>(
      total / kImageBytesADictionaryByte, kMostDictionaryBytes));
  if (dictionary.size() < kLeastDictionaryBytes)
    return std::vector<uint8_t>();
  std::vector<uint8_t> samples;
  std::vector<size_t> sizes;
  const size_t stride = total / kMostSampleBytes + 1;
  for (size_t i = 0; i < names.size(); i += stride) {
    Expected<std::vector<uint8_t>> image = readAlone(database, names[i]);
    if (!image)
      return image.status();
    samples.insert(samples.end(), image->begin(), image->end());
    sizes.push_back(image->size());
  }
  // zstd wants eight samples at least; fewer have little in common anyway.
  ZDICT_fastCover_params_t params{};
  params.k = kSegmentBytes;
  params.d = 8;
  params.f = 20;
  params.accel = 1;
  params.splitPoint = 1.0;
  params.zParams.compressionLevel = 19;
  const size_t made = ZDICT_trainFromBuffer_fastCover(
      dictionary.data(), dictionary.size(), samples.data(), sizes.data(),
      unsigned(sizes.size()), params);
  dictionary.resize(ZDICT_isError(made) ? 0 : made);
  return dictionary;
}

template <typename T>
using Owned = std::unique_ptr<T, size_t (*)(T *)>;

Status memoryRanOut(const char *doing) {
  return Status(StatusCode::OutOfMemory,
                std::string("memory ran out while ") + doing);
}

/// Compresses images, each to a frame with its size and a checksum.
class Compressor {
public:
  /// \param dictionary  may be empty; must outlive the object
  static Expected<Compressor> make(int level,
                                   const std::vector<uint8_t> &dictionary) {
    Compressor made;
    if (!made.context)
      return memoryRanOut("compressing");
    ZSTD_CCtx *context = made.context.get();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    if (dictionary.empty())
      return made;
    made.digested.reset(
        ZSTD_createCDict(dictionary.data(), dictionary.size(), level));
    if (!made.digested ||
        ZSTD_isError(ZSTD_CCtx_refCDict(context, made.digested.get())))
      return memoryRanOut("compressing");
    return made;
  }

  Expected<std::vector<uint8_t>> run(const void *data, size_t size) {
    std::vector<uint8_t> frame(ZSTD_compressBound(size));
    const size_t written =
        ZSTD_compress2(context.get(), frame.data(), frame.size(), data, size);
    if (ZSTD_isError(written))
      return Status(StatusCode::Io, std::string("compressing failed: ") +
                                        ZSTD_getErrorName(written));
    frame.resize(written);
    frame.shrink_to_fit();
    return frame;
  }

private:
  Compressor() : context(ZSTD_createCCtx(), ZSTD_freeCCtx) {}
  Owned<ZSTD_CCtx> context;
  Owned<ZSTD_CDict> digested{nullptr, ZSTD_freeCDict};
};

Status insertImage(Database &database, const ImageHash &hash, uint64_t size,
                   const std::vector<uint8_t> &frame) {
  Expected<Statement> insert = database.prepare(
      "INSERT OR REPLACE INTO image(hash, size, data) VALUES(?,?,?)");
  if (!insert)
    return insert.status();
  insert->bindBlob(1, hash.data(), hash.size());
  insert->bind(2, int64_t(size));
  insert->bindBlob(3, frame.data(), frame.size());
  return database.run(*insert, "storing an image");
}

int64_t checksumOf(const void *dictionary, size_t size) {
  return int64_t(XXH3_64bits(dictionary, size));
}

Status insertDictionary(Database &database,
                        const std::vector<uint8_t> &dictionary) {
  if (dictionary.empty())
    return Status();
  Expected<Statement> insert = database.prepare(
      "INSERT INTO dictionary(id, data, checksum) VALUES(?,?,?)");
  if (!insert)
    return insert.status();
  insert->bind(1,
               int64_t(ZDICT_getDictID(dictionary.data(), dictionary.size())));
  insert->bindBlob(2, dictionary.data(), dictionary.size());
  insert->bind(3, checksumOf(dictionary.data(), dictionary.size()));
  return database.run(*insert, "storing its dictionary");
}

/// The dictionary that a frame names; empty for a frame by itself.
Expected<std::vector<uint8_t>> readDictionary(Database &database, unsigned id) {
  if (id == 0)
    return std::vector<uint8_t>();
  const std::string name = "dictionary " + std::to_string(id);
  Expected<Statement> select =
      database.prepare("SELECT data, checksum FROM dictionary WHERE id=?");
  if (!select)
    return select.status();
  select->bind(1, int64_t(id));
  if (int code = select->step(); code == SQLITE_DONE)
    return database.corrupt("its " + name + " is missing");
  else if (code != SQLITE_ROW)
    return database.failure(code, "reading a dictionary");
  auto [data, bytes] = select->blob(0);
  if (select->integer(1) != checksumOf(data, bytes))
    return database.corrupt("the checksum of its " + name + " is wrong");
  return std::vector<uint8_t>(data, data + bytes);
}

} // namespace

Expected<std::vector<uint8_t>> readImage(Database &database,
                                         const ImageHash &hash, uint64_t size) {
  const std::string name = "image " + toString(hash);
  Expected<Statement> select =
      database.prepare("SELECT size, data FROM image WHERE hash=?");
  if (!select)
    return select.status();
  select->bindBlob(1, hash.data(), hash.size());
  if (int code = select->step(); code == SQLITE_DONE)
    return Status(StatusCode::NotFound,
                  "package '" + database.path() + "': " + name +
                      " is no longer there: a build has replaced the kernel; "
                      "open the package again");
  else if (code != SQLITE_ROW)
    return database.failure(code, "reading an image");

  auto [data, bytes] = select->blob(1);
  const uint64_t stored = uint64_t(select->integer(0));
  const unsigned long long framed = ZSTD_getFrameContentSize(data, bytes);
  if (stored != size || framed != size || size > kMaxImageBytes)
    return database.corrupt(
        name + " should have " + std::to_string(size) +
        " bytes; its row says " + std::to_string(stored) + ", its content " +
        (framed == ZSTD_CONTENTSIZE_ERROR || framed == ZSTD_CONTENTSIZE_UNKNOWN
             ? std::string("is no zstd frame of known size")
             : std::to_string(framed)));
  Expected<std::vector<uint8_t>> dictionary =
      readDictionary(database, ZSTD_getDictID_fromFrame(data, bytes));
  if (!dictionary)
    return dictionary.status();
  Owned<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context)
    return memoryRanOut("decompressing");
  std::vector<uint8_t> image(size);
  const size_t got =
      ZSTD_decompress_usingDict(context.get(), image.data(), image.size(), data,
                                bytes, dictionary->data(), dictionary->size());
  if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
    return memoryRanOut("decompressing");
  if (ZSTD_isError(got) || got != size)
    return database.corrupt(
        name + " does not decompress (" +
        (ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is cut off") + ")");
  if (hashImage(image.data(), image.size()) != hash)
    return database.corrupt(name + " has another hash: its content changed");
  return image;
}

Expected<CompressedImage> CompressedImage::make(const void *image, size_t size,
                                                int level) {
  const std::vector<uint8_t> none;
  Expected<Compressor> compressor = Compressor::make(level, none);
  if (!compressor)
    return compressor.status();
  Expected<std::vector<uint8_t>> frame = compressor->run(image, size);
  if (!frame)
    return frame.status();
  CompressedImage made;
  made.frame = std::move(*frame);
  made.size = size;
  return made;
}

Status CompressedImage::store(Database &database, const ImageHash &hash) const {
  return insertImage(database, hash, size, frame);
}

namespace {

/// All images of a moment, compressed.
struct Packed {
  std::string digest; ///< of the images
  bool already = false;
  std::vector<ImageName> names;
  std::vector<uint8_t> dictionary;
  std::vector<std::vector<uint8_t>> frames;
};

/// What is to be compressed.
Status listAll(Database &database, Packed &packed) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  Expected<std::vector<ImageName>> names = listImages(database);
  if (!names)
    return names.status();
  packed.names = std::move(*names);
  packed.digest = digestOf(packed.names);
  Expected<std::string> last = getMeta(database, kPackedEntry);
  if (!last)
    return last.status();
  packed.already = *last == packed.digest;
  return Status();
}

/// Compresses without a lock, which another build's kernels would wait for: it
/// takes 10 s for a thousand. NotFound: an image has gone meanwhile.
Status compressAll(Database &database, int level, Packed &packed) {
  if (Status status = listAll(database, packed); !status.ok() || packed.already)
    return status;
  Expected<std::vector<uint8_t>> dictionary =
      makeDictionary(database, packed.names);
  if (!dictionary)
    return dictionary.status();
  packed.dictionary = std::move(*dictionary);
  Expected<Compressor> compressor = Compressor::make(level, packed.dictionary);
  if (!compressor)
    return compressor.status();
  packed.frames.clear();
  for (const ImageName &name : packed.names) {
    Expected<std::vector<uint8_t>> image = readAlone(database, name);
    if (!image)
      return image.status();
    Expected<std::vector<uint8_t>> frame =
        compressor->run(image->data(), image->size());
    if (!frame)
      return frame.status();
    packed.frames.push_back(std::move(*frame));
  }
  return Status();
}

/// Puts the frames in place; `changed` instead when the images are no longer
/// those that were compressed.
Status replaceAll(Database &database, const Packed &packed, bool &changed) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  Expected<std::vector<ImageName>> names = listImages(database);
  if (!names)
    return names.status();
  changed = digestOf(*names) != packed.digest;
  if (changed)
    return Status();
  if (Status status =
          database.execute("DELETE FROM image; DELETE FROM dictionary");
      !status.ok())
    return status;
  if (Status status = insertDictionary(database, packed.dictionary);
      !status.ok())
    return status;
  for (size_t i = 0; i != packed.names.size(); ++i)
    if (Status status = insertImage(database, packed.names[i].hash,
                                    packed.names[i].size, packed.frames[i]);
        !status.ok())
      return status;
  if (Status status = putMeta(database, kPackedEntry, packed.digest);
      !status.ok())
    return status;
  return transaction.commit();
}

} // namespace

Status packImages(Database &database, int level) {
  // A build that adds kernels meanwhile packs when it ends, so giving up after
  // a few rounds leaves nothing undone.
  for (int round = 0; round != 3; ++round) {
    Packed packed;
    Status status = compressAll(database, level, packed);
    if (status.code() == StatusCode::NotFound)
      continue;
    if (!status.ok() || packed.already)
      return status;
    bool changed = false;
    status = replaceAll(database, packed, changed);
    if (!status.ok() || !changed)
      return status;
  }
  return Status();
}

} // namespace fovea::db

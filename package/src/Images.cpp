//===- Images.cpp - the package's code objects ----------------------------===//
//
// Images lie in blocks, each of which is a zstd frame. While a package is being
// built every image has a block of its own; packing puts many together, those
// of similar kernels beside each other: what kernels of one compiler share,
// which is most of them, is then stored once a block.
//
//===----------------------------------------------------------------------===//

#include "Database.h"

#include <algorithm>
#include <map>
#include <tuple>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace fovea::db {
namespace {

// Measured with 580 kernels of gfx942 (17.8 MB; 5.4 MB in frames of their own):
// blocks of 256 KiB, 512 KiB, 1, 2 and 4 MiB give 2.89, 2.30, 2.00, 1.79 and
// 1.71 MB. To get a kernel its block is decompressed, at 1 to 2 GB/s.
constexpr uint64_t kBlockBytes = 2 << 20;

struct ImageName {
  ImageHash hash;
  uint64_t size;
  /// Kernels of one operation, algorithm and range of head dimensions; a block
  /// holds images of one group, so that a kernel that comes or goes changes no
  /// other blocks.
  std::string group = {};
};
constexpr int32_t kHeadDimsOfAGroup = 128;

/// The images of all kernels, similar ones beside each other: by operation,
/// algorithm and head dimension, then type and mask. Those of kernels that this
/// version can't read come last.
Expected<std::vector<ImageName>> listImages(Database &database) {
  size_t unknown = 0;
  Expected<int32_t> format = formatOf(database);
  if (!format)
    return format.status();
  Expected<std::vector<KernelRecord>> kernels =
      readKernels(database, *format, unknown);
  if (!kernels)
    return kernels.status();
  auto keyOf = [](const KernelRecord &kernel) {
    return std::make_tuple(
        kernel.problem.op,
        kernel.launches.empty() ? std::string() : kernel.launches[0].suffix,
        kernel.problem.headDim, kernel.problem.dtype, kernel.problem.mask,
        kernel.problem.score, kernel.schedule);
  };
  std::map<ImageHash, decltype(keyOf((*kernels)[0]))> keys;
  for (const KernelRecord &kernel : *kernels) {
    auto [at, isNew] = keys.try_emplace(kernel.imageHash, keyOf(kernel));
    if (!isNew)
      at->second = std::min(at->second, keyOf(kernel));
  }
  auto groupOf = [&](const ImageHash &hash) -> std::string {
    auto at = keys.find(hash);
    if (at == keys.end())
      return "unknown";
    const auto &[op, suffix, headDim, dtype, mask, score, schedule] =
        at->second;
    return std::string(toString(op)) + " " + suffix + " " +
           std::to_string(headDim / kHeadDimsOfAGroup);
  };
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
    name.group = groupOf(name.hash);
    names.push_back(std::move(name));
  }
  if (code != SQLITE_DONE)
    return database.failure(code, "listing its images");
  std::stable_sort(names.begin(), names.end(),
                   [&](const ImageName &a, const ImageName &b) {
                     auto left = keys.find(a.hash), right = keys.find(b.hash);
                     if (left == keys.end() || right == keys.end())
                       return left != keys.end();
                     return left->second < right->second;
                   });
  return names;
}

/// An image read in a transaction of its own, so that nobody waits for longer
/// than that.
Expected<std::vector<uint8_t>> readAlone(Database &database,
                                         const ImageName &name) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  return readImage(database, kPackageFormatVersion, name.hash, name.size);
}

/// Stands for a list of images.
std::string digestOf(const std::vector<ImageName> &names) {
  std::vector<uint8_t> bytes;
  for (const ImageName &name : names)
    bytes.insert(bytes.end(), name.hash.begin(), name.hash.end());
  return toString(hashImage(bytes.data(), bytes.size()));
}

Status memoryRanOut(const char *doing) {
  return Status(StatusCode::OutOfMemory,
                std::string("memory ran out while ") + doing);
}

/// A frame with its size and a checksum.
Expected<std::vector<uint8_t>> compress(const void *data, size_t size,
                                        int level) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx *)> context(
      ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (!context)
    return memoryRanOut("compressing");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<uint8_t> frame(ZSTD_compressBound(size));
  const size_t written =
      ZSTD_compress2(context.get(), frame.data(), frame.size(), data, size);
  if (ZSTD_getErrorCode(written) == ZSTD_error_memory_allocation)
    return memoryRanOut("compressing");
  if (ZSTD_isError(written))
    return Status(StatusCode::Io, std::string("compressing failed: ") +
                                      ZSTD_getErrorName(written));
  frame.resize(written);
  frame.shrink_to_fit();
  return frame;
}

Status insertBlock(Database &database, int64_t id, uint64_t size,
                   const std::vector<uint8_t> &frame) {
  Expected<Statement> insert =
      database.prepare("INSERT INTO block(id, size, data) VALUES(?,?,?)");
  if (!insert)
    return insert.status();
  insert->bind(1, id);
  insert->bind(2, int64_t(size));
  insert->bindBlob(3, frame.data(), frame.size());
  return database.run(*insert, "storing a block of images");
}

Status insertImage(Database &database, const ImageName &name, int64_t block,
                   uint64_t place) {
  Expected<Statement> insert = database.prepare(
      "INSERT OR REPLACE INTO image(hash, size, block, place) VALUES(?,?,?,?)");
  if (!insert)
    return insert.status();
  insert->bindBlob(1, name.hash.data(), name.hash.size());
  insert->bind(2, int64_t(name.size));
  insert->bind(3, block);
  insert->bind(4, int64_t(place));
  return database.run(*insert, "storing an image");
}

/// Decompresses a frame of `size` bytes into the database's last block.
/// \param what  names it in messages
Status decompress(Database &database, const std::string &what,
                  std::pair<const uint8_t *, size_t> frame, uint64_t size) {
  auto [data, bytes] = frame;
  const uint64_t frameHash = XXH3_64bits(data, bytes);
  auto &last = database.lastBlock;
  if (!last.bytes.empty() && last.frameHash == frameHash &&
      last.bytes.size() == size)
    return Status();
  const unsigned long long framed = ZSTD_getFrameContentSize(data, bytes);
  if (framed != size || size > kMaxImageBytes)
    return database.corrupt(
        what + " should have " + std::to_string(size) +
        " bytes by its row; its content " +
        (framed == ZSTD_CONTENTSIZE_ERROR || framed == ZSTD_CONTENTSIZE_UNKNOWN
             ? std::string("is no zstd frame of known size")
             : "says " + std::to_string(framed)));
  last.bytes.clear();
  std::vector<uint8_t> content(size);
  const size_t got = ZSTD_decompress(content.data(), size, data, bytes);
  if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
    return memoryRanOut("decompressing");
  if (ZSTD_isError(got) || got != size)
    return database.corrupt(
        what + " does not decompress (" +
        (ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is cut off") + ")");
  last.bytes = std::move(content);
  last.frameHash = frameHash;
  return Status();
}

} // namespace

Expected<std::vector<uint8_t>> readImage(Database &database, int32_t format,
                                         const ImageHash &hash, uint64_t size) {
  const std::string name = "image " + toString(hash);
  // In version 2 each image has its own frame.
  Expected<Statement> select = database.prepare(
      format == 2 ? "SELECT size, 0, 0, size, data FROM image WHERE hash=?"
                  : "SELECT image.size, block.id, place, block.size, data FROM "
                    "image LEFT JOIN block ON block.id=block WHERE hash=?");
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

  const uint64_t stored = uint64_t(select->integer(0));
  const uint64_t place = uint64_t(select->integer(2));
  const uint64_t blockSize = uint64_t(select->integer(3));
  if (stored != size || size > blockSize || place > blockSize - size)
    return database.corrupt(name + " should have " + std::to_string(size) +
                            " bytes; its row says " + std::to_string(stored) +
                            ", from " + std::to_string(place) +
                            " on in a block of " + std::to_string(blockSize));
  const std::string block =
      format == 2 ? name
                  : "block " + std::to_string(select->integer(1)) + ", of " +
                        name + ",";
  if (Status status = decompress(database, block, select->blob(4), blockSize);
      !status.ok())
    return status;
  const uint8_t *begin = database.lastBlock.bytes.data() + place;
  std::vector<uint8_t> image(begin, begin + size);
  if (hashImage(image.data(), image.size()) != hash)
    return database.corrupt(name + " has another hash: its content changed");
  return image;
}

Expected<CompressedImage> CompressedImage::make(const void *image, size_t size,
                                                int level) {
  Expected<std::vector<uint8_t>> frame = compress(image, size, level);
  if (!frame)
    return frame.status();
  CompressedImage made;
  made.frame = std::move(*frame);
  made.size = size;
  return made;
}

Status CompressedImage::store(Database &database, const ImageHash &hash) const {
  Expected<int64_t> id =
      database.queryInteger("SELECT coalesce(max(id), 0) + 1 FROM block");
  if (!id)
    return id.status();
  if (Status status = insertBlock(database, *id, size, frame); !status.ok())
    return status;
  if (Status status = insertImage(database, {hash, size, {}}, *id, 0);
      !status.ok())
    return status;
  return putMeta(database, kPackedEntry, "");
}

Status dropOrphans(Database &database) {
  if (Status status = database.execute(
          "DELETE FROM image WHERE hash NOT IN (SELECT image_hash FROM kernel);"
          "DELETE FROM block WHERE id NOT IN (SELECT block FROM image)");
      !status.ok())
    return status;
  return dropUnusedScores(database);
}

namespace {

/// All images of a moment, compressed.
struct Packed {
  std::vector<ImageName> names;
  bool already = false;
  struct Block {
    uint64_t size = 0;
    size_t first = 0, count = 0; ///< of the names, one after the other
    std::vector<uint8_t> frame;
  };
  std::vector<Block> blocks;
};

/// What is to be compressed together.
void divide(Packed &packed) {
  for (size_t i = 0; i != packed.names.size(); ++i) {
    const ImageName &name = packed.names[i];
    if (i == 0 || name.group != packed.names[i - 1].group ||
        packed.blocks.back().size + name.size > kBlockBytes)
      packed.blocks.push_back({0, i, 0, {}});
    packed.blocks.back().size += name.size;
    ++packed.blocks.back().count;
  }
}

Status listAll(Database &database, Packed &packed) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  Expected<std::vector<ImageName>> names = listImages(database);
  if (!names)
    return names.status();
  packed.names = std::move(*names);
  Expected<std::string> last = getMeta(database, kPackedEntry);
  if (!last)
    return last.status();
  packed.already = *last == digestOf(packed.names);
  divide(packed);
  return Status();
}

/// The frame of a block that has exactly these images, in this order; empty
/// when there is none.
Expected<std::vector<uint8_t>> findBlock(Database &database,
                                         const Packed &packed,
                                         const Packed::Block &block) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN"); !status.ok())
    return status;
  uint64_t place = 0;
  int64_t id = 0;
  for (size_t i = block.first; i != block.first + block.count; ++i) {
    Expected<Statement> select =
        database.prepare("SELECT block, place FROM image WHERE hash=?");
    if (!select)
      return select.status();
    select->bindBlob(1, packed.names[i].hash.data(),
                     packed.names[i].hash.size());
    if (int code = select->step(); code == SQLITE_DONE)
      return std::vector<uint8_t>();
    else if (code != SQLITE_ROW)
      return database.failure(code, "looking for a block");
    if ((id && select->integer(0) != id) ||
        uint64_t(select->integer(1)) != place)
      return std::vector<uint8_t>();
    id = select->integer(0);
    place += packed.names[i].size;
  }
  Expected<Statement> select =
      database.prepare("SELECT data FROM block WHERE id=? AND size=?");
  if (!select)
    return select.status();
  select->bind(1, id);
  select->bind(2, int64_t(block.size));
  if (int code = select->step(); code == SQLITE_DONE)
    return std::vector<uint8_t>();
  else if (code != SQLITE_ROW)
    return database.failure(code, "reading a block");
  auto [data, bytes] = select->blob(0);
  return std::vector<uint8_t>(data, data + bytes);
}

/// Compresses without a lock, which another build's kernels would wait for: it
/// takes 10 s for a thousand. NotFound: an image has gone meanwhile.
Status compressAll(Database &database, int level, Packed &packed) {
  if (Status status = listAll(database, packed); !status.ok() || packed.already)
    return status;
  for (Packed::Block &block : packed.blocks) {
    // An image by itself may have been compressed otherwise.
    if (block.count > 1) {
      Expected<std::vector<uint8_t>> frame = findBlock(database, packed, block);
      if (!frame)
        return frame.status();
      block.frame = std::move(*frame);
    }
    if (!block.frame.empty())
      continue;
    std::vector<uint8_t> content;
    for (size_t i = block.first; i != block.first + block.count; ++i) {
      Expected<std::vector<uint8_t>> image =
          readAlone(database, packed.names[i]);
      if (!image)
        return image.status();
      content.insert(content.end(), image->begin(), image->end());
    }
    Expected<std::vector<uint8_t>> frame =
        compress(content.data(), content.size(), level);
    if (!frame)
      return frame.status();
    block.frame = std::move(*frame);
  }
  return Status();
}

/// Puts the blocks in place; `changed` instead when the images are no longer
/// those that were compressed.
Status replaceAll(Database &database, const Packed &packed, bool &changed) {
  Transaction transaction(database);
  if (Status status = transaction.begin("BEGIN IMMEDIATE"); !status.ok())
    return status;
  Expected<std::vector<ImageName>> names = listImages(database);
  if (!names)
    return names.status();
  changed = digestOf(*names) != digestOf(packed.names);
  if (changed)
    return Status();
  if (Status status = database.execute("DELETE FROM image; DELETE FROM block");
      !status.ok())
    return status;
  int64_t id = 0;
  for (const Packed::Block &block : packed.blocks) {
    if (Status status = insertBlock(database, ++id, block.size, block.frame);
        !status.ok())
      return status;
    uint64_t place = 0;
    for (size_t i = block.first; i != block.first + block.count; ++i) {
      if (Status status = insertImage(database, packed.names[i], id, place);
          !status.ok())
        return status;
      place += packed.names[i].size;
    }
  }
  if (Status status = putMeta(database, kPackedEntry, digestOf(packed.names));
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
    if (!status.ok())
      return status;
    if (changed)
      continue;
    // Rows that came in any order leave pages half full. Where there is no room
    // or no time for it the package is larger and no worse.
    (void)database.execute("PRAGMA temp_store=MEMORY;VACUUM");
    return Status();
  }
  return Status();
}

} // namespace fovea::db

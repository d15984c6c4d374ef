//===- FaultyVfs.h - a file system that fails on demand ---------*- C++ -*-===//
//
// SQLite's file system with a fault in its nth operation that can fail. It is
// the default one while an object of this class lives.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_PACKAGE_FAULTYVFS_H
#define FOVEA_TEST_UNIT_PACKAGE_FAULTYVFS_H

#include <atomic>
#include <cstring>
#include <sqlite3.h>

namespace fovea::test {

class FaultyVfs {
public:
  FaultyVfs() : base(sqlite3_vfs_find(nullptr)), vfs(*base) {
    current() = this;
    vfs.zName = "faulty";
    vfs.szOsFile = int(sizeof(File)) + base->szOsFile;
    vfs.pNext = nullptr;
    vfs.xOpen = open;
    vfs.xDelete = [](sqlite3_vfs *, const char *name, int sync) {
      if (int code = current()->fault(SQLITE_IOERR_DELETE))
        return code;
      sqlite3_vfs *real = current()->base;
      return real->xDelete(real, name, sync);
    };
    sqlite3_vfs_register(&vfs, /*makeDefault=*/1);
  }
  ~FaultyVfs() {
    sqlite3_vfs_unregister(&vfs);
    sqlite3_vfs_register(base, 1);
  }

  /// The `n`th operation from now on fails, counted from 1, and with
  /// `staysDown` all after it too; 0: none does. A failing write gives
  /// `writeCode`.
  void arm(int n, int writeCode = SQLITE_FULL, bool staysDown = false) {
    left = n;
    code = writeCode;
    sticky = staysDown;
    failed = 0;
  }
  /// Whether the armed operation was reached.
  bool hit() const { return failed != 0; }

private:
  struct File {
    sqlite3_file head;
    sqlite3_file *real() { return reinterpret_cast<sqlite3_file *>(this + 1); }
    static File *of(sqlite3_file *file) {
      return reinterpret_cast<File *>(file);
    }
  };

  static FaultyVfs *&current() {
    static FaultyVfs *instance = nullptr;
    return instance;
  }

  /// 0, or the code of a fault.
  int fault(int errorCode) {
    if (failed != 0 && sticky)
      return errorCode;
    if (left == 0 || --left != 0)
      return SQLITE_OK;
    ++failed;
    return errorCode;
  }

  static int open(sqlite3_vfs *, const char *name, sqlite3_file *file,
                  int flags, int *outFlags) {
    File *wrapped = File::of(file);
    wrapped->head.pMethods = nullptr;
    if (int code = current()->fault(SQLITE_CANTOPEN))
      return code;
    sqlite3_vfs *real = current()->base;
    const int code = real->xOpen(real, name, wrapped->real(), flags, outFlags);
    if (wrapped->real()->pMethods)
      wrapped->head.pMethods = methods();
    return code;
  }

  static const sqlite3_io_methods *methods() {
    static const sqlite3_io_methods table = [] {
      sqlite3_io_methods m{};
      m.iVersion = 1; // no shared memory: packages have rollback journals
      m.xClose = [](sqlite3_file *f) {
        return on(f)->xClose(File::of(f)->real());
      };
      m.xRead = [](sqlite3_file *f, void *data, int bytes, sqlite3_int64 at) {
        if (int code = current()->fault(SQLITE_IOERR_READ))
          return code;
        return on(f)->xRead(File::of(f)->real(), data, bytes, at);
      };
      m.xWrite = [](sqlite3_file *f, const void *data, int bytes,
                    sqlite3_int64 at) {
        if (int code = current()->fault(current()->code)) {
          // A disk that fills up takes a part of what is written.
          (void)on(f)->xWrite(File::of(f)->real(), data, bytes / 2, at);
          return code;
        }
        return on(f)->xWrite(File::of(f)->real(), data, bytes, at);
      };
      m.xTruncate = [](sqlite3_file *f, sqlite3_int64 size) {
        if (int code = current()->fault(SQLITE_IOERR_TRUNCATE))
          return code;
        return on(f)->xTruncate(File::of(f)->real(), size);
      };
      m.xSync = [](sqlite3_file *, int) {
        if (int code = current()->fault(SQLITE_IOERR_FSYNC))
          return code;
        return SQLITE_OK; // nobody pulls the plug, and waiting is slow
      };
      m.xFileSize = [](sqlite3_file *f, sqlite3_int64 *size) {
        if (int code = current()->fault(SQLITE_IOERR_FSTAT))
          return code;
        return on(f)->xFileSize(File::of(f)->real(), size);
      };
      m.xLock = [](sqlite3_file *f, int lock) {
        if (int code = current()->fault(SQLITE_IOERR_LOCK))
          return code;
        return on(f)->xLock(File::of(f)->real(), lock);
      };
      m.xUnlock = [](sqlite3_file *f, int lock) {
        return on(f)->xUnlock(File::of(f)->real(), lock);
      };
      m.xCheckReservedLock = [](sqlite3_file *f, int *held) {
        return on(f)->xCheckReservedLock(File::of(f)->real(), held);
      };
      m.xFileControl = [](sqlite3_file *f, int op, void *argument) {
        return on(f)->xFileControl(File::of(f)->real(), op, argument);
      };
      m.xSectorSize = [](sqlite3_file *f) {
        return on(f)->xSectorSize(File::of(f)->real());
      };
      m.xDeviceCharacteristics = [](sqlite3_file *f) {
        return on(f)->xDeviceCharacteristics(File::of(f)->real());
      };
      return m;
    }();
    return &table;
  }
  static const sqlite3_io_methods *on(sqlite3_file *file) {
    return File::of(file)->real()->pMethods;
  }

  sqlite3_vfs *base;
  sqlite3_vfs vfs;
  int left = 0, code = SQLITE_FULL, failed = 0;
  bool sticky = false;
};

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_PACKAGE_FAULTYVFS_H

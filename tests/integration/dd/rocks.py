"""Damaging a store on purpose: puts bytes under a key of a closed store, past everything that dedupd checks.

Uses RocksDB's C interface through ctypes. No merge operator is set, so keys are written and never read here.
"""
import ctypes
import glob
import struct

MONTH = 3  # the number of the period kind in a key


def month_ordinal(year, month):
    return year * 12 + month - 1


def key_of(ordinal, scene, user, kind=MONTH):
    scene, user = scene.encode(), user.encode()
    return struct.pack(">BIB", kind, ordinal, len(scene)) + scene + bytes([len(user)]) + user


def load():
    """Whichever version of the library the machine has; its functions used here have not changed since 5.x."""
    names = glob.glob("/usr/lib/*/librocksdb.so.*.*") + glob.glob("/usr/lib/librocksdb.so.*.*")
    lib = ctypes.CDLL(sorted(names)[0])
    for name in ("rocksdb_options_create", "rocksdb_writeoptions_create", "rocksdb_open_column_families",
                 "rocksdb_list_column_families", "rocksdb_flushoptions_create"):
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


def check(err):
    if err.value:
        raise RuntimeError(err.value.decode())


def put(path, pairs, family=b"default"):
    """Writes (key, value) pairs into the store at path, which no process may have open."""
    lib = load()
    options = ctypes.c_void_p(lib.rocksdb_options_create())
    lib.rocksdb_options_set_disable_auto_compactions(options, 1)
    err = ctypes.c_char_p()
    n = ctypes.c_size_t()
    listed = ctypes.c_void_p(lib.rocksdb_list_column_families(options, path.encode(), ctypes.byref(n),
                                                             ctypes.byref(err)))
    check(err)
    names = ctypes.cast(listed, ctypes.POINTER(ctypes.c_char_p))
    each = (ctypes.c_void_p * n.value)(*[options.value] * n.value)
    handles = (ctypes.c_void_p * n.value)()
    db = ctypes.c_void_p(lib.rocksdb_open_column_families(options, path.encode(), ctypes.c_int(n.value), names, each,
                                                         handles, ctypes.byref(err)))
    check(err)
    write = ctypes.c_void_p(lib.rocksdb_writeoptions_create())
    of = {names[i]: ctypes.c_void_p(handles[i]) for i in range(n.value)}
    for key, value in pairs:
        lib.rocksdb_put_cf(db, write, of[family], key, ctypes.c_size_t(len(key)), value, ctypes.c_size_t(len(value)),
                           ctypes.byref(err))
        check(err)
    for handle in of.values():
        lib.rocksdb_column_family_handle_destroy(handle)
    lib.rocksdb_close(db)

"""A closed store past everything that dedupd checks: puts bytes under a key, lists the keys that are there.

Uses RocksDB's C interface through ctypes. The store's merge operator is not here, so values are written and never read.
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


def keys(path):
    """Every key that is there, of all families; a merge operator that accepts any value stands in for the real one."""
    lib = load()
    for name in ("rocksdb_open_for_read_only_column_families", "rocksdb_readoptions_create",
                 "rocksdb_create_iterator_cf", "rocksdb_iter_key"):
        getattr(lib, name).restype = ctypes.c_void_p
    options = ctypes.c_void_p(lib.rocksdb_options_create())
    lib.rocksdb_options_set_uint64add_merge_operator(options)
    err, n = ctypes.c_char_p(), ctypes.c_size_t()
    listed = ctypes.c_void_p(lib.rocksdb_list_column_families(options, path.encode(), ctypes.byref(n),
                                                             ctypes.byref(err)))
    check(err)
    names = ctypes.cast(listed, ctypes.POINTER(ctypes.c_char_p))
    handles = (ctypes.c_void_p * n.value)()
    db = ctypes.c_void_p(lib.rocksdb_open_for_read_only_column_families(
        options, path.encode(), ctypes.c_int(n.value), names, (ctypes.c_void_p * n.value)(*[options.value] * n.value),
        handles, ctypes.c_ubyte(0), ctypes.byref(err)))
    check(err)
    read = ctypes.c_void_p(lib.rocksdb_readoptions_create())
    found = []
    for handle in handles:
        it = ctypes.c_void_p(lib.rocksdb_create_iterator_cf(db, read, ctypes.c_void_p(handle)))
        lib.rocksdb_iter_seek_to_first(it)
        while lib.rocksdb_iter_valid(it) & 255:
            size = ctypes.c_size_t()
            found.append(ctypes.string_at(lib.rocksdb_iter_key(it, ctypes.byref(size)), size.value))
            lib.rocksdb_iter_next(it)
        lib.rocksdb_iter_get_error(it, ctypes.byref(err))
        check(err)
        lib.rocksdb_iter_destroy(it)
    for handle in handles:
        lib.rocksdb_column_family_handle_destroy(ctypes.c_void_p(handle))
    lib.rocksdb_close(db)
    return found

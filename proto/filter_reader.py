#!/usr/bin/python3
"""Reads an exported filter set and tests candidates against it, with nothing but Python's standard library.

This is the law of proto/storage.md ("Filter set") in its plainest form: for other services that want to test locally
what GET /users/{user}/filter gave them, and for tests of dedupd itself. It is not fast.

    export = requests.get(admin + "/users/u1/filter?scene=push&period=2026-11").json()
    reader = FilterSet.from_export(export)
    [c for c in candidates if not reader.seen(c)]

    $ curl -s localhost:8081/users/u1/filter | python3 proto/filter_reader.py article-1 42
    article-1   seen
    42          -
"""
import base64
import json
import struct
import sys

# ---- XXH3 with 64 bits (the specification is part of xxHash, https://xxhash.com) ----

M64 = 2**64 - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u32(b, at):
    return int.from_bytes(b[at:at + 4], "little")


def u64(b, at):
    return int.from_bytes(b[at:at + 8], "little")


def swap(value, size):
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def rotl(x, n):
    return (x << n | x >> (64 - n)) & M64


def fold(a, b):
    product = (a & M64) * (b & M64)
    return (product ^ product >> 64) & M64


def avalanche(h):
    h = (h ^ h >> 37) * MX1 & M64
    return h ^ h >> 32


def avalanche64(h):
    h = (h ^ h >> 33) * P64_2 & M64
    h = (h ^ h >> 29) * P64_3 & M64
    return h ^ h >> 32


def upto16(b, seed):
    n = len(b)
    if n > 8:
        low = u64(b, 0) ^ (u64(SECRET, 24) ^ u64(SECRET, 32)) + seed & M64
        high = u64(b, n - 8) ^ (u64(SECRET, 40) ^ u64(SECRET, 48)) - seed & M64
        return avalanche(n + swap(low, 8) + high + fold(low, high) & M64)
    if n > 3:
        seed ^= swap(seed & 0xffffffff, 4) << 32
        h = u32(b, n - 4) + (u32(b, 0) << 32) ^ (u64(SECRET, 8) ^ u64(SECRET, 16)) - seed & M64
        h = (h ^ rotl(h, 49) ^ rotl(h, 24)) * MX2 & M64
        h = (h ^ (h >> 35) + n) * MX2 & M64
        return h ^ h >> 28
    if n > 0:
        word = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        return avalanche64(word ^ (u32(SECRET, 0) ^ u32(SECRET, 4)) + seed & M64)
    return avalanche64(seed ^ u64(SECRET, 56) ^ u64(SECRET, 64))


def mix16(b, at, secret_at, seed):
    return fold(u64(b, at) ^ (u64(SECRET, secret_at) + seed & M64),
                u64(b, at + 8) ^ (u64(SECRET, secret_at + 8) - seed & M64))


def upto240(b, seed):
    n = len(b)
    h = n * P64_1
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            h += mix16(b, 16 * i, 32 * i, seed) + mix16(b, n - 16 * (i + 1), 32 * i + 16, seed)
        return avalanche(h & M64)
    for i in range(8):
        h += mix16(b, 16 * i, 16 * i, seed)
    h = avalanche(h & M64)
    for i in range(8, n // 16):
        h += mix16(b, 16 * i, 16 * (i - 8) + 3, seed)
    return avalanche(h + mix16(b, n - 16, 136 - 17, seed) & M64)


def long(b, seed):
    secret = b"".join(struct.pack("<QQ", u64(SECRET, i) + seed & M64, u64(SECRET, i + 8) - seed & M64)
                      for i in range(0, 192, 16))
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]

    def accumulate(at, secret_at):
        for i in range(8):
            value = u64(b, at + 8 * i)
            key = value ^ u64(secret, secret_at + 8 * i)
            acc[i ^ 1] = acc[i ^ 1] + value & M64
            acc[i] = acc[i] + (key & 0xffffffff) * (key >> 32) & M64

    n = len(b)
    for stripe in range((n - 1) // 64):
        accumulate(64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15:
            for i in range(8):
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ u64(secret, 128 + 8 * i)) * P32_1 & M64
    accumulate(n - 64, 192 - 64 - 7)
    h = n * P64_1
    for i in range(4):
        h += fold(acc[2 * i] ^ u64(secret, 11 + 16 * i), acc[2 * i + 1] ^ u64(secret, 19 + 16 * i))
    return avalanche(h & M64)


def xxh3(b, seed=0):
    return upto16(b, seed) if len(b) <= 16 else upto240(b, seed) if len(b) <= 240 else long(b, seed)


# ---- the filter set ----

KINDS = {1: "bloom", 2: "counting", 3: "cuckoo", 4: "compact"}
STEP = 0x9e3779b97f4a7c15


class Corrupt(ValueError):
    """The bytes are not a filter set, or not a whole one."""


def mix(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M64
    x = (x ^ x >> 27) * 0x94d049bb133111eb & M64
    return x ^ x >> 31


def upper(h, n):
    return (h >> 32) * n >> 32


def lower(h, n):
    return (h & 0xffffffff) * n >> 32


def bits(b, at, n):
    """n bits from bit `at` on, the lowest first."""
    first, last = at // 8, (at + n + 7) // 8
    return int.from_bytes(b[first:last], "little") >> at % 8 & (1 << n) - 1


class Layer:
    def __init__(self, blob, at):
        if at + 16 > len(blob):
            raise Corrupt("a layer's header is cut")
        self.kind, self.k, self.seed, self.low, self.capacity, self.count, self.units = struct.unpack_from(
            "<BBBBIII", blob, at)
        if self.kind not in KINDS or not 1 <= self.k <= 64:
            raise Corrupt("an unknown kind of layer")
        size = self.size()
        self.body = blob[at + 16:at + 16 + size]
        if len(self.body) != size:
            raise Corrupt("a layer is cut")

    def size(self):
        if self.kind == 1:
            return (self.units + 7) // 8
        if self.kind == 2:
            return (self.units + 1) // 2
        if self.kind == 3:
            return (self.units * 4 * self.k + 7) // 8
        if self.low > self.k:
            raise Corrupt("more low bits than bits")
        zeros = 1 << self.k - self.low
        return 4 * ((zeros - 1) // 128) + (self.count * self.low + 7) // 8 + (self.count + zeros + 7) // 8

    def hash(self, fp, i):
        return mix(fp + (64 * self.seed + i + 1) * STEP & M64)

    def probes(self, fp):
        for probe in range(self.k):
            h = self.hash(fp, probe // 2)
            yield lower(h, self.units) if probe & 1 else upper(h, self.units)

    def times(self, fp):
        """How often the item was added, as far as the layer knows."""
        return (self.bloom, self.counting, self.cuckoo, self.compact)[self.kind - 1](fp)

    def bloom(self, fp):
        return int(all(self.body[p // 8] >> p % 8 & 1 for p in self.probes(fp)))

    def counting(self, fp):
        return min(self.body[p // 2] >> 4 * (p & 1) & 15 for p in self.probes(fp))

    def cuckoo(self, fp):
        h = self.hash(fp, 0)
        tag = (h & 0xffffffff) >> 32 - self.k or 1
        first = upper(h, self.units)
        second = (upper(mix(tag), self.units) - first) % self.units
        return int(any(bits(self.body, (4 * bucket + place) * self.k, self.k) == tag
                       for bucket in (first, second) for place in range(4)))

    def compact(self, fp):
        return int(fp >> 32 - self.k in self.entries())

    def entries(self):
        """Decoded anew each time: this reader is for clarity."""
        zeros = 1 << self.k - self.low
        low_at = 4 * ((zeros - 1) // 128)
        upper_at = low_at + (self.count * self.low + 7) // 8
        found, value = set(), 0
        for at in range(self.count + zeros):
            if self.body[upper_at + at // 8] >> at % 8 & 1:
                low = bits(self.body, 8 * low_at + len(found) * self.low, self.low) if self.low else 0
                found.add(value << self.low | low)
            else:
                value += 1
        return found


class FilterSet:
    def __init__(self, blob, seed):
        """blob: bytes of the set, empty for the empty set; seed: the user's."""
        self.seed, self.layers, self.list, self.items, self.kind, self.damaged = seed, [], [], 0, None, False
        if blob:
            self.read(blob)

    @classmethod
    def from_export(cls, export):
        """From the JSON object that GET /users/{user}/filter answers."""
        return cls(base64.b64decode(export["blob"]), int(export["seed"], 16))

    def read(self, blob):
        if len(blob) < 32 or blob[:2] != b"DF" or blob[2] != 1:
            raise Corrupt("not a filter set of version 1")
        if xxh3(blob[:-8]) != u64(blob, len(blob) - 8):
            raise Corrupt("the checksum is wrong")
        flags, layers = blob[3], blob[7]
        self.kind = KINDS.get(flags & 7)
        self.damaged = bool(flags & 16)
        self.items = u32(blob, 8)
        at = 24
        for _ in range(layers):
            layer = Layer(blob[:-8], at)
            self.layers.append(layer)
            at += 16 + len(layer.body)
        if self.kind is None or (len(blob) - 8 - at) % 4:
            raise Corrupt("not whole")
        self.list = [u32(blob, i) for i in range(at, len(blob) - 8, 4)]

    def fingerprint(self, item):
        """item: str, bytes or int."""
        text = item if isinstance(item, bytes) else str(item).encode()
        return xxh3(text, self.seed) >> 32

    def times(self, item):
        """How often the item was recorded: counting sets up to 15 (at least), others 0 or 1."""
        fp = self.fingerprint(item)
        n = self.list.count(fp) + sum(layer.times(fp) for layer in self.layers)
        return n if self.kind == "counting" else min(n, 1)

    def seen(self, item):
        return self.times(item) > 0


def main(argv):
    reader = FilterSet.from_export(json.load(sys.stdin))
    width = max(map(len, argv), default=0)
    for item in argv:
        print("%-*s   %s" % (width, item, "seen" if reader.seen(item) else "-"))


if __name__ == "__main__":
    main(sys.argv[1:])

"""flax.serialization: nested maps in msgpack, with arrays as extension type 1 (shape, type, bytes).

Format: https://github.com/msgpack/msgpack/blob/master/spec.md and flax/serialization.py. The file is mapped, and arrays
stay where they are.
"""

from __future__ import annotations

import mmap
import struct
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, of_tree
from traindx_tools.on_weights.tensor import STORED, InFile, InMemory, Tensor, fits

MOST_ITEMS = 2_000_000
DEEPEST = 60
_CHUNKED = "__msgpack_chunked_array__"


def is_msgpack(head: bytes) -> bool:
    """Whether the first bytes are a map whose first key is text: nothing else of flax begins otherwise."""
    if not head:
        return False
    first, rest = head[0], head[1:]
    if first in (0xDE, 0xDF):
        rest = rest[2 if first == 0xDE else 4:]
    elif not 0x81 <= first <= 0x8F:
        return False
    if not rest or not (0xA1 <= rest[0] <= 0xBF or rest[0] == 0xD9):
        return False
    length = rest[0] & 0x1F if rest[0] != 0xD9 else rest[1]
    key = rest[1: 1 + length] if rest[0] != 0xD9 else rest[2: 2 + length]
    return len(key) == length and all(32 <= c < 127 for c in key)


def read(path: str) -> Checkpoint:
    """The tree of a file. Raises UnreadableInput."""
    try:
        with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(data, path)
            tree = reader.value(0)
            if reader.at != len(data):
                raise UnreadableInput(f"{path}: {len(data) - reader.at:,} bytes behind the end of its msgpack value")
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, TypeError) as error:
        raise UnreadableInput(f"{path}: no whole msgpack value ({type(error).__name__})") from None
    if not isinstance(tree, dict):
        raise UnreadableInput(f"{path}: a msgpack value that is no map of tensors")
    return of_tree(path, "msgpack", tree)


class _Reader:
    """Reads one value after the other; `base`: where in the file the data begins."""

    def __init__(self, data: Any, path: str, base: int = 0) -> None:
        self.data, self.path, self.base = data, path, base
        self.at, self.items = 0, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise IndexError
        self.at += count
        return bytes(self.data[self.at - count: self.at])

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, depth: int) -> Any:
        self.items += 1
        if self.items > MOST_ITEMS or depth > DEEPEST:
            raise UnreadableInput(f"{self.path}: refused: more than {MOST_ITEMS:,} values or {DEEPEST} levels")
        code = self.take(1)[0]
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        if code < 0xC0:
            count = code & (0x1F if code >= 0xA0 else 0x0F)
            return self._sized(("map", "list", "text")[min(2, (code - 0x80) >> 4)], count, depth)
        return self._long(code, depth)

    def _long(self, code: int, depth: int) -> Any:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if code in _SIZED:
            kind, form = _SIZED[code]
            return self._sized(kind, int(form) if form.isdigit() else self.number(form), depth)
        raise ValueError(code)

    def _sized(self, kind: str, count: int, depth: int) -> Any:
        if kind == "text":
            return self.take(count).decode("utf-8", "replace")
        if kind == "bytes":
            return self.take(count)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(count)]
        if kind == "map":
            return self._map(count, depth)
        return self._extension(count)

    def _map(self, count: int, depth: int) -> Any:
        made: dict[str, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, (str, int)):
                raise TypeError
            made[str(key)] = self.value(depth + 1)
        return _joined(made, self.path) if _CHUNKED in made else made

    def _extension(self, count: int) -> Any:
        kind = self.number("b")
        start = self.at
        if kind not in (1, 3):
            return self.take(count) and None
        inner = _Reader(memoryview(self.data)[start: start + count], self.path, self.base + start)
        try:
            made = inner.array()
        finally:
            inner.data.release()
        self.take(0)
        self.at = start + count
        if self.at > len(self.data):
            raise IndexError
        return made

    def array(self) -> Tensor:
        """A list of shape, type and bytes, of which the last are not read."""
        if self.take(1)[0] != 0x93:
            raise ValueError
        shape, name = self.value(1), self.value(1)
        code = self.take(1)[0]
        if code not in (0xC4, 0xC5, 0xC6):
            raise ValueError
        length = self.number(_SIZED[code][1])
        dtype = str(name)
        if dtype not in STORED or not isinstance(shape, list) or length > len(self.data) - self.at or not fits(
                tuple(shape), dtype, length):
            raise UnreadableInput(f"{self.path}: an array of {dtype[:20]} and shape {shape!s:.60} that does not fit "
                                  f"its {length:,} bytes")
        place = self.base + self.at
        return Tensor("", dtype, tuple(shape), InFile(self.path, place), self.path, (self.path, place))


def _joined(made: dict[str, Any], path: str) -> Tensor:
    """An array that flax cut into pieces of at most a gigabyte."""
    pieces = [made["chunks"][k] for k in sorted(made["chunks"], key=int)]
    shape = tuple(made["shape"][k] for k in sorted(made["shape"], key=int))
    if not pieces or not all(isinstance(p, Tensor) for p in pieces):
        raise ValueError
    total = sum(p.nbytes for p in pieces)
    if not fits(shape, pieces[0].dtype, total) or total > 256 * 2**20:
        raise UnreadableInput(f"{path}: an array in {len(pieces)} pieces of {total:,} bytes is not joined")
    data = b"".join(part.tobytes() for p in pieces for part in p.source.parts(0, p.nbytes, 2**20))
    return Tensor("", pieces[0].dtype, shape, InMemory(data), path)


_CONSTANTS: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h",
            0xD2: ">i", 0xD3: ">q"}  # fmt: skip
_SIZED = {0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"), 0xC7: ("ext", ">B"),
          0xC8: ("ext", ">H"), 0xC9: ("ext", ">I"), 0xD4: ("ext", "1"), 0xD5: ("ext", "2"), 0xD6: ("ext", "4"),
          0xD7: ("ext", "8"), 0xD8: ("ext", "16"), 0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
          0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}  # fmt: skip

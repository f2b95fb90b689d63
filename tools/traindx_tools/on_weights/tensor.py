"""A tensor in a file: its name, type and shape, and its values in chunks that are read when they are asked for.

Nothing is mapped or loaded as a whole: a file larger than memory is read through buffers of `CHUNK` bytes. Types that
numpy lacks (bfloat16, the 8-bit floats) are widened to float32.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import UnreadableInput

CHUNK = 2**19
"""Bytes read at a time: they stay in a core's own cache (1 to 2 MiB) over the passes that each chunk gets."""
_OF_NARROW = 2**18
"""Those of types that are widened to float32 before the passes."""
MOST_LOADED = 256 * 2**20
"""Bytes of one tensor that may be held in memory."""

STORED: Mapping[str, str] = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "float8_e4m3fn": "|u1",
    "float8_e5m2": "|u1", "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "|i1", "uint8": "|u1",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "|u1", "complex64": "<c8", "complex128": "<c16",
}  # fmt: skip
"""How each type is stored, little-endian, as numpy writes it."""
FLOATS = frozenset({"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})
_EXPONENT_BITS = {"float8_e4m3fn": (4, 7), "float8_e5m2": (5, 15)}


class Damaged(UnreadableInput):
    """A file is of a known format and not whole: it was cut, or parts of it are missing."""


class Bytes(Protocol):
    """Where a tensor's bytes are."""

    def parts(self, start: int, length: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """The bytes from `start` on, `size` at a time; a part is valid until another is asked for, and be there none.

        Raises UnreadableInput.
        """


class _Spare(threading.local):
    """A buffer that a reader of this thread is done with: new memory costs a page fault for each of its pages."""

    def __init__(self) -> None:
        self.buffer: NDArray[np.uint8] | None = None


_spare = _Spare()


def _taken(size: int) -> NDArray[np.uint8]:
    """A buffer of at least this many bytes that nobody else reads into."""
    found, _spare.buffer = _spare.buffer, None
    return found if found is not None and found.size >= size else np.empty(size, np.uint8)


def _given_back(buffer: NDArray[np.uint8]) -> None:
    """Only by readers that came to their end: one that was left halfway may still be looked at."""
    if buffer.size <= CHUNK and (_spare.buffer is None or _spare.buffer.size < buffer.size):
        _spare.buffer = buffer


@dataclass(frozen=True)
class InFile:
    """Bytes that lie in a file as they are."""

    path: str
    offset: int

    def parts(self, start: int, length: int, size: int) -> Iterator[NDArray[np.uint8]]:
        with open(self.path, "rb", buffering=0) as stream:
            stream.seek(self.offset + start)
            buffer = _taken(min(size, length))
            while length > 0:
                part = buffer[:min(size, length)]
                if stream.readinto(part.data) != part.size:
                    raise Damaged(f"{self.path}: ends inside a tensor: it was not written whole")
                length -= part.size
                yield part
            _given_back(buffer)


@dataclass(frozen=True)
class InMemory:
    """Bytes that were read already: small, or packed in the file."""

    data: bytes

    def parts(self, start: int, length: int, size: int) -> Iterator[NDArray[np.uint8]]:
        for at in range(start, start + length, size):
            yield np.frombuffer(self.data, np.uint8, min(size, start + length - at), at)


@dataclass(frozen=True)
class Concatenated:
    """Bytes of several places behind each other: the shards of a tensor along its first axis."""

    places: tuple[tuple[Bytes, int], ...]
    """Each with its number of bytes."""

    def parts(self, start: int, length: int, size: int) -> Iterator[NDArray[np.uint8]]:
        for source, own in self.places:
            here = min(length, own - start)
            if here > 0:
                yield from source.parts(start, here, size)
                length -= here
            start = max(0, start - own)


@dataclass(frozen=True)
class Turned:
    """Values that lie with the first axis as the quickest (Fortran's order), given with the last one as it."""

    source: Bytes
    shape: tuple[int, ...]
    """As it is meant, and not as it lies."""
    itemsize: int

    def parts(self, start: int, length: int, size: int) -> Iterator[NDArray[np.uint8]]:
        whole = _turned(self)
        for at in range(start, start + length, size):
            yield whole[at:at + min(size, start + length - at)]


@lru_cache(maxsize=2)
def _turned(one: Turned) -> NDArray[np.uint8]:
    """All bytes of such an array in the usual order; the last two are kept."""
    length = math.prod(one.shape) * one.itemsize
    data = np.concatenate([p.copy() for p in one.source.parts(0, length, CHUNK)] or [np.zeros(0, np.uint8)])
    lying = data.reshape(*reversed(one.shape), one.itemsize)
    axes = (*reversed(range(len(one.shape))), len(one.shape))
    return np.ascontiguousarray(lying.transpose(axes)).reshape(-1)


@dataclass(frozen=True)
class Tensor:
    """One tensor as a file names it. `shape`: as stored; `dtype`: a key of `STORED`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: Bytes
    file: str
    storage: tuple[str, int] | None = None
    """Which bytes these are, where several names may share them."""
    key: str = ""
    """The whole name in the file, where `name` is that within a part of it."""

    @cached_property
    def size(self) -> int:
        """How many values."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return np.dtype(STORED[self.dtype]).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.size * self.itemsize

    @property
    def floating(self) -> bool:
        """Whether the values are real numbers."""
        return self.dtype in FLOATS

    @property
    def matrix(self) -> bool:
        """Whether at least two axes are longer than one: weights, and neither biases nor scales."""
        return len(self.shape) >= 2 and sum(n > 1 for n in self.shape) >= 2

    @property
    def rows(self) -> int:
        """Length of the first axis of a matrix; a vector is one row."""
        return self.shape[0] if len(self.shape) >= 2 and self.size else 1

    def raw(self, rows: int | None = None) -> Iterator[NDArray[np.generic]]:
        """The values as stored, flat, at most `CHUNK` bytes at a time. `rows`: only as many of the first."""
        most = CHUNK if self.itemsize >= 4 else _OF_NARROW
        width = self.nbytes // max(1, self.rows)
        end = self.nbytes if rows is None else rows * width
        whole = max(1, most // max(1, width)) * width
        spans = [(0, end)] if width <= most else [(at, width) for at in range(0, end, width)]  # no part of two rows
        for at, length in spans:
            for part in self.source.parts(at, length, min(whole, most) or 1):
                yield part.view(STORED[self.dtype])

    def row(self, index: int) -> bytes:
        """The bytes of one row."""
        width = self.nbytes // max(1, self.rows)
        return b"".join(p.tobytes() for p in self.source.parts(index * width, width, CHUNK))

    def load(self, most: int = MOST_LOADED) -> NDArray[np.floating] | NDArray[np.integer]:
        """All values in memory, as numbers, in the tensor's shape. Raises UnreadableInput above `most` bytes."""
        if self.nbytes > most:
            raise UnreadableInput(f"{self.file}: {self.name} has {self.nbytes:,} bytes, more than the {most:,} held")
        parts = [as_numbers(p, self.dtype).copy() for p in self.raw()]
        flat = np.concatenate(parts) if parts else np.empty(0, np.float32)
        return flat.reshape(self.shape)


def first_rows(tensor: Tensor, most: int) -> NDArray[np.floating] | NDArray[np.integer]:
    """The first rows, as numbers, with about `most` values together; all of a smaller tensor. Raises
    UnreadableInput."""
    if tensor.size <= most or tensor.rows < 2:
        return tensor.load()
    rows = min(tensor.rows, max(1, most * tensor.rows // tensor.size))
    parts = [as_numbers(p, tensor.dtype).copy() for p in tensor.raw(rows)]
    return np.concatenate(parts).reshape(rows, *tensor.shape[1:])


@lru_cache(maxsize=4)
def _eight_bit(dtype: str) -> NDArray[np.float32]:
    """The value of each of the 256 codes (Micikevicius et al., FP8 Formats for Deep Learning, 2022)."""
    bits, bias = _EXPONENT_BITS[dtype]
    mantissa = 7 - bits
    code = np.arange(256)
    exponent, fraction = (code >> mantissa) & (2**bits - 1), (code & (2**mantissa - 1)) / 2**mantissa
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if dtype == "float8_e4m3fn":
        value = np.where(code & 0x7F == 0x7F, np.nan, value)
    else:
        top = exponent == 2**bits - 1
        value = np.where(top, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(code >= 128, -value, value).astype(np.float32)


def as_numbers(stored: NDArray[np.generic], dtype: str) -> NDArray[np.floating] | NDArray[np.integer]:
    """Values of a stored chunk as numpy numbers; float16 and narrower as float32."""
    if dtype == "bfloat16":
        wide: NDArray[np.uint32] = np.left_shift(stored, 16, dtype=np.uint32)
        return wide.view(np.float32)
    if dtype in _EXPONENT_BITS:
        table: NDArray[np.float32] = _eight_bit(dtype)
        return np.asarray(table[stored], np.float32)
    if dtype == "float16":
        return _from_half(stored)
    return stored  # type: ignore[return-value]


_NO_NUMBER = 0x7C00
"""The code of infinity in float16; those above are NaN (IEEE 754)."""
_SUBNORMAL, _UP = np.float32(2.0**-149), np.float32(2.0**112)
"""The smallest float32, and what the exponents of the two types are apart."""


def _from_half(stored: NDArray[np.generic]) -> NDArray[np.float32]:
    """float16 as float32: the bits are moved into place, and one exact product corrects the exponent.

    numpy's own cast takes value by value, eight times slower; it is left infinity and NaN, and threads in which
    subnormal numbers are taken for zero.
    """
    codes = stored.view(np.int16)
    if (codes & np.int16(0x7FFF)).max(initial=0) >= _NO_NUMBER or not _SUBNORMAL * np.float32(1):
        return stored.astype(np.float32)
    bits = codes.astype(np.int32)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, np.int32(-0x70002000), out=bits)
    values: NDArray[np.float32] = bits.view(np.float32)
    values *= _UP
    return values


def fits(shape: tuple[int, ...], dtype: str, available: int) -> bool:
    """Whether a tensor of this shape needs no more bytes than there are; negative and absurd axes do not."""
    return (len(shape) <= 32 and all(0 <= n <= 2**48 for n in shape)
            and math.prod(shape) * np.dtype(STORED[dtype]).itemsize <= available)


def size_of(path: str) -> int:
    """Bytes of a file. Raises UnreadableInput."""
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error

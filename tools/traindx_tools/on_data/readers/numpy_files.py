"""npy and npz, with `allow_pickle` off: headers are parsed as literals, and what they claim is held against the bytes.

A stored npz member is mapped like an npy file; a packed one is unpacked in bounds. Objects, absurd shapes and bombs are
refused before anything is allocated for them.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.live.step_file import TOLD
from traindx_tools.on_data.column import Array, Damage
from traindx_tools.on_data.readers.arrays import shards_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.stated import of_arrays

ABSURD = 64
"""How many times more bytes a header may claim than there are before it is refused instead of called cut short."""
MOST_MEMBERS = 10_000
LONGEST_KEPT = 4096
"""Bytes of a header of an array within another file, below which it is parsed once."""
BOMB = 200
"""Packed bytes become at most so many where the whole is larger than the bound: deflate itself ends at 1,032."""


def read_npy(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The array of an npy file, mapped. Raises UnreadableInput."""
    from traindx_tools.on_data.names import words_only

    size = path.stat().st_size
    with path.open("rb") as stream:
        shape, dtype, fortran, start = _header(stream)
    array, damage = _mapped(path, start, size - start, shape, dtype, fortran)
    field = words_only(path.stem) or "values"
    return shards_of(_fields(field, array), name, "npy", bounds, damage=damage)


def _fields(name: str, array: Array) -> dict[str, Array]:
    """A structured array as its fields."""
    if array.dtype.names:
        return {n: array[n] for n in array.dtype.names}
    return {name: array}


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Shape, dtype, order and the place where the data begin. Raises UnreadableInput."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
    except (ValueError, EOFError, MemoryError, RecursionError, SyntaxError) as error:
        raise UnreadableInput(f"the header of the array is damaged ({str(error)[:100]})") from None
    if dtype.hasobject:
        raise UnreadableInput("refused: it holds Python objects, which only unpickling could read")
    return shape, dtype, fortran, stream.tell()


def _held(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> tuple[tuple[int, ...], tuple[Damage, ...]]:
    """The shape that the bytes that are there can fill. Raises UnreadableInput for an absurd claim."""
    if min(shape, default=0) < 0:
        raise UnreadableInput("refused: the header claims a negative size")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed <= size:
        return shape, ()
    if not shape or claimed > ABSURD * max(size, 1):
        raise UnreadableInput(f"refused: the header claims {claimed:,} bytes and {size:,} are there")
    row = math.prod(shape[1:]) * dtype.itemsize
    rows = size // row
    told = Damage(
        f"the header says {shape[0]:,} rows and the file ends after {rows:,}", row=rows, records=shape[0] - rows
    )
    return (rows, *shape[1:]), (told,)


def _mapped(
    path: Path, start: int, size: int, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool
) -> tuple[Array, tuple[Damage, ...]]:
    held, damage = _held(shape, dtype, size)
    if math.prod(held) == 0:
        raise UnreadableInput("it holds no values")
    if fortran and damage:
        raise UnreadableInput("the file ends early, and its columns come one after another: no row is whole")
    return np.memmap(path, dtype, "r", start, held, "F" if fortran else "C"), damage


def read_npz(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The arrays of an npz file. Raises UnreadableInput, also for a zip archive without arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            _refuse_bomb(members, path.stat().st_size, bounds)
            if TOLD in archive.namelist():
                raise UnreadableInput("a step that `traindx run --snapshot` kept, and no data: traindx replay")
            if not members:
                raise UnreadableInput("a zip archive without arrays: not a data file that is read")
            read = {m.filename.removesuffix(".npy"): _member(archive, m, path, bounds) for m in members}
    except (
        zipfile.BadZipFile,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OverflowError,
        UnicodeDecodeError,
        struct.error,
        zlib.error,
    ) as error:
        raise Broken(f"the archive is damaged ({str(error)[:100]})") from None
    arrays = {n: a for n, (a, _) in read.items()}
    flat = {f: v for n, a in arrays.items() for f, v in _fields(n, a).items()}
    made = shards_of(flat, name, "npz", bounds, damage=tuple(d for _, told in read.values() for d in told))
    said = of_arrays(flat)
    return tuple(replace(s, stated=said) for s in made) if said else made


class Broken(UnreadableInput):
    """A file of a known format that is not whole: a finding, where what is refused is none."""


def _refuse_bomb(members: list[zipfile.ZipInfo], size: int, bounds: Bounds) -> None:
    total = sum(m.file_size for m in members)
    if len(members) > MOST_MEMBERS:
        raise UnreadableInput(f"refused: {len(members):,} members in one archive")
    if total > bounds.unpacked and total > BOMB * size:
        raise UnreadableInput(f"refused: a zip bomb, {size:,} bytes that would unpack to {total:,}")


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, bounds: Bounds
) -> tuple[Array, tuple[Damage, ...]]:
    with archive.open(member) as stream:
        shape, dtype, fortran, start = _header(stream)
        if member.compress_type == zipfile.ZIP_STORED and member.file_size > 2**20:
            return _mapped(path, _data_start(path, member) + start, member.file_size - start, shape, dtype, fortran)
        held, damage = _held(shape, dtype, member.file_size - start)
        most = math.prod(held) * dtype.itemsize
        data = stream.read(min(most, bounds.unpacked))
    if len(data) < most:
        row = max(1, math.prod(held[1:]) * dtype.itemsize)
        held = (len(data) // row, *held[1:])
        data = data[: held[0] * row]
    return np.frombuffer(data, dtype).reshape(held, order="F" if fortran else "C"), damage


def _data_start(path: Path, member: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: behind its local header (30 bytes, a name and extra fields)."""
    with path.open("rb") as stream:
        stream.seek(member.header_offset)
        head = stream.read(30)
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile("a member has no local header")
    return member.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")


@lru_cache(64)
def _header_in(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any], bool, int]:
    """Like `_header`; the thousands of arrays of an archive have the same one."""
    return _header(io.BytesIO(head))


def array_from(data: bytes) -> Array:
    """An array from the bytes of an npy file within another file. Raises UnreadableInput."""
    behind = 10 + int.from_bytes(data[8:10], "little") if data[6:8] == b"\1\0" else len(data)
    if behind <= len(data) and behind < LONGEST_KEPT:
        shape, dtype, fortran, start = _header_in(data[:behind])
    else:
        shape, dtype, fortran, start = _header(io.BytesIO(data))
    held, damage = _held(shape, dtype, len(data) - start)
    if damage:
        raise UnreadableInput(damage[0].what)
    return np.frombuffer(data, dtype, math.prod(held), start).reshape(held, order="F" if fortran else "C")

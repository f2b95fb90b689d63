"""npy and npz: arrays of numpy, without objects."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, of_tree
from traindx_tools.on_weights.formats.torch_zip import OF_DAMAGE, checked_members, member_bytes, offset_of
from traindx_tools.on_weights.tensor import (
    MOST_LOADED,
    STORED,
    Bytes,
    Damaged,
    InFile,
    InMemory,
    Tensor,
    Turned,
    fits,
    size_of,
)

NAMES = {v: k for k, v in STORED.items() if k not in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "bool")} | {
    "|b1": "bool", "<u2": "uint16", "|u1": "uint8", "|i1": "int8"}  # fmt: skip
MOST_HEADER = 10_000
MOST_TURNED = 2**26
"""Bytes of an array in Fortran's order up to which it is turned; a larger one is given as its transpose."""


def read_npy(path: str) -> Checkpoint:
    """One array. Raises UnreadableInput."""
    with open(path, "rb") as stream:
        dtype, shape, ordered = _header(stream, path)
        start = stream.tell()
    tensor = _tensor("array", path, dtype, shape, ordered, size_of(path) - start, InFile(path, start), (path, start))
    return of_tree(path, "npy", {"array": tensor})


def read_npz(path: str) -> Checkpoint:
    """The arrays of an archive; packed ones are unpacked where they are small. Raises UnreadableInput."""
    tensors, notes = {}, []
    try:
        with zipfile.ZipFile(path) as archive:
            for name, info in checked_members(archive, path).items():
                if not name.endswith(".npy"):
                    continue
                try:
                    tensors[name.removesuffix(".npy")] = _member(archive, info, path)
                except UnreadableInput as refused:
                    notes.append(str(refused).removeprefix(f"{path}: "))
    except OF_DAMAGE as error:
        raise Damaged(f"{path}: a damaged zip archive ({error})") from None
    if not tensors:
        raise UnreadableInput(f"{path}: no array could be read{': ' + notes[0] if notes else ''}")
    return of_tree(path, "npz", tensors, tuple(notes[:5]))


def read_folder(path: str, files: Sequence[str]) -> Checkpoint:
    """Arrays in files of their own, each by its file's name. Raises UnreadableInput where none is read."""
    tensors, notes = {}, []
    for file in files:
        try:
            (tensor,) = read_npy(file).tensors
            tensors[os.path.basename(file).removesuffix(".npy")] = tensor
        except UnreadableInput as refused:
            notes.append(str(refused))
    if not tensors:
        raise UnreadableInput(f"{path}: no array could be read: {notes[0] if notes else 'it is empty'}")
    return of_tree(path, "npy files", tensors, tuple(notes[:5]))


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> Tensor:
    if info.compress_type == zipfile.ZIP_STORED:
        begin = offset_of(archive, info, path)
        with open(path, "rb") as stream:
            stream.seek(begin)
            dtype, shape, ordered = _header(stream, path)
            start = stream.tell()
        return _tensor(info.filename, path, dtype, shape, ordered, info.file_size - (start - begin),
                       InFile(path, start), (path, start))
    data = member_bytes(archive, info, MOST_LOADED, path)
    whole = io.BytesIO(data)
    dtype, shape, ordered = _header(whole, path)
    rest = data[whole.tell():]
    return _tensor(info.filename, path, dtype, shape, ordered, len(rest), InMemory(rest), None)


def _header(stream: BinaryIO, path: str) -> tuple[np.dtype[np.generic], tuple[int, ...], bool]:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream, max_header_size=MOST_HEADER)
    except (ValueError, SyntaxError, TypeError, EOFError, RecursionError, MemoryError) as error:
        raise UnreadableInput(f"{path}: no header of a numpy array ({type(error).__name__})") from None
    return dtype, shape, not fortran


def _tensor(name: str, path: str, dtype: np.dtype[np.generic], shape: tuple[int, ...], ordered: bool, available: int,
            where: Bytes, storage: tuple[str, int] | None) -> Tensor:
    known = NAMES.get(dtype.str)
    if known is None:
        what = "Python objects, which only a pickle can load" if dtype.hasobject else f"the type {dtype.str}"
        raise UnreadableInput(f"{path}: refused: {name[:80]!r} holds {what}")
    if not fits(shape, known, available):
        raise UnreadableInput(f"{path}: {name[:80]!r} of shape {list(shape)[:8]} needs more than its {available:,} "
                              "bytes")
    if not ordered and len(shape) > 1:
        if math.prod(shape) * dtype.itemsize > MOST_TURNED:  # its transpose is what is stored, and read as it lies
            shape = tuple(reversed(shape))
        else:
            where, storage = Turned(where, shape, dtype.itemsize), None
    return Tensor(name, known, shape, where, path, storage)

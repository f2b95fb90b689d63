"""Plain tensors in a file of `torch.save`: a zip archive whose pickle is run by a machine that knows tensors alone.

`pickle.Unpickler` asks `find_class` for every name, and what it gets here are functions of this file that build a
record of a tensor. Any other name ends the reading: no code of the file, of torch or of another package is ever
called.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
import zipfile
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.arrays import shards_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.shard import Shard

MOST_PICKLE = 2**24
"""Bytes of the pickle: a million small tensors."""
_DTYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "|i1",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild(storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *rest: Any) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise UnreadableInput("refused: a tensor without a storage")
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


class _Reader(pickle.Unpickler):
    """Knows tensors, ordered dicts and storages; refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _DTYPES:
            return name
        raise UnreadableInput(
            f"refused: the pickle asks for {module[:40]}.{name[:40]}, which is no plain tensor; nothing of it was run"
        )

    def persistent_load(self, pid: Any) -> _Storage:
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and pid[1] in _DTYPES):
            raise UnreadableInput("refused: a storage of an unknown kind")
        return _Storage(str(pid[2]), _DTYPES[pid[1]])


def read_torch(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The tensors of a dict, a tuple or alone. Raises UnreadableInput."""
    try:
        with zipfile.ZipFile(path) as archive:
            index = next((n for n in archive.namelist() if n.endswith("/data.pkl") or n == "data.pkl"), None)
            if index is None:
                raise UnreadableInput("a zip archive without tensors")
            if archive.getinfo(index).file_size > MOST_PICKLE:
                raise UnreadableInput("refused: its pickle is larger than that of any data set")
            said = _Reader(io.BytesIO(archive.read(index))).load()
            tensors = _named(said)
            arrays = {k: _array(archive, path, index.removesuffix("data.pkl"), t, bounds) for k, t in tensors.items()}
    except (zipfile.BadZipFile, EOFError, UnicodeDecodeError, NotImplementedError, struct.error, zlib.error) as error:
        raise Broken(f"the archive is damaged ({str(error)[:100]})") from None
    except (
        pickle.UnpicklingError,
        AttributeError,
        IndexError,
        TypeError,
        ValueError,
        KeyError,
        RecursionError,
        MemoryError,
        OverflowError,
    ) as error:
        raise UnreadableInput(f"refused: no pickle of plain tensors ({type(error).__name__})") from None
    return shards_of(arrays, name, "pt", bounds)


def plain_values(path: Path) -> dict[str, Any]:
    """What the dict of a file holds besides tensors. Raises UnreadableInput and what zipfile and pickle raise."""
    with zipfile.ZipFile(path) as archive:
        index = next(n for n in archive.namelist() if n.endswith("/data.pkl") or n == "data.pkl")
        if archive.getinfo(index).file_size > MOST_PICKLE:
            return {}
        said = _Reader(io.BytesIO(archive.read(index))).load()
    return {str(k): v for k, v in said.items() if not isinstance(v, _Tensor)} if isinstance(said, dict) else {}


def _named(said: Any) -> dict[str, _Tensor]:
    if isinstance(said, _Tensor):
        return {"values": said}
    if isinstance(said, (list, tuple)) and said and all(isinstance(t, _Tensor) for t in said):
        return (
            {"inputs" if i == 0 else "labels" if i == 1 else f"field {i}": t for i, t in enumerate(said)}
            if len(said) <= 8
            else {f"field {i}": t for i, t in enumerate(said)}
        )
    if isinstance(said, dict):
        return {str(k): t for k, t in said.items() if isinstance(t, _Tensor)}
    raise UnreadableInput("holds no tensors")


def _array(archive: zipfile.ZipFile, path: Path, before: str, tensor: _Tensor, bounds: Bounds) -> Array:
    member = archive.getinfo(f"{before}data/{tensor.storage.key}")
    form = np.dtype(tensor.storage.dtype)
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)) if tensor.shape else 1
    if (
        tensor.offset < 0
        or min(tensor.strides, default=0) < 0
        or min(tensor.shape, default=0) < 0
        or (0 not in tensor.shape and (tensor.offset + span) * form.itemsize > member.file_size)
    ):
        raise UnreadableInput("refused: a tensor that reaches beyond its storage")
    size = max(member.file_size, math.prod(tensor.shape) * form.itemsize)  # an expanded one is small on disk
    if size > bounds.unpacked:
        raise UnreadableInput(f"a tensor of shape {tensor.shape}: larger than is read of one file")
    data = np.frombuffer(archive.read(member), form)[tensor.offset :]
    steps = tuple(s * form.itemsize for s in tensor.strides)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(data, tensor.shape, steps, writeable=False))

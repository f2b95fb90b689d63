"""PyTorch zip checkpoints (torch.save since 1.6): a pickle that describes tensors, and a member of bytes a storage.

Members are stored and not packed, so a tensor's bytes lie in the file as they are. What is packed, encrypted, larger
than it may be or named to lead elsewhere is refused. Nothing is extracted.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import DEEPEST, Checkpoint, of_tree
from traindx_tools.on_weights.tensor import MOST_LOADED, STORED, Damaged, InFile, InMemory, Tensor, fits
from traindx_tools.on_weights.tensor_pickle import Named, Strided, read_tensors

MOST_MEMBERS = 1_000_000
MOST_PICKLE = 256 * 2**20
"""Bytes of the pickle that describes the tensors; of a model with a million tensors it is about 200 MB."""
MOST_RATIO = 200
"""How much a packed member may grow: deflate of zeros reaches 1,032, of numbers hardly 20."""
OF_DAMAGE = (zipfile.BadZipFile, NotImplementedError, EOFError, UnicodeDecodeError, OverflowError, struct.error,
             zlib.error)
"""What `zipfile` raises of an archive with other bytes in it than were written."""
_LOCAL = struct.Struct("<4s5H3I2H")


def read(path: str) -> Checkpoint:
    """The checkpoint in a zip file. Raises UnreadableInput."""
    tree, notes = read_tree(path)
    return of_tree(path, "torch", tree, notes)


def read_tree(path: str, start: int = 0, length: int | None = None) -> tuple[Any, tuple[str, ...]]:
    """The containers in a zip file with tensors in them, and what a person should know.

    `start` and `length`: where the archive lies in the file; by default it is the file. Raises UnreadableInput.
    """
    try:
        with open(path, "rb") as stream:
            return _read_tree(path, Slice(stream, start, length) if start or length else stream, start)
    except OF_DAMAGE as error:
        raise Damaged(f"{path}: a damaged zip archive ({error}): it was cut or not written whole") from None
    except UnreadableInput as error:
        raise type(error)(str(error) if str(error).startswith(path) else f"{path}: {error}") from None


def _read_tree(path: str, stream: Any, base: int) -> tuple[Any, tuple[str, ...]]:
    with zipfile.ZipFile(stream) as archive:
        members = checked_members(archive, path)
        pickles = [n for n in members if n.endswith("/data.pkl") or n == "data.pkl"]
        if not pickles:
            raise UnreadableInput(f"{path}: a zip archive without data.pkl: no checkpoint of torch.save")
        data = member_bytes(archive, members[pickles[0]], MOST_PICKLE, path)
        root = pickles[0].removesuffix("data.pkl")
        if members.get(f"{root}byteorder") and member_bytes(archive, members[f"{root}byteorder"], 64, path) == b"big":
            raise UnreadableInput(f"{path}: written on a big-endian machine, which is not read")
        found = read_tensors(data)
        tree = _Storages(path, archive, members, f"{root}data/", base).resolved(found.value)
    unknown = ", ".join(n[:80] for n in found.unknown[:8])
    return tree, (f"names in its pickle that were not followed: {unknown}",) if unknown else ()


class Slice(io.RawIOBase):
    """A part of a file as a file of its own."""

    def __init__(self, stream: BinaryIO, start: int, length: int | None) -> None:
        self._stream, self._start = stream, start
        self._length = max(0, stream.seek(0, io.SEEK_END) - start) if length is None else length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence])
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self._length - self._at)
        self._stream.seek(self._start + self._at)
        data = self._stream.read(left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data


def checked_members(archive: zipfile.ZipFile, path: str) -> dict[str, zipfile.ZipInfo]:
    """The members by name. Raises UnreadableInput for names that lead out, encryption, too many of them."""
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise UnreadableInput(f"{path}: refused: {len(infos):,} members in one archive")
    for info in infos:
        if info.filename.startswith(("/", "\\")) or ".." in info.filename.replace("\\", "/").split("/"):
            raise UnreadableInput(f"{path}: refused: the member {info.filename[:80]!r} leads out of the archive")
        if info.flag_bits & 1:
            raise UnreadableInput(f"{path}: refused: the member {info.filename[:80]!r} is encrypted")
        if info.file_size > MOST_RATIO * max(info.compress_size, 4096):
            raise UnreadableInput(f"{path}: refused: the member {info.filename[:80]!r} says it unpacks from "
                                  f"{info.compress_size:,} to {info.file_size:,} bytes")
    return {i.filename: i for i in infos}


def member_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int, path: str) -> bytes:
    """The bytes of a member, not more than it says it has. Raises UnreadableInput."""
    if info.file_size > most:
        raise UnreadableInput(f"{path}: refused: {info.filename[:80]!r} has {info.file_size:,} bytes, the most that "
                              f"is read is {most:,}")
    with archive.open(info) as stream:
        data = stream.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise UnreadableInput(f"{path}: {info.filename[:80]!r} has {len(data):,} bytes and says {info.file_size:,}")
    return data


def offset_of(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> int:
    """Where the bytes of a member that is not packed begin in the file. Raises UnreadableInput."""
    stream = archive.fp
    assert stream is not None
    stream.seek(info.header_offset)
    head = stream.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
        raise Damaged(f"{path}: a damaged zip archive: no header of {info.filename[:80]!r}")
    *_, name, extra = _LOCAL.unpack(head)
    return info.header_offset + _LOCAL.size + int(name) + int(extra)


class _Storages:
    """Turns descriptions of tensors into tensors with a place."""

    def __init__(self, path: str, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], prefix: str,
                 base: int) -> None:
        self.path, self.archive, self.members, self.prefix, self.base = path, archive, members, prefix, base
        self.packed: dict[str, bytes] = {}
        self.seen: dict[int, Any] = {}
        self.open: set[int] = set()

    def resolved(self, node: Any, depth: int = 0) -> Any:
        """The same containers with tensors in them; what holds itself or lies too deep is left out."""
        if isinstance(node, Strided):
            return self._tensor(node)
        if not isinstance(node, (dict, list, tuple, Named)):
            return node
        if depth > DEEPEST or id(node) in self.open:
            return None
        if id(node) in self.seen:
            return self.seen[id(node)]
        self.open.add(id(node))
        if isinstance(node, Named):
            made: Any = self.resolved(node.state, depth + 1) if isinstance(node.state, dict) else None
        elif isinstance(node, dict):
            made = {k: self.resolved(v, depth + 1) for k, v in node.items()}
        else:
            made = type(node)(self.resolved(v, depth + 1) for v in node)
        self.open.discard(id(node))
        self.seen[id(node)] = made
        return made

    def _tensor(self, made: Strided) -> Tensor:
        info = self.members.get(f"{self.prefix}{made.storage.key}")
        if info is None:
            raise Damaged(f"{self.path}: the storage {made.storage.key[:40]!r} is not in the archive")
        itemsize = np.dtype(STORED[made.dtype]).itemsize
        shape, stride = _without_repeats(made)
        start = made.offset * itemsize
        span = (sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) + 1) * itemsize if math.prod(shape) else 0
        if (made.offset < 0 or len(shape) != len(stride) or any(s < 0 for s in stride)
                or not fits(shape, made.dtype, info.file_size) or start + span > info.file_size):
            raise UnreadableInput(f"{self.path}: a tensor of shape {list(made.shape)[:8]} needs more than the "
                                  f"{info.file_size:,} bytes of its storage")
        whole = (self.path, self.base + info.header_offset + start)
        if _contiguous(shape, stride):
            return Tensor("", made.dtype, shape, self._bytes(info, start, span), self.path, whole)
        return Tensor("", made.dtype, shape, self._strided(info, made, shape, stride, start, span), self.path, whole)

    def _bytes(self, info: zipfile.ZipInfo, start: int, length: int) -> InFile | InMemory:
        if info.compress_type == zipfile.ZIP_STORED:
            return InFile(self.path, self.base + offset_of(self.archive, info, self.path) + start)
        if info.filename not in self.packed:
            self.packed[info.filename] = member_bytes(self.archive, info, MOST_LOADED, self.path)
        return InMemory(self.packed[info.filename][start: start + length])

    def _strided(self, info: zipfile.ZipInfo, made: Strided, shape: tuple[int, ...], stride: tuple[int, ...],
                 start: int, span: int) -> InMemory:
        """A view that is not contiguous (a transposed weight), copied into order where it is small."""
        if span > MOST_LOADED:
            raise UnreadableInput(f"{self.path}: a tensor of {span:,} bytes is stored out of order: save it "
                                  ".contiguous()")
        data = b"".join(p.tobytes() for p in self._bytes(info, start, span).parts(0, span, span or 1))
        stored = np.frombuffer(data, STORED[made.dtype])
        steps = tuple(s * stored.itemsize for s in stride)
        return InMemory(np.ascontiguousarray(np.lib.stride_tricks.as_strided(stored, shape, steps, writeable=False))
                        .tobytes())


def _without_repeats(made: Strided) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and stride of the values that are stored: an axis of stride 0 repeats one of them."""
    if len(made.shape) != len(made.stride):
        raise UnreadableInput("a tensor whose shape and strides have different lengths")
    return tuple(1 if s == 0 and n > 1 else n for n, s in zip(made.shape, made.stride, strict=True)), made.stride


def _contiguous(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(stride), strict=True):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True



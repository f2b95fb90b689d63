"""From a path to a checkpoint: told by content, shards of one checkpoint joined."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.checkpoint_folders import array_folders
from traindx_tools.on_weights.formats import (
    distributed,
    keras_files,
    msgpack,
    numpy_files,
    orbax,
    safetensors,
    torch_zip,
)
from traindx_tools.on_weights.moment_names import apart_from_weights
from traindx_tools.on_weights.tensor import Tensor

HEAD = 512
MOST_FILES = 2_000
"""Files of one folder that are read."""
MOST_INDEX = 64 * 2**20
SUFFIXES = frozenset({".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".tar", ".npz", ".npy", ".msgpack", ".flax",
                      ".h5", ".hdf5", ".keras"})
"""How files of weights are called; what they are is told by content."""
_OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def form_of(path: str) -> str:
    """The format by content, "" where it is none that is read here. Raises UnreadableInput."""
    if os.path.isdir(path):
        if orbax.is_orbax(path):
            return "orbax"
        return "distributed" if distributed.is_distributed(path) else "folder"
    if not os.path.isfile(path):
        raise UnreadableInput(f"{path}: no regular file but a pipe, a socket or a device; give a file")
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be read: {error.strerror}") from error
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(path)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if keras_files.is_hdf5(head):
        return "hdf5"
    if path.endswith(".index.json"):
        return "index"
    if safetensors.is_safetensors(head):
        return "safetensors"
    if msgpack.is_msgpack(head) and Path(path).suffix in (".msgpack", ".flax", ".ckpt", "") and not head.startswith(
            b"\x80"):
        return "msgpack"
    return ""


def _kind_of_zip(path: str) -> str:
    """What a zip archive holds, by the names of its members."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (*torch_zip.OF_DAMAGE, OSError):
        return "torch" if Path(path).suffix in SUFFIXES - {".npz"} else "npz" if path.endswith(".npz") else ""
    if any(n == "data.pkl" or n.endswith("/data.pkl") for n in names):
        return "torch"
    if keras_files.WEIGHTS in names:
        return "keras"
    return "npz" if any(n.endswith(".npy") for n in names) else ""


_READERS: dict[str, Callable[[str], Checkpoint]] = {
    "torch": torch_zip.read, "npz": numpy_files.read_npz, "npy": numpy_files.read_npy,
    "safetensors": safetensors.read, "msgpack": msgpack.read, "orbax": orbax.read,
    "distributed": distributed.read, "hdf5": keras_files.read_hdf5, "keras": keras_files.read_keras,
}  # fmt: skip


def read_checkpoint(path: str | Path) -> Checkpoint:
    """The checkpoint that a file, an index of shards or a folder of shards holds. Raises UnreadableInput."""
    return apart_from_weights(_read(str(path)))


def _read(name: str) -> Checkpoint:
    if not os.path.exists(name):
        raise UnreadableInput(f"{name}: there is no such file or folder; give a checkpoint")
    form = form_of(name)
    if form == "index":
        return _indexed(name)
    if form == "folder":
        return _folder(name)
    reader = _READERS.get(form)
    if reader is None:
        raise UnreadableInput(f"{name}: {_what(name)}; expected safetensors, a torch.save zip, npz, npy, msgpack, "
                              "HDF5 or .keras, an index of shards, or a folder of them")
    return reader(name)


def _what(path: str) -> str:
    """Why a file is not read, in words."""
    with open(path, "rb") as stream:
        head = stream.read(HEAD)
    if head.startswith(_OLD_TORCH):
        return "refused: a torch.save file of before torch 1.6, a bare pickle: save it again where you trust it"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "refused: a bare pickle, loading it could run code"
    if not head:
        return "an empty file"
    return "no format of weights that is known"


def _indexed(path: str) -> Checkpoint:
    """The shards that `*.index.json` names (`weight_map`: tensor to file beside it)."""
    home = Path(path).parent
    try:
        if os.stat(path).st_size > MOST_INDEX:
            raise UnreadableInput(f"{path}: larger than {MOST_INDEX:,} bytes, too large for an index")
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        wanted = {str(k): str(v) for k, v in told["weight_map"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableInput(f"{path}: no index of shards ({type(error).__name__}): expected 'weight_map'") from None
    files = list(dict.fromkeys(wanted.values()))
    if len(files) > MOST_FILES:
        raise UnreadableInput(f"{path}: refused: it names {len(files):,} files")
    return _of_shards(path, home, files, wanted)


def _of_shards(path: str, home: Path, files: Sequence[str], wanted: dict[str, str]) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    notes: list[str] = []
    values: dict[str, Any] = {}
    for file in files:
        shard = home / file
        if not shard.resolve().is_relative_to(home.resolve()):
            raise UnreadableInput(f"{path}: refused: it names {file[:80]!r}, which is not beside it")
        if not shard.is_file():
            notes.append(f"the shard {file} is not there")
            continue
        try:
            read = read_checkpoint(shard)
            tensors |= {t.name: t for t in read.tensors}
            values |= {f"shard {file}:{k}": v for k, v in read.values.items()}
        except UnreadableInput as refused:
            notes.append(str(refused))
    lost = [n for n in wanted if n not in tensors]
    if lost:
        notes.append(f"{len(lost)} tensors that the index names are not in the shards: {', '.join(lost[:5])}")
    if not tensors:
        raise UnreadableInput(f"{path}: none of its {len(files)} shards could be read: {'; '.join(notes[:3])}")
    return Checkpoint(path, "sharded", (Part("", tensors),), notes=tuple(notes),
                      values=values | ({"index.missing": tuple(lost)} if lost else {}))


def _folder(path: str) -> Checkpoint:
    """A folder of shards: the index in it, its single checkpoint, or the files of the ranks."""
    files = list(_weights_in(path))
    indexes = [f for f in files if f.endswith(".index.json")]
    if indexes:
        return _indexed(indexes[0])
    if arrays := array_folders(files):
        return numpy_files.read_folder(path, *arrays.values())
    read: list[Checkpoint] = []
    notes: list[str] = []
    for file in files[:MOST_FILES]:
        try:
            read.append(read_checkpoint(file))
        except UnreadableInput as refused:
            notes.append(str(refused))
    if not read:
        why = f": {'; '.join(notes[:3])}" if notes else _folders_in(path)
        raise UnreadableInput(f"{path}: a folder in which no checkpoint could be read{why}")
    if len(read) == 1:
        return replace(read[0], notes=(*read[0].notes, *notes))
    return _joined(path, read, notes)


def _folders_in(path: str) -> str:
    """Which folders lie in it: a run keeps one for each of its checkpoints."""
    inner = sorted(e.name for e in os.scandir(path) if e.is_dir(follow_symlinks=False))
    more = f" and {len(inner) - 3:,} more" if len(inner) > 3 else ""
    return f"; name one of the folders in it: {', '.join(inner[:3])}{more}" if inner else ""


def _joined(path: str, read: Sequence[Checkpoint], notes: Sequence[str]) -> Checkpoint:
    """The files of a folder side by side: each file's parts under its name."""
    parts, optimizers = [], []
    values: dict[str, Any] = {}
    for one in read:
        name = Path(one.path).name
        parts += [replace(p, key=f"{name}:{p.key}".rstrip(":")) for p in one.parts]
        optimizers += [replace(o, key=f"{name}:{o.key}") for o in one.optimizers]
        values |= {f"{name}:{k}": v for k, v in one.values.items()}
    return Checkpoint(path, "folder", tuple(parts), tuple(optimizers), values,
                      (*(n for one in read for n in one.notes), *notes))


def _weights_in(path: str) -> Iterator[str]:
    """The files in a folder that are called like weights; links that leave it are not followed."""
    home = Path(path).resolve()
    for file in sorted(Path(path).iterdir()):
        named = file.suffix in SUFFIXES or file.name.endswith(".index.json")
        if not file.is_file():  # h5py would wait for a pipe
            continue
        if file.suffix in (".h5", ".hdf5") and not keras_files.holds_variables(str(file)):
            continue  # HDF5 holds data as often
        if named and file.resolve().is_relative_to(home):
            yield str(file)

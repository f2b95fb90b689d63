"""torch.distributed.checkpoint (FSDP): a folder with `.metadata`, a pickle of names and places, and `.distcp` files.

A `.distcp` file is many torch.save archives one behind the other; the metadata say where each begins. Shards along the
first axis are laid behind each other; a tensor that is cut otherwise, or is not there, is named and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, of_tree
from traindx_tools.on_weights.formats.torch_zip import read_tree
from traindx_tools.on_weights.tensor import Concatenated, Damaged, Tensor
from traindx_tools.on_weights.tensor_pickle import Named, read_tensors

MOST_METADATA = 256 * 2**20
MOST_SHARDS = 200_000


def is_distributed(path: str) -> bool:
    """Whether a folder holds such a checkpoint."""
    return (Path(path) / ".metadata").is_file() and any(Path(path).glob("*.distcp"))


def read(path: str) -> Checkpoint:
    """The tensors of all ranks. Raises UnreadableInput."""
    home = Path(path)
    file = home / ".metadata"
    if file.stat().st_size > MOST_METADATA:
        raise UnreadableInput(f"{file}: larger than {MOST_METADATA:,} bytes")
    told = read_tensors(file.read_bytes()).value
    places, sizes = _state(told).get("storage_data"), _state(told).get("state_dict_metadata")
    if not isinstance(places, dict) or not isinstance(sizes, dict) or len(places) > MOST_SHARDS:
        raise UnreadableInput(f"{file}: no metadata of torch.distributed.checkpoint")
    shards: dict[str, list[tuple[tuple[int, ...], Mapping[str, Any]]]] = {}
    for key, place in places.items():
        name, offset = _index(str(key))
        shards.setdefault(name, []).append((offset, _state(place)))
    tree: dict[str, Any] = {}
    notes: list[str] = []
    for name, size in sizes.items():
        shape = _state(size).get("size")
        if isinstance(shape, tuple):
            try:
                tree[name] = _joined(home, str(name), shape, sorted(shards.get(str(name), ()), key=lambda s: s[0]))
            except UnreadableInput as refused:
                notes.append(str(refused))
    if not tree:
        raise UnreadableInput(f"{path}: no tensor of it could be read{': ' + notes[0] if notes else ''}")
    return of_tree(path, "distributed", tree, tuple(notes[:5]))


def _state(value: Any) -> Mapping[str, Any]:
    return value.state if isinstance(value, Named) and isinstance(value.state, dict) else {}


def _index(key: str) -> tuple[str, tuple[int, ...]]:
    """Name and offset of a key, as `tensor_pickle` writes a MetadataIndex."""
    parts = key.split("|")
    offset = tuple(int(n) for n in parts[2].split(",") if n.lstrip("-").isdigit()) if len(parts) > 2 else ()
    return (parts[1] if len(parts) > 1 else key), offset


def _joined(home: Path, name: str, shape: tuple[int, ...], shards: list[tuple[tuple[int, ...], Mapping[str, Any]]]
            ) -> Tensor:
    tensors = [_shard(home, name, place) for _, place in shards]
    if not tensors:
        raise Damaged(f"{home}: no place is told for {name[:80]}")
    first = tensors[0]
    if len(tensors) == 1 and first.shape == shape:
        return first
    rows = sum(t.shape[0] for t in tensors if t.shape)
    if not shape or rows != shape[0] or any(t.shape[1:] != shape[1:] or t.dtype != first.dtype for t in tensors):
        raise UnreadableInput(f"{home}: {name[:80]} is cut in {len(tensors)} parts that are not its rows: left out")
    return Tensor(name, first.dtype, shape, Concatenated(tuple((t.source, t.nbytes) for t in tensors)), str(home))


def _shard(home: Path, name: str, place: Mapping[str, Any]) -> Tensor:
    file, start, length = (place.get(k) for k in ("relative_path", "offset", "length"))
    if not isinstance(file, str) or not isinstance(start, int) or not isinstance(length, int) or start < 0:
        raise UnreadableInput(f"{home}: no place is told for {name[:80]}")
    path = home / file
    if not path.resolve().is_relative_to(home.resolve()):
        raise UnreadableInput(f"{home}: refused: it names {file[:80]!r}, which is not in it")
    if not path.is_file() or path.stat().st_size < start + length:
        raise Damaged(f"{path}: is not there, or ends before {name[:80]}")
    tensor, _ = read_tree(str(path), start, length)
    if not isinstance(tensor, Tensor):
        raise UnreadableInput(f"{path}: no tensor at the place of {name[:80]}")
    return tensor



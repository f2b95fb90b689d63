"""Keras: `.weights.h5`, `.keras` and older `.h5` files, through h5py; nothing of the configuration is run.

Keras 3 keeps the variables of a layer by number (`layers/conv2d_1/vars/0`); what each is follows from the shapes, as
its layers make them: kernels before biases, and of a normalisation gamma, beta, moving mean, moving variance. A layer's
own name stands in an attribute of newer files. The order of layers is that of the configuration of a `.keras` file,
else that of their numbers. Links to other files and values that lie in other files are refused.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, of_tree
from traindx_tools.on_weights.formats.numpy_files import NAMES
from traindx_tools.on_weights.formats.torch_zip import OF_DAMAGE, checked_members, member_bytes
from traindx_tools.on_weights.tensor import MOST_LOADED, Damaged, InFile, InMemory, Tensor, fits

MAGIC = b"\x89HDF\r\n\x1a\n"
WEIGHTS, CONFIG = "model.weights.h5", "config.json"
"""Members of a `.keras` file."""
MOST_TOTAL = 2 * 2**30
"""Bytes of all arrays that are held in memory: those of packed sets."""
MOST_SETS, DEEPEST = 20_000, 24
MOST_CONFIG = 16 * 2**20
_WRAPPERS = frozenset({"layers", "vars", "_layer_checkpoint_dependencies", "model_weights"})
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])")
_NUMBER = re.compile(r"(.*?)_?(\d+)$")


def is_hdf5(head: bytes) -> bool:
    """By the first bytes."""
    return head.startswith(MAGIC)


def holds_variables(path: str) -> bool:
    """Whether an HDF5 file is laid out as Keras lays weights out; False where h5py is missing or cannot say."""
    try:
        import h5py

        with h5py.File(path, "r") as file:
            if "layer_names" in file.attrs or "model_weights" in file:
                return True
            keys = set(file)
            return bool(keys & {"layers", "_layer_checkpoint_dependencies"}) and keys <= {
                "layers", "_layer_checkpoint_dependencies", "optimizer", "vars", "compile_metrics", "metrics",
                "loss_tracker"}
    except (ImportError, OSError, RuntimeError, KeyError):
        return False


def read_hdf5(path: str) -> Checkpoint:
    """The variables of an HDF5 file. Raises UnreadableInput, and MissingExtra without h5py."""
    return _read(path, path, (), "hdf5")


def read_keras(path: str) -> Checkpoint:
    """The variables of a `.keras` file. Raises UnreadableInput, and MissingExtra without h5py."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = checked_members(archive, path)
            if WEIGHTS not in members:
                raise UnreadableInput(f"{path}: no {WEIGHTS} in it")
            data = member_bytes(archive, members[WEIGHTS], MOST_TOTAL, path)
            order = (_layers_in(member_bytes(archive, members[CONFIG], MOST_CONFIG, path)) if CONFIG in members else ())
    except OF_DAMAGE as error:
        raise Damaged(f"{path}: a damaged zip archive ({error})") from None
    return _read(path, io.BytesIO(data), order, "keras")


def _layers_in(config: bytes) -> tuple[str, ...]:
    """What Keras calls each layer's group in the file: its class in small letters, numbered by occurrence."""
    try:
        told = json.loads(config)
        layers = told["config"]["layers"]
        classes = [str(layer["class_name"]) for layer in layers]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    seen: dict[str, int] = {}
    out = []
    for kind in classes:
        name = _CAMEL.sub("_", kind).lower()
        seen[name] = seen.get(name, -1) + 1
        out.append(f"{name}_{seen[name]}" if seen[name] else name)
    return tuple(out)


def _read(path: str, source: Any, order: Sequence[str], form: str) -> Checkpoint:
    try:
        import h5py
    except ImportError:
        raise MissingExtra("Reading HDF5", "h5py", "data") from None
    tree: dict[str, Any] = {}
    notes: list[str] = []
    left = MOST_TOTAL
    try:
        with h5py.File(source, "r") as file:
            groups = _variables(h5py, file, path)
            for group in sorted(groups, key=lambda g: _place(g, groups[g], order)):
                named = _named(group, groups[group], file)
                for name, data in named:
                    tensor = _tensor(path, name, data, source is path, left, notes)
                    if tensor is not None:
                        left -= tensor.nbytes if isinstance(tensor.source, InMemory) else 0
                        (tree.setdefault("optimizer", {}) if group[:1] == ("optimizer",) else tree)[name] = tensor
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
        raise Damaged(f"{path}: the HDF5 file is damaged ({str(error)[:100]})") from None
    if not tree:
        raise UnreadableInput(f"{path}: no array of it could be read{': ' + notes[0] if notes else ''}")
    return of_tree(path, form, tree, tuple(notes[:5]))


def _variables(h5py: Any, file: Any, path: str) -> dict[tuple[str, ...], list[tuple[str, Any]]]:
    """The data sets by the group that holds them. Raises UnreadableInput for links that leave the file."""
    found: dict[tuple[str, ...], list[tuple[str, Any]]] = {}
    todo: list[tuple[tuple[str, ...], Any]] = [((), file)]
    count = 0
    while todo:
        at, group = todo.pop()
        for key in group:
            link = group.get(key, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                to = str(link.filename)[:80]
                raise UnreadableInput(f"{path}: refused: {key[:80]!r} is a link to the file {to!r}")
            if isinstance(link, h5py.SoftLink):
                continue
            item = group[key]
            count += 1
            if count > MOST_SETS or len(at) > DEEPEST:
                raise UnreadableInput(f"{path}: refused: it is nested too deeply, or holds too many sets")
            if isinstance(item, h5py.Group):
                todo.append(((*at, str(key)), item))
            elif isinstance(item, h5py.Dataset):
                found.setdefault(at, []).append((str(key), item))
    return found


def _place(group: tuple[str, ...], held: Sequence[tuple[str, Any]], order: Sequence[str]) -> tuple[Any, ...]:
    """Where a layer stands: as the configuration lists it, else by its number, kernels before vectors."""
    path = [p for p in group if p not in _WRAPPERS]
    listed = [order.index(p) if p in order else len(order) for p in path[:1]] if order else []
    numbers = [int(m[2]) if (m := _NUMBER.match(p)) else 0 for p in path]
    axes = max((len(d.shape) for _, d in held), default=0)  # a kernel stands right before what normalises its output
    return group[:1] == ("optimizer",), *listed, tuple(numbers[:1]), axes < 2, axes, tuple(path)


def _named(group: tuple[str, ...], held: Sequence[tuple[str, Any]], file: Any) -> Iterator[tuple[str, Any]]:
    """Each variable with a name: those that Keras numbers by what their shapes say."""
    path = [p for p in group if p not in _WRAPPERS]
    if group[-1:] == ("vars",) and len(group) > 1 and group[0] != "optimizer":
        said = file["/".join(group[:-1])].attrs.get("name")
        if isinstance(said, str) and 0 < len(said) <= 200 and path:
            path[-1] = said
    ordered = sorted(held, key=lambda h: (not h[0].isdigit(), int(h[0]) if h[0].isdigit() else 0, h[0]))
    numbered = all(k.isdigit() for k, _ in ordered) and group[:1] != ("optimizer",)
    roles = _roles([d.shape for _, d in ordered]) if numbered else [k.partition(":")[0] for k, _ in ordered]
    if not numbered and len(path) > 1 and path[-1] == path[-2]:
        path.pop()  # older files repeat the layer's name
    for (_, data), role in zip(ordered, roles, strict=True):
        yield ".".join((*path, role)) if path else f"vars.{role}", data


def _roles(shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """What the variables of one layer are, by their shapes, in the order in which layers make them."""
    vectors = [s for s in shapes if len(s) == 1]
    if len(vectors) == len(shapes) and len(set(shapes)) == 1:
        of_norm = {1: ["gamma"], 2: ["gamma", "beta"], 3: ["gamma", "moving_mean", "moving_variance"],
                   4: ["gamma", "beta", "moving_mean", "moving_variance"]}
        if len(shapes) in of_norm:
            return of_norm[len(shapes)]
    if len(shapes) == 3 and not shapes[2] and shapes[0] == shapes[1]:
        return ["mean", "variance", "count"]
    counts: dict[str, int] = {}
    out = []
    for shape in shapes:
        role = "kernel" if len(shape) > 1 else "bias" if len(shape) == 1 else "count"
        counts[role] = counts.get(role, 0) + 1
        out.append(role if counts[role] == 1 else f"{role}_{counts[role] - 1}")
    return out


def _tensor(path: str, name: str, data: Any, in_file: bool, left: int, notes: list[str]) -> Tensor | None:
    if data.is_virtual or data.external:
        raise UnreadableInput(f"{path}: refused: the values of {name[:80]!r} lie in other files")
    dtype = NAMES.get(data.dtype.str)
    if dtype is None:
        return None  # texts and objects: no weights
    size = int(np.prod(data.shape, dtype=np.int64)) * data.dtype.itemsize
    stored = int(data.id.get_storage_size())
    offset = data.id.get_offset() if in_file and data.chunks is None else None
    if offset is not None and stored == size:
        return Tensor(name, dtype, tuple(data.shape), InFile(path, int(offset)), path, (path, int(offset)))
    if size > min(left, MOST_LOADED) or not fits(tuple(data.shape), dtype, max(size, 1)):
        notes.append(f"{name} of {size:,} bytes is packed, and larger than what is held in memory")
        return None
    return Tensor(name, dtype, tuple(data.shape), InMemory(np.ascontiguousarray(data[()]).tobytes()), path)

"""Orbax checkpoints: a folder with `_METADATA`, and arrays as zarr in files or in an OCDBT store.

They are packed with zstandard, which the standard library lacks: read through `tensorstore` (extra `jax`; orbax brings
it), which reads arrays and runs nothing. Layout: orbax-checkpoint, `type_handlers.py` and `tree_metadata`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, of_tree
from traindx_tools.on_weights.tensor import MOST_LOADED, STORED, InMemory, Tensor, fits

MOST_METADATA = 64 * 2**20
_EMPTY = ("None", "Dict", "List", "Tuple", "NamedTuple")
"""Types of containers without a value, such as the states of parts of an optimizer that keep nothing."""
MOST_TOTAL = 2 * 2**30
"""Bytes of all arrays together: they are unpacked into memory."""


def _home(path: str) -> Path | None:
    """The folder of the arrays: that itself, or the item in it that orbax calls `default`, `state` or `params`."""
    base = Path(path)
    for folder in (base, *(base / n for n in ("default", "state", "params"))):
        if (folder / "_METADATA").is_file():
            return folder
    return None


def is_orbax(path: str) -> bool:
    """Whether a folder is an orbax checkpoint."""
    return _home(path) is not None


def read(path: str) -> Checkpoint:
    """The arrays of an orbax checkpoint. Raises UnreadableInput, and MissingExtra without tensorstore."""
    home = _home(path)
    if home is None:
        raise UnreadableInput(f"{path}: no _METADATA of orbax in it")
    try:
        import tensorstore
    except ImportError:
        raise MissingExtra("Reading an orbax checkpoint", "tensorstore", "jax") from None
    tree: dict[str, Any] = {}
    notes: list[str] = []
    left = MOST_TOTAL
    for keys in _names(home):
        made, why = _array(tensorstore, home, keys, min(left, MOST_LOADED))
        if made is None:
            notes.append(f"{'.'.join(keys)}: {why}")
            continue
        left -= made.nbytes
        node = tree
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = made
    if not tree:
        raise UnreadableInput(f"{path}: no array of it could be read: {'; '.join(notes[:2]) or 'it names none'}")
    return of_tree(path, "orbax", tree, tuple(notes[:5]))


def _names(home: Path) -> list[tuple[str, ...]]:
    """The path of each array, as the metadata lists them; those of states that hold nothing are left out."""
    file = home / "_METADATA"
    try:
        if file.stat().st_size > MOST_METADATA:
            raise UnreadableInput(f"{file}: larger than {MOST_METADATA:,} bytes")
        tree = json.loads(file.read_text(encoding="utf-8"))["tree_metadata"]
        return [tuple(str(k["key"]) for k in told["key_metadata"]) for told in tree.values()
                if told.get("value_metadata", {}).get("value_type") not in _EMPTY]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableInput(f"{file}: not the metadata of orbax ({type(error).__name__})") from None


def _array(tensorstore: Any, home: Path, keys: tuple[str, ...], most: int) -> tuple[Tensor | None, str]:
    name = ".".join(keys)
    base = {"driver": "file", "path": f"{home.resolve()}/"}
    store = ({"driver": "ocdbt", "base": base, "path": f"{name}/"} if (home / "manifest.ocdbt").is_file()
             else {"driver": "file", "path": f"{home.resolve()}/{name}/"})
    for driver in ("zarr", "zarr3"):
        try:
            opened = tensorstore.open({"driver": driver, "kvstore": store}, read=True, open=True).result()
            dtype, shape = opened.dtype.name, tuple(opened.shape)
            if dtype not in STORED or not fits(shape, dtype, most):
                return None, f"{dtype} of shape {list(shape)} is not read: more than {most:,} bytes"
            data = opened.read().result()
        except (ValueError, OSError, KeyError, NotImplementedError) as error:
            why = str(error).splitlines()[0][:160]
            continue
        return Tensor("", dtype, tuple(shape), InMemory(data.tobytes()), str(home)), ""
    return None, why



"""HDF5 through h5py: data sets of this very file. Links to other files, virtual and external storage are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.readers.arrays import shards_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.shard import Shard

DEPTH = 8
MOST_SETS = 10_000
MOST_TEXTS = 100_000
MOST_CHARACTERS = 500
"""Of one text: names and captions are shorter."""


def read_hdf5(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The data sets that have rows. Raises UnreadableInput, MissingExtra."""
    try:
        import h5py
    except ImportError as missing:
        raise MissingExtra("Reading HDF5", "h5py", "data") from missing
    try:
        with h5py.File(path, "r") as file:
            if set(file) & {"layers", "_layer_checkpoint_dependencies"} or "layer_names" in file.attrs:
                raise UnreadableInput("weights of Keras and no data; `traindx weights` reads them")
            found: dict[str, Any] = {}
            _collect(h5py, file, "", found, 0)
            texts = {n: d for n, d in found.items() if d.dtype.hasobject}
            arrays, left = _arrays({n: d for n, d in found.items() if n not in texts}, bounds)
            arrays |= {n: _texts(d) for n, d in texts.items() if _is_text(h5py, d)}
            unread = [f"{n} was not read: objects of HDF5" for n in texts if n not in arrays and n in texts]
            unread += [f"{left} of {len(found)} sets were not read: the bytes of a file are used up"] if left else []
    except (OSError, KeyError, RuntimeError) as error:
        raise Broken(f"the HDF5 file is damaged ({str(error)[:100]})") from None
    except (TypeError, ValueError) as error:  # types that numpy has no equal of, in files that are whole
        raise UnreadableInput(f"h5py cannot read it ({str(error)[:100]})") from None
    made = shards_of(arrays, name, "hdf5", bounds)
    return tuple(replace(s, notes=(*s.notes, *unread)) for s in made)


def _arrays(found: dict[str, Any], bounds: Bounds) -> tuple[dict[str, Array], int]:
    """The sets in their order as long as their bytes are in bounds, and how many are left."""
    out: dict[str, Array] = {}
    used = 0
    for name, data in found.items():
        if used > bounds.unpacked or (bounds.over and out):
            break
        out[name] = _read(name, data, bounds)
        used += out[name].nbytes
    return out, len(found) - len(out)


def _is_text(h5py: Any, data: Any) -> bool:
    return h5py.check_string_dtype(data.dtype) is not None and len(data.shape) == 1 and len(data) <= MOST_TEXTS


def _texts(data: Any) -> Array:
    """Texts of any length, each cut at `MOST_CHARACTERS`."""
    said = [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in data[()]]
    return np.array([v[:MOST_CHARACTERS] for v in said], np.str_)


def _collect(h5py: Any, group: Any, before: str, found: dict[str, Any], depth: int) -> None:
    if depth > DEPTH or len(found) > MOST_SETS:
        raise UnreadableInput("refused: it is nested too deeply, or holds too many sets")
    for key in group:
        link = group.get(key, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise UnreadableInput(f"refused: {before}{key} is a link to the file {str(link.filename)[:80]!r}")
        if isinstance(link, h5py.SoftLink):
            continue  # what it names is visited under its own name, and it may lead in circles
        item = group[key]
        if isinstance(item, h5py.Group):
            _collect(h5py, item, f"{before}{key}.", found, depth + 1)
        elif isinstance(item, h5py.Dataset) and item.shape:
            found[f"{before}{key}"] = item


def _read(name: str, data: Any, bounds: Bounds) -> Array:
    if data.is_virtual or data.external:
        raise UnreadableInput(f"refused: the values of {name} lie in other files")
    stored = data.id.get_storage_size()
    claimed = math.prod(data.shape) * data.dtype.itemsize
    if claimed > bounds.unpacked and claimed > 200 * max(stored, 1):
        raise UnreadableInput(f"refused: {name} would unpack to {claimed:,} bytes from {stored:,}")
    most = max(1, bounds.unpacked // max(1, math.prod(data.shape[1:]) * data.dtype.itemsize))
    array: Array = data[:most] if len(data) > most else data[()]
    return array

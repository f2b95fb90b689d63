"""Tables beside a checkpoint: rows of as many inputs as a network takes, with the labels that stand beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from traindx_tools.on_data.name_list import NameList
    from traindx_tools.on_data.shard import Shard
    from traindx_tools.on_data.table import DataSet

Array = NDArray[np.float64]
FEWEST, MOST_ROWS = 200, 2000
_SUFFIXES = frozenset({".npz", ".csv", ".parquet", ".tsv"})
_MOST_FILES, _MOST_BYTES, _MOST_BESIDE, _SECONDS = 6, 2**24, 100, 5.0
_MOST_LABELS, _UP, _MOST_SETTINGS = 12, 2, 2**20


@dataclass(frozen=True, eq=False)
class Rows:
    """`inputs`: (rows, columns), of sequences (rows, steps, columns); `labels`: by name, (rows, outputs), of whole or
    of real numbers; `texts`: those that are words, numbered in the order of the alphabet, which need not be that of the
    network."""

    file: str
    inputs: Array
    labels: Mapping[str, Array]
    texts: frozenset[str]


def rows_beside(path: str, width: int, most: int = MOST_ROWS, axes: int = 1) -> Iterator[Rows]:
    """Each table of this width in the folder of a checkpoint, or in the nearest around it that has such tables.

    `most`: of the rows of each. `axes`: of a row; 2 for sequences of so many numbers a step.
    """
    home = os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path))
    for _ in range(_UP + 1):
        files = tuple(f for f in _files(home) if os.path.realpath(f) != os.path.realpath(path))
        found = list(_of_files(files, width, min(most, MOST_ROWS), axes)) if files else []
        if found:
            yield from found
            return
        home = os.path.dirname(home)


def _files(home: str) -> tuple[str, ...]:
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return ()
    own = [os.path.join(home, n) for n in names if os.path.splitext(n)[1].lower() in _SUFFIXES]
    small = [p for p in own if os.path.isfile(p) and os.path.getsize(p) <= _MOST_BYTES]
    return tuple(small[:_MOST_FILES]) if len(names) <= _MOST_BESIDE else ()


@lru_cache(maxsize=1)
def _read(files: tuple[str, ...], _: tuple[float, ...]) -> tuple[Sequence[DataSet], Sequence[NameList]]:
    from traindx_tools.on_data.examination import readable

    return readable(files, _SECONDS)


def _name_lists(home: str) -> Sequence[NameList]:
    """Lists of names in the settings beside the tables: in which order the code stacks the columns."""
    from traindx_tools.on_data.name_lists import name_lists_of

    found = [p for n in sorted(os.listdir(home)) if n.endswith(".json") and os.path.isfile(p := os.path.join(home, n))
             and os.path.getsize(p) <= _MOST_SETTINGS]
    return name_lists_of((Path(p), p) for p in found[:_MOST_FILES])


def _of_files(files: tuple[str, ...], width: int, most: int, axes: int) -> Iterator[Rows]:
    from traindx_tools.on_data.channel_statistics import orders_of

    sets, held = _read(files, tuple(os.path.getmtime(f) for f in files))
    lists = [*held, *_name_lists(os.path.dirname(files[0]))]
    for data in sets:
        orders = [tuple(names) for names in orders_of(lists, data, width)]
        for shard in data.shards:
            if shard.rows < FEWEST:
                continue
            some = slice(None, None, -(-shard.rows // most))
            for name, column in shard.columns.items():
                if column.kind == "number" and len(column.row_shape) == axes and column.row_shape[-1] == width:
                    yield from _made(shard, column.values[some], [name], some)
                elif axes == 1 and column.values.dtype == np.uint8 and (
                        column.row_shape == (-(-width // 8),)):  # packed bits
                    yield from _made(shard, np.unpackbits(column.values[some], axis=1)[:, :width], [name], some)
            for names in dict.fromkeys(orders):
                if axes == 1 and all(n in shard.columns for n in names):
                    yield from _made(shard, np.stack([shard.columns[n].values[some] for n in names], axis=1), names,
                                     some)


def _made(shard: Shard, inputs: NDArray[np.generic], names: Sequence[str], some: slice) -> Iterator[Rows]:
    labels: dict[str, Array] = {}
    texts = set()
    for name, column in shard.columns.items():
        if name in names or len(labels) >= _MOST_LABELS or column.missing is not None:
            continue
        if column.kind == "number" and len(column.row_shape) <= 1:
            labels[name] = column.values[some].astype(np.float64).reshape(len(inputs), -1)
        elif column.kind == "text" and len(column.texts) == shard.rows:
            words, codes = np.unique(np.array(column.texts)[some], return_inverse=True)
            if 2 <= len(words) <= 64:
                labels[name] = codes.reshape(-1, 1).astype(np.float64)
                texts.add(name)
    values = inputs.astype(np.float64)
    sound = {n: v for n, v in labels.items() if np.isfinite(v).all()}
    if sound and np.isfinite(values).all():
        yield Rows(os.path.basename(shard.name), values, sound, frozenset(texts))

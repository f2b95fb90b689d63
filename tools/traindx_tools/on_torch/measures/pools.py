"""Where the rows of a batch come from that no DataLoader gave: arrays in the frames of the program that is running.

A program that takes its batches from one tensor (`x[order[i:i + 32]]`) has that tensor in a variable of the calling
frames, or in its module. Its rows are known by the hashes of their values, so that a batch can be told as rows of it;
and where one other array there has as many entries, one number each, that are its labels. Nothing is kept alive.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.on_torch.measures.row_values import row_matrix
from traindx_tools.rows.book import SUMS

MOST_POOLS, MOST_ROWS, MOST_BYTES, MOST_VARIABLES = 8, 50_000, 2**28, 400
DEEPEST = 40
"""Frames that are looked through."""
TRIES = 2
"""Calls of one shape of rows at which arrays are looked for."""
MATCHED = 0.99
"""Share of a batch's rows that must be found."""


@dataclass(frozen=True, eq=False)
class Pool:
    """One array: its variable, the row of each hash, and the labels beside it."""

    name: str
    row_shape: tuple[int, ...]
    places: dict[int, int]
    rows: int
    label: NDArray[np.float64] | None
    counted: bool


class Pools:
    """The arrays that were found, by the shape of their rows."""

    def __init__(self) -> None:
        self._found: list[Pool] = []
        self._tried: dict[tuple[int, ...], int] = {}

    def look(self, given: torch.Tensor) -> None:
        """Looks for arrays of such rows, in the first calls that have them."""
        shape = tuple(given.shape[1:])
        if self._tried.get(shape, 0) >= TRIES or len(self._found) >= MOST_POOLS:
            return
        self._tried[shape] = self._tried.get(shape, 0) + 1
        known = {p.name for p in self._found}
        for name, array, near in _arrays(shape, 2 * len(given)):
            if name not in known and len(self._found) < MOST_POOLS:
                known.add(name)
                self._found.append(_pool(name, array, near))

    def rows_of(self, hashes: Sequence[int], shape: tuple[int, ...]) -> tuple[int, Pool, NDArray[np.int64]] | None:
        """The pool that these rows come from, its number, and their places; None where they come from none surely."""
        for number, pool in enumerate(self._found):
            if pool.row_shape == shape:
                at = np.array([pool.places.get(h, -1) for h in hashes], np.int64)
                if (at >= 0).mean() >= MATCHED and (at >= 0).all():
                    return number, pool, at
        return None

    def name(self, number: int) -> str:
        """The variable of a pool."""
        return self._found[number].name


def _pool(name: str, array: Any, near: dict[str, Any]) -> Pool:
    tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
    matrix, _ = row_matrix([tensor[:MOST_ROWS]])
    values = matrix[:, SUMS:].numpy()
    hashes = [hash(row.tobytes()) for row in values]
    places = {h: i for i, h in enumerate(hashes)}
    unique = len(places) >= 0.98 * len(hashes)
    beside = [v for v in near.values() if _is_label(v, len(tensor))]
    label = _numbers(beside[0])[:MOST_ROWS] if len(beside) == 1 else None
    counted = bool(beside) and not _floating(beside[0])
    return Pool(name, tuple(tensor.shape[1:]), places if unique else {}, len(tensor), label, counted)


def _arrays(shape: tuple[int, ...], least: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Arrays on the host with rows of this shape, and the variables of their frame."""
    frame: FrameType | None = sys._getframe(3)
    seen: set[int] = set()
    for _ in range(DEEPEST):
        if frame is None:
            return
        for near in _variables(frame) if _is_users(frame) else ():
            for name, value in near.items() if len(near) <= MOST_VARIABLES else ():
                if id(value) not in seen and _has_rows(value, shape, least):
                    seen.add(id(value))
                    yield name, value, near
        frame = frame.f_back


def _variables(frame: FrameType) -> Iterator[dict[str, Any]]:
    """Copies of the variables of a frame and of its module.

    What Python keeps of a look is cleared: before 3.13 it holds every value of that moment, batches and losses, for as
    long as the function runs.
    """
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        held = frame.f_locals
        yield dict(held)
        if sys.version_info < (3, 13):
            held.clear()
    yield dict(frame.f_globals)


def _is_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not ("site-packages" in file or "traindx_tools" in file or file.startswith("<"))


def _has_rows(value: Any, shape: tuple[int, ...], least: int) -> bool:
    if isinstance(value, torch.Tensor):
        plain = type(value) is torch.Tensor and value.device.type == "cpu" and value.layout == torch.strided
        plain = plain and not value.is_complex() and not value.requires_grad
    else:
        plain = type(value) is np.ndarray and value.dtype.kind in "iuf" and value.dtype.isnative
        plain = plain and value.dtype not in (np.uint16, np.uint32, np.uint64) and value.flags.writeable
    return (plain and value.ndim >= 2 and tuple(value.shape[1:]) == shape and len(value) >= least
            and value.nbytes <= MOST_BYTES)


def _is_label(value: Any, rows: int) -> bool:
    able = (type(value) is np.ndarray and value.dtype.kind in "iuf") or (
        type(value) is torch.Tensor and value.device.type == "cpu" and not value.requires_grad)
    return able and value.ndim in (1, 2) and len(value) == rows and int(np.prod(value.shape)) == rows


def _floating(value: Any) -> bool:
    return value.is_floating_point() if isinstance(value, torch.Tensor) else value.dtype.kind == "f"


def _numbers(value: Any) -> NDArray[np.float64]:
    return np.asarray(value.detach().numpy() if isinstance(value, torch.Tensor) else value, np.float64).reshape(-1)

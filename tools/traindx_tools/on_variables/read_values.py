"""Named numbers that a program read from a small file, and the object that has their names and holds others.

A scaler, a calibration, running statistics: `mean` and `std` of an npz or JSON file, put into an object that is fitted
again, reset or made anew before it is used. The object has an attribute (or a key) of each name and size; none of them
holds what the file does, no other object does, and they do not move, as what goes on from there would.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.live.files_read import FileRead
from traindx_tools.on_variables.visiting import visit
from traindx_tools.on_variables.walk import own

Numbers = NDArray[np.float64]
MOST_FILES, MOST_BYTES, MOST_SIZE, MOST_NAMES = 32, 2**18, 4096, 64
LONG = 256
"""Numbers of an array from which on it may be data that were scaled since: what is proportional to it is no other."""
FEWEST = 2
"""Names of numbers that are no whole ones: counters and settings are other things."""
ALIKE, APART = 1e-4, 0.02
"""Relative difference below which two numbers are one (half precision apart), and from which they are two."""


@dataclass(frozen=True, eq=False)
class ReadValues:
    """What one file holds by name, and the line that read it."""

    path: str
    file: str
    line: int
    values: Mapping[str, Numbers]


@dataclass
class Holder:
    """An object that has all names of a file, and what it holds instead."""

    of: ReadValues
    variable: str
    kind: str
    """Its class."""
    values: dict[str, Numbers]
    looks: int = 1


@dataclass
class ReadLooks:
    """Looks at the variables for what was read."""

    files: list[ReadValues] | None = None
    found: dict[tuple[str, str], Holder] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    def look(self, read: Sequence[FileRead], seconds: float) -> None:
        """The first time files are read once more; what holds their names is compared each time."""
        if self.files is None:
            self.files = [v for f in read[:MOST_FILES] if (v := read_again(f)) is not None]
        wanted = [v for v in self.files if v.path not in self.held]
        if not wanted:
            return
        now: dict[tuple[str, str], Holder] = {}

        def take(value: Any) -> None:
            names = own(value) if hasattr(type(value), "__dict__") and type(value) is not dict else value
            if type(names) is not dict or not 0 < len(names) <= 4 * MOST_NAMES:
                return
            for one in wanted:
                values = _values(names, one)
                if values is not None:
                    if any(_equal(values[n], v) for n, v in one.values.items()):
                        self.held.add(one.path)
                    else:
                        now.setdefault((one.path, type(value).__name__), Holder(one, "", type(value).__name__, values))

        for _ in visit(take, seconds):
            pass
        self._compare(now)

    def _compare(self, now: Mapping[tuple[str, str], Holder]) -> None:
        for key, one in now.items():
            before = self.found.get(key)
            if before is None:
                self.found[key] = one
            elif all(np.array_equal(before.values[n], v) for n, v in one.values.items()):
                before.looks += 1
            else:
                before.looks = -(10**6)  # it moves: it may have begun where the file ends

    def others(self) -> Iterator[Holder]:
        """Objects that hold others than their file, at two looks the same."""
        for (path, _), one in self.found.items():
            if path not in self.held and one.looks >= 2 and _apart(one):
                yield one


def read_again(file: FileRead) -> ReadValues | None:
    """The named numbers of a small npz or JSON file; None of any other."""
    try:
        if os.path.getsize(file.path) > MOST_BYTES:
            return None
        if file.path.endswith(".npz"):
            with np.load(file.path, allow_pickle=False) as archive:
                found = {n: archive[n] for n in archive.files[:MOST_NAMES]}
        elif file.path.endswith(".json"):
            with open(file.path, encoding="utf-8") as stream:
                told = json.load(stream)
            found = dict(told) if isinstance(told, dict) and len(told) <= MOST_NAMES else {}
        else:
            return None
        values = {n: v for n, one in found.items() if (v := _numbers(one)) is not None}
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile):
        return None
    telling = [n for n, v in values.items() if not (v == np.round(v)).all()]
    return ReadValues(file.path, file.file, file.line, values) if len(telling) >= FEWEST else None


def _numbers(value: Any) -> Numbers | None:
    """Finite numbers, flat; None of anything else."""
    if isinstance(value, (bool, str, bytes, dict)) or value is None:
        return None
    kind = type(value)
    if not isinstance(value, (int, float, list, tuple, np.ndarray, np.generic)):
        if kind.__module__.partition(".")[0] not in ("torch", "jax", "jaxlib") or not hasattr(value, "shape"):
            return None
        if getattr(getattr(value, "device", None), "type", "cpu") != "cpu" or getattr(value, "requires_grad", False):
            return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.dtype.kind not in "iuf" or not 0 < array.size <= MOST_SIZE:
        return None
    flat = array.astype(np.float64).reshape(-1)
    return flat if np.isfinite(flat).all() else None


def _values(names: Mapping[Any, Any], one: ReadValues) -> dict[str, Numbers] | None:
    """What stands under each name of the file, with or without underscores; None where one is missing."""
    plain = {n.strip("_"): v for n, v in names.items() if isinstance(n, str)}
    found = {}
    for name, wanted in one.values.items():
        value = plain.get(name.strip("_"))
        mine = _numbers(value) if value is not None else None
        if mine is None or mine.size != wanted.size:
            return None
        found[name] = mine
    return found


def _equal(a: Numbers, b: Numbers) -> bool:
    """Whether they are the same, or the one is the other in another unit or after a scaling, where there are many."""
    if np.allclose(a, b, rtol=ALIKE, atol=ALIKE * float(np.abs(b).max())):
        return True
    if a.size < LONG or not a.std() or not b.std():
        return False
    return bool(abs(np.corrcoef(a, b)[0, 1]) > 1 - ALIKE)


def _apart(one: Holder) -> bool:
    """Whether most of its numbers are quite other ones."""
    far = [bool(np.abs(v - one.of.values[n]).max() > APART * np.abs(one.of.values[n]).max())
           for n, v in one.values.items()]
    return 2 * sum(far) > len(far)

"""The batch that a program failed on, in a file that holds numbers and nothing else.

`rankNNNNN.batch.npz`: arrays under the names of their tensors, and "checks", a JSON text that says which of them is
looked up in a table of so many rows, or is a label of so many classes. It is read without unpickling and in bounds.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import UnreadableInput
from traindx_tools.unlinked import opened

CHECKS = "checks"
MOST_BYTES = 256 * 2**20
"""What a file may hold, and what is read of one."""


@dataclass(frozen=True)
class Check:
    """What an array of whole numbers must satisfy: 0 <= value < `limit`, or the value `ignored`."""

    kind: str
    """"lookup" or "labels"."""
    array: str
    limit: int
    what: str
    """The table, or "classes"."""
    ignored: int | None = None


@dataclass(frozen=True)
class Outcome:
    """One check on one array: the first value that breaks it, or None."""

    check: Check
    shape: tuple[int, ...]
    low: int
    high: int
    bad: int
    value: int | None = None
    place: tuple[int, ...] = ()

    def __str__(self) -> str:
        c = self.check
        name = f"{c.array} {list(self.shape)}"
        if not self.bad:
            return f"{name} is within {c.what} (0 to {c.limit - 1}): lowest {self.low}, highest {self.high}"
        return (f"IndexError: {c.array}{list(self.place)} is {self.value} and {c.what} has 0 to {c.limit - 1}; "
                f"{self.bad} of {int(np.prod(self.shape))} values lie outside (lowest {self.low}, highest {self.high})")


def write_batch(path: Path, arrays: Mapping[str, NDArray[Any]], checks: Iterable[Check]) -> bool:
    """Writes the file, whole or not at all; False where it would be too large."""
    if sum(a.nbytes for a in arrays.values()) > MOST_BYTES or not arrays:
        return False
    held: dict[str, Any] = {f"array:{k}": a for k, a in arrays.items()}
    held[CHECKS] = np.array(json.dumps([asdict(c) for c in checks]))
    half = path.with_suffix(".part")
    with opened(half, "wb") as file:
        np.savez_compressed(file, **held)
    os.replace(half, path)
    return True


def batch_in(path: Path) -> Path:
    """The batch in a run's folder, or the path itself. Raises UnreadableInput for a folder with none or several."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.batch.npz"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnreadableInput(f"{path} holds no batch: `traindx run` keeps one (rank00000.batch.npz) where a program "
                              "fails on an index")
    raise UnreadableInput(f"{path} holds the batches of {len(found)} ranks: name one of them, such as {found[0]}")


def read_batch(path: Path) -> tuple[dict[str, NDArray[Any]], tuple[Check, ...]]:
    """Arrays by name and the checks. Raises UnreadableInput for anything that is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > MOST_BYTES:
            raise UnreadableInput(f"{path} holds {size / 2**20:.0f} MiB; at most {MOST_BYTES // 2**20} MiB are read")
        with np.load(path, allow_pickle=False) as held:
            arrays = {k.removeprefix("array:"): held[k] for k in held.files if k.startswith("array:")}
            checks = tuple(_check(c) for c in json.loads(str(held[CHECKS])))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise UnreadableInput(f"{path} is no batch that traindx captured ({error}). Such a file is traindx-run/TIME/"
                              "rank00000.batch.npz, written when a program fails on an index.") from error
    return arrays, checks


def _check(data: Mapping[str, Any]) -> Check:
    ignored = data.get("ignored")
    return Check(str(data["kind"]), str(data["array"]), int(data["limit"]), str(data["what"]),
                 None if ignored is None else int(ignored))


def replay(arrays: Mapping[str, NDArray[Any]], checks: Iterable[Check]) -> list[Outcome]:
    """Each check on its array, on the CPU; those whose array is not there, or holds no whole numbers, are left out."""
    return [_outcome(c, arrays[c.array]) for c in checks
            if c.array in arrays and arrays[c.array].size and arrays[c.array].dtype.kind in "iu"]


def _outcome(check: Check, values: NDArray[Any]) -> Outcome:
    bad = (values < 0) | (values >= check.limit)
    if check.ignored is not None:
        bad &= values != check.ignored
    places = np.argwhere(bad)
    place = tuple(int(i) for i in places[0]) if len(places) else ()
    return Outcome(check, values.shape, int(values.min()), int(values.max()), int(bad.sum()),
                   int(values[place]) if len(places) else None, place)

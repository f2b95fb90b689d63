"""The rows of the batches that a process trained and evaluated on, in a file of numbers: `rows/rankNNNNN.npz`.

Written whole or not at all, read without unpickling and in bounds.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools import unlinked
from traindx_tools.errors import UnreadableInput

FOLDER = "rows"
PROBE = "batch-rows"
"""The probe that writes them, in each framework."""
MOST_ROWS = 40_000
SECONDS = 120.0
"""After its first call a process has told enough."""
PATIENCE = 15.0
"""Seconds after which a process that has seen no target for its rows sees none."""
FEW_TARGETS, MOST_TARGETS = 4, 64
"""Values that a target may have for each row: so few, or so many where they are no ids and the input has twice as many
(else the one completes or continues the other)."""
MOST_BYTES = 256 * 2**20
TRAINED, EVALUATED = 0, 1


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Rows in the order in which they came.

    `step`: shape (n,), the step or call of each row; `place`: its place in the batch; `role`: TRAINED or EVALUATED.
    `inputs`: float32 (n, w), values of the row that the model was given. `targets`: float32 (n, t), those that the loss
    compared the output with, NaN where none were seen. `names`: of the values of the inputs, where the program has a
    table of as many named columns, else "".
    """

    step: NDArray[np.int64]
    place: NDArray[np.int64]
    role: NDArray[np.int64]
    inputs: NDArray[np.float32]
    targets: NDArray[np.float32]
    per_row: int = 0
    """Values of a row that the model is given; more than `w` where only some were kept."""
    names: tuple[str, ...] = ()
    whole: bool = False
    """Whether it was written because there were enough, and not because the program ended."""

    def __len__(self) -> int:
        return len(self.step)

    def of_role(self, role: int) -> BatchRows:
        """Those that were trained on, or evaluated."""
        which = self.role == role
        return BatchRows(self.step[which], self.place[which], self.role[which], self.inputs[which],
                         self.targets[which], self.per_row, self.names, self.whole)


def kept_targets(targets: NDArray[np.float32] | None, rows: int, per_row: int) -> NDArray[np.float32] | None:
    """float32 (rows, MOST_TARGETS) of the targets of a batch (rows, values), NaN where there are fewer; None where they
    are no targets of the row."""
    if targets is None or not fits(targets, per_row):
        return None
    out = np.full((rows, MOST_TARGETS), np.nan, np.float32)
    out[:, :targets.shape[1]] = targets
    return out


def fits(targets: NDArray[np.float32], per_row: int) -> bool:
    """Whether these values, shape (rows, values), can be the targets of rows of which the model is given `per_row`."""
    values = targets.shape[1]
    if values <= FEW_TARGETS:
        return True
    return values <= MOST_TARGETS and 2 * values <= per_row and bool((targets != np.round(targets)).any())


def path_for(folder: Path, rank: int) -> Path:
    """Where a process keeps its rows in a run's folder."""
    return folder / FOLDER / f"rank{rank:05d}.npz"


def write(path: Path, rows: BatchRows) -> None:
    """Writes a file whole. Raises OSError."""
    out = io.BytesIO()
    told = json.dumps({"per_row": rows.per_row, "names": list(rows.names), "whole": rows.whole})
    np.savez(out, step=rows.step, place=rows.place, role=rows.role, inputs=rows.inputs, targets=rows.targets,
             told=np.frombuffer(told.encode(), np.uint8))
    unlinked.made(path.parent)
    part = path.with_suffix(".part")
    unlinked.write(part, out.getvalue())
    os.replace(part, path)


def read(path: Path) -> BatchRows:
    """What a process wrote. Raises UnreadableInput for anything else."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        with np.load(path, allow_pickle=False) as file:
            told = json.loads(bytes(file["told"]))
            step, place, role = (np.asarray(file[n], np.int64) for n in ("step", "place", "role"))
            inputs, targets = (np.asarray(file[n], np.float32) for n in ("inputs", "targets"))
            names: Sequence[object] = told["names"]
            per_row, whole = int(told["per_row"]), bool(told["whole"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UnreadableInput(f"{path} holds no rows of batches: {error}") from error
    if inputs.ndim != 2 or targets.ndim != 2 or {len(step), len(place), len(role), len(targets)} != {len(inputs)}:
        raise UnreadableInput(f"{path} holds no rows of batches: its arrays are not of the same rows")
    return BatchRows(step, place, role, inputs, targets, per_row, tuple(str(n) for n in names), whole)

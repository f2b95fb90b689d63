"""A run as its artifacts tell it: series of metrics, errors, notes, configuration.

This is the value that readers fill and rules judge. It holds no file handles and does no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Location
from traindx_tools.on_logs.launchers import rank_in_name

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Series:
    """One metric over the run: `n` values in the order in which they were written.

    `values`, `step`, `epoch`, `time`: float64 arrays of shape (n,); `line`: int64 array of shape (n,).
    `step` counts what the log counts (optimizer steps, iterations, updates) and is NaN where the log gives none: steps
    are never invented. `time` is seconds since the first record, NaN where unknown. `line` is 1-based: the line of a
    text file or the number of the record in a binary one.
    """

    name: str
    """Canonical name, e.g. "loss", "grad_norm", "learning_rate"; see `readers/names.py`."""
    original: str
    """The name as it was written, e.g. "train/Loss"."""
    group: str
    """"train", "validation" or "test"."""
    source: str
    """The artifact it came from, as the user named it."""
    values: Floats
    step: Floats
    epoch: Floats
    time: Floats
    line: Ints
    rank: int | None = None
    inferred: bool = False
    """Whether `name` was guessed from the course of the values: findings on it count as patterns."""
    thinned: bool = False
    """Whether some values of its artifact were left out while it was read (see `readers/thinning.py`)."""
    since: float = math.nan
    """The clock of the first record, in seconds since 1970 where the log gives dates: what `time` counts from."""
    counter: str = ""
    """What `step` counts where another series of this name in its artifact counts otherwise ("samples_seen")."""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def unit(self) -> str:
        """What `position` counts: "step", "epoch", or "line" where the log numbers nothing."""
        if len(self) and np.isfinite(self.step).all():
            return "step"
        if len(self) and np.isfinite(self.epoch).all():
            return "epoch"
        return "line"

    @cached_property
    def position(self) -> Floats:
        """Shape (n,): the step, else the epoch, else the line of each value."""
        return {"step": self.step, "epoch": self.epoch, "line": self.line.astype(np.float64)}[self.unit]

    @cached_property
    def finite(self) -> NDArray[np.bool_]:
        """Shape (n,): which values are neither NaN nor infinite."""
        return np.isfinite(self.values)

    def at(self, start: int, end: int | None = None) -> Location:
        """The place of the values with index `start` to `end` inclusive (negative indices count from the end)."""
        last = start if end is None else end
        return Location(
            file=self.source,
            line=int(self.line[start]),
            end_line=int(self.line[last]),
            step=float(self.position[start]),
            end_step=float(self.position[last]),
            unit=self.unit,
            rank=self.rank,
        )

    def __repr__(self) -> str:
        if not len(self):
            return f"<Series {self}: no values, {self.source}>"
        place = f"{self.unit} {self.position[0]:.10g} to {self.position[-1]:.10g}"
        return (f"<Series {self}: {len(self):,} values, {self.values[0]:.4g} to {self.values[-1]:.4g}, {place}, "
                f"{self.source}>")

    def __str__(self) -> str:
        return f"{self.group} {self.name}" if self.group != "train" else self.name


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback: the innermost is the last."""

    file: str
    line: int
    function: str
    code: str = ""
    library: bool = False
    """True for a frame of an installed package or the standard library, False for the user's own code."""
    cell: int | None = None
    """Of a notebook: the code cell in which `line` is counted."""

    @property
    def place(self) -> str:
        """`train.py:3`, `train.ipynb:cell 2:3`."""
        return f"{self.file}:{self.line}" if self.cell is None else f"{self.file}:cell {self.cell}:{self.line}"


@dataclass(frozen=True)
class ErrorEvent:
    """An exception, a fatal message or a warning that matters, found in a log.

    `kind`: "exception", "fatal" (an abort without a Python traceback: watchdog, CUDA assert, OOM killer) or "warning".
    `type` is the exception's class as written ("torch.OutOfMemoryError"), or a short name for the others.
    `message` is the whole message, all its lines, bounded to 4,000 characters.
    """

    kind: str
    type: str
    message: str
    source: str
    line: int
    end_line: int
    frames: tuple[Frame, ...] = ()
    cause: ErrorEvent | None = None
    """The exception from which this one was raised ("direct cause" or "during handling")."""
    rank: int | None = None
    count: int = 1
    """How often it was written: repeats (the same type, message and frame) are kept as one event."""
    ranks: tuple[int, ...] = ()
    """The ranks that wrote it, ascending; empty where the log names none."""
    last_line: int = 0
    """Line on which the last repeat ends; 0 means `end_line`."""
    lines_after: int = 0
    """Ordinary lines (of no error) that the log holds after the last repeat."""

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame that lies in the user's own code."""
        return next((f for f in reversed(self.frames) if not f.library), None)

    @property
    def root(self) -> ErrorEvent:
        """The first exception of the chain."""
        return self if self.cause is None else self.cause.root

    def at(self) -> Location:
        """Where the message stands in the log."""
        return Location(file=self.source, line=self.line, end_line=self.end_line, rank=self.rank,
                        quote=self.message[:200])


@dataclass(frozen=True)
class Note:
    """A line of the log that is no metric and no error but says something of the run ("Resuming from ...").

    `kind` is one of: "resume", "checkpoint", "epoch", "world_size", "precision", "parameters", "device",
    "step_skipped", "dataset", "other".
    """

    kind: str
    text: str
    source: str
    line: int
    values: Mapping[str, float | str] = field(default_factory=dict)
    rank: int | None = None


def _digits(values: Floats) -> int:
    """How many of the values are written with more than five decimals: a file is finer than a print."""
    known = np.clip(values[np.isfinite(values)][:200], -1e15, 1e15)
    return int((np.abs(known - np.round(known, 5)) > 1e-9 * np.abs(known)).sum())


def finest(series: Iterable[Series]) -> Series:
    """The longest; of equally long ones the one with steps, then the one that is written with more digits."""
    return max(series, key=lambda s: (len(s), ("line", "epoch", "step").index(s.unit), _digits(s.values)))


LOSSES = ("loss", "total", "mse", "nll", "mae", "rmse", "loss/recon", "chamfer", "elbo")
"""Canonical names that stand for the loss of a run, the surest first. All but `elbo` fall while a run learns."""


@dataclass(frozen=True, eq=False)
class Run:
    """Everything that was read of one training run."""

    series: tuple[Series, ...] = ()
    errors: tuple[ErrorEvent, ...] = ()
    notes: tuple[Note, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    """Flat configuration with dotted keys ("optim.lr"), from YAML, JSON or TOML files and printed arguments."""
    artifacts: tuple[Artifact, ...] = ()
    planned_steps: float | None = None
    """Total steps (or epochs) where the log prints them ("136/192"), in the unit of the main series."""
    planned_unit: str = "step"
    world_size: int | None = None

    def __repr__(self) -> str:
        names = list(dict.fromkeys(str(s) for s in self.series if len(s)))
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        return (f"<Run: {sum(map(len, self.series)):,} values ({', '.join(names[:6]) or 'no metrics'}{more}), "
                f"{len(self.errors)} errors, {len(self.artifacts)} files>")

    def find(self, *names: str, group: str | None = None) -> Iterator[Series]:
        """The non-empty series with one of these canonical names, in the order of the names given."""
        for name in names:
            yield from (s for s in self._by_name.get(name, ()) if group is None or s.group == group)

    @property
    def unread_ranks(self) -> frozenset[int]:
        """Ranks of which a file is there that could not be read: what they wrote is not known."""
        named = (rank_in_name(a.path) for a in self.artifacts if a.note.startswith(("not read", "refused")))
        return frozenset(rank for rank in named if rank is not None)

    @cached_property
    def _by_name(self) -> dict[str, list[Series]]:
        """The non-empty series: rules ask for a name once for each series."""
        found: dict[str, list[Series]] = {}
        for s in self.series:
            if len(s):
                found.setdefault(s.name, []).append(s)
        return found

    def first(self, *names: str, group: str | None = None) -> Series | None:
        """The longest series with the first of these names that is present.

        Of equally long ones the one with steps, then the one that is written with more digits.
        """
        for name in names:
            found = list(self.find(name, group=group))
            if found:
                return finest(found)
        return None

    @property
    def loss(self) -> Series | None:
        """The main training loss: "loss", else what stands for it (`LOSSES`), else the only one of its kind, else None.

        Two adversaries have no main loss: a run with discriminator_loss and generator_loss only gives None.
        """
        return self.first(*LOSSES, group="train") or self._other_loss("train")

    @property
    def val_loss(self) -> Series | None:
        """The main validation loss."""
        return self.first(*LOSSES, group="validation") or self._other_loss("validation")

    def _other_loss(self, group: str) -> Series | None:
        mine = [s for s in self.series if s.group == group and len(s)]
        named = [s for s in mine if s.name.endswith("loss") or s.name.startswith("loss/")]
        reinforced = any(s.name.split("/")[0] in ("reward", "advantage_max", "advantage_min") for s in mine)
        return max(named, key=len) if len({s.name for s in named}) == 1 and not reinforced else None

    def components(self, group: str = "train") -> list[Series]:
        """Terms of the loss: series named "loss/<term>" in this group, and the KL term beside such."""
        mine = [s for s in self.series if s.group == group and len(s)]
        terms = [s for s in mine if s.name.startswith("loss/")]
        return terms + [s for s in mine if s.name == "kl"] if terms else []


def merge(runs: Iterable[Run]) -> Run:
    """One run from what several artifacts tell of it."""
    parts = list(runs)
    planned = next((p for p in parts if p.planned_steps is not None), None)
    return Run(
        series=tuple(s for p in parts for s in p.series),
        errors=tuple(e for p in parts for e in p.errors),
        notes=tuple(n for p in parts for n in p.notes),
        config={k: v for p in parts for k, v in p.config.items()},
        artifacts=tuple(a for p in parts for a in p.artifacts),
        planned_steps=planned.planned_steps if planned else None,
        planned_unit=planned.planned_unit if planned else "step",
        world_size=next((p.world_size for p in parts if p.world_size is not None), None),
    )

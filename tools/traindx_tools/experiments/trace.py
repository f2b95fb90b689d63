"""What one run showed, while it goes on and after its end: the record that outcomes are read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Curve:
    """One metric in the order in which it was recorded. `steps`, `values`: float64, shape (n,); a step may be NaN."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Applied:
    """What a change did in the run: how many times it took hold, and where (a line, a module, a file).

    A change that took hold nowhere shows nothing: its experiment is inconclusive.
    """

    times: int = 0
    where: str = ""
    problem: str = ""
    """Why it could not take hold, "" where it did."""


@dataclass(frozen=True)
class Trace:
    """A run as far as it came.

    `curves` by name: what the log and metric files tell under their own names, and under `live/loss`, `live/grad_norm`
    and the like what the instruments measured at each backward pass or step.
    """

    folder: Path
    """Holds `output.log` (standard output and error) and the instruments' records."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    ended: bool = False
    exit_code: int | None = None
    stopped: str = ""
    """Why it was ended from outside ("decided", "time", "memory"), "" where it ended by itself."""
    error: str = ""
    """Type and first line of the last error, "" without one."""
    seconds: float = 0.0
    peak_bytes: int | None = None
    """The most memory that its processes held together (host), None where it was not measured."""
    applied: Applied = Applied()
    findings: Sequence[Any] = ()
    """What the instruments saw (`Finding`), with files as seen from the workspace."""

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
    """What the change did."""
    seeded: Applied = Applied()
    """What the other seed did, in a run that has one."""
    changes: Mapping[str, Applied] = field(default_factory=dict)
    """What each change that takes hold inside the process did, by its text."""
    quiet: float = 0.0
    """Seconds since it last printed or recorded anything."""
    originals: tuple[str, ...] = ()
    """Modules that it imported from the workspace itself, where it ran in a copy: what was changed is not in them."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What the program has that a change can take away ("shuffled", "schedule"), each with where it was seen; empty
    where nobody looked."""
    findings: Sequence[Any] = ()
    """What the instruments saw (`Finding`), with files as seen from the workspace."""

    @property
    def reached(self) -> float | None:
        """The last step that any curve holds, None where none counts steps."""
        live = [c for name, c in self.curves.items() if name.startswith(LIVE) and name != RESIDENT]
        ends = ([float(np.nanmax(c.steps)) for c in group if np.isfinite(c.steps).any()]
                for group in (live, [c for name, c in self.curves.items() if name != RESIDENT]))
        return max(next((e for e in ends if e), ()), default=None)

    @property
    def broke(self) -> str:
        """How it failed by itself: its error or its exit code, "" where it did not."""
        if not self.ended or self.stopped or self.exit_code in (0, None):
            return ""
        return self.error or f"exit code {self.exit_code}"


PARTS = "parts"
"""The kind of the record that names them."""

KNOWN_PARTS = ("accumulation", "autocast", "average", "batch-norm", "clipping", "compiled", "decay", "dropout",
               "frozen", "half", "held", "moments", "names-by-text", "scaler", "schedule",
               "schedule-loaded", "shuffled", "state-loaded", "stored-order", "weighted", "workers")
LOOKED_FOR_BY_ITSELF = frozenset({"held", "names-by-text"})
"""Parts that are looked for by themselves: that one of them was seen does not say that the others were sought."""

LIVE = "live/"
"""How the names of curves begin that the instruments measured."""

RESIDENT = f"{LIVE}resident"
"""The memory that all processes of a run hold together, bytes; between two steps as well."""

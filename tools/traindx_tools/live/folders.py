"""Where a run's files go when nobody says: `traindx-run/YYYYMMDD-HHMMSS` of the current directory."""

from __future__ import annotations

import time
from pathlib import Path

PARENT = "traindx-run"
PROBES = Path("scratch") / "debug" / "probes"
"""Of a project that may not be written otherwise, as behind a closed gate."""


def probes_folder(here: Path) -> Path | None:
    """The folder for probes of the project that `here` lies in: the nearest with a scratch/debug."""
    root = next((p for p in (here, *here.parents) if (p / PROBES.parent).is_dir()), None)
    return None if root is None else root / PROBES


def new_run_folder(here: Path | None = None) -> Path:
    """A path that does not exist yet; nothing is created."""
    parent = (here or Path.cwd()) / PARENT
    name = time.strftime("%Y%m%d-%H%M%S")
    taken = (parent / name, *(parent / f"{name}-{n}" for n in range(2, 1000)))
    return next(p for p in taken if not p.exists())

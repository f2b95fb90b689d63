"""What an instrumented run kept of its failure, and the command that runs it once more: a step, or a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from traindx_tools.live.folders import PARENT, PROBES
from traindx_tools.live.step_file import steps_in

BATCHES = "*.batch.npz"

MOST_RUNS = 200
"""Folders of runs that are looked at, the newest first."""


def kept_in(root: Path, paths: Iterable[str | Path]) -> Path | None:
    """The first step that went wrong, else the batch, of the newest run that kept one; None where none did.

    Looked for among the paths that were given (run folders, folders of them, workspaces) and below the root.
    """
    given = [Path(p) for p in paths if str(p) != "-" and "://" not in str(p)]
    places = dict.fromkeys((*given, *(p / PARENT for p in given), root / PARENT, root / PROBES / PARENT))
    folders = dict.fromkeys(folder for place in places for folder in _runs(place))
    for folder in islice(sorted(folders, key=lambda f: f.name, reverse=True), MOST_RUNS):
        kept = [*steps_in(folder), *sorted(folder.glob(BATCHES))]
        if kept:
            return kept[0]
    return None


def _runs(place: Path) -> Iterator[Path]:
    """The place itself, and the runs in it where it is a folder of runs."""
    try:
        if place.is_dir():
            yield place
            if place.name == PARENT:
                yield from (p for p in place.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return

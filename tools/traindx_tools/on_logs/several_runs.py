"""Whether files that were read together are those of several runs: the same loss, over the same steps, otherwise.

One run often leaves several files: a console log with averages beside a table of raw values, a file a rank, a file
that goes on where another ended. So only files of one format are compared, over steps that both hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from traindx_tools.on_logs.run import Ints, Run, Series
from traindx_tools.on_logs.stores import STORED

ENOUGH = 5
"""Steps that two files have in common: fewer may be those that a resumed run repeats."""
SHARED = 0.5
"""Share of the shorter one's steps that both hold; a resumed run repeats less."""
APART = 1e-3
"""Relative difference of the values, the median over these steps: a run that is written twice agrees to rounding."""
SHOWN = 5
MOST = 50
"""Files of a format that each is compared with."""


def files_apart(run: Run) -> tuple[str, ...]:
    """The files of several runs, each with a loss of its own over the same steps; none where there is a single run."""
    judged, tracked = run.loss, _tracked(run)
    if len(tracked) > 1:
        return tracked
    if judged is None:
        return ()
    formats = {a.path: a.format for a in run.artifacts}
    alike: dict[tuple[str | None, int | None], list[Series]] = {}
    for series in run.find(judged.name, group=judged.group):
        alike.setdefault((formats.get(series.source), series.rank), []).append(series)
    apart = [s.source for group in alike.values() for s in group
             if any(s.source != other.source and differ(s, other) for other in group[:MOST])]
    return tuple(dict.fromkeys(apart))


def _tracked(run: Run) -> tuple[str, ...]:
    """The runs that a tracker keeps by themselves. A resumed one of wandb is two files of one name."""
    kept = {PurePath(a.path).name if a.format == "wandb" else a.path: a.path
            for a in run.artifacts if a.rows and (a.format in STORED or a.format == "wandb")}
    return tuple(kept.values())


def told_apart(files: Sequence[str], name: str) -> str:
    """A sentence for a person that names the files. `name`: the metric that tells them apart."""
    named = ", ".join(files[:SHOWN]) + (f" and {len(files) - SHOWN} more" if len(files) > SHOWN else "")
    return (f"these files look like several runs, each with a {name} of its own over the same steps: {named}. "
            "Each was judged by itself; give the path of one run's file or folder to see that one alone")


def apart_as_folders(one: PurePath, other: PurePath) -> bool:
    """Whether neither of two folders lies in the other."""
    return not (one.is_relative_to(other) or other.is_relative_to(one))


def positions_shared(one: Series, other: Series) -> bool:
    """Whether two series hold enough of the same steps to be compared."""
    return _common(one, other) is not None


def _common(one: Series, other: Series) -> tuple[Ints, Ints] | None:
    if one.unit != other.unit or one.unit == "line":
        return None
    _, here, there = np.intersect1d(one.position, other.position, return_indices=True)
    return None if len(here) < max(ENOUGH, SHARED * min(len(one), len(other))) else (here, there)


def differ(one: Series, other: Series) -> bool:
    """Whether two series hold other values at the steps that both have."""
    common = _common(one, other)
    if common is None:
        return False
    here, there = common
    a, b = one.values[here], other.values[there]
    both = np.isfinite(a) & np.isfinite(b)
    if not both.any():
        return False
    scale = np.maximum(np.maximum(np.abs(a[both]), np.abs(b[both])), 1e-12)
    return bool(np.median(np.abs(a[both] - b[both]) / scale) > APART)

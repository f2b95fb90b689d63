"""Statistics beside the data disagree with them for one channel or feature, while they agree for the others.

Means and standard deviations in JSON, YAML or npz files, and those of scalers, are held against those of the data, of
training alone and of all. Where most channels agree the statistics belong to these data; a channel that is far off was
computed from something else, or two were exchanged. Statistics of a transformed channel (a logarithm, a root, without
zeros) are as they should be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.channel_statistics import AGREES, FEWEST, Measured, matching, off_by, transformed
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number
from traindx_tools.on_data.view import Statistics, View
from traindx_tools.rules import Rule, Threshold

FAR = 0.5
TIMES = 5.0
SCALES = (1.0, 1.0 / 255.0, 255.0)
"""Statistics of pixels are of 0 to 1 or of 0 to 255."""
CHANNELS, SAME = 6, 0.02
LOGARITHMS = {
    10 / math.log(10): "decibels and natural logarithms",
    20 / math.log(10): "decibels of amplitudes and natural logarithms",
    math.log(10): "natural and common logarithms",
    math.log(2): "natural logarithms and those to base 2",
    10.0: "decibels and common logarithms",
}
"""What one factor between logarithms stands for."""

RULE = Rule(
    id="D138",
    name="stored-statistics",
    title="Statistics beside the data disagree with them",
    severity=Severity.HIGH,
    sees="means and standard deviations in files beside the data, and those of each channel or feature of the data",
    matters="The channel is shifted or scaled wrongly wherever it is normalised with these numbers.",
    alike=(
        "Statistics of training alone: those of all data differ by little.",
        "A channel that is transformed first: the logarithm agrees.",
        "Statistics of other data, such as ImageNet's: no channel agrees.",
    ),
    confirm=("Compute mean and standard deviation of the named channel from the training files.",
             "Write them into a copy of the file and train again."),
    thresholds={
        "agrees": Threshold(AGREES, "standard deviations", "within which a channel agrees; most must"),
        "far": Threshold(FAR, "standard deviations", "from which on one is far off, or its logarithm of the spread"),
        "times": Threshold(TIMES, "times", "the difference of training and all data, and the error of sampling"),
        "rows": Threshold(FEWEST, "rows", "of the data"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each such file, field and set."""
    for said in view.statistics:
        for data in view.sets:
            for measured in matching(data, said):
                found = _finding(said, measured) or _one_factor(said, measured)
                if found is not None:
                    yield found
                    break


def _finding(said: Statistics, measured: Measured) -> Finding | None:
    if not (np.isfinite(measured.margin).all() and (measured.spreads > 0).all() and (said.spreads > 0).all()):
        return None
    order = np.arange(len(said.means))
    off = min((off_by(said, measured, order, s) for s in SCALES), key=lambda o: int((o >= AGREES).sum()))
    scale = next(s for s in SCALES if np.array_equal(off, off_by(said, measured, order, s)))
    agree = off < np.maximum(AGREES, measured.margin)
    far = np.flatnonzero((off >= FAR) & (off >= TIMES * measured.margin))
    exchanged = _exchanged(said, measured, far, scale)
    enough = max(2, len(off) / 2) if exchanged is None else max(1, len(off) / 3)
    if not len(far) or agree.sum() < enough or agree.sum() + len(far) < len(off):
        return None
    if exchanged is None:
        far = np.array([k for k in far if not transformed(said, measured, int(k), scale)], np.int64)
    return _told(said, measured, far, exchanged, scale) if len(far) else None


def _one_factor(said: Statistics, measured: Measured) -> Finding | None:
    """All means and spreads are those of the data times one factor that stands between two kinds of logarithms."""
    if len(said.means) < CHANNELS or not (np.isfinite(measured.margin).all() and (measured.spreads > 0).all()
                                          and (said.spreads > 0).all()):
        return None
    factor = float(np.exp(np.median(np.log(said.spreads / measured.spreads))))
    known = next((f for f in LOGARITHMS for f in (f, 1 / f) if abs(math.log(factor / f)) < SAME), None)
    off = off_by(said, measured, np.arange(len(said.means)), factor)
    if known is None or (off >= np.maximum(AGREES, measured.margin)).any() or (
            np.abs(measured.means) < measured.spreads).all():
        return None
    of = f" of {measured.field}" if measured.field else ""
    between = LOGARITHMS.get(known) or LOGARITHMS[min(LOGARITHMS, key=lambda f: abs(f * known - 1))]
    return RULE.finding(
        f"{said.file} says {number(factor)} times the mean and standard deviation{of} for each of {len(said.means)} "
        f"channels (the first: {number(said.means[0])} and {number(said.spreads[0])} against "
        f"{number(measured.means[0])} and {number(measured.spreads[0])} in the data): that is between {between}, so "
        "that one of both was computed of the other kind",
        Location(file=said.file),
        said.file,
        bearing=Bearing.CAUSE,
        measured={"field": measured.field, "factor": factor, "channels": said.names or (), "kind": "logarithms"},
    )


def _exchanged(said: Statistics, measured: Measured, far: Array, scale: float) -> tuple[int, int] | None:
    if len(far) != 2:
        return None
    order = np.arange(len(said.means))
    order[far] = far[::-1]
    off = off_by(said, measured, order, scale)
    return (int(far[0]), int(far[1])) if bool((off[far] < AGREES).all()) else None


def _told(
    said: Statistics, measured: Measured, far: Array, exchanged: tuple[int, int] | None, scale: float
) -> Finding:
    names = [said.names[k] if said.names else f"channel {k}" for k in far]
    of = f" of {measured.field}" if measured.field else ""
    numbers = [
        f"{name}{of}: mean {number(said.means[k])} and standard deviation {number(said.spreads[k])} against "
        f"{number(measured.means[k] * scale)} and {number(measured.spreads[k] * scale)} in the data"
        for name, k in zip(names, far, strict=True)
    ]
    how = f"; {names[0]} and {names[1]} were exchanged" if exchanged is not None else ""
    return RULE.finding(
        f"{said.file} disagrees with the data that it would normalise: {listed(numbers, 3)}{how}; the other "
        f"{len(said.means) - len(far)} agree",
        Location(file=said.file),
        said.file,
        bearing=Bearing.CAUSE,
        measured={"field": measured.field, "channels": tuple(names), "kind": "exchanged" if how else "statistics"},
    )

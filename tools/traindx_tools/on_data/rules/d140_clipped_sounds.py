"""Sounds of one speaker, folder or source are clipped: flat at their own extreme, well below full scale.

A gain that was too high before another one lowered it, a microphone at its limit. Told is only what most files of one
origin have and hardly any other: sounds that are limited at full scale, or all alike, are a choice, and neither are
square waves and sounds so quiet that rounding makes their peaks flat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.places import number, percent, place
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import Array, DataSet, View
from traindx_tools.rules import Rule, Threshold

FEWEST = 8
MOST = 0.6
OTHERS = 0.1
FULL = 0.9
FLAT = 0.4

RULE = Rule(
    id="D140",
    name="clipped-sounds",
    title="The sounds of one origin are clipped",
    severity=Severity.MEDIUM,
    sees="the extreme of each sound and how many samples in a row have it, by name, folder, archive and manifest",
    matters="Peaks are lost and overtones added: a model learns the device instead of what was said.",
    alike=(
        "Sounds that are limited at full scale, or all of them.",
        "Square waves; quiet sounds, whose rounded peaks are flat.",
    ),
    confirm=("Plot the loudest part of one of the named files.", "Ask how the files of that origin were recorded."),
    thresholds={
        "fewest": Threshold(FEWEST, "files", "of the origin, and of the others"),
        "most": Threshold(MOST, "share of the origin's files", "that are clipped at least"),
        "others": Threshold(OTHERS, "share of the other files", "that are clipped at most"),
        "full": Threshold(FULL, "share of full scale", "below which the extreme lies"),
        "flat": Threshold(FLAT, "share of the samples near the extreme", "that stand in runs of three at it"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all origins"),
    },
)


@dataclass(frozen=True, eq=False)
class _Origin:
    """Files that have something in common, and the chance that so many are clipped."""

    by: str
    value: str
    inside: Array
    clipped: int
    log_chance: float


def check(view: View) -> Iterator[Finding]:
    """A finding for the surest origin of each set."""
    for data in view.sets:
        shards = [s for s in data.shards if s.flat_tops is not None and len(s.flat_tops) == len(s.row_names)]
        if shards:
            tops = np.concatenate([s.flat_tops for s in shards if s.flat_tops is not None])
            names = [n for s in shards for n in s.row_names]
            archive = np.repeat([s.name for s in shards], [len(s.row_names) for s in shards])
            yield from _of_set(data, tops, names, archive, view)


def _of_set(data: DataSet, tops: Array, names: list[str], archive: Array, view: View) -> Iterator[Finding]:
    known = np.isfinite(tops[:, 0])
    clipped = known & (tops[:, 0] < FULL) & (tops[:, 1] >= FLAT)
    if clipped.sum() < MOST * FEWEST:
        return
    ways = [*groups_of(names, view), ("file", archive)]
    origins = [(by, v) for by, values in ways for v in np.unique(values) if 1 < len(np.unique(values)) < len(values)]
    found = [o for by, values in ways for v in np.unique(values) if (by, v) in set(origins)
             for o in (_origin(by, str(v), (values == v) & known, clipped, known),) if o is not None]
    best = min(found, key=lambda o: o.log_chance, default=None)
    if best is not None and best.log_chance + math.log(len(origins) * view.comparisons) < math.log(LEVEL):
        yield _finding(data, best, tops, names, clipped)


def _origin(by: str, value: str, inside: Array, clipped: Array, known: Array) -> _Origin | None:
    others = known & ~inside
    if inside.sum() < FEWEST or others.sum() < FEWEST:
        return None
    hits, rest = int(clipped[inside].sum()), int(clipped[others].sum())
    if hits < MOST * inside.sum() or rest > OTHERS * others.sum():
        return None
    chance = share_tail(hits, int(inside.sum()), (rest + 1) / (int(others.sum()) + 2))
    return _Origin(by, value, inside, hits, math.log(max(chance, 1e-300)))


def _finding(data: DataSet, origin: _Origin, tops: Array, names: list[str], clipped: Array) -> Finding:
    which = np.flatnonzero(origin.inside & clipped)
    level = float(np.median(tops[which, 0]))
    shard = next(s for s in data.shards if names[int(which[0])] in s.row_names)
    rest = ~origin.inside & np.isfinite(tops[:, 0])
    return RULE.finding(
        f"{origin.clipped} of {int(origin.inside.sum())} sounds with {origin.value} as {origin.by} are clipped: they "
        f"stay at their own extreme, {percent(level)} of full scale (median), for three samples and more, such as "
        f"{names[int(which[0])]}; of the others {percent(float(clipped[rest].mean()))}",
        place(shard),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"by": origin.by, "value": origin.value, "count": origin.clipped, "level": level,
                  "log_chance": number(origin.log_chance), "kind": "clipped"},
    )

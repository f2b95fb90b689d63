"""Sounds of one speaker, folder or source are clipped: flat at full scale, or at their own extreme well below it.

A gain that was too high, perhaps before another one lowered it; a microphone at its limit. Told is only what most files
of one origin have and hardly any other, at full scale next to none; below full scale also what a quarter of them has
and next to no other. Sounds that are all alike are a choice, as loud music is. A single peak at full scale
is a sound that was scaled to it. Square waves, and sounds so quiet that rounding makes their peaks flat, are not
clipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.places import number, percent, place
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 8
MOST = 0.6
SOME, NO_OTHERS = 0.25, 0.02
OTHERS = 0.1
FULL = 0.9
FLAT = 0.4
OTHERS_AT_FULL = 0.02
AT_FULL = (127 / 128, 1.0001)

RULE = Rule(
    id="D140",
    name="clipped-sounds",
    title="The sounds of one origin are clipped",
    severity=Severity.MEDIUM,
    sees="the extreme of each sound and how many samples in a row have it, by name, folder, archive and manifest",
    matters="Peaks are lost and overtones added: a model learns the device instead of what was said.",
    alike=(
        "Sounds that are limited a little below full scale; loud music, where all files are.",
        "Square waves; quiet sounds, whose rounded peaks are flat.",
    ),
    confirm=("Plot the loudest part of one of the named files.", "Ask how the files of that origin were recorded."),
    thresholds={
        "fewest": Threshold(FEWEST, "files", "of the origin, and of the others"),
        "most": Threshold(MOST, "share of the origin's files", "that are clipped at least"),
        "some": Threshold(SOME, "share of the origin's files", "that do where next to none of the others does; not at "
                          "full scale, where the loudest of a class are by nature"),
        "others": Threshold(OTHERS, "share of the other files", "that are clipped at most"),
        "full": Threshold(FULL, "share of full scale", "below which the extreme lies, where it is not at full scale"),
        "at_full": Threshold(AT_FULL[0], "share of full scale", "that is full scale: the highest step of 8 bits"),
        "others_at_full": Threshold(OTHERS_AT_FULL, "share of the other files", "that are clipped at full scale"),
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
    flat = known & (tops[:, 1] >= FLAT)
    below = flat & (tops[:, 0] < FULL)
    full = flat & (tops[:, 0] >= AT_FULL[0]) & (tops[:, 0] <= AT_FULL[1])
    if max(below.sum(), full.sum()) < MOST * FEWEST:
        return
    ways = [*groups_of(names, view), ("file", archive)]
    origins = [(by, str(v), (values == v) & known) for by, values in ways
               for kinds in (np.unique(values),) if 1 < len(kinds) < len(values) for v in kinds]
    for clipped, least, most_others in ((below, MOST, OTHERS), (full, MOST, OTHERS_AT_FULL), (below, SOME, NO_OTHERS)):
        found = [_origin(by, value, inside, clipped, known, least, most_others) for by, value, inside in origins]
        best = min((o for o in found if o is not None), key=lambda o: o.log_chance, default=None)
        comparisons = 3 * len(origins) * view.comparisons
        if best is not None and best.log_chance + math.log(comparisons) < math.log(LEVEL):
            yield _finding(data, best, tops, names, clipped)
            return


def _origin(by: str, value: str, inside: Array, clipped: Array, known: Array, least: float, most_others: float
            ) -> _Origin | None:
    others = known & ~inside
    if inside.sum() < FEWEST or others.sum() < FEWEST:
        return None
    hits, rest = int(clipped[inside].sum()), int(clipped[others].sum())
    if hits < max(least * inside.sum(), MOST * FEWEST) or rest > most_others * others.sum():
        return None
    chance = share_tail(hits, int(inside.sum()), (rest + 1) / (int(others.sum()) + 2))
    return _Origin(by, value, inside, hits, math.log(max(chance, 1e-300)))


def _finding(data: DataSet, origin: _Origin, tops: Array, names: list[str], clipped: Array) -> Finding:
    which = np.flatnonzero(origin.inside & clipped)
    level = float(np.median(tops[which, 0]))
    shard = next(s for s in data.shards if names[int(which[0])] in s.row_names)
    rest = ~origin.inside & np.isfinite(tops[:, 0])
    where = "full scale" if level >= AT_FULL[0] else f"their own extreme, {percent(level)} of full scale (median),"
    return RULE.finding(
        f"{origin.clipped} of {int(origin.inside.sum())} sounds with {origin.value} as {origin.by} are clipped: they "
        f"stay at {where} for three samples and more, such as "
        f"{names[int(which[0])]}; of the others {percent(float(clipped[rest].mean()))}",
        place(shard),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"by": origin.by, "value": origin.value, "count": origin.clipped, "level": level,
                  "log_chance": number(origin.log_chance), "kind": "clipped", "at_full_scale": level >= AT_FULL[0]},
    )

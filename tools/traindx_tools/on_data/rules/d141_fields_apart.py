"""Two fields of the same rows do not belong together: one lags behind the other, or was sorted otherwise.

Masks and pictures, embeddings and features, inputs and outputs of a simulation tell something of each other. What one
says of the other fits the row's own better than those of ten neighbours; where it fits a neighbour's, all by the same
number of rows, one of the two lags. Where nothing fits, and sorting one of them by a column of the table makes it fit,
they were joined by position after one was sorted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.pairs import LAGS, Side, agreement, best_lag, predicted, sides_of, truth_of
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stretches import Stretch, heaviest, log_chance
from traindx_tools.on_data.table import Array, Shard, View
from traindx_tools.rules import Rule, Threshold

FITS = 0.4
LOST = 0.25
FEWEST = 20
MOST_SIDES = 5
JOINED = 0.25
CHANCE = 0.08
KEYS = 6

RULE = Rule(
    id="D141",
    name="fields-apart",
    title="Two fields of the same rows do not belong together",
    severity=Severity.HIGH,
    sees="what pictures and vectors of a row say of each other, for the row and ten neighbours, and after sorting",
    matters="The model learns from pairs that are none, and averages over the file hide it.",
    alike=("Fields that tell nothing of each other: nothing is said.", "Frames of a video: neighbours fit as well."),
    confirm=("Look at ten pairs of the named rows, and at those after the shift or the sorting.",),
    thresholds={
        "fits": Threshold(FITS, "share of the other rows", "that their own must fit best, of eleven"),
        "lost": Threshold(LOST, "share of the named rows", "that their own may fit best"),
        "joined": Threshold(JOINED, "mean correlation", "after sorting, where it was below chance before"),
        "chance": Threshold(CHANCE, "mean correlation", "at most, of fields that do not belong together as stored"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches, shifts and pairs of fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of fields and shard."""
    for data in view.sets:
        for group in data.splits.values():
            whole = tuple(s for s in group if s.columns and s.numbers is None and s.rows >= 2 * FEWEST)
            if whole:
                sides = sides_of(whole, data.fields)[:MOST_SIDES]
                for a, b in itertools.permutations(sides, 2):
                    found = list(_of_pair(whole, a, b, view.comparisons))
                    yield from found
                    if found:
                        break  # the other way round it is the same


def _of_pair(group: Sequence[Shard], a: Side, b: Side, comparisons: int) -> Iterator[Finding]:
    said = predicted(a, b)
    if said is None:
        return
    truth = [truth_of(b, i) for i in range(len(group))]
    lags = [best_lag(s, t) for s, t in zip(said, truth, strict=True)]
    own = float(np.mean(np.concatenate(lags) == 0))
    if own >= FITS / 2:
        for i, lag in enumerate(lags):
            yield from _lagging(group, i, a, b, lag, lags, comparisons)
    broken = [i for i, (s, t) in enumerate(zip(said, truth, strict=True))
              if abs(float(agreement(s, t).mean())) < CHANCE + 2.0 / math.sqrt(len(s))]
    if broken and not a.picture:
        before = float(np.mean(np.concatenate([agreement(said[i], truth[i]) for i in broken])))
        yield from _sorted(group, broken, a, b, before, comparisons)


def _lagging(
    group: Sequence[Shard], i: int, a: Side, b: Side, lag: Array, every: Sequence[Array], comparisons: int
) -> Iterator[Finding]:
    """The surest stretch whose rows fit a neighbour's."""
    own, best = lag == 0, None
    for k in (k for k in LAGS if k):
        moved = lag == k
        stretch = heaviest(moved.astype(np.float64) - own)
        inside = stretch.inside(len(lag))
        others = np.concatenate([own[~inside], *(o == 0 for j, o in enumerate(every) if j != i)])
        if stretch.rows < FEWEST or len(others) < FEWEST or float(others.mean()) < FITS:
            continue
        if float(own[inside].mean()) > LOST or float(moved[inside].mean()) < 0.6 * float(others.mean()):
            continue
        chance = log_chance(int((moved & inside).sum()), int((own & inside).sum()), len(lag),
                            comparisons * len(LAGS) ** 2)
        if chance < math.log(LEVEL) and (best is None or chance < best[0]):
            best = (chance, stretch, k, float(moved[inside].mean()), float(others.mean()))
    if best is not None:
        yield _lag_finding(group[i], a, b, best[1], best[2], best[3], best[4])


def _lag_finding(shard: Shard, a: Side, b: Side, stretch: Stretch, lag: int, share: float, usual: float) -> Finding:
    last = stretch.end - 1
    late = "late" if lag > 0 else "early"
    return RULE.finding(
        f"{b.name} of {short(shard)} does not belong to {a.name} in rows {stretch.start}..{last}: it is off by "
        f"{abs(lag)} row{'s' * (abs(lag) != 1)} ({late}) there; {percent(share)} of these rows fit that one best, and "
        f"{percent(usual)} of the others their own",
        place(shard, b.name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": b.name, "beside": a.name, "lag": lag, "rows": (stretch.start, last), "share": share,
                  "kind": "lag", "shard": short(shard)},
    )


def _sorted(
    group: Sequence[Shard], broken: Sequence[int], a: Side, b: Side, before: float, comparisons: int
) -> Iterator[Finding]:
    """The column by which one of both was sorted, where sorting makes them fit."""
    best: tuple[float, str, int] | None = None
    for key in _keys(group):
        orders = [np.argsort(np.asarray(s.columns[key].values)[: len(b.parts[i])], kind="stable")
                  for i, s in enumerate(group)]
        for way in (0, 1):
            order = {i: (np.argsort(o) if way else o) if i in broken else np.arange(len(o))
                     for i, o in enumerate(orders)}
            said = predicted(a, b, order)
            if said is None:
                return
            fits = np.concatenate([agreement(said[i], truth_of(b, i)[order[i]]) for i in broken])
            sure = float(fits.mean()) * math.sqrt(len(fits)) / max(1e-9, float(fits.std()))
            enough = 6.0 + math.sqrt(2 * math.log(2 * KEYS * comparisons))
            if float(fits.mean()) >= JOINED and sure > enough and (best is None or float(fits.mean()) > best[0]):
                best = float(fits.mean()), key, way
    if best is None:
        return
    fit, key, way = best
    shard = group[broken[0]]
    files = short(shard) if len(broken) == 1 else f"{short(shard)} and {len(broken) - 1} more files"
    sorted_one, other = (b.name, a.name) if way else (a.name, b.name)
    yield RULE.finding(
        f"{b.name} and {a.name} of {files} do not belong to each other row by row (mean correlation "
        f"{before:.2f} of what one says of the other, {fit:.2f} after the rows of one are put in the order of {key}): "
        f"{sorted_one} was sorted by {key} and {other} was not",
        place(shard, b.name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": b.name, "beside": a.name, "key": key, "fit": fit, "files": len(broken),
                  "kind": "sorted", "shard": short(shard)},
    )


def _keys(group: Sequence[Shard]) -> list[str]:
    """Columns of single numbers by which rows can be sorted: most values differ, and they are in no order yet."""
    out = []
    for name, column in group[0].columns.items():
        if column.kind != "number" or column.row_shape or any(
                name not in s.columns or s.columns[name].rows != s.rows for s in group):
            continue
        values = np.asarray(column.values[:4000])
        if len(np.unique(values)) > 0.9 * len(values) and bool((np.diff(values.astype(np.float64)) < 0).any()):
            out.append(name)
    return out[:KEYS]

"""Two fields of the same rows do not belong together: one lags behind the other, or was sorted otherwise.

Masks and pictures, embeddings and features, inputs and outputs of a simulation tell something of each other. What one
says of the other fits the row's own better than those of ten neighbours; where it fits a neighbour's, all by the same
number of rows, one of the two lags. Where nothing fits, and sorting one of them by a column of the table makes it fit,
they were joined by position after one was sorted: also by numbers as text (1, 10, 100, 2), reversed, or shuffled by a
usual seed. What slowly changes along the rows is taken out of both sides where a whole table is laid beside vectors.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.other_order import Reordered, reordered
from traindx_tools.on_data.pairs import LAGS, Side, agreement, best_lag, kinds_of, predicted, sides_of, truth_of
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.row_orders import orders_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stretches import Stretch, heaviest, log_chance
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FITS = 0.4
LOST = 0.25
FEWEST = 20
MOST_SIDES = 5
JOINED = 0.25
CHANCE = 0.08
MOST_JOINED = 40
"""Files of a set that is laid beside another one, and such sets."""

RULE = Rule(
    id="D141",
    name="fields-apart",
    title="Two fields of the same rows do not belong together",
    severity=Severity.HIGH,
    sees="what pictures, vectors and texts of a row say of each other, for it and ten neighbours, and after sorting; "
         "what the columns of a table say of the vectors of another file of as many rows, and after sorting",
    matters="The model learns from pairs that are none, and averages over the file hide it.",
    alike=("Fields that tell nothing of each other: nothing is said.",
           "Frames of a video, rows that overlap: neighbours fit as well, and other stretches by other shifts."),
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
    """A finding for each pair of fields and shard, and for each pair of files that lie in different orders."""
    told: set[str] = set()
    for finding in _of_fields(view):
        told.add(str(finding.where.file))
        yield finding
    for found in reordered(view):
        if not told & {found.table.name, found.vectors.name}:
            yield _order_finding(found)


def _of_fields(view: View) -> Iterator[Finding]:
    for data in view.sets:
        for group in data.splits.values():
            yield from _of_group([s for s in group if s.columns and s.numbers is None], view.comparisons)
    few = [d for d in view.sets if len(d.shards) <= MOST_JOINED][:MOST_JOINED]
    for one, other in itertools.combinations(few, 2):
        yield from _of_group(_joined(one, other), view.comparisons, across=frozenset(one.fields))


def _joined(one: DataSet, other: DataSet) -> list[Shard]:
    """Tables of one folder with as many rows each, such as texts and their vectors, as the fields of the same rows."""
    pairs = list(zip(one.shards, other.shards, strict=False))
    if len(one.shards) != len(other.shards) or any(
            a.rows != b.rows or a.split != b.split or a.numbers is not None or b.numbers is not None
            or os.path.dirname(a.name) != os.path.dirname(b.name) or set(a.columns) & set(b.columns)
            for a, b in pairs):
        return []
    return [replace(a, columns={**a.columns, **b.columns}) for a, b in pairs if a.columns and b.columns]


def _of_group(group: Sequence[Shard], comparisons: int, across: frozenset[str] | None = None) -> Iterator[Finding]:
    """`across`: fields of one table, where only pairs with a field of another one are asked of."""
    whole = tuple(s for s in group if s.rows >= 2 * FEWEST)
    if not whole:
        return
    sides = sides_of(whole, tuple(dict.fromkeys(n for s in whole for n in s.columns)))[:MOST_SIDES]
    sides += list(kinds_of(whole)) if across is not None else []
    for a, b in itertools.permutations(sides, 2):
        if (a.text and b.text) or a.kinds or (across is not None and (a.name in across) == (b.name in across)):
            continue  # two texts of a row are told by their words
        found = list(_of_pair(whole, a, b, comparisons))
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
    if best is not None and not _is_usual(best[1], best[2], i, every):
        yield _lag_finding(group[i], a, b, best[1], best[2], best[3], best[4])


def _is_usual(stretch: Stretch, lag: int, i: int, every: Sequence[Array]) -> bool:
    """Whether other stretches gain half as much by other shifts: rows that overlap or follow a slow series do so."""
    gain = _gain(every[i][stretch.start: stretch.end], lag)
    outside = [np.where(stretch.inside(len(o)), 0, o) if j == i else o for j, o in enumerate(every)]
    return any(2 * _gain(o[s.start: s.end], k) > gain for o in outside for k in LAGS if k and k != lag
               for s in (heaviest((o == k) - 1.0 * (o == 0)),))


def _gain(lags: Array, lag: int) -> int:
    return int((lags == lag).sum()) - int((lags == 0).sum())


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
    keys = orders_of(group)
    for key, values in keys:
        orders = [np.argsort(v[: len(b.parts[i])], kind="stable") for i, v in enumerate(values)]
        for way in (0, 1):
            order = {i: (np.argsort(o) if way else o) if i in broken else np.arange(len(o))
                     for i, o in enumerate(orders)}
            said = predicted(a, b, order)
            if said is None:
                return
            fits = np.concatenate([agreement(said[i], truth_of(b, i)[order[i]]) for i in broken])
            sure = float(fits.mean()) * math.sqrt(len(fits)) / max(1e-9, float(fits.std()))
            enough = 6.0 + math.sqrt(2 * math.log(2 * len(keys) * comparisons))
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
        f"{sorted_one} was put in that order and {other} was not",
        place(shard, b.name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": b.name, "beside": a.name, "key": key, "fit": fit, "files": len(broken),
                  "kind": "sorted", "shard": short(shard)},
    )


def _order_finding(f: Reordered) -> Finding:
    table, vectors = short(f.table), short(f.vectors)
    sort = {"rising": f"sorted by {f.by}", "falling": f"sorted by {f.by}, the largest first",
            "text": f"sorted by {f.by} as text", "numbers": f"sorted by the numbers in {f.by}"}[f.how]
    return RULE.finding(
        f"the {f.table.rows:,} rows of {table} and of {vectors} belong together in another order: {f.tells} tells "
        f"{percent(f.after)} of the vectors' directions once {table} is {sort}, and {percent(f.before)} as the rows "
        f"lie; {f.apart:,} rows then lie elsewhere. Joined by their places, each gets the vector of another one",
        place(f.table, f.by), f.table.name, severity=Severity.MEDIUM, bearing=Bearing.CAUSE,
        measured={"field": f.tells, "beside": f"{f.field} of {vectors}", "by": f.by, "how": f.how, "fit": f.after,
                  "before": f.before, "apart": f.apart, "kind": "order"})

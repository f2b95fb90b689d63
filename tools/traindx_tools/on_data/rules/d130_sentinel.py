"""One number far from all others of its field recurs: a mark such as -999 for what was not measured.

A loader that does not know the mark feeds it to the model as a measurement. A number is a mark where it recurs exactly,
nothing lies near it or beyond it, and the gap to the rest is wide against the spread of the rest and against its tail.
Whether it is told depends on where it stands: in a stretch of rows, in some shards only, in a field whose missing
values are empty otherwise, or as one of the numbers that serve as marks. Zeros and -1 that occur evenly are counts and
classes, and nothing is said; neither where another field marks the same places, nor where a class has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import listed, number, place, rows, short
from traindx_tools.on_data.recordings import in_groups
from traindx_tools.on_data.roles import codes, is_id_name, is_identifier, keys
from traindx_tools.on_data.sentinels import FAR, FEWEST, RANGE, TAIL, Mark, marks_in
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import Stretch, heaviest
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

DENSE = 0.5
TIMES = 5.0
IGNORE = -100.0

RULE = Rule(
    id="D130",
    name="sentinel",
    title="A number stands for what was not measured",
    severity=Severity.MEDIUM,
    sees="the smallest and the largest number of each field and feature, how often it recurs, and the gap to the rest",
    matters="As a measurement it is far out: it moves means and scales, and the model learns the mark.",
    alike=(
        "A heavy tail: its extremes do not recur.",
        "A count that is mostly 0, a class -1: in all shards alike.",
        "A mark that a mask beside it names.",
    ),
    confirm=("Print the named rows.", "Look whether the loader replaces the number before it scales the field."),
    thresholds={
        "fewest": Threshold(FEWEST, "rows", "fewer may be chance"),
        "tail": Threshold(TAIL, "mean excesses of the outer values", "an exponential tail leaves no such gap"),
        "range": Threshold(RANGE, "of the range of the rest", "a narrower gap is no other kind of value"),
        "far": Threshold(FAR, "times the range of the rest", "no measurement of the field"),
        "level": Threshold(LEVEL, "probability", "that rows with it stand so together by chance"),
    },
)


@dataclass(frozen=True)
class _Where:
    """In which way the rows with a mark stand out: a clause, a kind, and the shard with its rows."""

    kind: str
    clause: str
    shard: int
    stretch: Stretch | None = None


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and number."""
    for data in view.sets:
        for name in data.fields:
            shards = [s for s in data.shards if name in s.columns and s.rows and not in_groups(s)]
            if not shards or not all(_looked_at(s.columns[name]) for s in shards):
                continue
            found = [f for m in marks_in(shards, name) if (f := _told(data, shards, name, m, view.comparisons))]
            yield from found[:MOST_FEATURES]


MOST_FEATURES = 3
"""Features of one field that are told: where a row was not measured, all of it was not."""


def _looked_at(column: Column) -> bool:
    """Measurements: fractions, or whole numbers of a table. Arrays of whole numbers are tokens and pixels."""
    if column.kind != "number" or is_identifier(column) or is_id_name(column.name):
        return False
    return column.is_float or (column.values.dtype.kind in "iu" and not column.row_shape)


def _told(data: DataSet, shards: Sequence[Shard], name: str, mark: Mark, comparisons: int) -> Finding | None:
    if mark.value == IGNORE or _masked(shards, name, mark):
        return None
    places = [w for w in (_stretch(shards, mark, comparisons), _some_shards(shards, mark, comparisons),
                          _else_empty(shards, name, mark)) if w is not None]
    if mark.is_code:
        places.append(_Where("mark", "", int(np.argmax([h.sum() for h in mark.hits]))))
    elif places and _of_a_class(data, shards, name, mark):
        return None
    return _finding(shards, name, mark, places) if places else None


def _masked(shards: Sequence[Shard], name: str, mark: Mark) -> bool:
    """Whether another field marks the same rows."""
    for shard, hits in zip(shards, mark.hits, strict=True):
        if not hits.any():
            continue
        for other, column in shard.columns.items():
            if other != name and column.kind == "number" and column.values.dtype.kind in "biu":
                flags = column.values.reshape(shard.rows, -1)
                low = flags.min(axis=1) == 0 if flags.shape[1] else np.zeros(shard.rows, bool)
                if set(np.unique(flags[:1000]).tolist()) <= {0, 1} and ((low == hits).all() or (low != hits).all()):
                    return True
    return False


def _stretch(shards: Sequence[Shard], mark: Mark, comparisons: int) -> _Where | None:
    best: tuple[float, _Where] | None = None
    for i, (shard, hits) in enumerate(zip(shards, mark.hits, strict=True)):
        share = float(hits.mean())
        if hits.sum() < 2 * FEWEST or share >= DENSE or shard.numbers is not None:
            continue
        weights = np.where(hits, math.log((DENSE + 0.3) / share), math.log((0.7 - DENSE) / (1.0 - share)))
        found = heaviest(weights)
        inside = int(hits[found.start:found.end].sum())
        outside = (int(hits.sum()) - inside + 1) / max(1, len(hits) - found.rows)
        if inside < 2 * FEWEST or inside / found.rows < max(DENSE, TIMES * outside):
            continue
        p = share_tail(inside, found.rows, min(1.0, outside)) * len(hits) ** 2 * comparisons
        if p < LEVEL and (best is None or p < best[0]):
            clause = f"{inside:,} of them in rows {found.start}..{found.end - 1}"
            best = (p, _Where("stretch", clause, i, found))
    return best[1] if best else None


def _some_shards(shards: Sequence[Shard], mark: Mark, comparisons: int) -> _Where | None:
    having = [i for i, h in enumerate(mark.hits) if h.any()]
    if len(shards) < 3 or not 0 < len(having) <= len(shards) / 2:
        return None
    rest = sum(shards[i].rows for i in range(len(shards)) if i not in having)
    p = share_tail(sum(int(mark.hits[i].sum()) for i in having), sum(shards[i].rows for i in having), 1.0 / rest)
    if p * comparisons > LEVEL:
        return None
    names = listed([f"{short(shards[i])} ({int(mark.hits[i].sum()):,})" for i in having])
    first = max(having, key=lambda i: int(mark.hits[i].sum()))
    return _Where("some-shards", f"in {names} alone of {len(shards)} files", first)


def _else_empty(shards: Sequence[Shard], name: str, mark: Mark) -> _Where | None:
    """Missing values of the same field are empty or NaN elsewhere."""
    empty = 0
    for shard in shards:
        values = np.asarray(shard.columns[name].values)
        if values.dtype.kind == "f":
            part = values if mark.feature is None else values.reshape(len(values), -1)[:, mark.feature]
            empty += int(np.isnan(part).sum())
    first = int(np.argmax([h.sum() for h in mark.hits]))
    return _Where("else-empty", f"where nothing was measured {empty:,} values are empty", first) if empty else None


def _of_a_class(data: DataSet, shards: Sequence[Shard], name: str, mark: Mark) -> bool:
    """Whether a label says which rows have it."""
    for label in (n for n in data.labels if n != name):
        having = [(s, h) for s, h in zip(shards, mark.hits, strict=True) if label in s.columns]
        if not having:
            continue
        kinds = np.unique(np.concatenate([keys(s.columns[label]) for s, _ in having]))
        y = np.concatenate([codes(s.columns[label], kinds) for s, _ in having])
        hits = np.concatenate([h for _, h in having])
        sizes = np.maximum(1, np.bincount(y, minlength=len(kinds)))
        shares = np.bincount(y, weights=hits, minlength=len(kinds)) / sizes
        if shares.max() > 0.9 and ((shares > 0.9) | (shares < 0.1)).all():
            return True
    return False


def _finding(shards: Sequence[Shard], name: str, mark: Mark, places: Sequence[_Where]) -> Finding:
    main = places[0]
    shard, hits = shards[main.shard], mark.hits[main.shard]
    where = np.flatnonzero(hits)
    if main.stretch is not None:
        where = where[(where >= main.stretch.start) & (where < main.stretch.end)]
    what = name if mark.feature is None else f"feature {mark.feature} of {name}"
    total, files = sum(int(h.sum()) for h in mark.hits), sum(bool(h.any()) for h in mark.hits)
    clauses = "".join(f"; {w.clause}" for w in places if w.clause)
    return RULE.finding(
        f"{what} of {short(shard)} is {mark.value:.10g} in {int(hits.sum()):,} rows ({total:,} in {files} of "
        f"{len(shards)} files), {number(mark.gap)} times the range of all other values away from them: "
        f"{rows(shard, where)}{clauses}",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"field": name, "feature": mark.feature, "value": mark.value, "count": total, "gap": mark.gap,
                  "rows": _extent(where), "kind": main.kind, "shard": short(shard)},
    )


def _extent(where: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in where[:20])

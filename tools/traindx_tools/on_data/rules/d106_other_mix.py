"""The whole numbers of a field (labels, lengths, tokens) are mixed otherwise in one shard than in its siblings.

Tested with a G-test against the typical mix, and held against the spread of the siblings: shards that were made by
class or by source differ all from each other, and then none is named. The effect is the total variation distance, the
share of rows that would have to change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.entities import are_entities
from traindx_tools.on_data.places import number, of, percent, place, short
from traindx_tools.on_data.robust import standing_out
from traindx_tools.on_data.roles import is_label, is_row_id, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, chi2_tail
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

EFFECT = 0.2
FEWEST = 50
BINS = 32
BLOCKS = 3
"""Times the number of values that they change from row to row at most, where rows are sorted by them."""

RULE = Rule(
    id="D106",
    name="other-mix",
    title="A shard has another mix of values than its siblings",
    severity=Severity.MEDIUM,
    sees="histograms of labels, lengths and other whole numbers, by shard",
    matters="Labels that were mapped or filtered otherwise, texts that were cut or padded otherwise.",
    alike=("Shards by class or by source: all differ.", "A small last shard."),
    confirm=("Compare the shard's source and the step that made it with those of its siblings.",),
    thresholds={
        "effect": Threshold(EFFECT, "total variation distance", "beyond what sampling makes of it: less is common"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and fields"),
        "fewest": Threshold(FEWEST, "rows", "a smaller shard shows no mix"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field that stands out."""
    for data in view.sets:
        for name in data.fields:
            for group in data.siblings(name):
                group = tuple(s for s in group if s.rows >= FEWEST and _counted(s, name))
                # Lists that have all one length in a file are arrays there: buckets by length, and no mix.
                if len(group) >= 4 and len({s.columns[name].kind for s in group}) == 1:
                    yield from _among(data, group, name, view.comparisons)


def _counted(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    if column.kind != "number":
        return True
    return (
        column.is_integer
        and not is_row_id(column)
        and (not column.row_shape or shard.summaries[name].histogram is not None)
    )


def _values(shard: Shard, name: str, words: bool) -> Array:
    """`words`: texts are labels in some file of the group, so they are in all."""
    column = shard.columns[name]
    if column.kind == "text":
        return keys(column) if words else column.lengths
    return column.lengths if column.kind == "sequence" else column.values.reshape(-1)[:500_000]


def _counts(group: Sequence[Shard], name: str) -> tuple[Array, Array]:
    """Shape (shards, bins): how often each value, or each range of values, occurs; and the values or lower edges."""
    words = any(is_label(s.columns[name]) for s in group)
    parts = [_values(s, name, words) for s in group]
    kinds = distinct(np.concatenate([distinct(p) for p in parts]))
    if len(kinds) > BINS:
        pool = np.sort(np.concatenate([p[:: max(1, len(p) // 2000)] for p in parts]))
        kinds = np.unique(pool[np.linspace(0, len(pool) - 1, BINS).astype(np.int64)])
    at = [np.clip(np.searchsorted(kinds, p, side="right") - 1, 0, len(kinds) - 1) for p in parts]
    return np.stack([np.bincount(a, minlength=len(kinds)) for a in at]).astype(np.float64), kinds


def _among(data: DataSet, group: Sequence[Shard], name: str, comparisons: int) -> Iterator[Finding]:
    counts, kinds = _counts(group, name)
    if counts.shape[1] < 2:
        return
    shares = counts / counts.sum(axis=1, keepdims=True)
    typical = np.median(shares, axis=0)
    if typical.sum() < 0.3:
        return  # no mix is typical: each shard holds values of its own
    typical = (typical + 1e-4 / len(typical)) / (typical.sum() + 1e-4)
    rows = np.array([s.rows for s in group], np.float64)
    # What sampling makes of the distance: mean and standard deviation of sums of half-normal variables.
    spread = typical * (1 - typical)
    by_chance = 0.5 * np.sqrt(2 * spread / math.pi).sum() / np.sqrt(rows)
    scatter = 0.5 * np.sqrt((1 - 2 / math.pi) * spread.sum() / rows)
    distance = 0.5 * np.abs(shares - typical).sum(axis=1) - by_chance
    for odd in standing_out(distance, 0.02 + scatter, comparisons, EFFECT):
        scaled = counts[odd.index] * rows[odd.index] / counts[odd.index].sum()  # items of one row are no rows
        expected = typical * rows[odd.index]
        g = 2.0 * float((scaled * np.log(np.maximum(scaled, 1e-12) / expected))[scaled > 0].sum())
        p = chi2_tail(g, len(kinds) - 1) * comparisons
        if odd.delta > 0 and p < LEVEL:
            yield _finding(
                data,
                group[odd.index],
                name,
                float(distance[odd.index]),
                p,
                shares[odd.index] - typical,
                kinds,
                len(group),
                _by_design(group, name),
            )


def _by_design(group: Sequence[Shard], name: str) -> str:
    """A clause where each file has a mix of its own by nature: it is one entity, or the rows are sorted by it."""
    if are_entities(group) or _named_by_a_field(group):
        return "; each file has a mix of its own"
    values = [_values(s, name, is_label(s.columns[name])) for s in group]
    every = np.concatenate([v for v, s in zip(values, group, strict=True) if len(v) == s.rows] or [np.zeros(0)])
    kinds = len(np.unique(every))
    if len(every) and kinds >= 2 and int((every[1:] != every[:-1]).sum()) < BLOCKS * kinds:
        return "; the rows are sorted by it over all files"
    return ""


def _named_by_a_field(group: Sequence[Shard]) -> bool:
    """Whether a text is the same in all rows of a file and another one in each: the name of its sensor or site."""
    for name, column in group[0].columns.items():
        own = [s.columns.get(name) for s in group]
        if column.kind == "text" and all(c is not None and c.digests is not None and c.rows and
                                         bool((c.digests == c.digests[0]).all()) for c in own):
            firsts = {int(c.digests[0]) for c in own if c is not None and c.digests is not None}
            words = all(c is not None and c.texts and any(x.isalpha() for x in c.texts[0]) for c in own)
            if len(firsts) == len(group) and words:
                return True
    return False


def _finding(
    data: DataSet, shard: Shard, name: str, effect: float, p: float, moved: Array, kinds: Array, compared: int,
    by_design: str,
) -> Finding:
    up, down = int(np.argmax(moved)), int(np.argmin(moved))
    column = shard.columns[name]
    label = is_label(column)
    what = "" if label or column.kind == "number" else "length "
    most, least = (
        label_name(data.shards, name, kinds[i]) if label else f"{what}{number(float(kinds[i]))}" for i in (up, down)
    )
    return RULE.finding(
        f"{of(name, shard)} is mixed otherwise than in its {compared - 1} siblings: {percent(effect)} of the "
        "values would "
        f"have to change ({most} occurs {percent(float(moved[up]))} more often, {least} "
        f"{percent(-float(moved[down]))} less)" + by_design,
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if by_design else None,
        measured={
            "field": name,
            "effect": effect,
            "p": p,
            "kind": "labels" if label else "lengths" if what else "values",
            "shard": short(shard),
        },
    )

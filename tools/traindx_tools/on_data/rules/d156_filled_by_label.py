"""Gaps of a column were filled by a number that depends on the label.

A number that recurs among measurements is what gaps were filled with. One such number for each class, equal to the
mean or the median of that class, tells the label to whoever knows it: the model is perfect on rows with gaps, and
guesses where the label is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import called_origin
from traindx_tools.on_data.places import number, percent, place, short
from traindx_tools.on_data.roles import codes, is_row_id, is_target, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RECURS = 0.005
FEWEST = 10
SPREAD_OUT = 0.2
PURE = 0.99
EXACT = 0.1
MOST_CLASSES = 20
MOST_COLUMNS = 200

RULE = Rule(
    id="D156",
    name="filled-by-label",
    title="Gaps of a column were filled by a number that depends on the label",
    severity=Severity.HIGH,
    sees="numbers that recur among measurements, the labels of their rows, and the mean and median of each class",
    matters="These rows give the label away in training, and cannot do so where it is to be predicted.",
    alike=(
        "Gaps filled with one number, or by another column (a region, an age): rows of all labels have it.",
        "Counts and rounded numbers: all of their values recur.",
    ),
    confirm=("Train without the named column, or with these rows' values missing, and compare the held-out loss.",),
    thresholds={
        "recurs": Threshold(RECURS, "share of the rows", "that have the very same number, and ten at least"),
        "pure": Threshold(PURE, "share of these rows", "with one label"),
        "exact": Threshold(EXACT, "of what the means of the classes are apart", "that it is off the mean of its own"),
        "spread_out": Threshold(SPREAD_OUT, "distinct numbers a row", "of the rest: below, numbers recur by nature"),
    },
)


@dataclass(frozen=True)
class _Fill:
    value: float
    kind: int
    rows: int
    what: str


def check(view: View) -> Iterator[Finding]:
    """A finding for each label, with all columns that were filled so."""
    for data in view.sets:
        for group in data.splits.values():
            group = tuple(s for s in group if s.columns and s.rows)
            for label in _targets(data):
                found = _of_label(group, label)
                if found:
                    yield _finding(data, group, label, found)


def _targets(data: DataSet) -> list[str]:
    """What is to be predicted: by its name, or the only label. Gaps filled by any other column are a usual way."""
    named = [n for n in data.labels if is_target(n)]
    only = [n for n in data.labels if not called_origin(n)]
    return named or (only if len(only) == 1 else [])


def _of_label(group: Sequence[Shard], label: str) -> dict[str, list[_Fill]]:
    if any(label not in s.columns or s.columns[label].rows != s.rows for s in group):
        return {}
    kinds = np.unique(np.concatenate([keys(s.columns[label]) for s in group]))
    if not 2 <= len(kinds) <= MOST_CLASSES:
        return {}
    y = np.concatenate([codes(s.columns[label], kinds) for s in group])
    out = {}
    for name in list(group[0].columns)[:MOST_COLUMNS]:
        values = _numbers(group, name) if name != label else None
        fills = _fills(values, y, len(kinds)) if values is not None else []
        if fills:
            out[name] = fills
    return out


def _numbers(group: Sequence[Shard], name: str) -> Array | None:
    columns = [s.columns.get(name) for s in group]
    if any(c is None or c.kind != "number" or c.row_shape or c.rows != s.rows or c.values.dtype.kind not in "iuf"
           or is_row_id(c) for c, s in zip(columns, group, strict=True)):
        return None
    return np.concatenate([np.asarray(c.values, np.float64) for c in columns if c is not None])


def _fills(values: Array, y: Array, kinds: int) -> list[_Fill]:
    """The numbers that stand for one class each; none where fewer than two classes have theirs."""
    known = np.isfinite(values)
    found, at, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    often = np.flatnonzero(counts >= max(FEWEST, RECURS * len(values)))
    if not 2 <= len(often) <= 4 * kinds or len(found) - len(often) < SPREAD_OUT * (len(values) - counts[often].sum()):
        return []
    labels = y[known]
    rest = ~np.isin(at.reshape(-1), often)
    if rest.sum() < 10 * kinds:
        return []
    own = [values[known][rest & (labels == k)] for k in range(kinds)]
    if min(map(len, own)) < FEWEST:
        return []
    middles = {"mean": np.array([o.mean() for o in own]), "median": np.array([np.median(o) for o in own])}
    out = []
    for v in often:
        mix = np.bincount(labels[at.reshape(-1) == v], minlength=kinds)
        kind = int(mix.argmax())
        usual = float((labels == kind).mean())
        if mix[kind] < PURE * mix.sum() or usual > 0.9:
            continue
        what = next((w for w, m in middles.items() if _is_own(float(found[v]), m, kind)), "")
        out += [_Fill(float(found[v]), kind, int(mix.sum()), what)] if what else []
    return out if len({f.kind for f in out}) >= 2 else []


def _is_own(value: float, middles: Array, kind: int) -> bool:
    """Whether a number is the middle of its class, and clearly not that of another one."""
    apart = np.abs(value - middles)
    nearest = float(np.abs(np.delete(middles, kind) - middles[kind]).min())
    return bool(apart[kind] <= EXACT * nearest)


def _finding(data: DataSet, group: Sequence[Shard], label: str, found: dict[str, list[_Fill]]) -> Finding:
    field, fills = max(found.items(), key=lambda item: sum(f.rows for f in item[1]))
    total = sum(s.rows for s in group)
    kinds = np.unique(np.concatenate([keys(s.columns[label]) for s in group]))
    said = ", ".join(f"{number(f.value)} in {f.rows} rows, all of {label} "
                     f"{label_name(data.shards, label, kinds[f.kind])} (the {f.what} of that class)" for f in fills[:3])
    more = [n for n in found if n != field]
    return RULE.finding(
        f"gaps of {field} of {short(group[0])} were filled by the label: {said}; they are "
        f"{percent(sum(f.rows for f in fills) / total)} of the rows" + (f"; so were those of {', '.join(more[:5])}"
                                                                        if more else ""),
        place(group[0], field),
        group[0].name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "fields": tuple(found), "label": label, "rows": sum(f.rows for f in fills),
                  "kind": "by-label", "shard": short(group[0])},
    )

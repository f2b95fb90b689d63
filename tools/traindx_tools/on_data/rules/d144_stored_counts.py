"""Counts or weights of classes, or counts of tokens, in a file beside the data do not fit the data.

Class weights in the order of another list of classes, frequencies where their inverse was meant, counts of tokens that
are off by one id. Counts fit where they are those of training, of any other split or of all; where they are the same
numbers in another order, or have the right sum and are others, they do not. Weights fit where rare classes weigh more,
by whichever formula. Numbers of other data, whose sum is another, say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number
from traindx_tools.on_data.roles import keys, label_name
from traindx_tools.on_data.row_statistics import is_tokens
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import Counts, View
from traindx_tools.rules import Rule, Threshold

UNEVEN = 1.5
SAME = 0.05
RISES = 0.5
SHIFTS = (-2, -1, 1, 2)
_WEIGHT = re.compile(r"weight|alpha|balance", re.IGNORECASE)

RULE = Rule(
    id="D144",
    name="stored-counts",
    title="Counts or weights of classes beside the data do not fit them",
    severity=Severity.HIGH,
    sees="lists and objects of numbers in JSON, YAML and npy files, laid against the counts of labels and tokens",
    matters="The loss weighs frequent classes up and rare ones down, or samples them wrongly.",
    alike=("Weights by any formula that falls with the count.", "Counts of other data: their sum is another."),
    confirm=("Count the labels and compare.", "Look in which order the classes were when the file was written."),
    thresholds={
        "uneven": Threshold(UNEVEN, "times", "of the largest count to the smallest: below it weights are all alike"),
        "same": Threshold(SAME, "relative", "by which weights may differ from a formula"),
        "rises": Threshold(RISES, "rank correlation",
                           "of weights and counts by class, at least; a list without names is to be proportional"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file and list that does not fit."""
    for counts in view.counts:
        for data in view.sets:
            found = next(_of_labels(data, counts), None) or next(_of_tokens(data, counts), None)
            if found is not None:
                yield found
                break


def _of_labels(data: DataSet, counts: Counts) -> Iterator[Finding]:
    for name in data.labels:
        shards = [s for s in data.shards if name in s.columns]
        if any(s.numbers is not None or s.rows < s.total for s in shards):
            continue
        kinds = np.unique(np.concatenate([keys(s.columns[name]) for s in shards]))
        told = [label_name(data.shards, name, k).strip("'") for k in kinds]
        values = _in_order(counts, told)
        if values is None:
            continue
        found = {split: _counted(group, name, kinds) for split, group in _groups(data, shards).items()}
        if _WEIGHT.search(counts.field) or _WEIGHT.search(counts.file):
            yield from _weights(counts, name, told, values, found)
        elif (values == np.round(values)).all() and values.min() >= 0:
            yield from _counts(counts, name, told, values, found)


def _groups(data: DataSet, shards: Sequence[Shard]) -> Mapping[str, Sequence[Shard]]:
    """The splits, training first, and all together."""
    by_split = {s: [x for x in shards if x.split == s] for s in sorted(data.splits, key=lambda s: s != "train")}
    return {**{s: g for s, g in by_split.items() if g}, "all": list(shards)}


def _counted(shards: Sequence[Shard], name: str, kinds: Array) -> Array:
    values = np.concatenate([keys(s.columns[name]) for s in shards])
    return np.bincount(np.searchsorted(kinds, values), minlength=len(kinds)).astype(np.float64)


def _in_order(counts: Counts, told: Sequence[str]) -> Array | None:
    """The numbers in the order of the classes; None where they are not as many, or called otherwise."""
    if len(counts.values) != len(told):
        return None
    if not counts.names:
        return counts.values
    at = {n: i for i, n in enumerate(counts.names)}
    return counts.values[[at[t] for t in told]] if all(t in at for t in told) else None


def _counts(
    counts: Counts, name: str, told: Sequence[str], values: Array, found: Mapping[str, Array]
) -> Iterator[Finding]:
    if any(np.array_equal(values, c) for c in found.values()):
        return
    for split, true in found.items():
        if values.sum() != true.sum() or len(np.unique(true)) < 2:
            continue
        wrong = np.flatnonzero(values != true).tolist()
        same = np.array_equal(np.sort(values), np.sort(true))
        how = "the same numbers in another order" if same else "of the right sum"
        pairs = [f"{told[i]}: {values[i]:,.0f}, and {true[i]:,.0f} are there" for i in wrong]
        yield _finding(counts, name, f"counts {name} otherwise than the {_split(split)} hold ({how}): {listed(pairs)}",
                       "exchanged" if same else "other", [told[i] for i in wrong])
        return


def _weights(
    counts: Counts, name: str, told: Sequence[str], values: Array, found: Mapping[str, Array]
) -> Iterator[Finding]:
    true = next(iter(found.values()))
    if values.min() <= 0 or true.min() <= 0 or true.max() < UNEVEN * true.min() or values.max() < 1.1 * values.min():
        return
    if any(_correlation(values, c) <= -RISES for c in found.values()) and not _another_order(values, true):
        return
    another = _another_order(values, true)
    if another is not None:
        wrong = np.flatnonzero(np.abs(another / values - 1.0) > SAME).tolist()
        pairs = [f"{told[i]}: {number(values[i])} for {number(another[i])}" for i in wrong]
        said = (f"weighs {name} in another order of the classes than the data have: its weights are those that the "
                f"counts give, for other classes ({listed(pairs)})")
        yield _finding(counts, name, said, "exchanged", [told[i] for i in wrong])
    elif len(true) >= 3 and (_proportional(values, true) or (counts.names and _correlation(values, true) >= RISES)):
        top, low = int(true.argmax()), int(true.argmin())
        said = (f"weighs frequent classes of {name} up: {told[top]} with {true[top]:,.0f} rows has "
                f"{number(values[top])} and {told[low]} with {true[low]:,.0f} has {number(values[low])}, as "
                "frequencies are and their inverse is not")
        yield _finding(counts, name, said, "rising", [told[top]])


def _proportional(values: Array, true: Array) -> bool:
    ratio = values / true
    return float(ratio.max()) <= (1 + 2 * SAME) * float(ratio.min())


def _another_order(values: Array, true: Array) -> Array | None:
    """What the weights should be, where they are those of a formula in another order."""
    for power in (1.0, 0.5):
        right = true ** -power
        right = right * float(np.sort(values).sum() / right.sum())
        fits = float(np.abs(np.sort(right) / np.sort(values) - 1.0).max()) <= SAME
        if fits:
            return right if float(np.abs(right / values - 1.0).max()) > 2 * SAME else None
    return None


def _correlation(a: Array, b: Array) -> float:
    """Of the ranks."""
    first, second = (np.argsort(np.argsort(v, kind="stable"), kind="stable").astype(np.float64) for v in (a, b))
    return float(np.corrcoef(first, second)[0, 1]) if len(a) > 2 else float(np.sign((a[1] - a[0]) * (b[1] - b[0])))


def _of_tokens(data: DataSet, counts: Counts) -> Iterator[Finding]:
    for name in data.fields:
        columns = [s.columns[name] for s in data.shards if name in s.columns]
        flat = name == "tokens" and all(c.is_integer and not c.row_shape for c in columns)
        if not columns or not (flat or all(is_tokens(c) for c in columns)) or len(counts.values) < 20:
            continue
        if any(s.numbers is not None or s.rows < s.total for s in data.shards):
            continue
        true = np.bincount(np.concatenate([c.values.reshape(-1) for c in columns]).astype(np.int64).clip(0, 2**20),
                           minlength=len(counts.values)).astype(np.float64)
        said = _by_id(counts, len(true))
        if said is None or len(said) != len(true) or np.array_equal(said, true) or said.sum() != true.sum():
            continue
        for k in SHIFTS:
            agree = float((np.roll(said, -k) == true)[true > 0].mean())
            if agree > 0.8 and float((said == true)[true > 0].mean()) < 0.5:
                way, side = ("high", "below") if k > 0 else ("low", "above")
                said_so = (f"counts the ids of {name} {abs(k)} too {way}: of the ids that occur {100 * agree:.1f} % "
                           f"have the count of the id {abs(k)} {side}")
                yield _finding(counts, name, said_so, "shifted", [])
                return
        wrong = np.flatnonzero(said != true)
        pairs = [f"{i}: {said[i]:,.0f}, and {true[i]:,.0f} are there" for i in wrong[:5]]
        yield _finding(counts, name, f"counts {len(wrong):,} ids of {name} otherwise than the data hold, with the same "
                       f"sum: {listed(pairs)}", "other", [str(i) for i in wrong[:20]])


def _by_id(counts: Counts, size: int) -> Array | None:
    if not counts.names:
        return counts.values
    if not all(n.isdigit() and int(n) < 2**20 for n in counts.names):
        return None
    out = np.zeros(max(size, 1 + max(int(n) for n in counts.names)))
    out[[int(n) for n in counts.names]] = counts.values
    return out


def _split(name: str) -> str:
    return {"": "data", "all": "data of all splits", "train": "training data"}.get(name, f"{name} data")


def _finding(counts: Counts, name: str, said: str, kind: str, classes: Sequence[str]) -> Finding:
    what = f"{counts.field} of {counts.file}" if counts.field not in counts.file else counts.file
    return RULE.finding(
        f"{what} {said}",
        Location(file=counts.file),
        counts.file,
        bearing=Bearing.CAUSE,
        measured={"field": name, "file": counts.file, "kind": kind, "classes": tuple(classes[:20])},
    )

"""Windows of a recording lie in both training and held-out data, and overlap: they share the same samples.

Recordings are cut into windows that overlap by half, and the windows are split by chance. No row is a copy of another
(D113), yet nearly each held-out window has half of its samples in a training window, at another place. Runs of samples
are compared at every place, bit for bit; where values recur by nature (words, pixels, silence) nothing is compared.
Within a row it is the same: a run that hardly varies (padding, the floor of a logarithm), or that stands at one place
of several training rows (a pulse at the beginning), says nothing of where a window was cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE, FEWEST = 0.05, 8
RUN, SHORTEST = 8, 32
DISTINCT = 0.5
VARIED = 4
MOST_STEPS = 4_000_000
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

RULE = Rule(
    id="D172",
    name="windows-overlap",
    title="Held-out windows share their samples with training windows",
    severity=Severity.HIGH,
    sees="runs of samples of held-out rows, bit for bit, at every place of the training rows",
    matters="The model has seen half of each held-out window: the score says nothing of new recordings.",
    alike=(
        "Text, tokens and silence, whose runs recur by nature.",
        "Rows that were padded to one length, and pulses that all rows hold at one place.",
        "Windows that overlap within training alone, as they do on purpose.",
    ),
    confirm=("Print the named rows of both files, moved by the named number of samples.",
             "Split the recordings first, cut them after that, and compare the scores."),
    thresholds={
        "run": Threshold(RUN, "samples", "in a row that are equal"),
        "share": Threshold(SHARE, "of held-out rows", "fewer change no score"),
        "fewest": Threshold(FEWEST, "rows", "fewer may be chance"),
        "varied": Threshold(VARIED, "unlike samples of a run", "fewer are padding or a level that is held"),
        "distinct": Threshold(DISTINCT, "share of the samples", "that are unlike all others, at least"),
    },
)


@dataclass(frozen=True, eq=False)
class _Overlap:
    rows: Array
    """int64: held-out rows."""
    moved: int
    """By how many samples most of them are moved against the training row."""
    shared: int
    """How many places of a row were looked at and found elsewhere, at most."""
    source: Shard
    there: Array


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and field."""
    for data in view.sets:
        train = [s for s in data.splits.get("train", ()) if s.rows]
        for name in data.fields:
            having = [s for s in train if name in s.columns]
            steps = [_steps(s, name) for s in having]
            if not having or any(h is None for h in steps):
                continue
            known = [h for h in steps if h is not None]
            for shard in (s for s in data.shards if s.split not in ("", "train") and s.rows and name in s.columns):
                mine = _steps(shard, name)
                found = _overlap(mine, known, having) if mine is not None else None
                if found is not None:
                    yield _finding(shard, name, found)


def _steps(shard: Shard, name: str) -> Array | None:
    """uint64 shape (rows, samples): a hash of each sample's bytes; None where rows are no signals."""
    column = shard.columns[name]
    if column.kind != "number" or column.values.dtype.kind not in "fi" or not 1 <= len(column.row_shape) <= 2:
        return None
    axis = int(np.argmax(column.row_shape)) + 1
    values = np.moveaxis(np.asarray(column.values), axis, 1)
    if values.shape[1] < SHORTEST or values.shape[0] * values.shape[1] > MOST_STEPS:
        return None
    flat = np.ascontiguousarray(values.reshape(*values.shape[:2], -1))
    bits = flat.view(f"u{flat.dtype.itemsize}").astype(np.uint64)
    out = np.zeros(flat.shape[:2], np.uint64)
    for k in range(bits.shape[2]):
        out = (out ^ bits[:, :, k]) * _FACTOR
        out ^= out >> np.uint64(29)
    return out if len(np.unique(out[:, ::7])) >= DISTINCT * out[:, ::7].size else None


def _runs(steps: Array) -> tuple[Array, Array]:
    """uint64 shape (rows, samples - RUN + 1): a hash of each run of samples; bool: whether its samples vary."""
    out = np.zeros((steps.shape[0], steps.shape[1] - RUN + 1), np.uint64)
    changes = np.zeros(out.shape, np.int8)
    for k in range(RUN):
        here = steps[:, k : k + out.shape[1]]
        out = (out ^ here) * _FACTOR
        out ^= out >> np.uint64(31)
        changes += here != steps[:, k - 1 : k - 1 + out.shape[1]] if k else np.int8(1)
    return out, changes >= VARIED


def _at_one_place(runs: Array) -> Array:
    """The runs, sorted, that stand at the same place of two rows: windows of one recording begin at different ones."""
    ranked = np.sort(runs, axis=0)
    return np.unique(ranked[1:][ranked[1:] == ranked[:-1]])


def _overlap(mine: Array, known: Sequence[Array], train: Sequence[Shard]) -> _Overlap | None:
    """Held-out rows of which some run stands in a training row at another place."""
    asked, varied = (a[:, :: RUN // 2] for a in _runs(mine))
    best: _Overlap | None = None
    for steps, shard in zip(known, train, strict=True):
        if steps.shape[1] != mine.shape[1]:
            continue
        runs, _ = _runs(steps)
        order = np.argsort(runs, axis=None)
        ranked = runs.reshape(-1)[order]
        at = np.minimum(np.searchsorted(ranked, asked), len(ranked) - 1)
        hit = (ranked[at] == asked) & varied & ~np.isin(asked, _at_one_place(runs))
        place_there = order[at]
        moved = np.arange(asked.shape[1])[None, :] * (RUN // 2) - place_there % runs.shape[1]
        hit &= moved != 0
        found = np.flatnonzero(hit.sum(axis=1) >= 2)
        if len(found) >= max(FEWEST, SHARE * len(mine)) and (best is None or len(found) > len(best.rows)):
            usual, counts = np.unique(np.abs(moved[hit]), return_counts=True)
            first = [int(place_there[r][hit[r]][0] // runs.shape[1]) for r in found[:5]]
            best = _Overlap(found, int(usual[np.argmax(counts)]), int(hit.sum(axis=1).max()), shard, np.array(first))
    return best


def _finding(shard: Shard, name: str, found: _Overlap) -> Finding:
    share = len(found.rows) / shard.rows
    width = max(shard.columns[name].row_shape)
    return RULE.finding(
        f"{len(found.rows):,} of {shard.rows:,} rows of {short(shard)} ({percent(share)}) share samples of {name} with "
        f"training rows, moved by {found.moved} of {width} samples: {rows(shard, found.rows)} (in "
        f"{short(found.source)}: {rows(found.source, found.there, len(found.rows))})",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "share": share, "moved": found.moved, "samples": width, "kind": "windows",
                  "rows": tuple(int(i) for i in found.rows[:20]), "shard": short(shard),
                  "other": short(found.source)},
    )

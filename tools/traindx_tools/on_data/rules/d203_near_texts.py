"""Held-out texts are training texts, written otherwise: in another case, with other marks, with a few other words.

Deduplication by equal strings misses them, and a model remembers them all the same. How many held-out texts share most
of their runs of five words with one training text is held against how many training texts do among themselves: letters
from a template and recurring forms are alike everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.near_texts import LEAST, MOST_ROWS, WORDS, Runs, near_copies, runs_of
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

NEAR, FEWEST, SHARE, TIMES = 0.6, 8, 0.02, 4.0

RULE = Rule(
    id="D203",
    name="near-texts",
    title="Held-out texts are training texts, written otherwise",
    severity=Severity.HIGH,
    sees="runs of five words of each held-out text in each training text, without case and marks",
    matters="Held-out rows that were trained on are remembered: the score says nothing of new data.",
    alike=("Texts from a template: training texts are as near to each other.",
           "Phrases that many texts hold: a greeting, a licence.",
           "Texts that are equal: they are told as copies."),
    confirm=("Print the named rows of both files side by side.",),
    thresholds={
        "words": Threshold(WORDS, "words", "of a run"),
        "runs": Threshold(LEAST, "runs", "of a text, that few training texts hold"),
        "near": Threshold(NEAR, "of them", "that stand in one training text"),
        "fewest": Threshold(FEWEST, "texts", "fewer may be chance"),
        "share": Threshold(SHARE, "of the held-out texts", "fewer change no score"),
        "times": Threshold(TIMES, "times", "the share of training texts that are as near to another one"),
        "level": Threshold(LEVEL, "probability", "of so many, were held-out texts as near as training texts are"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and field."""
    for data in view.sets:
        train = data.splits.get("train", ())
        held = [s for s in data.shards if s.split not in ("", "train")]
        for name in data.fields if train and held else ():
            if all(name in s.columns and s.columns[name].kind == "text" for s in (*train, *held)):
                yield from _of_field(data, name, train, held, view.comparisons)


def _of_field(data: DataSet, name: str, train: tuple[Shard, ...], held: list[Shard], comparisons: float
              ) -> Iterator[Finding]:
    parts = [(s, r) for s in train if (r := runs_of(s.columns[name])) is not None]
    if not parts or sum(len(r.rows) for _, r in parts) > 4 * MOST_ROWS:
        return
    sizes = np.cumsum([0, *(len(r.rows) for _, r in parts)])
    known = Runs(np.concatenate([r.hashes for _, r in parts]), np.concatenate(
        [[0], np.cumsum(np.concatenate([np.diff(r.offsets) for _, r in parts]))]), np.arange(sizes[-1]))
    usual: float | None = None
    for shard in held:
        mine = runs_of(shard.columns[name])
        if mine is None:
            continue
        shares, which = near_copies(mine, known)
        hits = np.flatnonzero((shares >= NEAR) & ~_equal(shard, mine, parts, name))
        if len(hits) < max(FEWEST, SHARE * len(mine.rows)):
            continue
        if usual is None:
            usual = float((near_copies(known, known, itself=True)[0] >= NEAR).mean())
        chance = share_tail(len(hits), len(mine.rows), min(1.0, max(TIMES * usual, 1.0 / len(known.rows))))
        if len(hits) < TIMES * usual * len(mine.rows) or math.log(max(chance, 1e-300)) + math.log(
                comparisons) > math.log(LEVEL):
            continue
        first = int(which[hits[0]])
        at = int(np.searchsorted(sizes, first, side="right")) - 1
        yield _finding(shard, name, mine.rows[hits], len(mine.rows), usual, float(np.median(shares[hits])),
                       parts[at][0], int(parts[at][1].rows[first - sizes[at]]))


def _equal(shard: Shard, mine: Runs, parts: list[tuple[Shard, Runs]], name: str) -> np.ndarray:
    """Which texts stand in training as they are: those are told as copies."""
    every = [s.columns[name].digests for s, _ in parts]
    own = shard.columns[name].digests
    if own is None or any(e is None for e in every):
        return np.zeros(len(mine.rows), bool)
    return np.isin(own[mine.rows], np.concatenate([e for e in every if e is not None]))


def _finding(shard: Shard, name: str, which: np.ndarray, of: int, usual: float, share: float, source: Shard, row: int
             ) -> Finding:
    a, b = (s.columns[name].texts[i][:60] for s, i in ((shard, int(which[0])), (source, row)))
    return RULE.finding(
        f"{len(which):,} of {of:,} texts of {name} in {short(shard)} ({percent(len(which) / of)}) are training texts "
        f"written otherwise: they share {percent(share)} of their runs of {WORDS} words with one of them, as "
        f"{percent(usual)} of the training texts do with another: {rows(shard, which)}; the first, {a!r}, is "
        f"{source.row(row)} of {short(source)}, {b!r}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "share": len(which) / of, "usual": usual, "rows": tuple(int(i) for i in which[:20]),
                  "kind": "across-splits", "shard": short(shard), "other": short(source)},
    )

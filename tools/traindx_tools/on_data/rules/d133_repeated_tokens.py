"""In a stretch of a file of tokens each one is there twice, or a block follows itself.

A writer that appended a buffer twice, a resumed job, a copy of every item: the model learns to repeat. Text repeats
single words, runs of one token (padding, rules of dashes) and whole documents; those are told apart by the distinct
tokens of the stretch, by the pairs elsewhere in the file, and by the token at both of its ends, which is the mark
between documents where a document is there twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.summary import contained, distinct, mixed
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

PAIRS = 32
BLOCK = 256
WINDOW = 16
"""Tokens that are compared at a time: fewer recur in any text."""
KINDS = 8
BETWEEN = 0.3
MOST_TOKENS = 2**22
"""That are looked at, of all files together: the first of each."""
LEAST_TOKENS = 2**17
FEWEST = 1024

RULE = Rule(
    id="D133",
    name="repeated-tokens",
    title="A stretch of tokens repeats itself",
    severity=Severity.MEDIUM,
    sees="tokens with their neighbours, and windows of sixteen with the last place where the same sixteen stood",
    matters="The model learns to say things twice, and the stretch counts more than it should.",
    alike=(
        "Padding and runs of one token.",
        "Two channels written in turn: pairs are frequent throughout.",
        "A document that is there twice: a remark.",
    ),
    confirm=("Decode the named tokens.", "Look whether the job that wrote the file was resumed there."),
    thresholds={
        "pairs": Threshold(PAIRS, "pairs in a row", "no text has so many"),
        "block": Threshold(BLOCK, "tokens", "of a block that follows itself; lists and tables repeat shorter ones"),
        "kinds": Threshold(KINDS, "distinct tokens", "fewer are padding and patterns"),
        "level": Threshold(LEVEL, "probability", "that tokens drawn by their frequency do so anywhere"),
    },
)


@dataclass(frozen=True)
class Run:
    """Tokens `start` to before `end`; `lag`: how far before each the same token stands, 0 for pairs."""

    start: int
    end: int
    lag: int = 0


def check(view: View) -> Iterator[Finding]:
    """At most one stretch of each file and kind."""
    files = sum(_is_tokens(s) for d in view.sets for s in d.shards)
    most = max(LEAST_TOKENS, MOST_TOKENS // max(1, files))
    for data in view.sets:
        for shard in data.shards:
            tokens = _tokens(shard, most)
            if tokens is None:
                continue
            pairs = doubled(tokens, view.comparisons)
            if pairs is not None:
                yield _of_pairs(shard, pairs)
            block = repeated(tokens, view.comparisons)
            if block is not None:
                yield _of_block(shard, block, tokens)


def _is_tokens(shard: Shard) -> bool:
    """Whether a long row of whole numbers is all that the file holds."""
    if len(shard.columns) != 1 or shard.rows < FEWEST:
        return False
    (column,) = shard.columns.values()
    return column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iu"


def _tokens(shard: Shard, most: int) -> Array | None:
    if not _is_tokens(shard):
        return None
    (column,) = shard.columns.values()
    tokens = np.asarray(column.values[:most]).astype(np.int64)
    return tokens if len(distinct(tokens[:100_000])) >= 4 * KINDS else None


def _longest(true: Array) -> tuple[int, int]:
    """Start and end of the longest run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], true, [False]]).astype(np.int8)))
    if not len(edges):
        return 0, 0
    longest = int(np.argmax(edges[1::2] - edges[::2]))
    return int(edges[2 * longest]), int(edges[2 * longest + 1])


def doubled(tokens: Array, comparisons: float) -> Run | None:
    """The longest stretch in which each token is there twice, where no chance explains it."""
    same = tokens[1:] == tokens[:-1]
    best: Run | None = None
    for parity in (0, 1):
        first, end = _longest(same[parity::2])
        if best is None or 2 * (end - first) > best.end - best.start:
            best = Run(parity + 2 * first, parity + 2 * end)
    assert best is not None
    count = (best.end - best.start) // 2
    between = same[best.start + 1 : best.end - 1 : 2]
    if count < PAIRS or float(between.mean()) > BETWEEN or len(distinct(tokens[best.start : best.end])) < KINDS:
        return None
    rest = np.concatenate([same[: best.start], same[best.end :]])
    if len(rest) < len(tokens) // 2:
        return None  # the file is made so
    usual = (float(rest.sum()) + 1) / (len(rest) + 2)
    chance = count * math.log(usual) + math.log(2 * len(tokens)) + math.log(max(1.0, comparisons))
    return best if chance < math.log(LEVEL) else None


def repeated(tokens: Array, comparisons: float) -> Run | None:
    """The longest block of which a whole copy stands directly before it."""
    lag = _lags(tokens)
    edges = np.flatnonzero(np.concatenate([[True], lag[1:] != lag[:-1], [True]]))
    lengths, lags = np.diff(edges) + WINDOW - 1, lag[edges[:-1]]
    whole = np.flatnonzero((lags >= BLOCK) & (lengths >= lags))
    shares = np.unique(tokens, return_counts=True)[1] / len(tokens)
    for at in whole[np.argsort(-lengths[whole])]:
        run = Run(int(edges[at]), int(edges[at] + lengths[at]), int(lags[at]))
        chance = run.lag * math.log(float((shares**2).sum())) + 2 * math.log(len(tokens)) + math.log(comparisons)
        if len(distinct(tokens[run.start : run.end])) >= 4 * KINDS and chance < math.log(LEVEL):
            return run
    return None


def _lags(tokens: Array) -> Array:
    """int64: how far before each window the same one last stood, 0 where it did not."""
    count = len(tokens) - WINDOW + 1
    marks = mixed(tokens.view(np.uint64))
    windows = np.zeros(count, np.uint64)
    for j in range(WINDOW):
        windows = windows * np.uint64(0x9E3779B97F4A7C15) + marks[j : j + count]
    lag = np.zeros(count, np.int64)
    ordered = np.sort(windows)
    several = distinct(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(several):
        return lag
    where = np.flatnonzero(contained(windows, several))
    order = where[np.argsort(windows[where], kind="stable")]
    again = np.flatnonzero(windows[order[1:]] == windows[order[:-1]])
    lag[order[again + 1]] = order[again + 1] - order[again]
    return lag


def _of_pairs(shard: Shard, run: Run) -> Finding:
    name, count = next(iter(shard.columns)), (run.end - run.start) // 2
    return RULE.finding(
        f"{shard.row(run.start)} to {shard.row(run.end - 1)} of {short(shard)} hold each of {count:,} tokens twice in "
        "a row; elsewhere tokens hardly follow themselves",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "rows": (run.start, run.end - 1), "kind": "doubled", "shard": short(shard)},
    )


def _of_block(shard: Shard, run: Run, tokens: Array) -> Finding:
    name = next(iter(shard.columns))
    document = bool(tokens[run.start] == tokens[run.end - 1])
    times = (run.end - run.start) // run.lag + 1
    return RULE.finding(
        f"{shard.row(run.start)} to {shard.row(run.end - 1)} of {short(shard)} are the {run.lag:,} tokens before them "
        f"again, token by token: the block is there {times} times in a row"
        f"{', as a document that is in the data twice' if document else ''}",
        place(shard, name),
        shard.name,
        bearing=Bearing.COMPANION if document else Bearing.CAUSE,
        severity=Severity.INFO if document else None,
        measured={"field": name, "rows": (run.start, run.end - 1), "lag": run.lag, "shard": short(shard),
                  "kind": "document" if document else "block"},
    )

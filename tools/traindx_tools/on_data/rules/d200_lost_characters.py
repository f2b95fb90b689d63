"""Decoded, the tokens of one file lack a kind of character that the texts of all others have: line ends, indentation.

What a cleaning step took out before encoding is gone for good: a program without line ends is no program, and nothing
in the ids says so. Read with the tokeniser that lies beside the data, each file has its line ends, runs of spaces,
capitals, digits; of another topic or language a file has more or fewer, and hardly ever none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.pieces import KINDS, WIDE, Pieces
from traindx_tools.on_data.places import listed, number, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SIBLINGS, STEADY, LOST = 2, 4.0, 0.02
EXPECTED = 60.0
FEWEST = 2_000
LONG = 8
MOST_ITEMS = 2**23
BEYOND = 0.02

RULE = Rule(
    id="D200",
    name="lost-characters",
    title="The text of one file lacks a kind of character",
    severity=Severity.HIGH,
    sees="how often each kind of character stands in the tokens of each file, decoded with the tokeniser beside them",
    matters="The model learns from that file text that nobody writes: code without lines, names without capitals.",
    alike=("Another topic or language, which has more or fewer of a kind, and some.",
           "Held-out data of another make: compared are files of one split."),
    confirm=("Decode the first hundred tokens of the file and of a sibling.",),
    thresholds={
        "siblings": Threshold(SIBLINGS, "files", "beside it, at least"),
        "steady": Threshold(STEADY, "times", "by which the other files differ at most"),
        "lost": Threshold(LOST, "of the rate of the sibling with the fewest", "that are left at most"),
        "expected": Threshold(EXPECTED, "characters", "that the sibling with the fewest lets expect"),
        "tokens": Threshold(FEWEST, "tokens", "of a file"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all files and kinds"),
    },
)


@dataclass(frozen=True, eq=False)
class _Read:
    """How often each kind of character stands in a file, in the order of KINDS."""

    shard: Shard
    counts: Array
    tokens: int


def check(view: View) -> Iterator[Finding]:
    """A finding for each file and field."""
    pieces = view.hints.pieces
    if pieces is None:
        return
    for data in view.sets:
        for name in data.fields:
            for group in data.siblings(name):
                read = [r for s in group if s.rows and (r := _read(s, s.columns[name], pieces)) is not None]
                if len(read) > SIBLINGS:
                    yield from _of_field(read, name, pieces.where, view.comparisons)


def _read(shard: Shard, column: Column, pieces: Pieces) -> _Read | None:
    """None of what holds no ids of the vocabulary."""
    if not column.is_integer or not column.values.size:
        return None
    rows = column.kind == "sequence" or int(np.prod(column.row_shape)) >= LONG or shard.format.startswith("tokens")
    if not rows or int(column.values.min()) < -100 or int(column.values.max()) <= 1:
        return None
    flat = column.values.reshape(-1)[:MOST_ITEMS].astype(np.int64)
    known = (flat >= 0) & (flat < len(pieces.texts))
    if len(flat) < FEWEST or float((flat >= len(pieces.texts)).mean()) > BEYOND:
        return None
    ids = np.bincount(flat[known], minlength=len(pieces.texts))
    counts = {kind: float(held @ ids) for kind, held in pieces.kinds.items()}
    begins, ends = pieces.seams
    counts[WIDE] += int((begins[flat[known][1:]] & ends[flat[known][:-1]]).sum())  # a space is a piece of its own
    return _Read(shard, np.array(list(counts.values())), len(flat))


def _of_field(read: Sequence[_Read], name: str, where: str, comparisons: float) -> Iterator[Finding]:
    rates = np.stack([r.counts / r.tokens for r in read])
    for at, mine in enumerate(read):
        others = np.delete(rates, at, axis=0)
        low, high = others.min(axis=0), others.max(axis=0)
        expected = low * mine.tokens / STEADY
        lost = (low > 0) & (high <= STEADY * low) & (rates[at] <= LOST * low) & (expected >= EXPECTED)
        lost &= math.log(len(KINDS) * comparisons) - expected < math.log(LEVEL)
        if lost.any() and not lost.all():
            usual = np.median(others, axis=0) * mine.tokens
            yield _finding(mine, name, where, np.flatnonzero(lost), usual, len(others))


def _finding(mine: _Read, name: str, where: str, lost: Array, usual: Array, siblings: int) -> Finding:
    kinds = list(KINDS)
    told = [f"{kinds[k]} ({int(mine.counts[k]):,} instead of {number(float(usual[k]))})" for k in lost]
    return RULE.finding(
        f"decoded with {where}, {name} of {short(mine.shard)} has next to no {listed(told, 3)} among {mine.tokens:,} "
        f"tokens, as its {siblings} siblings have: they were lost before the text was encoded",
        place(mine.shard, name),
        mine.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "kinds": tuple(kinds[k] for k in lost), "tokens": mine.tokens, "kind": "shard",
                  "shard": short(mine.shard)},
    )

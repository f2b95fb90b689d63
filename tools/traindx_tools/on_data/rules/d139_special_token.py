"""One token is missing in one shard, or there ten times as often, while all other tokens are as frequent as elsewhere.

A separator or an end of text that one run of the tokeniser did not write, or wrote again and again. A shard of another
topic or language has other frequencies of many tokens; documents of another length have the token less or more often,
but have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import number, of, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SIBLINGS = 3
EXPECTED = 30.0
STEADY = 2.5
TIMES = 10.0
OTHERS = 0.01
PARTNERS = 1
BESIDE = 0.2
MOST_TOKEN = 2**20
MOST_ITEMS = 2**23
LONG = 8

RULE = Rule(
    id="D139",
    name="special-token",
    title="A token that all other shards have is missing in one",
    severity=Severity.HIGH,
    sees="how often each token occurs, for each token and for each row, by shard",
    matters="The model learns from that shard that texts do not end, or that they end everywhere.",
    alike=(
        "Another topic or language: many tokens are more or less frequent.",
        "Documents of another length: the token is there, less often or more often.",
    ),
    confirm=("Decode the end of some documents of the shard and of a sibling.",),
    thresholds={
        "expected": Threshold(EXPECTED, "occurrences", "that the sibling with the fewest lets expect"),
        "steady": Threshold(STEADY, "times", "by which the siblings differ at most"),
        "times": Threshold(TIMES, "times", "as often, for each token and each row, and beside each other"),
        "others": Threshold(OTHERS, "share of tokens", "that may be as far off: more are another source"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and tokens"),
    },
)


@dataclass(frozen=True, eq=False)
class _Counted:
    """How often each token occurs in a shard, with the number of tokens and of rows (of a stream: tokens)."""

    shard: Shard
    counts: Array
    tokens: int
    rows: int


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard, field and token."""
    for data in view.sets:
        for name in data.fields:
            for group in data.siblings(name):
                chosen = [s for s in group if s.rows and _holds_tokens(s.columns[name], s.format)]
                if len(chosen) > SIBLINGS:
                    yield from _of_field(chosen, name, view)


def _holds_tokens(column: Column, form: str) -> bool:
    if not column.is_integer or not column.values.size or column.values.dtype.itemsize < 2:
        return False
    rows = column.kind == "sequence" or int(np.prod(column.row_shape)) >= LONG or form.startswith("tokens")
    return rows and int(column.values.max()) < MOST_TOKEN and int(column.values.min()) >= -100


def _of_field(group: Sequence[Shard], name: str, view: View) -> Iterator[Finding]:
    counted = [_counted(s, s.columns[name]) for s in group]
    width = max(len(c.counts) for c in counted)
    counts = np.stack([np.pad(c.counts, (0, width - len(c.counts))) for c in counted]).astype(np.float64)
    by_token = counts / np.array([[c.tokens] for c in counted])
    by_row = counts / np.array([[c.rows] for c in counted])
    for at, mine in enumerate(counted):
        others = np.arange(len(counted)) != at
        low, high = by_token[others].min(axis=0), by_token[others].max(axis=0)
        steady = (low > 0) & (high <= STEADY * low)
        expected = np.minimum(low * mine.tokens, by_row[others].min(axis=0) * mine.rows) / 2.0
        told = steady & (expected >= EXPECTED)
        more = (by_token[at] >= TIMES * high) & (by_row[at] >= TIMES * by_row[others].max(axis=0))
        none = counts[at] == 0
        off = told & ((by_token[at] < low / TIMES) | (by_token[at] > TIMES * high))
        chance = math.log(width * view.comparisons) - expected  # Poisson: none where so many are expected
        found = np.flatnonzero(told & (none | more) & (chance < math.log(LEVEL)))
        if not len(found) or off.sum() > max(1 + PARTNERS, OTHERS * told.sum()) or told.sum() < 5 * off.sum():
            continue
        for token in found:
            if none[token] or _beside_itself(mine.shard.columns[name], int(token)):
                usual = float(np.median(by_token[others][:, token]))
                yield _finding(mine, name, int(token), usual, len(group) - 1, view.hints.token_names)


def _counted(shard: Shard, column: Column) -> _Counted:
    values = column.values.reshape(-1)[:MOST_ITEMS].astype(np.int64)
    stream = column.kind == "number" and not column.row_shape
    rows = len(values) if stream else max(1, column.rows * len(values) // column.values.size)
    return _Counted(shard, np.bincount(values[values >= 0], minlength=1), len(values), rows)


def _beside_itself(column: Column, token: int) -> bool:
    """Whether the token often stands behind itself, or one token apart: short documents do not make that."""
    values = column.values.reshape(-1)[:MOST_ITEMS]
    at = np.flatnonzero(values == token)
    return len(at) > 1 and float((np.diff(at) <= 2).mean()) >= BESIDE


def _finding(
    mine: _Counted, name: str, token: int, usual: float, siblings: int, names: Mapping[int, str]
) -> Finding:
    called = f" ({names[token]})" if token in names else ""
    seen = int(mine.counts[token]) if token < len(mine.counts) else 0
    rate = seen / mine.tokens
    how = "never" if not seen else f"{number(rate / usual)} times as often"
    return RULE.finding(
        f"token {token}{called} is in {of(name, mine.shard)} {how}: {seen:,} among {mine.tokens:,} tokens, where the "
        f"{siblings} siblings have {number(usual * mine.tokens)} among as many; the other tokens are as frequent",
        place(mine.shard, name),
        mine.shard.name,
        bearing=Bearing.CAUSE if not seen else Bearing.SIGN,
        title=None if not seen else "A token is in one shard many times as often",
        severity=Severity.HIGH if not seen else Severity.MEDIUM,
        measured={"field": name, "token": token, "rate": rate, "usual": usual, "kind": "never" if not seen else "more",
                  "shard": short(mine.shard)},
    )

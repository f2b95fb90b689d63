"""Ids of the vocabulary are larger than the stored whole numbers can be: they came back as others.

A file of 16 bits holds ids up to 65,535. Of a vocabulary of 100,000 the rest wraps around: the end of a document
becomes some word, and never occurs. That the type is too small is no fault while the data stay below; told is where
they reach the type's end, are negative, or hold the wrapped id of a special token far more often than its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import of, place
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import Hints, View
from traindx_tools.rules import Rule, Threshold

FULL = 0.99
BESIDE = 50
TIMES = 5.0
FEWEST = 8
NEGATIVE = 8
LIMITS: Mapping[str, int] = {"uint8": 2**8 - 1, "int16": 2**15 - 1, "uint16": 2**16 - 1}
MOST_IDS = 2**24

RULE = Rule(
    id="D147",
    name="ids-wrapped",
    title="Ids of the vocabulary do not fit the stored type and wrapped around",
    severity=Severity.HIGH,
    sees="the type of stored ids and how often each occurs, beside the vocabulary's size and special tokens",
    matters="The model reads other words; a special token that wrapped never ends a document.",
    alike=(
        "A large vocabulary of which the data use the lower part: no id reaches the type's end.",
        "A special token that the data do not use: its wrapped id is as rare as its neighbours.",
        "-100 and -1 for what is ignored: few negative values.",
    ),
    confirm=("Decode a document and compare it with its text.", "Write the ids again as uint32."),
    thresholds={
        "full": Threshold(FULL, "of the type's range", "that the ids reach up to"),
        "times": Threshold(TIMES, "times", "as often as the ids beside it, of a wrapped special token"),
        "negative": Threshold(NEGATIVE, "distinct negative ids", "of a signed type"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field of ids of a file."""
    for data in view.sets:
        for shard in data.shards:
            for name, column in shard.columns.items():
                if column.is_integer and column.values.size and _holds_ids(column):
                    yield from _of_column(shard, name, column, view.hints)


def _holds_ids(column: Column) -> bool:
    wide = column.values.ndim == 2 and column.values.shape[1] >= 4
    return column.kind == "sequence" or wide or column.name in ("tokens", "ids", "input_ids", "token_ids")


def _of_column(shard: Shard, name: str, column: Column, hints: Hints) -> Iterator[Finding]:
    flat = column.values.reshape(-1)
    values = flat[:: max(1, flat.size // MOST_IDS)].astype(np.int64)
    limits = [(t, m) for t, m in LIMITS.items() if _may_have_been(column, values, t, m)]
    for told, most in limits:
        stored = column.values.dtype.name == told
        highest, source = _highest(hints)
        special = _wrapped_special(values, most, hints)
        if special is not None:
            token, number, wrapped, count = special
            yield _finding(shard, name, told, stored,
                           f"{token} is {number:,}, and {count:,} times {wrapped:,} stands there, which is {number:,} "
                           f"less {most + 1 if told != 'int16' else 2**16:,} and far more frequent than the ids beside "
                           f"it; {number:,} never occurs", most, max(highest, number), "special")
            return
        if stored and highest > most:
            negative = values[(values < -1) & (values != -100)]
            if len(np.unique(negative)) >= NEGATIVE:
                yield _finding(shard, name, told, stored, f"{source} has ids up to {highest:,}, and {len(negative):,} "
                               f"ids are negative, down to {int(negative.min()):,}", most, highest, "negative")
                return
            if told != "int16" and int(values.max()) >= FULL * most and not _thins_out(values, most):
                yield _finding(shard, name, told, stored, f"{source} has ids up to {highest:,}, and the ids go up to "
                               f"{int(values.max()):,}, the end of the type", most, highest, "full")
                return


def _may_have_been(column: Column, values: Array, told: str, most: int) -> bool:
    """Whether ids are stored in a type, or all lie within it as if they had been."""
    if column.values.dtype.name == told:
        return True
    wider = column.values.dtype.itemsize > np.dtype(told).itemsize
    return wider and most // 2 < int(values.max()) <= most and int(values.min()) >= (-most - 1 if told[0] == "i" else 0)


def _highest(hints: Hints) -> tuple[int, str]:
    """The highest id that the configuration, a vocabulary or a tokeniser names, and what names it."""
    found = [(hints.vocabulary - 1, hints.told_by.get("vocabulary", "the configuration"))] if hints.vocabulary else []
    found += [(hints.highest_id, hints.told_by.get("highest_id", "the vocabulary"))] if hints.highest_id else []
    return max(found, default=(-1, ""))


def _wrapped_special(values: Array, most: int, hints: Hints) -> tuple[str, int, int, int] | None:
    """A special token beyond the type, its id, what it became, and how often that stands there."""
    wrap = 2**16 if most == LIMITS["int16"] else most + 1
    best: tuple[str, int, int, int] | None = None
    for number, token in hints.token_names.items():
        wrapped = number % wrap
        wrapped -= wrap if most == LIMITS["int16"] and wrapped > most else 0
        if number <= most or bool((values == number).any()):
            continue
        count = int((values == wrapped).sum())
        near = values[(np.abs(values - wrapped) <= BESIDE) & (values != wrapped)]
        beside = len(near) / (2 * BESIDE)
        if count >= max(FEWEST, TIMES * beside) and count > 3 * _most_frequent(near) and (
                best is None or count > best[3]):
            best = token, number, wrapped, count
    return best


def _most_frequent(values: Array) -> int:
    return int(np.unique(values, return_counts=True)[1].max()) if len(values) else 0


def _thins_out(values: Array, most: int) -> bool:
    """Whether hardly any id lies in the type's last eighth: a rare tail ends there by chance."""
    high = values[values > most - most // 8]
    return len(np.unique(high)) < 16


def _finding(
    shard: Shard, name: str, told: str, stored: bool, seen: str, most: int, highest: int, kind: str
) -> Finding:
    how = f"holds ids as {told}" if stored else f"holds ids that went through {told}"
    return RULE.finding(
        f"{of(name, shard)} {how}, which ends at {most:,}: {seen}. Larger ids wrapped around",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "type": told, "limit": most, "highest": highest, "kind": kind},
    )

"""A vocabulary or class list beside the weights has another number of entries than the table has rows that it numbers.

A line that was lost moves every later name by one: each id is looked up in the row of another word. Tables are padded
to round sizes and grow by rows that nobody trained; these are left alone. Where the rows that have no name were trained
as all others, they had names once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.lost_names import lost_names
from traindx_tools.on_weights.name_counts import Numbered, lists_beside
from traindx_tools.on_weights.row_training import Trained, last_rows
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

FEWEST_ROWS, FEWEST_WIDTH = 16, 4
SHARE = 0.05
MOST_ADDED = 8
"""Special tokens that programs put before the names of a list that holds none."""

RULE = Rule(
    id="W145",
    name="names-and-rows",
    title="A list of names has another number of entries than its table has rows",
    severity=Severity.HIGH,
    sees="entries of vocabularies and class lists beside a checkpoint, rows of its tables, which of them are trained",
    matters="A name that was lost moves all later ones by a row: ids are looked up in rows of other words.",
    alike=("Rows that pad a table to a round size, or were added: zero, equal, or draws of an initialiser.",
           "Special tokens that the program adds by itself, where the list holds none: a remark.",
           "A class without a name, such as the background: low."),
    confirm=("Compare the list with the release of the weights, line by line.",
             "Look at the nearest rows of ten words: neighbours that mean the same tell where the names are off."),
    thresholds={
        "share": Threshold(SHARE, "of the rows", "that may be without a name, at most: else it is another table's"),
        "added": Threshold(MOST_ADDED, "rows", "that a program may have added for special tokens"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """One finding for each list none of whose counts is that of a table."""
    if not seen.main:
        return
    tables = [s for s in seen.floats if len(s.tensor.shape) == 2 and s.tensor.shape[0] >= FEWEST_ROWS
              and s.tensor.shape[1] >= FEWEST_WIDTH]
    if not tables:
        return
    for found in lists_beside(seen.path):
        rows = {s.tensor.shape[0] for s in tables} if found.tokens else {d for s in tables for d in s.tensor.shape}
        if rows.isdisjoint(found.rows) and (finding := _judged(seen, tables, found)) is not None:
            yield finding


def _judged(seen: Seen, tables: Sequence[Stats], found: Numbered) -> Finding | None:
    stats = _table(tables, found, seen.config)
    if stats is None:
        return None
    rows, count = stats.tensor.shape[0], min(found.rows, key=lambda c: abs(c - stats.tensor.shape[0]))
    declared = _declared(seen.config) == rows
    if not found.tokens:
        return _finding(seen, found, stats, count, Severity.LOW, "classes", "a class may be without a name")
    if count > rows:
        return _finding(seen, found, stats, count, Severity.MEDIUM if found.special else Severity.LOW, "more",
                        "the last of them have no row")
    trained = last_rows(stats, rows - count)
    if trained is Trained.NO:
        return None
    last = "the last row is" if rows - count == 1 else f"the last {rows - count} rows are"
    what = f"{last} trained as all others" if trained is Trained.YES else f"whether {last} trained cannot be told"
    added = not found.special and rows - count <= MOST_ADDED
    if added or trained is Trained.UNTOLD:
        return _finding(seen, found, stats, count, Severity.INFO, "untold", what + (
            ", and the program may put special tokens before the list" if added else ""))
    lost = "a name was" if rows - count == 1 else f"{rows - count} names were"
    which = lost_names(found.path, found.names, rows - count)
    said = f"{what}: {lost} lost, and later ones are looked up in rows of others"
    return _finding(seen, found, stats, count, None if declared or which else Severity.MEDIUM, "lost",
                    f"{said}; {which}" if which else said)


def _declared(config: Mapping[str, Any]) -> object:
    return config.get("vocab_size", config.get("n_vocab"))


def _table(tables: Sequence[Stats], found: Numbered, config: Mapping[str, Any]) -> Stats | None:
    """The table that the list numbers: nearly as many rows; what the configuration says, or a name, before others."""
    near = [s for s in tables if any(0 < abs(s.tensor.shape[0] - c) <= max(1, SHARE * s.tensor.shape[0])
                                     for c in found.rows)]
    if found.tokens:
        near = [s for s in near if s.tensor.shape[0] == _declared(config) or is_embedding(s)]
    else:
        near = [s for s in near if s is tables[-1]]
    return min(near, key=lambda s: (s.tensor.shape[0] != _declared(config), not is_embedding(s)), default=None)


def _finding(seen: Seen, found: Numbered, stats: Stats, count: int, severity: Severity | None, kind: str,
             why: str) -> Finding:
    rows = stats.tensor.shape[0]
    said = " (its configuration says so too)" if _declared(seen.config) == rows else ""
    return RULE.finding(
        f"{_short(found.path, seen.path)} has {count:,} entries and {stats.name} of {seen.path} has {rows:,} rows"
        f"{said}: {why}",
        Location(file=found.path, module=stats.name), seen.path,
        bearing=Bearing.CAUSE if kind == "lost" else Bearing.SIGN, severity=severity,
        measured={"name": stats.name, "kind": kind, "entries": count, "rows": rows, "list": found.path})


def _short(path: str, beside: str) -> str:
    here = Path(beside) if Path(beside).is_dir() else Path(beside).parent
    return f"{here.name}/{Path(path).name}" if Path(path).parent == here and here.name else Path(path).name

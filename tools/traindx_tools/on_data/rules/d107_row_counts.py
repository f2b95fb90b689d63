"""The number of rows is not what it should be.

Fields of unequal length, a manifest that says otherwise, a short shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.entities import are_entities
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule

RULE = Rule(
    id="D107",
    name="row-counts",
    title="The number of rows is not what it should be",
    severity=Severity.HIGH,
    sees="rows of each field and file, and what a manifest beside them says",
    matters="A field that is one row short pairs inputs with the labels of their neighbours; a short file lost data.",
    alike=(
        "A last shard is smaller: left alone.",
        "Files of one entity each, one of which began later.",
        "Arrays that hold something other than rows.",
    ),
    confirm=("Print the lengths of the fields.",),
)
SIBLINGS = 3
"""Files with the same fields, of which two thirds have as many rows of each."""


def check(view: View) -> Iterator[Finding]:
    """A finding for each file whose count does not agree."""
    for data in view.sets:
        for shard in data.shards:
            yield from _unequal(data, shard)
            yield from _left_out(data, shard)
            yield from _manifest(view, shard)
        yield from _short(data)


def _unequal(data: DataSet, shard: Shard) -> Iterator[Finding]:
    usual = Counter((name, length - s.total) for s in data.shards for name, length in s.odd_lengths.items())
    for name, length in shard.odd_lengths.items():
        if len(data.shards) > 2 and usual[name, length - shard.total] > len(data.shards) // 2:
            continue  # every shard has it so: steps between rows, edges of bins
        yield RULE.finding(
            f"{name} of {short(shard)} has {length:,} rows and the other fields {shard.total:,}",
            place(shard),
            shard.name,
            bearing=Bearing.CAUSE,
            measured={"field": name, "rows": length, "expected": shard.total, "kind": "unequal"},
        )


def _left_out(data: DataSet, shard: Shard) -> Iterator[Finding]:
    """A field that has as many rows as the others in the siblings, and quite another number here."""
    others = [s for s in data.shards if s is not shard and s.columns]
    for name, length in shard.left_out.items():
        having = sum(name in s.columns and set(shard.columns) <= set(s.columns) for s in others)
        if len(others) >= SIBLINGS and having >= 2 * len(others) / 3:
            yield RULE.finding(
                f"{name} of {short(shard)} has {length:,} rows and {', '.join(list(shard.columns)[:3])} "
                f"{shard.total:,} ({shard.total / length:.3g} for each), where {having} of its {len(others)} siblings "
                "have as many of both",
                place(shard),
                shard.name,
                bearing=Bearing.CAUSE,
                measured={"field": name, "fields": (name, *shard.columns), "rows": length, "expected": shard.total,
                          "ratio": shard.total / length, "kind": "left-out"},
            )


def _manifest(view: View, shard: Shard) -> Iterator[Finding]:
    said = view.hints.counts.get(Path(shard.name).name)
    if said is None or said == shard.total or any("only the first" in n for n in shard.notes) or not shard.columns:
        return
    if said and shard.total > said and shard.total % said == 0 and _same_factor(view, shard.total // said):
        return
    yield RULE.finding(
        f"{short(shard)} holds {shard.total:,} rows and {view.hints.manifest} says {said:,}",
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if shard.total < said else Severity.MEDIUM,
        measured={"rows": shard.total, "expected": said, "kind": "manifest"},
    )


def _same_factor(view: View, factor: int) -> bool:
    """Whether each file that the manifest counts holds so many times what it says: blocks of tokens, batches, pages."""
    counted = [(s.total, view.hints.counts.get(Path(s.name).name)) for d in view.sets for s in d.shards]
    return all(total == factor * said for total, said in counted if said is not None)


def _short(data: DataSet) -> Iterator[Finding]:
    """One shard within a series of equal ones that has fewer rows; the last may."""
    for group in data.splits.values():
        if len(group) < 4 or any(not s.columns for s in group):
            continue
        usual, count = Counter(s.total for s in group).most_common(1)[0]
        others = [s for s in group[:-1] if s.total != usual]
        if (
            count >= 3
            and len(others) == 1
            and others[0].total < 0.95 * usual
            and count == len(group) - 1 - (group[-1].total != usual)
            and not are_entities(group)  # one that started later
        ):
            shard = others[0]
            yield RULE.finding(
                f"{short(shard)} holds {shard.total:,} rows and each of the other {count} {usual:,}; it is not "
                "the last",
                place(shard),
                shard.name,
                bearing=Bearing.SIGN,
                severity=Severity.MEDIUM,
                measured={"rows": shard.total, "expected": usual, "kind": "short"},
            )

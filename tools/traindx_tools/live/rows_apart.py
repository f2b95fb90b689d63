"""Evaluated rows that a watched run compared with all that it was trained on: a text that says otherwise is wrong.

Text suspects, the run convicts; and where the run looked at the very thing, it acquits. What is left is a remark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from traindx_tools.finding import Finding, Severity

KIND = "rows-apart"
"""The record of a process whose evaluated rows were none of the trained ones, but for twins."""
RULE, KINDS = "C371", frozenset({"whole", "two draws"})
"""What is said of rows as they are: rows that were changed on the way are not known again."""
FEWEST, TWINS, AGAIN = 50, 0.02, 1.5
"""Evaluated rows, the share of them that may equal a trained one by chance, and how often a trained row came again
with the same values: rows that are changed each time would be known nowhere."""


def rows_apart(counted: Mapping[str, int], evaluated: int, trained: int, distinct: int) -> int:
    """How many evaluated rows were compared, where next to none of them was trained on before or after; else 0."""
    clean = counted["rows"] == evaluated and counted["known"] <= TWINS * evaluated and distinct > 0
    return evaluated if clean and evaluated >= FEWEST and trained >= AGAIN * distinct else 0


def number_in(record: Mapping[str, Any]) -> int:
    """The rows that a record of this kind tells."""
    rows = record.get("rows")
    return rows if isinstance(rows, int) and not isinstance(rows, bool) else 0


def acquitted(findings: Iterable[Finding], rows: int) -> tuple[Finding, ...]:
    """The findings of the code; those that the run contradicts as remarks."""
    return tuple(
        replace(f, severity=Severity.INFO, statement=f"{f.statement}; the watched run evaluated {rows:,} rows, and was "
                "trained on next to none of them") if rows and f.rule == RULE and f.measured.get("kind") in KINDS else f
        for f in findings)

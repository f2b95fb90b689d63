"""Ranges outside of which a number is a fault or a remark, read from `ranges.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from traindx_tools.knowledge.tables import table


@dataclass(frozen=True)
class Range:
    """One row: of which calls and argument, what lies outside, and what is said of it."""

    id: str
    kind: str
    of: frozenset[str]
    argument: str
    says: str
    position: int = 99
    also: tuple[str, ...] = ()
    """Other names of the argument."""
    outside: tuple[tuple[str, float], ...] = ()
    """Comparisons that all hold outside: ("above", 2.0), ("below", 0.95) ..."""
    over: str = ""
    """Another argument that is larger."""
    severity: str = "high"
    sign: bool = False
    needs: frozenset[str] = frozenset()
    spares: frozenset[str] = frozenset()
    usual: str = ""
    """A number that is usual there."""


_OUTSIDE = ("above", "at_least", "below", "at_most", "equal")


@cache
def ranges() -> tuple[Range, ...]:
    """The rows, the worst of one kind first."""
    groups = table("ranges.toml")["groups"]
    return tuple(_row(r, groups) for r in table("ranges.toml")["range"])


def _row(row: dict[str, Any], groups: dict[str, list[str]]) -> Range:
    told = {k: v for k, v in row.items() if k not in _OUTSIDE}
    of = frozenset(n for name in told.pop("of") for n in groups.get(name, [name]))
    outside = tuple((k, float(row[k])) for k in _OUTSIDE if k in row)
    needs, spares = (frozenset(told.pop(k, ())) for k in ("needs", "spares"))
    return Range(of=of, outside=outside, also=tuple(told.pop("also", ())), needs=needs, spares=spares, **told)


@cache
def by_call() -> dict[str, tuple[Range, ...]]:
    """The rows by the last name of what is called or made."""
    names = {n for r in ranges() for n in r.of}
    return {n: tuple(r for r in ranges() if n in r.of) for n in names}

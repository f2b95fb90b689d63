"""Numbers that a call may be given, and the order in which parts have to stand; read from tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from traindx_tools.knowledge.tables import table
from traindx_tools.program.timeline import Moment


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


@dataclass(frozen=True)
class Chain:
    """Transformations of a library: what bounds a gradient belongs before what normalises it."""

    library: str
    bounds: frozenset[str]
    normalises: frozenset[str]
    decays: frozenset[str] = frozenset()
    """What adds a share of the weights: before what applies the (negative) rate."""

    def late_decay(self, names: Iterable[str]) -> str | None:
        """The name that applies the rate before the first decay, with nothing behind it that scales."""
        last: str | None = None
        for name in names:
            if name in self.decays:
                return last
            applies = name.startswith(f"{self.library}.") and name.rpartition(".")[2] in self.normalises
            adapts = name.rpartition(".")[2] in ("scale_by_adam", "scale_by_rms", "scale_by_lion")
            last = name if applies and not adapts else None if name == f"{self.library}.scale" else last
        return None

    def late_bound(self, names: Iterable[str]) -> str | None:
        """The name that normalises before the first bound; None where the order is right or there is no bound."""
        last: str | None = None
        for name in names:
            if name in self.bounds:
                return last
            if name.startswith(f"{self.library}.") and name.rpartition(".")[2] in self.normalises:
                last = name
        return None


@cache
def chains() -> tuple[Chain, ...]:
    """The rows of chains."""
    rows = table("orders.toml")["chain"]
    return tuple(Chain(r["library"], *(frozenset(r[k]) for k in ("bounds", "normalises", "decays"))) for r in rows)


@cache
def by_hand(framework: str) -> Mapping[Moment, str]:
    """What a module must call itself under a framework that leaves the update to it, and how it is written."""
    rows = [r for r in table("orders.toml")["by_hand"] if r["framework"] == framework]
    return {Moment(k): v for r in rows for k, v in r["calls"].items()}

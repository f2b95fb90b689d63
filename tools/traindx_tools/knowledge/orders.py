"""Orders that libraries ask for, read from `orders.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from traindx_tools.knowledge.tables import table
from traindx_tools.program.timeline import Moment


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

"""Always on: ids that reach beyond the table that a compiled function looks them up in (J807)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.lookups import Counted, Ids, Lookup, lookups
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j807_ids_beyond_table
from traindx_tools.on_jax.rules.j807_ids_beyond_table import Beyond
from traindx_tools.on_jax.tracing import dynamic_leaves, lowered

FIRST, EVERY, MOST = 12, 25, 2000
"""Calls of a function that are looked at: the first ones, then every so many, up to one."""
MOST_EQUATIONS, MOST_FUNCTIONS, MOST_LOOKUPS, MOST_SIZE = 40_000, 64, 32, 2**20


@dataclass
class _Function:
    """The look-ups of one function, by argument."""

    asked: list[tuple[Ids, Beyond]] = field(default_factory=list)
    counted: list[Beyond] = field(default_factory=list)


class LookupsProbe(JaxProbe):
    """Compares the highest id of some calls with the rows of the tables."""

    name = "lookups"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What is looked up, in how many rows."""
        number = call.watched.number
        if number in self._functions or len(self._functions) >= MOST_FUNCTIONS \
                or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        found = list(dict.fromkeys(lookups(jaxpr)))[:MOST_LOOKUPS]
        if not found:
            return
        names = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output).inputs
        known = self._functions[number] = _Function()
        for one in found:
            seen = _beyond(call.watched.name, one, names)
            if isinstance(one.ids, Ids):
                known.asked.append((one.ids, seen))
            elif one.ids.count > one.rows:
                seen.beyond, seen.of, seen.highest = one.ids.count - one.rows, one.ids.count, one.ids.count - 1
                known.counted.append(seen)

    def before_call(self, call: Call) -> None:
        """Counts the ids beyond."""
        known = self._functions.get(call.watched.number)
        if known is None or not known.asked or call.step > MOST or (call.step > FIRST and call.step % EVERY):
            return
        leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
        for ids, seen in known.asked:
            leaf = leaves[ids.number] if ids.number < len(leaves) else None
            if leaf is None or not 0 < getattr(leaf, "size", 0) <= MOST_SIZE:
                continue
            if ids.cut is None or len(ids.cut[0]) == leaf.ndim:
                values = np.asarray(leaf)
                part = values if ids.cut is None else values[tuple(slice(*c) for c in zip(*ids.cut, strict=True))]
                if part.dtype.kind in "iu" and part.size:
                    seen.of += part.size
                    seen.beyond += int((part >= seen.rows).sum())
                    seen.highest = max(seen.highest, int(part.max()))

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for known in self._functions.values():
            yield from j807_ids_beyond_table.check([*(s for _, s in known.asked), *known.counted])


def _beyond(function: str, one: Lookup, names: tuple[str, ...]) -> Beyond:
    place = one.place
    argument = "" if isinstance(one.ids, Counted) else names[one.ids.number]
    return Beyond(function, argument, one.rows, one.filled, file=place.file if place else None,
                  line=place.line if place else None)

"""Every cause, where several do: each alone makes the symptom come, so that none is found by leaving out one.

A search ends with one cause; the rest without it is asked whether it still fails. What was in a run that passed is not
looked at again. For k causes that is about k log2 n runs; the bound is k log2(n / k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from traindx_tools.experiments.isolating.minimise import minimise
from traindx_tools.experiments.isolating.outcomes import Items, Shown, Test

MOST_CAUSES = 32
"""After so many the search ends: what has more causes is no difference of a few items."""


@dataclass(frozen=True)
class Causes:
    """`found`: each a smallest set that fails. `rest`: what all else together shows: PASS where these are all."""

    found: tuple[tuple[int, ...], ...]
    rest: Shown


def every_cause(items: Sequence[int], test: Test, context: Items = frozenset(), most: int = MOST_CAUSES) -> Causes:
    """All disjoint causes among `items`, which fail together with `context`; see `minimise`."""
    clean: set[int] = set()

    def noting(part: Items) -> Shown:
        shown = test(part)
        if shown is Shown.PASS:
            clean.update(part)
        return shown

    found: list[tuple[int, ...]] = []
    pool = [i for i in items if i not in context]
    rest = Shown.FAIL
    while rest is Shown.FAIL and len(found) < most:
        cause = minimise(pool, noting, context)
        found.append(cause)
        known = {i for c in found for i in c}
        rest = noting(frozenset(items).union(context).difference(known)) if len(known) < len(items) else Shown.PASS
        pool = [i for i in pool if i not in known and i not in clean]
        if not pool or (rest is Shown.FAIL and test(context.union(pool)) is not Shown.FAIL):
            break
    return Causes(tuple(found), rest)


def healthy_part(items: Sequence[int], test: Test, most_parts: int = 64) -> Items | None:
    """A part of the items that passes by itself: halves, quarters and so on; None where none does.

    Where items can only be left out there is no good run to start from: this part takes its place, and all others are
    tried together with it.
    """
    parts = 2
    while parts <= min(most_parts, len(items)):
        edges = [len(items) * i // parts for i in range(parts + 1)]
        for a, b in pairwise(edges):
            part = frozenset(items[a:b])
            if test(part) is Shown.PASS:
                return part
        parts *= 2
    return None

"""The smallest set of differences that still makes the symptom come: no member of it can be left out.

First prefixes are searched by halving: where a set that fails fails with more in it too, each member costs log2 n runs
(as in Junker's QuickXplain, 2004). What that finds is then minimised by ddmin (Zeller and Hildebrandt, Simplifying and
isolating failure-inducing input, 2002), which assumes nothing and proves that the result is 1-minimal: usually it has
one member and nothing is left to prove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from traindx_tools.experiments.isolating.outcomes import Items, Shown, Test

_Shown = Callable[[Sequence[int]], Shown]


def minimise(items: Sequence[int], test: Test, context: Items = frozenset()) -> tuple[int, ...]:
    """A subset of `items` that fails together with `context`, and without any one of its members does not.

    `items` must fail together with `context`, and `context` alone must not. Neighbours in `items` stay together as
    long as possible: give them in an order in which what belongs together is adjacent.
    """
    def fails(part: Sequence[int]) -> Shown:
        return test(context.union(part))

    return ddmin(by_prefixes(items, fails), fails)


def by_prefixes(items: Sequence[int], shown: _Shown) -> tuple[int, ...]:
    """A subset that was seen to fail, by binary search for the shortest prefix that fails; its last member is needed.

    Prefixes that are unresolved are passed over; where none between one that passes and one that fails is resolved,
    all in between are taken together.
    """
    found: list[int] = []
    pool = list(items)
    while pool:
        low, high = _shortest(found, pool, shown)
        found, pool = [*found, *pool[low:high]], pool[:low]
        if pool and shown(found) is Shown.FAIL:
            break
    return tuple(sorted(found, key=list(items).index))


def _shortest(found: Sequence[int], pool: Sequence[int], shown: _Shown) -> tuple[int, int]:
    """`low`, `high`: with the first `high` of the pool it fails, with the first `low` it does not."""
    low, high = 0, len(pool)
    unresolved: set[int] = set()
    while (at := nearest(low, high, unresolved)) is not None:
        verdict = shown([*found, *pool[:at]])
        if verdict is Shown.FAIL:
            high = at
        elif verdict is Shown.PASS:
            low = at
        else:
            unresolved.add(at)
    return low, high


def nearest(low: int, high: int, unresolved: set[int]) -> int | None:
    """The place nearest to the middle between two places that is not known to be unresolved; None where there is none.
    """
    middle = (low + high) // 2
    places = (p for d in range(high - low) for p in (middle + d, middle - d) if low < p < high)
    return next((p for p in places if p not in unresolved), None)


def ddmin(items: Sequence[int], shown: _Shown) -> tuple[int, ...]:
    """A 1-minimal failing subset of items that fail together: parts, then complements, then finer parts."""
    left, parts = tuple(items), 2
    while len(left) > 1:
        parts = min(parts, len(left))
        chunks = _chunks(left, parts)
        smaller = next((c for c in chunks if shown(c) is Shown.FAIL), None)
        if smaller is not None:
            left, parts = smaller, 2
            continue
        rests = (tuple(x for x in left if x not in set(c)) for c in chunks) if parts > 2 else ()
        rest = next((r for r in rests if shown(r) is Shown.FAIL), None)
        if rest is not None:
            left, parts = rest, max(parts - 1, 2)
        elif parts == len(left):
            break
        else:
            parts *= 2
    return left


def _chunks(items: tuple[int, ...], parts: int) -> list[tuple[int, ...]]:
    edges = [len(items) * i // parts for i in range(parts + 1)]
    return [items[a:b] for a, b in pairwise(edges)]

"""A stored order that is none: an index stands twice in it and another is missing.

Permutations of flows, shuffled channels, orders of rows: n whole numbers from 0 to n - 1. That several tensors of one
name hold each number exactly once is no chance (n! / n^n of draws do, 1 in 400 for n = 8, for each of them); one that
holds nearly all of them was damaged, or put together from two. Without siblings its length tells: of 64 numbers and
more that are drawn with repetition a share of 37 % is missing, so an unsorted vector that holds 85 % of them was
made as a permutation. Where the highest numbers are the missing ones it is one of fewer rows, filled up to its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_LEAST, _MOST = 6, 2**20
_SIBLINGS = 2
_HELD = 0.7
_ALONE, _HELD_ALONE = 64, 0.85
_RISING = 0.75
_SHOWN = 3
_NUMBER = re.compile(r"\d+")

RULE = Rule(
    id="W164",
    name="no-permutation",
    title="A stored order holds an index twice and misses another",
    severity=Severity.HIGH,
    sees="vectors of whole numbers of which all others of that name hold each number from 0 to n - 1 once, and long "
         "ones that hold nearly all of these in no order",
    matters="What stands at the missing index is lost, what stands at the other is used twice; there is no inverse.",
    alike=("tables that choose with repetition: no sibling is a permutation either",
           "indices of a part of the rows: they reach beyond n - 1",
           "maps to the nearest of a grid: they are sorted", "an order that is filled up to a round length"),
    confirm=("sort it and look for the number that stands twice", "make it anew from its seed, if settings name one"),
    thresholds={
        "siblings": Threshold(_SIBLINGS, "tensors", "of that name and length, all of which are permutations"),
        "least": Threshold(_LEAST, "numbers", "shorter ones are permutations by chance"),
        "held": Threshold(_HELD, "of the numbers", "drawn ones hold 63 % of them (1 - 1/e)"),
        "alone": Threshold(_ALONE, "numbers", "without siblings, of which 85 % are held: five deviations more"),
        "rising": Threshold(_RISING, "of the steps", "that rise or fall at most: half of them do in an order"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Each vector of whole numbers that is no permutation while all of its siblings are."""
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, tensor in seen.part.tensors.items():
        whole = tensor.dtype.startswith(("int", "uint"))
        if whole and len(tensor.shape) == 1 and _LEAST <= tensor.shape[0] <= _MOST:
            groups.setdefault((_NUMBER.sub("*", name), tensor.shape), []).append(name)
    for names in groups.values():
        if len(names) <= _SIBLINGS:
            yield from (f for n in names if (f := _alone(seen, n)) is not None)
            continue
        counts = {n: c for n in names if (c := _counts(seen, n)) is not None}
        odd = [n for n, c in counts.items() if (c != 1).any()]
        if len(counts) == len(names) and len(odd) == 1:
            count = counts[odd[0]]
            if float((count > 0).mean()) >= _HELD:
                yield _finding(seen, odd[0], count, len(names) - 1)


def _alone(seen: Seen, name: str) -> Finding | None:
    """A long one that holds nearly all of its numbers, in no order."""
    length = seen.part.tensors[name].shape[0]
    count = _counts(seen, name) if length >= _ALONE else None
    if count is None or (count == 1).all() or float((count > 0).mean()) < _HELD_ALONE:
        return None
    if int(np.flatnonzero(count).max()) + 1 == int((count > 0).sum()):
        return None
    tensor = seen.part.tensors[name]
    rising = float((np.diff(np.asarray(tensor.load(tensor.nbytes)).astype(np.int64)) > 0).mean())
    return _finding(seen, name, count, 0) if 1 - _RISING <= rising <= _RISING else None


def _counts(seen: Seen, name: str) -> NDArray[np.int64] | None:
    """How often each number from 0 to n - 1 occurs; None where another one does."""
    tensor = seen.part.tensors[name]
    values = np.asarray(tensor.load(tensor.nbytes))
    if values.size == 0 or values.min() < 0 or values.max() >= values.size:
        return None
    return np.bincount(values.astype(np.int64), minlength=values.size)


def _finding(seen: Seen, name: str, count: NDArray[np.int64], others: int) -> Finding:
    twice, missing = np.flatnonzero(count > 1), np.flatnonzero(count == 0)
    return RULE.finding(
        f"{name} in {seen.path} is no permutation of its {len(count):,} indices: {_told(twice)} "
        f"{'stands' if len(twice) == 1 else 'stand'} more than once and {_told(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} missing; "
        + (f"its {others} siblings hold each index once" if others else
           f"drawn numbers would miss a third of them, these {len(missing) / len(count):.1%}"),
        seen.where(name), seen.path, bearing=Bearing.CAUSE,
        severity=None if others else Severity.MEDIUM,
        measured={"kind": "no-permutation", "name": name, "twice": tuple(map(int, twice[:20])),
                  "missing": tuple(map(int, missing[:20])), "siblings": others})


def _told(indices: NDArray[np.int64]) -> str:
    shown = ", ".join(str(int(i)) for i in indices[:_SHOWN])
    return shown + (f" and {len(indices) - _SHOWN:,} more" if len(indices) > _SHOWN else "")

"""Tensors of one module that determine each other: a permutation and its inverse, a matrix and its inverse, a scale and
its reciprocal, a variance and its root, a mask and what it leaves.

A module keeps both to spare itself the computation. Which tensors of a module are bound is asked of all modules that
have the same tensors: what holds in most of them to the last digits was made so, and is no chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.tensor import Tensor

FEWEST = 3
"""Modules in which a relation holds before one in which it does not is odd."""
SHARE = 2 / 3
"""Of the modules, in which it holds."""
SHORTEST = 4
MOST_VALUES, MOST_SIDE = 2**18, 256
MOST_TENSORS = 12
"""Tensors of a module that are laid beside each other."""
MOST_MODULES = 256
_CLOSE, _FAR = 1e-4, 1e-2
"""Relative distance below which a relation holds, and above which it does not."""
_NUMBER = re.compile(r"\d+")
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """One relation of two tensors of each module, the modules in which it holds and those in which it does not.

    `taken`: of each of the latter the leaf that is another module's and that module, ("", "") for none.
    """

    relation: str
    one: str
    other: str
    holds: tuple[str, ...]
    broken: tuple[str, ...]
    distances: tuple[float, ...]
    taken: tuple[tuple[str, str], ...]


def _inverse_order(one: Values, other: Values) -> float:
    """Share of the places that do not come back to themselves; nan where one is no permutation."""
    if one.ndim != 1 or not (_permutes(one) and _permutes(other)):
        return np.nan
    back = other[one.astype(np.intp)]
    return float((back != np.arange(len(one))).mean())


def _permutes(values: Values) -> bool:
    """A permutation that is not its own inverse by being the order itself."""
    order = np.arange(len(values))
    return len(values) >= SHORTEST and bool((np.sort(values) == order).all()) and not bool((values == order).all())


def _inverse(one: Values, other: Values) -> float:
    """How far the product is from the unit matrix."""
    if one.ndim != 2 or one.shape[0] != one.shape[1] or one.shape != other.shape or not 2 <= len(one) <= MOST_SIDE:
        return np.nan
    unit = np.eye(len(one))
    return float(np.abs(one @ other - unit).max()) if np.abs(one - unit).max() > _FAR else np.nan


def _apart(made: Values, other: Values) -> float:
    """Largest distance over the largest value; nan where either is constant, so that nothing is told by it."""
    if made.shape != other.shape or made.size < SHORTEST or not np.isfinite(made).all() or np.ptp(made) == 0:
        return np.nan
    return float(np.abs(made - other).max() / np.abs(made).max())


def _complement(one: Values, other: Values) -> float:
    return _apart(1 - one, other) if one.shape == other.shape and one.min() >= 0 and one.max() <= 1 else np.nan


def _positive(change: Callable[[Values], Values]) -> Callable[[Values, Values], float]:
    """A relation of positive numbers."""
    return lambda one, other: _apart(change(one), other) if one.min() > 0 else np.nan


RELATIONS: Mapping[str, tuple[str, Callable[[Values, Values], float]]] = {
    "inverse-order": ("is the inverse permutation of", _inverse_order),
    "inverse": ("is the inverse matrix of", _inverse),
    "negative": ("is the negative of", lambda one, other: _apart(-one, other)),
    "complement": ("is one minus", _complement),
    "reciprocal": ("is one over", _positive(lambda v: 1 / v)),
    "root": ("is the square root of", _positive(np.sqrt)),
    "reciprocal-root": ("is one over the square root of", _positive(lambda v: 1 / np.sqrt(v))),
    "logarithm": ("is the logarithm of", _positive(np.log)),
    "differences": ("are the running sums of", lambda one, other: _sums(one, other)),
}
"""By name: how it is said of the other tensor, and how far two tensors are from it (0: it holds, nan: not asked)."""


def _sums(one: Values, other: Values) -> float:
    """Running sums, from zero or from the first."""
    if one.ndim != 1 or other.ndim != 1 or not 0 <= len(other) - len(one) <= 1:
        return np.nan
    made = np.cumsum(one)
    return _apart(made if len(one) == len(other) else np.concatenate([[0.0], made]), other)


def bound(tensors: Mapping[str, Tensor]) -> Iterator[Bound]:
    """The relations that hold in most modules of a kind, and not in all. Raises UnreadableInput."""
    for modules in _kinds(tensors).values():
        if FEWEST < len(modules) <= MOST_MODULES:
            values = {m: {leaf: np.asarray(t.load(), np.float64) for leaf, t in held.items()}
                      for m, held in modules.items()}
            yield from _of_kind(values)


def _kinds(tensors: Mapping[str, Tensor]) -> dict[tuple[str, frozenset[str]], dict[str, dict[str, Tensor]]]:
    """Modules by their name without numbers and by what they hold, each with its small tensors."""
    held: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.replace("/", ".").rpartition(".")
        if SHORTEST <= tensor.size <= MOST_VALUES and _NUMBER.search(module):
            held.setdefault(module, {})[leaf] = tensor
    kinds: dict[tuple[str, frozenset[str]], dict[str, dict[str, Tensor]]] = {}
    for module, leaves in held.items():
        if 2 <= len(leaves) <= MOST_TENSORS:
            kinds.setdefault((_NUMBER.sub("*", module), frozenset(leaves)), {})[module] = leaves
    return kinds


def _of_kind(values: Mapping[str, Mapping[str, Values]]) -> Iterator[Bound]:
    first, second = list(values.values())[:2]
    told: set[frozenset[str]] = set()
    for one, other in permutations(sorted(first), 2):
        for relation, (_, distance) in RELATIONS.items():
            asked = any(not np.isnan(_measured(distance, m[one], m[other])) for m in (first, second))
            if frozenset((one, other)) in told or not asked:
                continue
            found = {m: _measured(distance, held[one], held[other]) for m, held in values.items()}
            holds = tuple(m for m, d in found.items() if d <= _CLOSE)
            broken = tuple(m for m, d in found.items() if d > _FAR)
            if len(holds) >= max(FEWEST, SHARE * len(values)) and broken:
                told.add(frozenset((one, other)))
                taken = tuple(_taken(distance, values, m, one, other) for m in broken)
                yield Bound(relation, one, other, holds, broken, tuple(found[m] for m in broken), taken)


def _taken(distance: Callable[[Values, Values], float], values: Mapping[str, Mapping[str, Values]], module: str,
           one: str, other: str) -> tuple[str, str]:
    """Which of the two tensors of a module goes with another module's, and with whose."""
    own = values[module]
    for name, held in values.items():
        if name != module and _measured(distance, held[one], own[other]) <= _CLOSE:
            return other, name
        if name != module and _measured(distance, own[one], held[other]) <= _CLOSE:
            return one, name
    return "", ""


def _measured(distance: Callable[[Values, Values], float], one: Values, other: Values) -> float:
    with np.errstate(all="ignore"):
        return distance(one, other) if np.isfinite(one).all() and np.isfinite(other).all() else np.nan

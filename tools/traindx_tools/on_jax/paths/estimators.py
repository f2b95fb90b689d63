"""Straight-through estimators in a jaxpr: sums in which `stop_gradient` hides a step that has no derivative.

`z + stop_gradient(q - z)`, `stop_gradient(q) + z - stop_gradient(z)`, `hard - stop_gradient(soft) + soft`: in all of
them a value cancels in the sum and remains for the gradient. The sum is taken apart into its terms to see which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_jax import internals

SUMS = frozenset({"add", "sub", "add_any", "neg"})
SAME = frozenset({"convert_element_type", "reshape", "copy", "squeeze", "broadcast_in_dim", "expand_dims"})
"""What leaves a term what it is."""
HIGHEST, MOST_TERMS = 6, 64


@dataclass(frozen=True)
class Estimator:
    """`passed`: the values that cancel in the sum and get its gradient; `hidden`: those that are there without one."""

    passed: tuple[Any, ...]
    hidden: tuple[Any, ...]


class Sums:
    """The sums of an open jaxpr."""

    def __init__(self, body: Any) -> None:
        self._made: dict[Any, Any] = {v: e for e in body.eqns for v in e.outvars}
        self._users: dict[Any, list[Any]] = {}
        for eqn in body.eqns:
            if eqn.primitive.name in SUMS | SAME | {"stop_gradient"}:
                for atom in eqn.invars:
                    if not internals.is_literal(atom):
                        self._users.setdefault(atom, []).append(eqn)

    def estimator(self, stop: Any) -> Estimator | None:
        """The estimator that a stop_gradient belongs to, None where it stands in no such sum."""
        level = [stop.outvars[0]]
        for _ in range(HIGHEST):
            level = [v for a in level for e in self._users.get(a, ()) if e.primitive.name in SUMS | SAME
                     for v in e.outvars]
            for root in level[:MOST_TERMS]:
                found = self._of(root)
                if found is not None:
                    return found
        return None

    def _of(self, root: Any) -> Estimator | None:
        terms: dict[Any, list[int]] = {}
        if not self._expand(root, 1, False, terms, [MOST_TERMS]):
            return None
        passed = tuple(v for v, (open_, stopped) in terms.items() if open_ and open_ + stopped == 0)
        hidden = tuple(v for v, (open_, stopped) in terms.items() if stopped and not open_)
        return Estimator(passed, hidden) if passed and hidden else None

    def _expand(self, atom: Any, sign: int, stopped: bool, terms: dict[Any, list[int]], left: list[int]) -> bool:
        """Adds the terms of a value: how often it stands in the sum openly, and behind stop_gradient."""
        left[0] -= 1
        if left[0] < 0:
            return False
        if internals.is_literal(atom):
            return True
        eqn: Any = self._made.get(atom)
        name = eqn.primitive.name if eqn is not None else ""
        if name in SUMS:
            signs: Sequence[int] = (-sign,) if name == "neg" else (sign, -sign if name == "sub" else sign)
            return all(self._expand(a, s, stopped, terms, left) for a, s in zip(eqn.invars, signs, strict=True))
        if name in SAME or name == "stop_gradient":
            return self._expand(eqn.invars[0], sign, stopped or name == "stop_gradient", terms, left)
        terms.setdefault(atom, [0, 0])[stopped] += sign
        return True


def is_exchanged(hard_passed: int, hard_hidden: int) -> bool:
    """Whether an estimator gives its gradient to the wrong side. The bits: the steps that each side went through."""
    return bool(hard_passed) and hard_hidden | hard_passed == hard_passed and hard_hidden != hard_passed


def bits_of(values: Sequence[Any], env: Mapping[Any, Any], mask: int) -> int:
    """The bits of what values depend on, among these."""
    found = 0
    for value in values:
        way = env.get(value)
        found |= way.any & mask if way is not None else 0
    return found

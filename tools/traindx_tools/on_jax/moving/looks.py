"""What is kept of the calls of one function: how far samples of its arrays went, its numbers, gradients and losses.

Everything stays on the device until the program ends; nothing waits for it. Of an array the elements at equal distances
are taken, 1024 at most, and of each array only the last sample is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.paths.norms import norms_of
from traindx_tools.on_jax.probe import Call
from traindx_tools.on_jax.tracing import Traced, dynamic_numbers
from traindx_tools.on_jax.watched import Watched

MOST_ELEMENTS, MOST_ARRAYS, MOST_NUMBERS, MOST_LOSSES = 1024, 256, 32, 4
DENSE = 6
"""Bits of the call up to which each is looked at; then 32 calls of each doubling."""
LEARNING = 3
"""The first call before which it is known what comes back; until then all arrays are taken."""
MOST_GAPS = 4096


def is_look(step: int) -> bool:
    """Whether something is measured in this call of a function (counted from 1)."""
    return step % (1 << max(0, step.bit_length() - DENSE)) == 0


@dataclass(frozen=True)
class Look:
    """Before one call. `told`: for each of the argument leaves `leaves` the norm of its change since the look before,
    its own norm, and that of the part of it that is no multiple of what it was; float32, on the device."""

    step: int
    leaves: tuple[int, ...]
    told: Any
    numbers: dict[int, Any]
    """By argument leaf: the numbers (shape `()`) of this call."""


@dataclass
class Moving:
    """One function. `pairs`: output leaf that is a gradient, argument leaf that it is of."""

    watched: Watched
    traced: Traced | None = None
    trains: bool = False
    pairs: tuple[tuple[int, int], ...] = ()
    calls: int = 0
    looks: list[Look] = field(default_factory=list)
    gradients: dict[int, Any] = field(default_factory=dict)
    losses: dict[int, list[Any]] = field(default_factory=dict)
    positions: list[int] | None = None
    """The argument leaf of each input of the jaxpr."""
    gaps: dict[int, list[int]] = field(default_factory=dict)
    """By the number of another function: how many calls of this one came between its calls."""
    _marks: dict[int, int] = field(default_factory=dict)
    _samples: dict[int, Any] = field(default_factory=dict)

    @property
    def fed(self) -> dict[int, int]:
        """Argument leaf by output leaf, of what comes back in the next call."""
        return self.watched.feeding.fed if self.watched.feeding is not None else {}

    def look(self, call: Call) -> None:
        """Before the call, while arguments that it gives away are still there."""
        import jax

        leaves = jax.tree_util.tree_leaves((call.args, call.kwargs))
        if self.positions is None:
            self.positions = dynamic_numbers(call.watched, call.args, call.kwargs)
        kept = self._wanted(call.step, leaves)
        told = _distances([leaves[i] for i in kept], [self._samples.get(i) for i in kept])
        self._samples = dict(zip(kept, (sample for sample, _ in told), strict=True))
        before = all(norms is not None for _, norms in told) and bool(told)
        self.looks.append(Look(call.step, kept, _stacked([n for _, n in told]) if before else None,
                               _numbers(leaves) if self.trains or call.step >= LEARNING else {}))

    def _wanted(self, step: int, leaves: Sequence[Any]) -> tuple[int, ...]:
        if step < LEARNING:
            among = list(range(len(leaves)))
        else:
            among = sorted({*self.fed.values(), *(i for _, i in self.pairs)}) if self.trains else []
        arrays = [i for i in among if i < len(leaves) and _is_local_array(leaves[i])
                  and (step < LEARNING or not self._samples or i in self._samples)]
        return tuple(arrays[:: max(1, -(-len(arrays) // MOST_ARRAYS))])

    def looked(self, call: Call) -> None:
        """After the call: gradients that it returned, and its single numbers that do not come back."""
        import jax

        if not self.trains:
            return
        leaves = call.leaves or jax.tree_util.tree_leaves(call.output)
        grads = [leaves[o] for o, _ in self.pairs[:MOST_ARRAYS] if o < len(leaves)]
        if grads and all(_is_local_array(g) for g in grads):
            self.gradients[call.step] = norms_of(grads)
        fed = self.fed
        self.losses[call.step] = [x for i, x in enumerate(leaves) if i not in fed and is_inexact(x)
                                  and not x.shape][:MOST_LOSSES]

    def interrupted(self, by: int) -> None:
        """Another function was called after some calls of this one."""
        mark = self._marks.get(by, 0)
        gaps = self.gaps.setdefault(by, [])
        if self.calls > mark and len(gaps) < MOST_GAPS:
            gaps.append(self.calls - mark)
        self._marks[by] = self.calls

    def distances(self, among: frozenset[int]) -> tuple[list[int], NDArray[np.float64]]:
        """The calls of the looks, and by difference between two looks and argument leaf the three norms of `Look`."""
        looks = [x for x in self.looks if among <= frozenset(x.leaves)]
        rows = [np.asarray(x.told, np.float64)[[x.leaves.index(i) for i in sorted(among)]]
                for x in looks[1:] if x.told is not None]
        if not among or len(rows) != len(looks) - 1 or not rows:
            return [], np.empty((0, 0, 3))
        return [x.step for x in looks], np.stack(rows)


def _is_local_array(leaf: Any) -> bool:
    return (is_inexact(leaf) and getattr(leaf, "ndim", 0) > 0 and leaf.size > 0 and not internals.is_tracer(leaf)
            and getattr(leaf, "is_fully_addressable", True) and not getattr(leaf, "is_deleted", bool)())


def _numbers(leaves: Sequence[Any]) -> dict[int, Any]:
    """Copies of the single numbers among the arguments: an array may be given away by the call."""
    import jax.numpy as jnp

    found: dict[int, Any] = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (int, float, np.number)):
            found[i] = leaf
        elif getattr(leaf, "shape", None) == () and hasattr(leaf, "dtype") and not internals.is_typed_key(leaf) \
                and not internals.is_tracer(leaf) and not getattr(leaf, "is_deleted", bool)():
            found[i] = jnp.array(leaf, copy=True)
        if len(found) >= MOST_NUMBERS:
            break
    return found


def _distances(arrays: Sequence[Any], before: Sequence[Any]) -> list[tuple[Any, Any]]:
    """For each array its sample, and the three norms where there is a sample from before."""
    sampled, compared = _programs()
    return [(sampled(x), None) if old is None or len(old) != _size(x) else compared(x, old)
            for x, old in zip(arrays, before, strict=True)]


def _size(array: Any) -> int:
    """Elements of its sample: an argument of another size is another array."""
    return len(range(0, array.size, max(1, -(-array.size // MOST_ELEMENTS))))


def _stacked(told: Sequence[Any]) -> Any:
    import jax
    import jax.numpy as jnp

    return getattr(jax.jit, "__wrapped__", jax.jit)(jnp.stack)(list(told))


@cache
def _programs() -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    def sampled(value: Any) -> Any:
        flat = jnp.asarray(value).reshape(-1)
        return jnp.abs(flat[:: max(1, -(-flat.size // MOST_ELEMENTS))]).astype(jnp.float32) if jnp.iscomplexobj(
            flat) else flat[:: max(1, -(-flat.size // MOST_ELEMENTS))].astype(jnp.float32)

    def compared(value: Any, old: Any) -> Any:
        new = sampled(value)
        square = jnp.vdot(old, old)
        rest = new - old * (jnp.vdot(new, old) / jnp.where(square > 0, square, 1.0))
        return new, jnp.sqrt(jnp.stack([jnp.square(new - old).sum(), jnp.square(new).sum(), jnp.square(rest).sum()]))

    plain = getattr(jax.jit, "__wrapped__", jax.jit)
    return plain(sampled), plain(compared)

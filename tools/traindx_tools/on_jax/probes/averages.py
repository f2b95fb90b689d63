"""Always on: averages in half precision that compiled functions are given and that do not move (J709)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j709_average_rounded_away
from traindx_tools.on_jax.rules.j709_average_rounded_away import CALLS, Stuck
from traindx_tools.on_jax.tracing import argument_names
from traindx_tools.on_jax.watched import Watched

LOOKS = (3, 13, 53, 203, 803, 3203)
ELEMENTS, MOST_ARRAYS, MOST_FUNCTIONS = 512, 256, 32
HALVES = ("bfloat16", "float16")
COPY = 0.3
"""Of its size, in the median, by which an average may differ after two calls from what it averages."""
NEAR, FAR = 0.2, 2.0
"""Of its size, by which an element counts that has to change."""
_Part = NDArray[np.float64]


@dataclass
class _Function:
    """The first and the last look at one function. Samples by argument leaf; `halves`: the types of those that may be
    an average."""

    watched: Watched
    names: list[str]
    halves: dict[int, str]
    looks: dict[int, dict[int, Any]] = field(default_factory=dict)


class AveragesProbe(JaxProbe):
    """Samples, before some calls, the arguments of a function that is given arrays of half precision."""

    name = "averages"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}

    def before_call(self, call: Call) -> None:
        """Takes samples, before anything can be given away."""
        watched = call.watched
        if call.step not in LOOKS:
            return
        import jax

        leaves = jax.tree_util.tree_leaves((call.args, call.kwargs))
        known = self._functions.get(watched.number)
        if known is None:
            halves = {i: str(x.dtype) for i, x in enumerate(leaves) if _is_half(x)}
            if not halves or len(self._functions) >= MOST_FUNCTIONS:
                return
            names = argument_names(watched, call.args, call.kwargs)
            known = self._functions[watched.number] = _Function(watched, names, halves)
        shapes = {_shape(leaves[i]) for i in known.halves if i < len(leaves)} - {()}
        chosen = [i for i, x in enumerate(leaves) if _shape(x) in shapes]
        while len(known.looks) > 1:  # the first and the last one
            known.looks.pop(sorted(known.looks)[1])
        known.looks[call.step] = {i: leaves[i].reshape(-1)[:ELEMENTS] for i in chosen[:MOST_ARRAYS]}

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from j709_average_rounded_away.check(list(self._stuck()))

    def _stuck(self) -> Iterator[Stuck]:
        for known in self._functions.values():
            steps = sorted(known.looks)
            if len(steps) < 2 or steps[-1] - steps[0] < CALLS:
                continue
            first, last = ({i: np.asarray(v, np.float64) for i, v in known.looks[s].items()} for s in
                           (steps[0], steps[-1]))
            told = [(i, *_compared(i, first, last)) for i in known.halves if i in first and i in last]
            stuck = [t for t in told if t[1] and t[2] >= 0.5 * t[1]]
            if stuck:
                names = tuple(known.names[t[0]] for t in stuck if t[0] < len(known.names))
                yield Stuck(known.watched.name, names or ("an array",), known.halves[stuck[0][0]],
                            sum(t[1] for t in stuck), sum(t[2] for t in stuck), sum(t[3] for t in told),
                            steps[-1] - steps[0], known.watched.place)


def _compared(i: int, first: dict[int, _Part], last: dict[int, _Part]) -> tuple[int, int, int]:
    """Elements that had to change, those of them that did not, and all that did; 0 where it began as no copy."""
    was, now = first[i], last[i]
    moved = int((was != now).sum())
    source = _source(i, first, last)
    if source is None:
        return 0, 0, moved
    far = np.abs(last[source] - now)
    must = (far > NEAR * np.abs(now)) & (far < FAR * np.abs(now))
    return int(must.sum()), int((must & (was == now)).sum()), moved


def _source(i: int, first: dict[int, _Part], last: dict[int, _Part]) -> int | None:
    """Of which other array, one that moves, it began as a copy."""
    was = first[i]
    size = float(np.median(np.abs(was))) if len(was) else 0.0
    found = [(float(np.median(np.abs(first[k] - was))), k) for k in first
             if k != i and k in last and first[k].shape == was.shape and (first[k] != last[k]).mean() > 0.5]
    nearest = min(found, default=None)
    return nearest[1] if nearest is not None and size > 0 and nearest[0] <= COPY * size else None


def _shape(leaf: Any) -> tuple[int, ...]:
    """The shape of an array of floating numbers; () for all others, and for empty ones."""
    shape = tuple(getattr(leaf, "shape", ()))
    return shape if is_inexact(leaf) and 0 not in shape else ()


def _is_half(leaf: Any) -> bool:
    return _shape(leaf) != () and str(leaf.dtype) in HALVES

"""Always on: what is evaluated is a copy of the state from before the training moved it (J705)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j705_stale_state
from traindx_tools.on_jax.stale.judging import stale_states
from traindx_tools.on_jax.stale.others import Other
from traindx_tools.on_jax.stale.trained import Trained, first_call, handed_on
from traindx_tools.on_jax.state import reference

MOST_FUNCTIONS, MOST_EQUATIONS = 64, 40_000
MOST_REFERENCES = 64


class StaleState(JaxProbe):
    """Holds the first state of each function that trains against what other functions captured or are given.

    Of each array at most 4096 elements are read, of at most 512 arrays in a look; there are some dozens of looks.
    """

    name = "stale"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._trained: dict[int, Trained] = {}
        self._others: dict[int, Other] = {}
        self._first: list[Any] = []
        self._leaves: list[Any] = []

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What was captured."""
        watched = call.watched
        known = self._others.get(watched.number)
        if watched.kind != "jit" or internals.size(jaxpr) > MOST_EQUATIONS or (
                known is None and len(self._others) >= MOST_FUNCTIONS):
            return
        known = self._others.setdefault(watched.number, Other(watched))
        known.compiled(jaxpr)
        known.trains = watched.differentiates or any("transpose" in internals.stack(e) for e in jaxpr.jaxpr.eqns)
        for trained in self._trained.values():
            types = {leaf.first.sample.type for leaf in trained.leaves}
            trained.sought |= {c.sample.digest: c.sample for c in known.constants
                               if c.sample.telling and c.sample.type in types}

    def before_call(self, call: Call) -> None:
        """Takes the first state before it can be given away; afterwards looks at how far it has moved."""
        import jax

        self._leaves = []
        known = self._trained.get(call.watched.number)
        if known is None and (call.step > 1 or len(self._trained) >= MOST_FUNCTIONS):
            return
        self._leaves = jax.tree_util.tree_leaves((call.args, call.kwargs))
        if known is None:
            self._first = first_call(call, self._leaves)
        else:
            known.called(self._leaves)
            self._exchanged(known)

    def after_call(self, call: Call) -> None:
        """What trains, and what else was called after it."""
        watched = call.watched
        other = self._others.get(watched.number)
        trains = watched.kind != "jit" or (other is not None and other.trains)
        if trains and call.step == 1 and self._first:
            self._trained[watched.number] = Trained(watched, self._first, handed_on(call), 1)
            if other is not None:
                other.number_inputs(call.args, call.kwargs, self._leaves)
        elif not trains and self._trained:
            if other is None and len(self._others) < MOST_FUNCTIONS:  # what it computes was compiled before, elsewhere
                other = self._others[watched.number] = Other(watched)
            if other is not None:
                self._beside(other, call)
        self._first = self._leaves = []

    def _beside(self, other: Other, call: Call) -> None:
        """A function that does not train was called."""
        import jax

        for trained in self._trained.values():
            trained.evaluated = True
        steps = {number: trained.calls for number, trained in self._trained.items()}
        new = other.called_after(steps)
        if not new and not other.waits:
            return
        leaves = jax.tree_util.tree_leaves((call.args, call.kwargs))
        if new:
            other.batch, other.outputs = _references(leaves), _references(jax.tree_util.tree_leaves(call.output))
            if any(_meet(other.batch, trained.last) for trained in self._trained.values()):
                other.shared += 1
                other.batch = []
        if other.waits:
            other.look(call.args, call.kwargs, leaves, steps)

    def _exchanged(self, trained: Trained) -> None:
        """What of the arguments of this call other functions gave, or were given."""
        if all(other.trains for other in self._others.values()):
            return
        handed = trained.handed
        trained.last = _references([leaf for i, leaf in enumerate(self._leaves) if i not in handed])
        for other in self._others.values():
            other.fed += bool(other.outputs) and _meet(other.outputs, trained.last)
            other.shared += bool(other.batch) and _meet(other.batch, trained.last)
            other.batch, other.outputs = [], []

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for found in stale_states(list(self._trained.values()), list(self._others.values())):
            yield from j705_stale_state.check(found)


def _references(leaves: Sequence[Any]) -> list[Any]:
    found = (reference(x) for x in leaves[:MOST_REFERENCES] if getattr(x, "ndim", 0))
    return [r for r in found if r is not None]


def _meet(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one array is among both: a reference to one that lives is the same object."""
    return bool({id(r) for r in some if r() is not None} & {id(r) for r in others})

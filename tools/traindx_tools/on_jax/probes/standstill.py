"""Always on: parameters that moved and stop at some call, with the number in the program that stopped them (J706)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.moving.judging import stopped
from traindx_tools.on_jax.moving.looks import Moving, is_look
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.probes.gradients import eager_gradients, gradient_pairs
from traindx_tools.on_jax.rules import j706_updates_stop
from traindx_tools.on_jax.tracing import lowered

MOST_FUNCTIONS, MOST_EQUATIONS = 64, 40_000


class Standstills(JaxProbe):
    """Compares samples of parameters between calls: 1024 elements of each of at most 256 arrays of a function."""

    name = "standstill"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, Moving] = {}

    def _moving(self, call: Call) -> Moving | None:
        number = call.watched.number
        if number not in self._functions and len(self._functions) < MOST_FUNCTIONS:
            self._functions[number] = Moving(call.watched)
        return self._functions.get(number)

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Reads the first jaxpr of a function: whether it trains, and which outputs are gradients."""
        known = self._moving(call) if call.watched.kind == "jit" else None
        if known is None or known.traced is not None or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        known.traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
        known.trains = call.watched.differentiates or any("transpose" in internals.stack(e) for e in jaxpr.jaxpr.eqns)
        if known.trains and known.traced.positions:
            known.pairs = tuple(gradient_pairs(known.traced, call.watched.differentiates))

    def before_call(self, call: Call) -> None:
        """Sends the distance from the look before on its way; nothing waits for it."""
        known = self._moving(call)
        if known is not None and is_look(call.step):
            known.look(call)

    def after_call(self, call: Call) -> None:
        """Gradients and losses of the same looks, and where others are called between the calls of one that trains."""
        known = self._functions.get(call.watched.number)
        if known is None:
            return
        if call.step == 1 and call.watched.kind != "jit":
            gradients = eager_gradients(call)
            known.trains, known.pairs = gradients is not None, gradients.pairs if gradients is not None else ()
        known.calls = call.step
        if is_look(call.step):
            known.looked(call)
        if not known.trains:
            for other in self._functions.values():
                if other.trains:
                    other.interrupted(call.watched.number)

    def finish(self) -> Iterable[Finding]:
        """Judges each function that trains."""
        functions = list(self._functions.values())
        for known in functions:
            told = stopped(known, functions) if known.trains else None
            if told is not None:
                yield from j706_updates_stop.check(told)

"""How loops and branches are entered: which iteration, which branch, which device gave the value that is not finite."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import Interpreter, Level, Marked
from traindx_tools.on_jax.nonfinite.marks import CLEAN, Mark, joined
from traindx_tools.on_jax.nonfinite.values import FINITE, kind_of, measurable

MOST_ENTERED = 6
"""Iterations of one loop that are evaluated equation by equation: origins that repeat are told once."""
MOST_SECONDS = 60.0
"""Seconds that are spent in the iterations of one loop."""


def kind(value: Any) -> str:
    return kind_of(value) if measurable(value) else FINITE


def explained(kinds: Sequence[str], marks: Sequence[Mark]) -> bool:
    """Whether what is not finite follows from inputs that were so already, or nothing is."""
    return not any(kinds) or any(m.bad for m in marks)


def cond(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked | None:
    """Enters the branch that was taken."""
    branches = eqn.params["branches"]
    index = int(np.clip(int(np.asarray(values[0])), 0, len(branches) - 1))
    inside = level.within(f"cond branch {index}", eqn)
    return run.run(branches[index], values[1:], marks[1:], inside)


def scan(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked | None:
    """Runs the whole loop; enters the iterations that gave what the loop's inputs do not explain."""
    outputs = internals.bind(eqn, values)
    if explained([kind(o) for o in outputs], marks):
        return outputs, run.judge(eqn, values, marks, outputs, level)
    params = eqn.params
    consts, carries = params["num_consts"], params["num_carry"]
    order = range(params["length"])
    body = params["jaxpr"]
    loop = _Loop(run, body, level, eqn, "scan")
    carry, carry_marks = list(values[consts:consts + carries]), list(marks[consts:consts + carries])
    xs, x_marks = values[consts + carries:], list(marks[consts + carries:])
    stacked: list[Mark] = [CLEAN] * (len(outputs) - carries)
    for i in reversed(order) if params["reverse"] else order:
        slices = [x[i] for x in xs]
        slice_marks = [m if m is not CLEAN and kind(x) else CLEAN for x, m in zip(slices, x_marks, strict=True)]
        given = [*values[:consts], *carry, *slices]
        result, told = loop.iterate(i, given, [*marks[:consts], *carry_marks, *slice_marks])
        carry, carry_marks = result[:carries], told[:carries]
        stacked = [joined([a, b]) if b is not CLEAN else a for a, b in zip(stacked, told[carries:], strict=True)]
        if loop.over or any(m.bad for m in carry_marks):
            break
    return outputs, settled(outputs, [*carry_marks, *stacked], loop.seen(eqn, values, outputs))


def while_loop(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked | None:
    """Runs the loop iteration by iteration where what it gave is not explained by its inputs."""
    outputs = internals.bind(eqn, values)
    if explained([kind(o) for o in outputs], marks):
        return outputs, run.judge(eqn, values, marks, outputs, level)
    params = eqn.params
    tests, consts = params["cond_nconsts"], params["body_nconsts"]
    goes_on = _compiled(params["cond_jaxpr"])
    loop = _Loop(run, params["body_jaxpr"], level, eqn, "while")
    fixed, fixed_marks = values[tests:tests + consts], marks[tests:tests + consts]
    carry, carry_marks = list(values[tests + consts:]), list(marks[tests + consts:])
    i = 0
    while bool(np.asarray(goes_on(*values[:tests], *carry)[0])):
        carry, carry_marks = loop.iterate(i, [*fixed, *carry], [*fixed_marks, *carry_marks])
        i += 1
        if loop.over or any(m.bad for m in carry_marks):
            break
    return outputs, settled(outputs, carry_marks, loop.seen(eqn, values, outputs))


class _Loop:
    """The iterations of one loop: run compiled, and entered where one gave what its inputs do not explain."""

    def __init__(self, run: Interpreter, body: Any, level: Level, eqn: Any, kind: str) -> None:
        self._run, self._body, self._level, self._eqn, self._kind = run, body, level, eqn, kind
        self._whole = _compiled(body)
        self._entered = 0
        self._until = time.monotonic() + MOST_SECONDS
        self._first = len(run.candidates)
        self._wrote = False

    @property
    def over(self) -> bool:
        """Whether enough time was spent."""
        return time.monotonic() > self._until

    def found(self) -> Mark:
        """The candidates of this loop so far."""
        return Mark(frozenset(range(self._first, len(self._run.candidates))), written=self._wrote)

    def seen(self, eqn: Any, values: Sequence[Any], outputs: Sequence[Any]) -> Mark:
        """What stands for outputs that no iteration explains: its candidates, else the loop itself."""
        found = self.found()
        if found.bad or found.written:
            return found
        clean = [CLEAN] * len(values)
        return joined(self._run.judge(eqn, values, clean, outputs, self._level))

    def iterate(self, index: int, values: list[Any], marks: list[Mark]) -> Marked:
        """One iteration."""
        result = self._whole(*values)
        kinds = [kind(r) for r in result]
        self._wrote = self._wrote or any(m.written for m in marks)
        if not any(kinds):
            return result, [CLEAN] * len(result)
        if any(m.bad for m in marks) or self._entered >= MOST_ENTERED:
            told = joined(marks) if any(m.bad for m in marks) else self.found()
            return result, [told if k else CLEAN for k in kinds]
        self._entered += 1
        inside = self._level.within(f"{self._kind} iteration {index}", self._eqn)
        found, told_marks = self._run.run(self._body, values, marks, inside)
        return found, told_marks


def _compiled(body: Any) -> Callable[..., list[Any]]:
    import jax

    compiled: Callable[..., list[Any]] = jax.jit(internals.as_function(body))
    return compiled


def settled(outputs: Sequence[Any], marks: Sequence[Mark], otherwise: Mark) -> list[Mark]:
    """A mark for every output that is not finite."""
    return [(m if m is not CLEAN and (m.bad or m.written) else otherwise) if kind(o) else CLEAN
            for o, m in zip(outputs, marks, strict=True)]


ENTERING = {"cond": cond, "scan": scan, "while": while_loop}
"""How each primitive with inner jaxprs is entered."""

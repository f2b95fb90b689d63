"""Evaluates a jaxpr equation by equation and remembers, for every value that is not finite, which equation made it.

A value is clean, written (an infinity or NaN that the program wrote: a mask, a start value) or bad; a bad one carries
the numbers of the candidates that it comes from. Calls (`jit`, `remat`, `custom_jvp`, `custom_vjp`) are entered;
loops, branches and `shard_map` are run as a whole and entered where what they gave is not explained by their inputs.
Values are let go after their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite import selections, wrapping
from traindx_tools.on_jax.nonfinite.marks import CLEAN, CONSTANT, EQUATION, Candidate, Mark, joined, wrapped_of
from traindx_tools.on_jax.nonfinite.values import (
    FINITE,
    INFINITE,
    Stats,
    first_odd,
    kind_of,
    measurable,
    measure,
    on_host,
)
from traindx_tools.on_jax.places import Place, place_of

Path = tuple[str, ...]
Marked = tuple[list[Any], list[Mark]]
Enter = Callable[["Interpreter", Any, Sequence[Any], Sequence[Mark], "Level"], "Marked | None"]

WITHOUT_RESULT = frozenset({"debug_callback", "debug_print", "io_callback"})
"""Equations that only speak to the outside: they spoke when the program ran, and are left out where nothing is used."""
MOVES = frozenset({
    "broadcast_in_dim", "reshape", "convert_element_type", "squeeze", "transpose", "copy", "copy_p", "slice",
    "concatenate", "expand_dims", "rev", "pad", "stop_gradient", "optimization_barrier", "sharding_constraint",
    "neg", "device_put", "select_n", "dynamic_slice", "dynamic_update_slice", "gather", "scatter"})  # fmt: skip
"""Operations that carry a written value on as it is."""
MOST_CANDIDATES = 2000
MOST_INPUTS = 4


class Level:
    """Where an evaluation is: the calls around it, their names and transformations, and the innermost one's place."""

    def __init__(self, path: Path = (), stack: str = "", place: Place | None = None) -> None:
        self.path, self.stack, self.place = path, stack, place

    def within(self, step: str, eqn: Any) -> Level:
        """One call, loop iteration or branch deeper: into the body of this equation."""
        stack = f"{self.stack}/{internals.stack(eqn)}".strip("/")
        return Level((*self.path, step) if step else self.path, stack, place_of(eqn, self.place))


class Interpreter:
    """One evaluation: its candidates so far. `entering`: how loops and branches are entered, by primitive."""

    def __init__(self, entering: Mapping[str, Enter]) -> None:
        self.candidates: list[Candidate] = []
        self.overflows: list[wrapping.Wrapped] = []
        self._entering = entering

    def bind(self, eqn: Any, values: Sequence[Any]) -> list[Any]:
        """The outputs of an equation."""
        return internals.bind(eqn, values)

    def wraps(self, eqn: Any, values: Sequence[Any], outputs: Sequence[Any], level: Level) -> frozenset[int]:
        """The number of the integer overflow that an equation is."""
        return wrapping.found_in(eqn, values, outputs, self.overflows, level)

    def run(self, jaxpr: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked:
        """The outputs of a closed jaxpr and their marks."""
        env: dict[Any, tuple[Any, Mark]] = {}
        makers: dict[Any, str] = {}
        body = jaxpr.jaxpr
        for variable, value in zip(body.constvars, jaxpr.consts, strict=True):
            env[variable] = (value, self.of_constant(value))
        env.update(zip(body.invars, zip(values, marks, strict=True), strict=True))
        last = _last_uses(body)
        for index, eqn in enumerate(body.eqns):
            given = [self._read(env, a) for a in eqn.invars]
            told = [makers.get(a, "") if not internals.is_literal(a) else "literal" for a in eqn.invars]
            outputs, found = self._equation(eqn, [v for v, _ in given], [m for _, m in given], level, told)
            for variable, value, mark in zip(eqn.outvars, outputs, found, strict=True):
                if not internals.is_dropped(variable):
                    env[variable] = (value, mark)
                    makers[variable] = eqn.primitive.name
            for variable in last.get(index, ()):
                env.pop(variable, None)
        told_out = [self._read(env, a) for a in body.outvars]
        return [v for v, _ in told_out], [m for _, m in told_out]

    def _read(self, env: Mapping[Any, tuple[Any, Mark]], atom: Any) -> tuple[Any, Mark]:
        if internals.is_literal(atom):
            return atom.val, Mark(written=True) if kind_of(np.asarray(atom.val)) else CLEAN
        return env[atom]

    def of_constant(self, value: Any) -> Mark:
        """The mark of a captured constant: an infinity was written, a NaN is an origin."""
        kind = kind_of(value) if measurable(value) else FINITE
        if not kind:
            return CLEAN
        if kind == INFINITE:
            return Mark(written=True)
        return Mark(frozenset({self.add(Candidate(0, CONSTANT, "", None, (), "", output=measure(value))).number}))

    def add(self, candidate: Candidate) -> Candidate:
        """Numbers a candidate; when there are too many, the last one stands for all further ones."""
        if len(self.candidates) >= MOST_CANDIDATES:
            return self.candidates[-1]
        candidate.number = len(self.candidates)
        self.candidates.append(candidate)
        return candidate

    # ---- one equation

    def _equation(self, eqn: Any, values: list[Any], marks: list[Mark], level: Level, makers: list[str]) -> Marked:
        name = eqn.primitive.name
        if name in WITHOUT_RESULT and all(internals.is_dropped(v) for v in eqn.outvars):
            return [None] * len(eqn.outvars), [CLEAN] * len(eqn.outvars)
        body = internals.called(eqn)
        if body is not None:
            return self.run(body, values, marks, level.within(_called(eqn), eqn))
        enter = self._entering.get(name)
        if enter is not None:
            entered = enter(self, eqn, values, marks, level)
            if entered is not None:
                return entered
        outputs = self.bind(eqn, values)
        return outputs, self.judge(eqn, values, marks, outputs, level, makers)

    def judge(self, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], outputs: Sequence[Any], level: Level,
              makers: Sequence[str] = ()) -> list[Mark]:
        """The marks of what an equation gave."""
        stack = f"{level.stack}/{internals.stack(eqn)}"
        backward = "transpose" in stack
        wrapped = wrapped_of(marks) | self.wraps(eqn, values, outputs, level)
        kinds = [kind_of(o) if measurable(o) else FINITE for o in outputs]
        if not any(kinds):
            self._quench(eqn, marks, backward)
            return [Mark(wrapped=wrapped)] * len(outputs) if wrapped else [CLEAN] * len(outputs)
        if eqn.primitive.name == "select_n":
            marks = selections.chosen(values, marks, outputs[0])
        found = [self._mark(eqn, values, marks, output, kind, level, stack, makers) if kind else Mark(wrapped=wrapped)
                 for output, kind in zip(outputs, kinds, strict=True)]
        reached = frozenset[int]().union(*(m.origins for m in found))
        self._quench(eqn, marks, backward, reached)
        return found

    def _mark(self, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], output: Any, kind: str, level: Level,
              stack: str, makers: Sequence[str]) -> Mark:
        backward = "transpose" in stack
        told = joined(marks, backward=backward)
        if told.bad:
            return told
        if told.written and (kind == INFINITE or (eqn.primitive.name in MOVES and _written_nan(values))):
            return told
        made = self.add(self._candidate(eqn, values, output, level, stack, makers, told))
        return Mark(frozenset({made.number}), wrapped=told.wrapped)

    def _candidate(self, eqn: Any, values: Sequence[Any], output: Any, level: Level, stack: str,
                   makers: Sequence[str], told: Mark) -> Candidate:
        index = first_odd(output)
        stats = [_stats(v) for v in values]
        return Candidate(
            0, EQUATION, eqn.primitive.name, place_of(eqn, level.place), level.path, stack,
            tuple(s for s in stats if s is not None)[:MOST_INPUTS], measure(output), index,
            _at(values, index, np.shape(output)), _plain(eqn.params), makers=tuple(makers), written=told.written,
            masked_row=told.written and selections.masked_row(values),
            wrapped=tuple(sorted(told.wrapped)))

    def _quench(self, eqn: Any, marks: Sequence[Mark], backward: bool, reached: frozenset[int] = frozenset()) -> None:
        """Remembers that an equation of the forward pass took in what is not finite and did not give it on."""
        if backward:
            return
        for number in frozenset[int]().union(*(m.origins for m in marks)) - reached:
            self.candidates[number].quenched_by.add(eqn.primitive.name)


def _last_uses(jaxpr: Any) -> dict[int, list[Any]]:
    """For each equation the variables that nothing after it reads."""
    last: dict[Any, int] = {}
    for index, eqn in enumerate(jaxpr.eqns):
        for atom in (*eqn.invars, *eqn.outvars):
            if not internals.is_literal(atom):
                last[atom] = index
    for atom in jaxpr.outvars:
        if not internals.is_literal(atom):
            last.pop(atom, None)
    uses: dict[int, list[Any]] = {}
    for variable, index in last.items():
        uses.setdefault(index, []).append(variable)
    return uses


def _called(eqn: Any) -> str:
    """The name of a call for the path: the function's where it has one of the user's."""
    name, kind = str(eqn.params.get("name") or ""), str(eqn.primitive.name)
    if kind in ("jit", "pjit"):
        return f"jit({name})" if name and not name.startswith("_") and name != "<lambda>" else ""
    if kind.startswith("custom_"):
        return kind.replace("_call", "").replace("_jaxpr", "")
    return "remat" if kind in ("remat", "remat2", "checkpoint") else ""


def _written_nan(values: Sequence[Any]) -> bool:
    """Whether every value that is not finite among the inputs was written: nothing was computed here."""
    return any(kind_of(v) for v in values if measurable(v))


def _stats(value: Any) -> Stats | None:
    return measure(value) if measurable(value) else None


def _at(values: Sequence[Any], index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[float, ...]:
    """The inputs at the place where the output is odd: those of the output's shape, and scalars."""
    found = []
    for value in values:
        if not measurable(value):
            continue
        array = on_host(value)
        if array.shape in (shape, ()) and array.dtype.kind != "c":
            found.append(float(array[index] if array.shape else array))
    return tuple(found)


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in params.items() if isinstance(v, (bool, int, float, str)) or k == "axes"}

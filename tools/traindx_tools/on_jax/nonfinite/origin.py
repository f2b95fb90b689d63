"""`find_nonfinite`: from a function and its arguments to the equation that made the first NaN or infinity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.nonfinite.found import Origin, Search
from traindx_tools.on_jax.nonfinite.interpret import Interpreter, Level
from traindx_tools.on_jax.nonfinite.loops import ENTERING
from traindx_tools.on_jax.nonfinite.marks import ARGUMENT, CLEAN, EQUATION, Candidate, Mark
from traindx_tools.on_jax.nonfinite.reasons import reason_of
from traindx_tools.on_jax.nonfinite.shards import shard_map
from traindx_tools.on_jax.nonfinite.values import FINITE, INFINITE, NAN, kind_of, measurable, measure
from traindx_tools.on_jax.tracing import Traced, trace


def find_nonfinite(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Finding | None:
    """The first NaN or infinity of `fn(*args, **kwargs)` that reaches its outputs, as a finding (J101); None without.

    `fn` is any function of arrays: plain, under jit, vmap, grad, a whole train step. It is traced and then evaluated
    equation by equation, with the values that are given here: the arguments must not have been donated. Raises
    what tracing the function raises.
    """
    from traindx_tools.on_jax.rules import j101_nonfinite_origin

    found = search(trace(fn, args, kwargs))
    return next(iter(j101_nonfinite_origin.check(found.origins[0])), None) if found.origins else None


def find_overflows(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Finding]:
    """Signed integers that wrap around in `fn(*args, **kwargs)`, as findings (J502), whether or not a NaN follows.

    The function is traced and evaluated as by `find_nonfinite`; loops are looked into where they give a NaN only.
    """
    from traindx_tools.on_jax.rules import j502_integer_overflow

    traced = trace(fn, args, kwargs)
    return [f for wrapped in search(traced).overflows for f in j502_integer_overflow.check(wrapped, traced.name)]


def search(traced: Traced, wanted: Sequence[int] | None = None) -> Search:
    """Evaluates a traced function. `wanted`: indices of the outputs that matter (all of them by default)."""
    run = Interpreter({**ENTERING, "shard_map": shard_map})
    marks = [_of_argument(run, v, name) for v, name in zip(traced.values, traced.inputs, strict=True)]
    values, found = run.run(traced.jaxpr, traced.values, marks, Level())
    kinds = [kind_of(v) if measurable(v) else FINITE for v in values]
    watched = range(len(values)) if wanted is None else wanted
    bad = [i for i in watched if kinds[i] and found[i].bad]
    worst = [i for i in bad if kinds[i] == NAN] or bad
    origins = _origins(run, traced, found, bad, worst)
    return Search(tuple(origins), tuple(run.overflows), tuple(traced.outputs[i] for i in bad))


def _of_argument(run: Interpreter, value: Any, name: str) -> Mark:
    kind = kind_of(value) if measurable(value) else FINITE
    if not kind:
        return CLEAN
    if kind == INFINITE:
        return Mark(written=True)
    made = run.add(Candidate(0, ARGUMENT, "", None, (), "", output=measure(value), name=name))
    return Mark(frozenset({made.number}))


def _origins(run: Interpreter, traced: Traced, marks: Sequence[Mark], bad: Sequence[int],
             worst: Sequence[int]) -> list[Origin]:
    reached: dict[int, list[int]] = {}
    visible: set[int] = set()
    for i in bad:
        for number in marks[i].origins:
            reached.setdefault(number, []).append(i)
        visible |= marks[i].origins - marks[i].hidden
    first = sorted({n for i in worst for n in marks[i].origins}, key=lambda n: (run.candidates[n].kind == EQUATION, n))
    order = list(dict.fromkeys(_forward_of(run.candidates, n, visible) for n in first))
    made = []
    for number in order:
        candidate = run.candidates[number]
        hidden = number not in visible
        wrapped = run.overflows[candidate.wrapped[0]] if candidate.wrapped else None
        unseen = [c for c in run.candidates if c.number not in visible]
        made.append(Origin(candidate, reason_of(candidate, unseen, hidden),
                           tuple(traced.outputs[i] for i in reached[number]), traced.name, len(order) - 1, wrapped,
                           hidden=hidden))
    return made


def _forward_of(candidates: Sequence[Candidate], number: int, visible: Collection[int]) -> int:
    """The forward equation of the same line that is visible in an output itself, where one of the gradient is asked."""
    asked = candidates[number]
    if asked.place is None or (number in visible and not asked.backward):
        return number
    forward = (n for n in sorted(visible) if not candidates[n].backward and candidates[n].place == asked.place)
    return next(forward, number)

"""Always on: Python values that compiled code took from outside and that are others by now (J707)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.equinox_names import function_of
from traindx_tools.on_jax.outside.paths import MISSING
from traindx_tools.on_jax.outside.reading import Read, outside_reads
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j707_outside_value_changed
from traindx_tools.on_jax.rules.j707_outside_value_changed import Outside
from traindx_tools.on_jax.tokens import same, text, token

PERSISTS = int(j707_outside_value_changed.RULE.thresholds["calls"].value)
FIRST, EVERY = 24, 16
"""The first calls are all looked at, later ones now and then."""
MOST_FUNCTIONS, MOST_COMPILED = 64, 16


@dataclass
class _Function:
    """A jitted function with what it reads. `compiled`: the values by compilation; `changed`: looks in a row."""

    reads: list[Read]
    compilations: int = 0
    compiled: list[list[Any]] = field(default_factory=list)
    changed: dict[int, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)


class OutsideValues(JaxProbe):
    """Remembers what a function's surroundings held when it was compiled, and compares in later calls."""

    name = "outside"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function | None] = {}

    def after_call(self, call: Call) -> None:
        """Compares what is outside with what it was at the compilations."""
        number = call.watched.number
        if call.watched.kind != "jit" or (call.step > FIRST and call.step % EVERY):
            return
        if number not in self._functions:
            self._functions[number] = _known(call) if len(self._functions) < MOST_FUNCTIONS else None
        known = self._functions[number]
        if known is None:
            return
        count = internals.compilations(call.watched.inner) or 0
        if count != known.compilations or not known.compiled:
            known.compilations = count
            known.changed.clear()
            known.compiled.append([_held(read, True) for read in known.reads])
        else:
            self._compare(known, call)
        if len(known.compiled) >= MOST_COMPILED:  # compiled anew again and again: it follows what is outside
            self._functions[number] = None

    def _compare(self, known: _Function, call: Call) -> None:
        for i, read in enumerate(known.reads):
            now = _held(read, False) if i not in known.told else None
            if now is None or any(not _other(then[i], now) for then in known.compiled):
                known.changed.pop(i, None)
                continue
            known.changed[i] = known.changed.get(i, 0) + 1
            if known.changed[i] >= PERSISTS:
                known.told.add(i)
                it = Outside(call.watched.name, str(read.path), text(known.compiled[-1][i]), text(now), call.step,
                             read.file, read.line, read.via)
                for finding in j707_outside_value_changed.check(it):
                    self.scene.recorder.finding(finding)


def _known(call: Call) -> _Function | None:
    fn = function_of(call.watched, call.args)
    bound = getattr(fn, "__self__", None)
    given = {} if bound is not None else _left_out(fn, call)
    reads = outside_reads(fn, given)
    if isinstance(fn, MethodType):  # its own attributes are those of J704
        reads = [r for r in reads if r.path.root is not bound or len(r.path.steps) > 1]
    return _Function(reads) if reads else None


def _left_out(fn: Any, call: Call) -> Mapping[str, Any]:
    """What stands for the parameters that the call leaves to their defaults."""
    try:
        signature = inspect.signature(fn)
        given = signature.bind_partial(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        return {}
    return {name: p.default for name, p in signature.parameters.items()
            if name not in given and p.default is not inspect.Parameter.empty}


def _held(read: Read, keep: bool) -> Any:
    """What is there now; None where that cannot be compared, or is a key of random numbers."""
    value = read.path.value()
    if value is MISSING or internals.is_tracer(value) or _is_key(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return token(value, keep)


def _is_key(value: Any) -> bool:
    return str(getattr(value, "dtype", "")) == "uint32" and tuple(getattr(value, "shape", ()))[-1:] == (2,)


def _other(then: Any, now: Any) -> bool:
    """Whether it is another value of the same kind: a name that stands for something else by now is reused."""
    if same(then, now) or then[0] != now[0]:
        return False
    if then[0] == "plain":
        return _kind(then[1]) == _kind(now[1])
    return bool(then[1] == now[1])


def _kind(value: Any) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__

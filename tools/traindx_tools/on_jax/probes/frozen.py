"""Always on: attributes of a static self that change after the method was compiled (J704)."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.reading import attributes_read
from traindx_tools.on_jax.rules import j704_frozen_by_static_self
from traindx_tools.on_jax.rules.j704_frozen_by_static_self import Frozen
from traindx_tools.on_jax.tokens import same, text, token
from traindx_tools.on_jax.tracing import unwrapped

PERSISTS = int(j704_frozen_by_static_self.RULE.thresholds["calls"].value)
FIRST, EVERY = 24, 16
"""The first calls are all looked at, later ones now and then."""
MOST_COMPILED = 16
MOST_OBJECTS = 64


@dataclass
class _Object:
    """One object of one method. `compiled`: what its attributes were, by compilation; `changed`: calls in a row."""

    compiled: list[dict[str, Any]] = field(default_factory=list)
    compilations: int = 0
    changed: dict[str, int] = field(default_factory=dict)


@dataclass
class _Method:
    """A jitted method, and the attributes that it reads with their lines."""

    reads: dict[str, tuple[str, int]]
    objects: dict[int, tuple[Any, _Object]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


class FrozenState(JaxProbe):
    """Remembers what a method's object held when it was compiled, and compares in later calls."""

    name = "frozen"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._methods: dict[int, _Method | None] = {}

    def after_call(self, call: Call) -> None:
        """Compares the attributes of the object with those of its compilations."""
        number = call.watched.number
        if number in self._methods and self._methods[number] is None:
            return
        if call.step > FIRST and call.step % EVERY:
            return
        this = _object(call)
        if number not in self._methods:
            reads = {} if this is None else attributes_read(unwrapped(call.watched), type(this))
            self._methods[number] = _Method(reads) if reads else None
        known = self._methods[number]
        if known is None or this is None or len(known.objects) >= MOST_OBJECTS:
            return
        _, seen = known.objects.setdefault(id(this), (this, _Object()))
        count = internals.compilations(call.watched.inner) or 0
        if count > seen.compilations or not seen.compiled:
            seen.compilations = count
            seen.changed.clear()
            if len(seen.compiled) < MOST_COMPILED:
                seen.compiled.append({name: token(vars(this).get(name), True) for name in known.reads})
        else:
            now = {name: token(vars(this).get(name), False) for name in known.reads if name not in known.told}
            self._compare(known, seen, now, call, type(this).__name__)

    def _compare(self, known: _Method, seen: _Object, now: dict[str, Any], call: Call, owner: str) -> None:
        for name, held in now.items():
            file, line = known.reads[name]
            if any(same(then[name], held) for then in seen.compiled):
                seen.changed.pop(name, None)
                continue
            seen.changed[name] = seen.changed.get(name, 0) + 1
            if seen.changed[name] >= PERSISTS and len(seen.compiled) < MOST_COMPILED:
                known.told.add(name)
                it = Frozen(call.watched.name, owner, name, text(seen.compiled[-1][name]), text(held), call.step,
                            file, line)
                for finding in j704_frozen_by_static_self.check(it):
                    self.scene.recorder.finding(finding)


def _object(call: Call) -> Any:
    """The object of the method that was called: its static first argument, or what a bound method is bound to."""
    watched = call.watched
    if watched.kind != "jit":
        return None
    fn = getattr(watched.inner, "__wrapped__", None)
    bound = getattr(fn, "__self__", None)
    if bound is not None and not isinstance(bound, type):
        return bound if hasattr(bound, "__dict__") else None
    first = call.args[0] if call.args else None
    code = getattr(unwrapped(watched), "__code__", None)
    if code is None or not code.co_argcount or code.co_varnames[0] not in watched.static_names:
        return None
    return first if hasattr(first, "__dict__") and not isinstance(first, (type, types.FunctionType)) else None

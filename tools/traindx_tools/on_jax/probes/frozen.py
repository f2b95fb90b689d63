"""Always on: attributes of a static self that change after the method was compiled (J704)."""

from __future__ import annotations

import hashlib
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.reading import attributes_read
from traindx_tools.on_jax.rules import j704_frozen_by_static_self
from traindx_tools.on_jax.rules.j704_frozen_by_static_self import Frozen
from traindx_tools.on_jax.state import reference
from traindx_tools.on_jax.tracing import unwrapped

PERSISTS = int(j704_frozen_by_static_self.RULE.thresholds["calls"].value)
FIRST, EVERY = 24, 16
"""The first calls are all looked at, later ones now and then."""
MOST_COMPILED = 16
MOST_LEAVES, MOST_ELEMENTS, MOST_OBJECTS = 64, 2**20, 64
PLAIN = (bool, int, float, complex, str, bytes, type(None))


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
                seen.compiled.append({name: _token(vars(this).get(name), True) for name in known.reads})
        else:
            now = {name: _token(vars(this).get(name), False) for name in known.reads if name not in known.told}
            self._compare(known, seen, now, call, type(this).__name__)

    def _compare(self, known: _Method, seen: _Object, now: dict[str, Any], call: Call, owner: str) -> None:
        for name, token in now.items():
            file, line = known.reads[name]
            if any(_same(then[name], token) for then in seen.compiled):
                seen.changed.pop(name, None)
                continue
            seen.changed[name] = seen.changed.get(name, 0) + 1
            if seen.changed[name] >= PERSISTS and len(seen.compiled) < MOST_COMPILED:
                known.told.add(name)
                it = Frozen(call.watched.name, owner, name, _text(seen.compiled[-1][name]), _text(token), call.step,
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


def _token(value: Any, keep: bool) -> Any:
    """What tells a value again: plain values themselves, of arrays a reference, a digest and a text.

    None stands for what cannot be compared: it never counts as changed. `keep`: for later, without the arrays.
    """
    import jax

    if isinstance(value, PLAIN):
        return ("plain", value)
    leaves, structure = jax.tree_util.tree_flatten(value)
    if not leaves or len(leaves) > MOST_LEAVES or not all(_comparable(x) for x in leaves):
        return None
    return ("tree", str(structure), [_Array(x, keep) if hasattr(x, "shape") else x for x in leaves])


class _Array:
    """An array as it was. Jax's own do not change, so that the same object is the same value; numpy's may."""

    def __init__(self, array: Any, keep: bool) -> None:
        self._changes = isinstance(array, np.ndarray)
        self._reference = reference(array)
        self._array = None if keep else array
        self._digest = _digest(array) if keep else None
        self.text = "another array" if array.size != 1 or _gone(array) else repr(np.asarray(array).item())[:60]

    def same(self, now: _Array) -> bool:
        """Whether a later value is this one; also where that cannot be told."""
        if not self._changes and self._reference is not None and self._reference() is now._array:
            return True
        digest = _digest(now._array)
        return self._digest is None or digest is None or self._digest == digest


def _digest(array: Any) -> bytes | None:
    if array.size > MOST_ELEMENTS or not isinstance(array.dtype, np.dtype) or _gone(array):
        return None
    return hashlib.blake2b(np.ascontiguousarray(np.asarray(array)).tobytes(), digest_size=16).digest()


def _gone(array: Any) -> bool:
    return bool(getattr(array, "is_deleted", bool)()) or not getattr(array, "is_fully_addressable", True)


def _comparable(leaf: Any) -> bool:
    if isinstance(leaf, PLAIN):
        return True
    return (hasattr(leaf, "shape") and isinstance(getattr(leaf, "dtype", None), np.dtype)
            and not internals.is_tracer(leaf))


def _same(then: Any, now: Any) -> bool:
    if then is None or now is None:
        return True
    if then[0] != now[0] or then[1] != now[1]:
        return bool(then[0] == now[0] == "plain" and then[1] != then[1] and now[1] != now[1])  # NaN is no change
    return then[0] == "plain" or all(
        a.same(b) if isinstance(a, _Array) and isinstance(b, _Array) else a == b
        for a, b in zip(then[2], now[2], strict=True))


def _text(token: Any) -> str:
    if token[0] == "plain":
        return repr(token[1])[:60]
    if len(token[2]) > 1:
        return f"{len(token[2])} other arrays"
    return token[2][0].text if isinstance(token[2][0], _Array) else repr(token[2][0])[:60]

"""Always on: keys that a function uses twice, and keys that several calls use (J201 to J205)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.keys.copies import copies, members_alike
from traindx_tools.on_jax.keys.course import is_key, may_be_raw
from traindx_tools.on_jax.keys.find import reuse_findings
from traindx_tools.on_jax.keys.flow import follow
from traindx_tools.on_jax.keys.uses import DRAW, Use
from traindx_tools.on_jax.probe import Call, JaxProbe, Mapped
from traindx_tools.on_jax.rules import (
    j203_key_same_every_call,
    j204_key_in_several_places,
    j205_keys_equal_along_axis,
)
from traindx_tools.on_jax.rules.j203_key_same_every_call import SameKey
from traindx_tools.on_jax.rules.j204_key_in_several_places import KeyUse
from traindx_tools.on_jax.rules.j205_keys_equal_along_axis import EqualKeys
from traindx_tools.on_jax.tracing import argument_names, lowered
from traindx_tools.on_jax.watched import Watched

MOST_EQUATIONS = 40_000
"""Equations of a function whose keys are followed: larger ones would take seconds."""
READS = 24
"""Calls of each function whose keys are read."""
MOST_EAGER = 2_000
"""Eager uses of keys that are read."""
MOST_KEYS = 64
SAME = 4
"""Calls in a row with one key after which it counts."""
SAME_MADE = 12
"""The same for a key that is made of a key and a counter: accumulated micro-batches may share a counter."""


@dataclass
class _Function:
    """What is known of one function's keys."""

    inputs: dict[int, tuple[str, Use | None]] = field(default_factory=dict)
    """Argument leaves that are keys and used as they are: their names and the first use."""
    constant: list[Use] = field(default_factory=list)
    last: dict[int, bytes] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)
    told: bool = False
    made_of: dict[tuple[int, ...], tuple[str, Use]] = field(default_factory=dict)
    """Small whole-number argument leaves, keys among them, from which alone a draw's key is made: names, first use."""
    unchanged: dict[tuple[int, ...], tuple[bytes, int]] = field(default_factory=dict)


class Keys(JaxProbe):
    """Follows keys through what is compiled, and compares those of different calls by their bytes."""

    name = "keys"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}
        self._waiting: deque[tuple[_Function, Watched, int, Any]] = deque()
        self._uses: dict[bytes, KeyUse] = {}
        self._eager = 0

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Follows the keys of the function."""
        if internals.size(jaxpr) > MOST_EQUATIONS:
            return
        traced = lowered(call.watched, jaxpr, call.args, call.kwargs)
        flow = follow(traced)
        for finding in reuse_findings(traced, flow):
            self.scene.recorder.finding(finding)
        known = self._functions.setdefault(call.watched.number, _Function())
        known.constant = flow.constant_draws()
        uses = {u.key: u for u in reversed(flow.uses)}
        for i, (variable, name) in enumerate(zip(jaxpr.jaxpr.invars, traced.inputs, strict=True)):
            names = flow.inputs[i].ids
            if names is None or not (is_key(variable.aval) or may_be_raw(variable.aval)):
                continue
            flat = names.reshape(-1) if is_key(variable.aval) else names.reshape(-1)[::2] // 2
            used = next((uses[k] for k in flat.tolist() if k in uses), None)
            if used is not None and 0 < len(flat) <= MOST_KEYS:
                known.inputs[i] = (name, used)

        known.made_of = dict(_made_of(flow.derived_draws(), traced.inputs, jaxpr.jaxpr.invars, known.inputs))

    def before_call(self, call: Call) -> None:
        """Reads what keys are made of while it is there: a donated state is gone afterwards."""
        known = self._functions.get(call.watched.number)
        if known is not None and known.made_of and not known.told and call.step <= READS:
            self._made(known, call, _dynamic(call))

    def after_call(self, call: Call) -> None:
        """Remembers the keys of the call and reads those of the one before."""
        while self._waiting:
            self._read(*self._waiting.popleft())
        known = self._functions.get(call.watched.number)
        if known is None:
            return
        if call.step == SAME and known.constant and not known.told:
            self._constant(known, call)
        if call.step > READS or not known.inputs:
            return
        leaves = _dynamic(call)
        for i in known.inputs:
            if i < len(leaves) and hasattr(leaves[i], "is_deleted"):
                self._waiting.append((known, call.watched, i, leaves[i]))

    def _made(self, known: _Function, call: Call, leaves: list[Any]) -> None:
        """Whether all that a draw's key is made of has been the same in each call so far."""
        for places, (names, use) in list(known.made_of.items()):
            data = _joined_bytes([leaves[i] for i in places if i < len(leaves)])
            before, count = known.unchanged.get(places, (data, 0))
            if data is None or data != before:
                del known.made_of[places]
                continue
            known.unchanged[places] = data, count + 1
            if count + 1 >= SAME_MADE:
                known.told = True
                self._same(call.watched, SameKey(call.watched.name, names, count + 1, _trains(call.watched), use.place))
                return

    def key_used(self, use: str, key: Any, place: tuple[str, int] | None) -> None:
        """An eager use of a key."""
        if self._eager >= MOST_EAGER:
            return
        self._eager += 1
        data = _bytes(key)
        if data is not None and len(data) <= 16:
            self._note(data, KeyUse(f"jax.random.{use}", place, use == "split"))

    def mapped(self, call: Mapped) -> None:
        """An eager `vmap` whose keys are copies of one, and whose outputs are too."""
        if self._eager >= MOST_EAGER or call.out_axes != 0:
            return
        self._eager += 1
        axes = call.in_axes if isinstance(call.in_axes, (tuple, list)) else (call.in_axes,) * len(call.args)
        for i, (key, axis) in enumerate(zip(call.args, axes, strict=False)):
            count = copies(key, axis) if isinstance(axis, int) else 0
            if count and members_alike(call.output):
                name = argument_names(call.function, call.args[:i + 1], {})[-1]
                self._equal(EqualKeys(getattr(call.function, "__name__", "a function"), name, count, call.place, True))

    def _equal(self, equal: EqualKeys) -> None:
        for finding in j205_keys_equal_along_axis.check(equal):
            self.scene.recorder.finding(finding)

    def _read(self, known: _Function, watched: Watched, index: int, key: Any) -> None:
        data = _bytes(key)
        if data is None:
            return
        count = copies(key) if index not in known.last else 0
        if count:
            name, use = known.inputs[index]
            place = (use.place.file, use.place.line) if use is not None and use.place is not None else watched.place
            self._equal(EqualKeys(watched.name, name, count, place, False))
        same = known.last.get(index) == data
        known.last[index] = data
        known.same[index] = known.same.get(index, 0) + 1 if same else 0
        name, use = known.inputs[index]
        if same:
            if known.same[index] >= SAME - 1 and not known.told:
                known.told = True
                self._same(watched, SameKey(watched.name, name, known.same[index] + 1, _trains(watched),
                                            use.place if use else None))
            return
        place = (use.place.file, use.place.line) if use is not None and use.place is not None else None
        self._note(data, KeyUse(f"{watched.name} ({name})", place, use is not None and use.use != DRAW))

    def _note(self, data: bytes, use: KeyUse) -> None:
        first = self._uses.setdefault(data, use)
        if first is use or (first.what == use.what and first.place == use.place):
            return
        for finding in j204_key_in_several_places.check(first, use):
            self.scene.recorder.finding(finding)

    def _constant(self, known: _Function, call: Call) -> None:
        known.told = True
        place = next((u.place for u in known.constant if u.place is not None), None)
        self._same(call.watched, SameKey(call.watched.name, "", call.step, _trains(call.watched), place))

    def _same(self, watched: Watched, same: SameKey) -> None:
        for finding in j203_key_same_every_call.check(same):
            self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Reads what is still waiting."""
        while self._waiting:
            self._read(*self._waiting.popleft())
        return ()


def _made_of(draws: Mapping[frozenset[str], Use], names: Sequence[str], variables: Sequence[Any],
             direct: Container[int]) -> Iterator[tuple[tuple[int, ...], tuple[str, Use]]]:
    """The draws whose key is made of whole numbers alone, by the places of these among the arguments."""
    places = {name: i for i, name in enumerate(names)}
    for told, use in draws.items():
        chosen = tuple(sorted(places[n] for n in told if n in places))
        small = all(_is_small_integer(variables[i].aval) for i in chosen)
        if len(chosen) == len(told) and small and not (len(chosen) == 1 and chosen[0] in direct):
            yield chosen, (" and ".join(names[i] for i in chosen), use)


def _is_small_integer(aval: Any) -> bool:
    shape = tuple(getattr(aval, "shape", ()))
    whole = is_key(aval) or str(getattr(aval, "dtype", "")).startswith(("int", "uint"))
    return whole and int(np.prod(shape, dtype=np.int64)) <= MOST_KEYS


def _joined_bytes(leaves: Sequence[Any]) -> bytes | None:
    """What these arguments hold; None where one cannot be read."""
    import jax

    told: list[bytes] = []
    for leaf in leaves:
        if internals.is_tracer(leaf) or getattr(leaf, "is_deleted", lambda: False)() or not getattr(
                leaf, "is_fully_addressable", True):
            return None
        told.append(np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf).tobytes())
    return b"|".join(told) if told else None


def _trains(watched: Watched) -> bool:
    return watched.feeding is not None and bool(watched.feeding.fed)


def _dynamic(call: Call) -> list[Any]:
    """The argument leaves in the order of the jaxpr's inputs."""
    import jax

    if not call.watched.static_names:
        leaves: list[Any] = jax.tree_util.tree_leaves((call.args, call.kwargs))
        return leaves
    from traindx_tools.on_jax.tracing import dynamic_leaves

    return dynamic_leaves(call.watched, call.args, call.kwargs)


def _bytes(key: Any) -> bytes | None:
    """The numbers of a key, None where they cannot be read: donated to a call, on other processes, a tracer."""
    import jax

    if internals.is_tracer(key) or not hasattr(key, "dtype"):
        return None
    if getattr(key, "is_deleted", lambda: False)() or not getattr(key, "is_fully_addressable", True):
        return None
    data = np.asarray(jax.random.key_data(key) if is_key(key) else key)
    return data.tobytes() if data.dtype == np.uint32 else None

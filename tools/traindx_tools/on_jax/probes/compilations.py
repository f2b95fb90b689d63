"""Always on: compilations counted and explained, captured constants, callbacks, dtypes (J503, J504, J60x)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place, place_of
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import (
    j503_double_becomes_single,
    j504_promoted_to_wide,
    j601_recompilations,
    j602_jit_in_loop,
    j603_large_constants,
    j604_host_callback,
)
from traindx_tools.on_jax.rules.j601_recompilations import Recompiled
from traindx_tools.on_jax.summary.promotions import promotions
from traindx_tools.on_jax.tracing import signature

FEWEST = int(j601_recompilations.RULE.thresholds["compilations"].value)
SHARE = float(j601_recompilations.RULE.thresholds["share"].value)
CONSTANTS = int(j603_large_constants.RULE.thresholds["bytes"].value)
FEWEST_VALUES = int(j601_recompilations.RULE.thresholds["values"].value)
SHARE_OF_TIME = float(j601_recompilations.RULE.thresholds["time"].value)
STATIC = "static value"
Difference = tuple[str, str, str, str]
"""Argument, property, before, now."""
CALLBACKS = frozenset({"pure_callback", "io_callback", "debug_callback"})
MOST_EQUATIONS = 40_000
LOOKED_AT = 3
"""Calls of a function whose arguments are looked at for 64 bits."""
MOST_ELEMENTS = 2**20


class Compilations(JaxProbe):
    """Looks at each function when it is compiled, and at the arguments when it is compiled again."""

    name = "compilations"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._signatures: dict[int, dict[str, tuple[tuple[str, str], ...]]] = {}
        self._counts: dict[int, int] = {}
        self._lines: Counter[tuple[str, int]] = Counter()
        self._told: set[Any] = set()
        self._began = 0.0
        """When the call that goes on began."""
        self._since: dict[int, float] = {}
        """When the first call of a function had ended."""
        self._compiling: dict[int, float] = {}
        """Seconds of its later calls that compiled."""
        self._again: dict[int, tuple[Call, Difference]] = {}
        """The last call that compiled again, and what had changed."""
        self._static: dict[int, set[str]] = {}
        """Values of static arguments for which it was compiled."""

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Constants, callbacks, and how often this line compiled a function."""
        watched = call.watched
        if call.step == 1 and watched.place is not None and watched.kind == "jit":
            self._lines[watched.place] += 1
            if self._lines[watched.place] == FEWEST:
                self._write(j602_jit_in_loop.check(watched.name, FEWEST, watched.place))
        if internals.size(jaxpr) > MOST_EQUATIONS:
            return
        self._constants(watched.name, jaxpr)
        self._write(j504_promoted_to_wide.check(promotions(jaxpr), watched.name))
        for op, path, place in _callbacks(jaxpr, (), None):
            self._write(j604_host_callback.check(watched.name, op, path, place))

    def before_call(self, call: Call) -> None:
        """A call that compiles takes long."""
        self._began = time.perf_counter()

    def after_call(self, call: Call) -> None:
        """Was it compiled again, and why?"""
        watched = call.watched
        self._since.setdefault(watched.number, time.perf_counter())
        if call.step <= LOOKED_AT:
            self._halved(call)
        count = internals.compilations(watched.inner) if watched.kind == "jit" else None
        before = self._counts.get(watched.number, 0)
        if count is None or count <= before:
            return
        self._counts[watched.number] = count
        now = signature(watched, call.args, call.kwargs)
        old = self._signatures.get(watched.number, {})
        self._signatures[watched.number] = now
        difference = _difference(old, now)
        self._timed(call, difference)
        if count >= FEWEST and count >= SHARE * call.step and watched.number not in self._told:
            self._told.add(watched.number)
            self._write(j601_recompilations.check(self._recompiled(call, difference)))

    def _timed(self, call: Call, difference: Difference) -> None:
        """Adds up what compiling again takes; where a new value of a static argument is the reason, it will go on."""
        number = call.watched.number
        if not difference[1]:
            return
        self._compiling[number] = self._compiling.get(number, 0.0) + time.perf_counter() - self._began
        if difference[1] == STATIC:
            self._again[number] = call, difference
            self._static.setdefault(number, set()).update(difference[2:])

    def finish(self) -> Iterable[Finding]:
        """Of programs of few calls, and of values that change now and then: does compiling take a large share?"""
        now = time.perf_counter()
        for number, (call, difference) in self._again.items():
            share = self._compiling[number] / max(now - self._since[number], 1e-9)
            if number not in self._told and len(self._static[number]) >= FEWEST_VALUES and share >= SHARE_OF_TIME:
                yield from j601_recompilations.check(self._recompiled(call, difference, share))

    def _recompiled(self, call: Call, difference: Difference, share: float | None = None) -> Recompiled:
        watched = call.watched
        return Recompiled(watched.name, self._counts[watched.number], call.step, *difference, watched.place, share)

    def _constants(self, name: str, jaxpr: Any) -> None:
        sizes = sorted(((f"{c.dtype}[{','.join(map(str, c.shape))}]", int(c.nbytes)) for c in jaxpr.consts
                        if hasattr(c, "nbytes") and hasattr(c, "shape")), key=lambda s: -s[1])
        if sum(size for _, size in sizes) >= CONSTANTS:
            self._write(j603_large_constants.check(name, sizes, None))

    def _halved(self, call: Call) -> None:
        """numpy arrays of 64 bits whose values 32 bits cannot hold."""
        import jax

        if getattr(jax.config, "jax_enable_x64", False):
            return
        leaves = jax.tree_util.tree_flatten_with_path((call.args, call.kwargs))[0]
        for path, leaf in leaves:
            if isinstance(leaf, np.ndarray) and leaf.dtype.itemsize == 8 and leaf.dtype.kind in "iuf":
                worst = _lost(leaf.reshape(-1)[:MOST_ELEMENTS])
                if worst is not None:
                    name = jax.tree_util.keystr(path[1:])
                    self._write(j503_double_becomes_single.check(call.watched.name, f"argument {name}", str(leaf.dtype),
                                                                 worst, call.watched.place))

    def _write(self, findings: Iterator[Any]) -> None:
        for finding in findings:
            self.scene.recorder.finding(finding)


def _lost(values: Any) -> float | None:
    """A value that 32 bits cannot hold: an integer out of range, whole numbers beyond 24 bits among floats."""
    if not values.size:
        return None
    if values.dtype.kind in "iu":
        worst = values[int(np.argmax(np.abs(values.astype(np.float64))))]
        return float(worst) if not -2**31 <= int(worst) < 2**31 else None
    finite = values[np.isfinite(values)]
    whole = finite[(np.abs(finite) > 2**24) & (np.abs(finite) < 2**53) & (finite == np.round(finite))]
    lost = whole[whole != whole.astype(np.float32).astype(np.float64)]
    return float(lost[0]) if lost.size and len(np.unique(lost.astype(np.float32))) < len(np.unique(lost)) else None


def _difference(before: dict[str, tuple[tuple[str, str], ...]],
                now: dict[str, tuple[tuple[str, str], ...]]) -> Difference:
    """The first argument and property in which two signatures differ."""
    if set(before) != set(now):
        odd = sorted(set(before) ^ set(now))[0]
        return odd, "structure", "there" if odd in before else "missing", "there" if odd in now else "missing"
    for name, properties in now.items():
        for (prop, value), (_, old) in zip(properties, before[name], strict=False):
            if value != old:
                return name, prop, old, value
    return "", "", "", ""


def _callbacks(jaxpr: Any, path: tuple[str, ...], around: Place | None) -> Iterator[tuple[str, tuple[str, ...],
                                                                                          Place | None]]:
    for eqn in jaxpr.jaxpr.eqns:
        place = place_of(eqn, around)
        name = eqn.primitive.name
        if name in CALLBACKS and "cond" not in path:  # one that is taken once in an interval is as it should be
            yield name, path, place
        inner = (*path, name) if name in ("scan", "while", "cond") else path
        for _, body in internals.inner_jaxprs(eqn):
            yield from _callbacks(body, inner, place)

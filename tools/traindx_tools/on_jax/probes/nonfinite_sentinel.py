"""Always on: notices the first output that is not finite, without waiting for the device (J102)."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j102_nonfinite_seen
from traindx_tools.on_jax.rules.j102_nonfinite_seen import Seen
from traindx_tools.on_jax.state import Feeding, output_names

SMALL = 2**12
"""Elements of an output that is looked at."""
SHARE = 0.005
"""Share of the time between two calls that looking may take: shorter calls are looked at less often."""
MOST_PENDING = 64
MOST_STRIDE = 256
PERSISTS = 3
"""Calls in a row after which a scalar that is not finite counts, where no state tells."""
LOSSES = ("loss", "cost", "nll", "objective", "elbo")


@dataclass
class _Function:
    """What is known of one function's outputs."""

    scalars: list[int]
    small: list[int]
    names: list[str]
    feeding: Feeding
    stride: int = 1
    last_time: float = 0.0
    spent: float = 0.0
    """Seconds that looking took, as a moving mean."""
    good: dict[int, float] = field(default_factory=dict)
    """The last finite value of each scalar; of the small ones together at -1."""
    odd: dict[int, tuple[int, int, float, int]] = field(default_factory=dict)
    """Scalars that are not finite: first call, first step, value, how often in a row."""
    last_good_call: int = 0
    checked: int = 0
    bad_in_a_row: int = 0
    unseen: Call | None = None
    """The latest call, without its arguments, where it was not looked at: the last one of the program may be it."""

    def keeps(self, call: Call) -> bool:
        """Whether the program itself holds what this call gave until the next one: its state, or gradients."""
        return bool(self.feeding.fed) or call.watched.kind != "jit"


@dataclass
class _Pending:
    function: _Function
    name: str
    place: tuple[str, int] | None
    call: int
    step: int
    scalars: list[tuple[int, Any]]
    summary: Any
    gradient: bool


class NonfiniteSentinel(JaxProbe):
    """The scalar outputs of each call, and one number for its small outputs, read when they have arrived."""

    name = "nonfinite"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.tripped = False
        self._functions: dict[int, _Function] = {}
        self._pending: deque[_Pending] = deque()
        self._summary: Any = None

    def after_call(self, call: Call) -> None:
        """Sends what is looked at on its way and reads what has arrived."""
        if self.tripped:
            return
        start = time.perf_counter()
        function = self._functions.get(call.watched.number) or self._begin(call)
        if call.step % function.stride and call.step > 8:
            function.unseen = replace(call, args=(), kwargs={}) if function.keeps(call) else None
        else:
            function.unseen = None
            self._look(function, call)
            self._read()
            self._pace(function, start, time.perf_counter())
        function.last_time = start

    def _begin(self, call: Call) -> _Function:
        leaves = _leaves(call)
        floats = [i for i, x in enumerate(leaves) if is_inexact(x) and hasattr(x, "is_ready")]
        function = _Function(
            [i for i in floats if leaves[i].ndim == 0], [i for i in floats if 0 < leaves[i].size <= SMALL and
                                                         leaves[i].ndim > 0],
            output_names(call.output), _feeding(call))
        self._functions[call.watched.number] = function
        return function

    def _look(self, function: _Function, call: Call) -> None:
        leaves = _leaves(call)
        if len(leaves) != len(function.names) or len(self._pending) >= MOST_PENDING:
            return
        scalars = [(i, leaves[i]) for i in function.scalars if hasattr(leaves[i], "is_ready")]
        small = [leaves[i] for i in function.small if hasattr(leaves[i], "is_ready")]
        if not scalars and not small:
            return
        self._pending.append(_Pending(function, call.watched.name, call.watched.place, call.number, call.step, scalars,
                                      self._summarised(small) if small else None,
                                      call.watched.kind != "jit"))

    def _summarised(self, arrays: list[Any]) -> Any:
        """The largest magnitude in any of these, on the device; NaN where any value is."""
        if self._summary is None:
            import jax
            import jax.numpy as jnp

            def largest(values: list[Any]) -> Any:
                flat = jnp.concatenate([jnp.abs(v).astype(jnp.float32).reshape(-1) for v in values])
                return flat.max()

            plain = getattr(jax.jit, "__wrapped__", jax.jit)
            self._summary = plain(largest)
        return self._summary(arrays)

    def _pace(self, function: _Function, start: float, end: float) -> None:
        """Looks less often where a call takes so little time that looking would be felt."""
        function.checked += 1
        if function.checked <= 3:  # the first ones compile
            return
        function.spent += 0.2 * (end - start - function.spent)
        between = start - function.last_time
        if between > 0:
            wanted = function.spent / (SHARE * between)
            function.stride = max(function.stride, min(MOST_STRIDE, 1 << max(0, math.ceil(math.log2(wanted)))))

    # ---- reading

    def _read(self, *, wait: bool = False) -> None:
        while self._pending:
            first = self._pending[0]
            arrays = [x for _, x in first.scalars] + ([first.summary] if first.summary is not None else [])
            if not wait and not all(_arrived(x) for x in arrays):
                return
            self._pending.popleft()
            self._judge(first)

    def _judge(self, it: _Pending) -> None:
        function = it.function
        summary = _number(it.summary)
        state = bool(function.feeding.fed)
        if summary is not None:
            bad = not math.isfinite(summary) and (math.isnan(summary) or -1 in function.good)
            function.bad_in_a_row = function.bad_in_a_row + 1 if bad else 0
            sure = state or it.gradient or (function.bad_in_a_row >= PERSISTS and -1 in function.good)
            if bad and sure:
                what = "state" if state else "gradient" if it.gradient else "output"
                self._trip(it, -1, summary, what, function.last_good_call + 1)
                return
            if math.isfinite(summary):
                function.good[-1] = summary
        values = {i: v for i, x in it.scalars for v in [_number(x)] if v is not None}
        for i, value in values.items():
            if math.isfinite(value):
                function.good[i] = value
                function.odd.pop(i, None)
            else:
                first, step, seen, times = function.odd.get(i, (function.last_good_call + 1, it.step, value, 0))
                function.odd[i] = (first, step, seen, times + 1)
        if all(map(math.isfinite, values.values())) and not function.bad_in_a_row:
            function.last_good_call = it.call
        self._record(it, values)
        self._odd(it, tells=state and summary is not None and math.isfinite(summary))

    def _odd(self, it: _Pending, *, tells: bool) -> None:
        """Scalars that stay odd: a fault where they are the loss or no state contradicts."""
        function = it.function
        for i, (first, _, value, times) in function.odd.items():
            named = _is_loss(function, i)
            if times >= PERSISTS and (named or not tells) and (math.isnan(value) or i in function.good):
                self._trip(it, i, value, "loss" if named else "output", first)
                return

    def _record(self, it: _Pending, values: dict[int, float]) -> None:
        loss = next((i for i in values if _is_loss(it.function, i)), None)
        if loss is not None:
            self.scene.recorder.metrics(it.step, {"loss": values[loss]})

    def _trip(self, it: _Pending, index: int, value: float, what: str, call: int) -> None:
        self.tripped = True
        self._pending.clear()
        function = it.function
        name = function.names[index] if index >= 0 else "state"
        file, line = it.place or (None, None)
        seen = Seen(it.name, name, value, call, it.step, function.good.get(index), what, file, line,
                    self.scene.recorder.rank)
        for finding in j102_nonfinite_seen.check(seen):
            self.scene.recorder.finding(finding)
        say(f"{name or 'the output'} of {it.name} is {value} in its call {it.step}; the equation that did it is "
            "searched after this run")

    def finish(self) -> Iterable[Finding]:
        """Reads what is still on its way; scalars that are odd at the end are told."""
        if self.tripped:
            return
        self._read(wait=True)
        for function in self._functions.values():
            if function.unseen is not None:
                self._look(function, function.unseen)
        self._read(wait=True)
        if self.tripped:
            return
        for function in self._functions.values():
            for i, (call, step, value, _) in function.odd.items():
                if math.isnan(value) or i in function.good:
                    what = "loss" if _is_loss(function, i) else "metric"
                    yield from j102_nonfinite_seen.check(
                        Seen("the function", function.names[i], value, call, step, function.good.get(i), what,
                             rank=self.scene.recorder.rank))


def _feeding(call: Call) -> Feeding:
    assert call.watched.feeding is not None, "the attachment learns before it tells"
    return call.watched.feeding


def _leaves(call: Call) -> list[Any]:
    if not call.leaves:
        import jax

        call.leaves = jax.tree_util.tree_leaves(call.output)
    return call.leaves


def _arrived(array: Any) -> bool:
    return bool(array.is_deleted() or array.is_ready())


def _number(array: Any) -> float | None:
    if array is None or array.is_deleted():
        return None
    return float(np.asarray(array).real)


def _is_loss(function: _Function, index: int) -> bool:
    name = function.names[index].lower()
    return any(word in name for word in LOSSES) or (len(function.scalars) == 1 and bool(function.feeding.fed))

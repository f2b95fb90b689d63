"""Always on: notices the first output that is not finite, without waiting for the device (J102)."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.probes.call_results import (
    gradient_places,
    has_arrived,
    is_called_loss,
    leaves_of,
    reader,
    single_number,
)
from traindx_tools.on_jax.rules import j102_nonfinite_seen
from traindx_tools.on_jax.rules.j102_nonfinite_seen import Seen, Shown
from traindx_tools.on_jax.state import Feeding, output_names

SMALL = 2**12
"""Elements of an output that is looked at."""
SHARE = 0.005
"""Share of the time between two calls that looking may take: shorter calls are looked at less often."""
MOST_PENDING = 64
MOST_STRIDE = 256
PERSISTS = 3
"""Calls in a row after which a scalar that is not finite counts, where no state tells."""


@dataclass
class _Odd:
    """A scalar that is not finite: the first call of all that can have made it, the value, how often in a row."""

    call: int
    value: float
    times: int
    shown: Shown


@dataclass
class _Passing:
    """A loss that was not finite and was again: the first time it was seen, and how many calls of how many."""

    call: int
    value: float
    shown: Shown
    times: int = 1


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
    odd: dict[int, _Odd] = field(default_factory=dict)
    """Scalars that are not finite."""
    passing: dict[int, _Passing] = field(default_factory=dict)
    """Losses that are finite again."""
    last_good_call: int = 0
    telling: int | None = None
    """The scalar that is kept of calls that are not looked at: the loss, or the first one."""
    take: Callable[[Any], Any] | None = None
    """That scalar of an output."""
    between: deque[tuple[int, Any]] = field(default_factory=lambda: deque(maxlen=MOST_STRIDE))
    """It, by call, since the last look."""
    summary_bad: Shown | None = None
    """Where the small outputs were first seen to be bad, while they are."""
    checked: int = 0
    bad_in_a_row: int = 0
    looked: int = 0
    """The call of the last look."""
    unseen: Call | None = None
    """The latest call, without its arguments, where it was not looked at: the last one of the program may be it."""
    gradients: list[int] = field(default_factory=list)
    """The small outputs of a jitted function that are gradients of an argument, by their types."""
    gradients_bad: list[tuple[_Pending, Shown]] = field(default_factory=list)
    """The looks in a row that found NaN in them, where the small outputs were never finite."""

    def keep(self, call: Call) -> None:
        """Keeps one scalar of a call that is not looked at."""
        if self.take is not None:
            try:
                self.between.append((call.step, self.take(call.output)))
            except (KeyError, IndexError, TypeError, AttributeError):  # outputs of another structure
                self.take = None

    def keeps(self, call: Call) -> bool:
        """Whether the program itself holds what this call gave until the next one: its state, or gradients."""
        return bool(self.feeding.fed or self.gradients) or call.watched.kind != "jit"

    def gives_gradients(self) -> bool:
        """Whether it does, and they are not state that only looks like them."""
        return bool(self.gradients) and not any(i in self.feeding.fed for i in self.gradients)


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
    between: deque[tuple[int, Any]]
    """One scalar of the calls since the look before."""
    after: int
    """The call of the look before; 0 where there was none."""
    gradients: Any = None
    """The summary of the gradients alone, while that of all small outputs was never finite."""


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
            function.keep(call)
        else:
            function.unseen = None
            self._look(function, call)
            self._read()
            self._pace(function, start, time.perf_counter())
        function.last_time = start

    def _begin(self, call: Call) -> _Function:
        leaves = leaves_of(call)
        floats = [i for i, x in enumerate(leaves) if is_inexact(x) and hasattr(x, "is_ready")]
        function = _Function(
            [i for i in floats if leaves[i].ndim == 0], [i for i in floats if 0 < leaves[i].size <= SMALL and
                                                         leaves[i].ndim > 0],
            output_names(call.output), _feeding(call))
        if call.watched.kind == "jit" and call.watched.differentiates:
            told = set(gradient_places(call))
            function.gradients = [i for i in function.small if i in told]
        if function.scalars:
            function.telling = next((i for i in function.scalars if is_called_loss(function.names[i])),
                                    function.scalars[0])
            function.take = reader(call.output, function.telling)
        self._functions[call.watched.number] = function
        return function

    def _look(self, function: _Function, call: Call) -> None:
        leaves = leaves_of(call)
        if len(leaves) != len(function.names) or len(self._pending) >= MOST_PENDING:
            return
        scalars = [(i, leaves[i]) for i in function.scalars if hasattr(leaves[i], "is_ready")]
        small = [leaves[i] for i in function.small if hasattr(leaves[i], "is_ready")]
        if not scalars and not small:
            return
        self._pending.append(_Pending(function, call.watched.name, call.watched.place, call.number, call.step, scalars,
                                      self._summarised(small) if small else None, call.watched.kind != "jit",
                                      function.between, function.looked, self._gradients(function, leaves)))
        function.between, function.looked = deque(maxlen=MOST_STRIDE), call.step

    def _gradients(self, function: _Function, leaves: list[Any]) -> Any:
        """Other outputs may be NaN from the first call on and harm nothing; gradients may not."""
        if -1 in function.good or not function.gives_gradients():
            return None
        arrays = [leaves[i] for i in function.gradients if hasattr(leaves[i], "is_ready")]
        return self._summarised(arrays) if arrays else None

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
            arrays = [x for _, x in first.scalars] + [x for x in (first.summary, first.gradients) if x is not None]
            if not wait and not all(has_arrived(x) for x in arrays):
                return
            self._pending.popleft()
            self._judge(first)

    def _judge(self, it: _Pending) -> None:
        function = it.function
        summary = single_number(it.summary)
        values = {i: v for i, x in it.scalars for v in [single_number(x)] if v is not None}
        state = bool(function.feeding.fed)
        if summary is not None:
            bad = not math.isfinite(summary) and (math.isnan(summary) or -1 in function.good)
            function.bad_in_a_row = function.bad_in_a_row + 1 if bad else 0
            function.summary_bad = (function.summary_bad or _shown(it, -1, values)) if bad else None
            sure = state or it.gradient or (function.bad_in_a_row >= PERSISTS and -1 in function.good)
            if function.summary_bad is not None and sure:
                what = "state" if state else "gradient" if it.gradient else "output"
                self._trip(it, -1, summary, what, function.last_good_call + 1, function.summary_bad)
                return
            if math.isfinite(summary):
                function.good[-1] = summary
        if self._gradients_stay_bad(it, values):
            return
        for i, value in values.items():
            if math.isfinite(value):
                self._passed(function, i, it)
                function.good[i] = value
                function.odd.pop(i, None)
            elif i in function.odd:
                function.odd[i].times += 1
                if math.isnan(value):  # an infinity that became NaN is no start value
                    function.odd[i].value = value
            else:
                function.odd[i] = _Odd(function.last_good_call + 1, value, 1, _shown(it, i, values))
        if all(map(math.isfinite, values.values())) and not function.bad_in_a_row:
            function.last_good_call = it.call
        self._record(it, values)
        self._odd(it, tells=state and summary is not None and math.isfinite(summary))

    def _passed(self, function: _Function, index: int, it: _Pending) -> None:
        """Notes a loss that is finite now and was not before: at the last looks, or at a call between them."""
        if not _is_loss(function, index):
            return
        odd, between = function.odd.get(index), it.between if index == function.telling else ()
        bad = [(s, v) for s, x in between for v in [single_number(x)] if v is not None and not math.isfinite(v)]
        if odd is None and not bad:
            return
        times = len(bad) + (odd.times if odd is not None else 0)
        if index in function.passing:
            function.passing[index].times += times
        elif odd is not None:
            function.passing[index] = _Passing(odd.call, odd.value, odd.shown, times)
        else:
            step, value = min(bad)
            shown = Shown(step, exact=True, finite_at=step - 1, every=1)
            function.passing[index] = _Passing(function.last_good_call + 1, value, shown, times)

    def _gradients_stay_bad(self, it: _Pending, values: Mapping[int, float]) -> bool:
        """NaN from the first call on: a fault once it stays, as a loss scale that is searched for makes it too."""
        function, value = it.function, single_number(it.gradients)
        if value is None or not math.isnan(value):
            function.gradients_bad.clear()
            return False
        function.gradients_bad.append((it, _shown(it, -1, values)))
        if len(function.gradients_bad) < PERSISTS or not function.gives_gradients():
            return False
        self._trip_gradients(function)
        return True

    def _trip_gradients(self, function: _Function) -> None:
        it, shown = function.gradients_bad[0]
        self._trip(it, -1, math.nan, "gradient", function.last_good_call + 1, shown)

    def _odd(self, it: _Pending, *, tells: bool) -> None:
        """Scalars that stay odd: a fault where they are the loss or no state contradicts."""
        function = it.function
        for i, odd in function.odd.items():
            named = _is_loss(function, i)
            if odd.times >= PERSISTS and (named or not tells) and (math.isnan(odd.value) or i in function.good):
                self._trip(it, i, odd.value, "loss" if named else "output", odd.call, odd.shown)
                return

    def _record(self, it: _Pending, values: dict[int, float]) -> None:
        loss = next((i for i in values if _is_loss(it.function, i)), None)
        if loss is not None:
            self.scene.recorder.metrics(it.step, {"loss": values[loss]})

    def _trip(self, it: _Pending, index: int, value: float, what: str, call: int, shown: Shown) -> None:
        self.tripped = True
        self._pending.clear()
        function = it.function
        name = function.names[index] if index >= 0 else "gradients" if what == "gradient" else "state"
        file, line = it.place or (None, None)
        seen = Seen(it.name, name, value, call, shown.step, function.good.get(index), what, file, line,
                    self.scene.recorder.rank, shown)
        for finding in j102_nonfinite_seen.check(seen):
            self.scene.recorder.finding(finding)
        say(f"{name or 'the output'} of {it.name} is {value} {shown.words}; the equation that did it is searched after "
            "this run")

    def finish(self) -> Iterable[Finding]:
        """Reads what is still on its way; scalars that are odd at the end are told."""
        if self.tripped:
            return
        self._read(wait=True)
        for function in self._functions.values():
            if function.unseen is not None:
                self._look(function, function.unseen)
        self._read(wait=True)
        for function in self._functions.values():
            if function.gradients_bad and function.gives_gradients() and not self.tripped:
                self._trip_gradients(function)
        if self.tripped:
            return
        for function in self._functions.values():
            for i, passing in function.passing.items():
                yield from j102_nonfinite_seen.check(
                    Seen("the function", function.names[i], passing.value, passing.call, passing.shown.step,
                         function.good.get(i), "passing", rank=self.scene.recorder.rank, shown=passing.shown,
                         times=passing.times))
            for i, odd in function.odd.items():
                if math.isnan(odd.value) or i in function.good:
                    what = "loss" if _is_loss(function, i) else "metric"
                    yield from j102_nonfinite_seen.check(
                        Seen("the function", function.names[i], odd.value, odd.call, odd.shown.step,
                             function.good.get(i), what, rank=self.scene.recorder.rank, shown=odd.shown))


def _feeding(call: Call) -> Feeding:
    assert call.watched.feeding is not None, "the attachment learns before it tells"
    return call.watched.feeding


def _shown(it: _Pending, index: int, values: Mapping[int, float]) -> Shown:
    """The first call that is known to be bad. `index`: the output that a look found bad, -1 for the small ones.

    Of the calls between two looks one scalar was kept: where that is the bad output, its first bad call is known;
    where it is another, that one bounds it.
    """
    telling = it.function.telling
    kept = it.between if index in (-1, telling) else ()
    told = sorted((s, v) for s, x in kept for v in [single_number(x)] if v is not None)
    if telling is not None and telling in values:
        told.append((it.step, values[telling]))
    bad = next((s for s, v in told if not math.isfinite(v)), it.step)
    own = index == telling
    finite = max((s for s, _ in told if own and s < bad), default=it.after)
    by = it.function.names[telling] or "its value" if telling is not None and not own and bad < it.step else ""
    return Shown(bad, exact=finite == bad - 1, finite_at=finite, every=it.function.stride, by=by)


def _is_loss(function: _Function, index: int) -> bool:
    return is_called_loss(function.names[index]) or (len(function.scalars) == 1 and bool(function.feeding.fed))

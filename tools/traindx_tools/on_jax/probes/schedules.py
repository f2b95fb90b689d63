"""Always on: the schedule of an optimizer of optax against the run (J710)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax.measures.schedule import course
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j710_schedule_and_run
from traindx_tools.on_jax.rules.j710_schedule_and_run import Followed

FIRST, EVERY = (2, 3, 5, 8, 12), 50
"""Calls of a function before which the count in its state is read: one call may be an epoch, and a run has few then."""
MOST_SCHEDULES = 8


class SchedulesProbe(JaxProbe):
    """Keeps the one schedule, and reads its count now and then."""

    name = "schedules"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._made: list[tuple[Callable[[Any], Any], tuple[str, int] | None]] = []
        self._counts: dict[int, list[tuple[int, int]]] = {}
        self._calls: dict[int, int] = {}
        self._failed = False

    def schedule_made(self, function: Callable[[Any], Any], place: tuple[str, int] | None) -> None:
        """An optimizer follows it."""
        if len(self._made) < MOST_SCHEDULES:
            self._made.append((function, place))

    def before_call(self, call: Call) -> None:
        """Reads the count, before it can be given away."""
        number = call.watched.number
        if not self._made:
            return
        if number in self._counts:
            self._calls[number] = call.step
        if call.step not in FIRST and call.step % EVERY:
            return
        count = _count((call.args, call.kwargs))
        if count is not None:
            self._calls[number] = call.step
            self._counts.setdefault(number, []).append((call.step, count))

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """A run that failed has no length of its own."""
        self._failed = True
        return ()

    def finish(self) -> Iterable[Finding]:
        """Judges a program with one schedule that one function moves on; others may read its state (evaluation)."""
        if self._failed or len(self._made) != 1 or not self._counts:
            return
        number = max(self._counts, key=lambda n: (self._calls[n], -n))
        looks, calls = self._counts[number], self._calls[number]
        made = _at_end(looks, calls)
        if any(high > made for n, others in self._counts.items() if n != number for _, high in others):
            return
        function, place = self._made[0]
        found = course(function, made) if made >= j710_schedule_and_run.STEPS else None
        if found is not None:
            at = f" at {place[0]}:{place[1]}" if place else ""
            self.scene.facts.append(f"schedule of the updates{at}: count {made} at the end, {found.last:.4g} there; "
                                    f"highest {found.peak:.4g} at about {found.peak_at}")
            yield from j710_schedule_and_run.check(Followed(found, made, calls, place))


def _at_end(looks: list[tuple[int, int]], calls: int) -> int:
    """The count after the last call, by what it grew between the first look and the last one."""
    (first, low), (last, high) = looks[0], looks[-1]
    if last == first or high < low:
        return 0
    return round(high + (high - low) / (last - first) * (calls + 1 - last))


def _count(given: Any) -> int | None:
    """That of the one state that follows a schedule; None where there is none, or several."""
    kind = getattr(sys.modules.get("optax"), "ScaleByScheduleState", None)
    if kind is None:
        return None
    import jax

    leaves = jax.tree_util.tree_leaves(given, is_leaf=lambda x: isinstance(x, kind))
    found = [x.count for x in leaves if isinstance(x, kind)]
    if len(found) != 1 or getattr(found[0], "size", 0) != 1:
        return None
    return int(np.asarray(found[0]).reshape(-1)[0])

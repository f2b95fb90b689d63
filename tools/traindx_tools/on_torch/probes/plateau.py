"""Always on: what a plateau schedule is given, and the best that it compares with (T214)."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t214_plateau_unreached
from traindx_tools.on_torch.rules.state import At
from traindx_tools.on_torch.rules.t214_plateau_unreached import Watched

MOST_SCHEDULES, MOST_VALUES = 16, 10_000


@dataclass(eq=False)
class _Course:
    scheduler: weakref.ref[Any]
    loaded: bool
    at: At
    rate: float
    values: list[float] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    """How many values there were at each fall of the rate."""
    best: float = math.nan
    patience: int = 0
    larger: bool = False


class PlateauProbe(TorchProbe):
    """Keeps the values of each `ReduceLROnPlateau` with the cuts of the rate between them."""

    name = "plateau"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._courses: dict[int, _Course] = {}
        self._loaded: dict[int, weakref.ref[Any]] = {}

    def next_look(self) -> int:
        """Never: it is told of evaluations, not of steps."""
        return self.NEVER

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """A state went into a schedule."""
        if kind == "scheduler" and len(self._loaded) < MOST_SCHEDULES:
            self._loaded[id(owner)] = weakref.ref(owner)

    def watched(self, scheduler: Any, value: Any) -> None:
        """A plateau schedule has been given a value, and has cut the rate or not."""
        course = self._course(scheduler)
        number = _number(value)
        if course is None or number is None or len(course.values) >= MOST_VALUES:
            return
        course.values.append(number)
        course.best, course.larger = float(scheduler.best), getattr(scheduler, "mode", "min") == "max"
        course.patience = int(getattr(scheduler, "patience", 0))
        rate = _rate(scheduler)
        if rate < course.rate:
            course.cuts.append(len(course.values))
        course.rate = rate

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from t214_plateau_unreached.check([
            Watched(tuple(c.values[:c.cuts[-1]]), tuple(c.cuts), c.patience, c.larger, c.best, c.loaded, c.at)
            for c in self._courses.values() if c.cuts and math.isfinite(c.best)])

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """It may be why."""
        return self.finish()

    def _course(self, scheduler: Any) -> _Course | None:
        course = self._courses.get(id(scheduler))
        if course is not None and course.scheduler() is scheduler:
            return course
        if len(self._courses) >= MOST_SCHEDULES or not isinstance(getattr(scheduler, "best", None), (int, float)):
            return None
        loaded = self._loaded.get(id(scheduler))
        place = here()
        at = At(place.file if place else None, place.line if place else None, self.scene.step,
                self.scene.recorder.rank)
        made = _Course(weakref.ref(scheduler), loaded is not None and loaded() is scheduler, at, math.nan)
        self._courses[id(scheduler)] = made
        return made


def _rate(scheduler: Any) -> float:
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", ())
    rates = [g.get("lr") for g in groups]
    return max((float(r) for r in rates if isinstance(r, (int, float, torch.Tensor))), default=math.nan)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if math.isfinite(number) else None

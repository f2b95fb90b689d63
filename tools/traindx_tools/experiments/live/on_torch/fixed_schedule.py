"""A schedule without effect: each step is made with one rate, which is said: the schedule's peak or its base."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import lr_scheduler

from traindx_tools.experiments.live.on_torch.groups import DuringSteps

AHEAD = (*range(65), *(2**k for k in range(7, 21)))
"""Counts at which a schedule that is a function of the count is asked for its peak."""


class ScheduleFixed(DuringSteps):
    """Each step is made with one rate: that of `value`, else the peak of the schedule, else its base.

    A schedule by hand that begins at 0 names no base: it is followed upwards and held at the highest rate so far.
    """

    alike = "{optimizer} steps with a rate of {value}, which no schedule has changed"

    def attach(self) -> None:
        self._fixed: dict[int, Any] = {}
        self._rising: set[int] = set()
        self._schedules: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._owner_of: dict[int, Any] = {}
        super().attach()
        base = getattr(lr_scheduler, "LRScheduler", None)
        if base is not None:
            self.patches.replace(lr_scheduler.LambdaLR, "__init__", self._made)

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            original(scheduler, *args, **kwargs)
            self.guarded(self._keep, scheduler)

        return made

    def _keep(self, scheduler: Any) -> None:
        self._schedules[scheduler.optimizer] = scheduler

    def _before(self, optimizer: torch.optim.Optimizer) -> None:
        for place, group in enumerate(optimizer.param_groups):
            if id(group) not in self._fixed and self.key in group:
                self._fixed[id(group)] = self._rate(optimizer, place, group)
        super()._before(optimizer)

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        fixed = self._fixed.get(id(group), natural)
        if id(group) in self._rising and float(natural) > float(fixed):
            fixed = self._fixed[id(group)] = _own(natural)
        same = isinstance(natural, (int, float)) and isinstance(fixed, (int, float)) and natural == fixed
        return natural if same else fixed

    def _rate(self, optimizer: Any, place: int, group: dict[str, Any]) -> Any:
        """The rate of a group, and what it is, kept for the book."""
        value, natural = self.option("value"), group[self.key]
        told = [(value, "the rate that was given")] if value is not None else list(self._known(optimizer, place, group))
        rate, what = next(((r, w) for r, w in told if r is not None and float(r) > 0), (None, ""))
        if rate is None:
            self._rising.add(id(group))
            rate, what = _own(natural), "the highest rate so far: the schedule begins at 0 and names no base"
        elif value is None and "initial_lr" not in group:  # by hand: what it was made with may be less than its peak
            self._rising.add(id(group))
        self.how = f", at a rate of {float(rate):.4g}: {what}" if float(rate) > 0 else f", at {what}"
        return rate

    def _known(self, optimizer: Any, place: int, group: dict[str, Any]) -> Iterator[tuple[Any, str]]:
        yield group.get("max_lr"), "the peak of the schedule (max_lr)"
        yield self._peak(optimizer, place), "the peak of the schedule"
        yield _own(group.get("initial_lr")), "the base from which the schedule starts"
        made, natural = optimizer.defaults.get(self.key), group[self.key]
        if isinstance(made, (int, float)) and float(made) > float(natural):
            yield made, "the rate that the optimizer was made with"
        yield _own(natural), "the rate of the first step"

    def _peak(self, optimizer: Any, place: int) -> float | None:
        """Of a LambdaLR: the base times the largest factor; None where it never ends to rise, or cannot be asked."""
        schedule = self._schedules.get(optimizer)
        if schedule is None or place >= len(schedule.lr_lambdas):
            return None
        try:
            factors = [float(schedule.lr_lambdas[place](count)) for count in AHEAD]
        except Exception:  # noqa: BLE001 - a function of the program's: of a count beyond its run it may know nothing
            return None
        highest = max(factors)
        if not math.isfinite(highest) or highest <= 0 or factors[-1] == highest > factors[-2]:
            return None
        return float(schedule.base_lrs[place]) * highest


def _own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value

"""Changes to what an optimizer finds in its groups, for the length of one step: rate, schedule, decay.

Between steps the groups hold what the program and its schedules put there, so that nothing is changed twice.
"""

from __future__ import annotations

from typing import Any

import torch

from traindx_tools.experiments.live.on_torch.stage import OnTorch


class _DuringSteps(OnTorch):
    """Another value stands in each group while a step runs."""

    key = "lr"

    def attach(self) -> None:
        self._natural: dict[int, tuple[dict[str, Any], Any]] = {}
        self._owner: dict[int, int] = {}
        self.listen("before_step", self._before)
        self.listen("after_step", self._after)
        self.ledger.nowhere.append("no optimizer of torch took a step in which it would have changed anything")

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        """What the group holds during the step; the natural value itself where nothing changes."""
        raise NotImplementedError

    def _before(self, optimizer: torch.optim.Optimizer) -> None:
        if id(optimizer) in self._owner.values():  # a step that raised left its values behind
            self._restore(optimizer)
        held = False
        for group in optimizer.param_groups:
            if self.key not in group or id(group) in self._natural:  # a wrapper's step around the optimizer's own
                continue
            natural = group[self.key]
            new = self.changed(group, natural)
            if new is natural:
                continue
            self._natural[id(group)] = (group, natural)
            self._owner[id(group)] = id(optimizer)
            group[self.key] = new
            held = True
        if held:
            self.ledger.held(f"{type(optimizer).__name__}, {len(optimizer.param_groups)} group(s)")

    def _after(self, optimizer: torch.optim.Optimizer) -> None:
        self._restore(optimizer)

    def _restore(self, optimizer: torch.optim.Optimizer) -> None:
        for key in [k for k, o in self._owner.items() if o == id(optimizer)]:
            group, natural = self._natural.pop(key)
            del self._owner[key]
            group[self.key] = natural


class LearningRate(_DuringSteps):
    """Each step is made with `times` the rate that program and schedule set."""

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        return natural * self.option("times")


class ScheduleFixed(_DuringSteps):
    """Each step is made with one rate: that of `value`, or the base of the schedule."""

    def attach(self) -> None:
        self._fixed: dict[int, Any] = {}
        super().attach()

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        if id(group) not in self._fixed:
            value = self.option("value")
            self._fixed[id(group)] = _own(group.get("initial_lr", natural)) if value is None else value
            if value is None and float(self._fixed[id(group)]) <= 0:
                self.ledger.cannot("the schedule begins at a rate of 0 and names no base; value=... says which rate")
                return natural
        fixed = self._fixed[id(group)]
        same = isinstance(natural, (int, float)) and isinstance(fixed, (int, float)) and natural == fixed
        return natural if same else fixed


class NoDecay(_DuringSteps):
    """No step decays a weight."""

    key = "weight_decay"

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        return natural if isinstance(natural, (int, float)) and natural == 0 else 0.0


def _own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value

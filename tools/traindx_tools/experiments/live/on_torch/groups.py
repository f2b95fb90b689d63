"""Changes to what an optimizer finds in its groups, for the length of one step: rate, schedule, decay.

Between steps the groups hold what the program and its schedules put there, so that nothing is changed twice.
"""

from __future__ import annotations

from typing import Any

import torch

from traindx_tools.experiments.live.on_torch.stage import OnTorch


class DuringSteps(OnTorch):
    """Another value stands in each group while a step runs."""

    key = "lr"
    how = ""
    """What is put there, told at the first step."""
    alike = "{optimizer} steps with {value}, which the change leaves as it is"
    """Told while no step would be another one."""

    def attach(self) -> None:
        self._natural: dict[int, tuple[dict[str, Any], Any]] = {}
        self._owner: dict[int, int] = {}
        self.listen("before_step", self._before)
        self.listen("after_step", self._after)
        self.ledger.unseen = "no optimizer of torch took a step"

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
            self.ledger.held(f"{type(optimizer).__name__}, {len(optimizer.param_groups)} group(s){self.how}")
        elif not self.ledger.times and optimizer.param_groups:
            values = {str(g.get(self.key, "none"))[:20] for g in optimizer.param_groups}
            told = {"optimizer": type(optimizer).__name__, "value": " / ".join(sorted(values))}
            self.ledger.not_here(self.alike.format(**told))

    def _after(self, optimizer: torch.optim.Optimizer) -> None:
        self._restore(optimizer)

    def _restore(self, optimizer: torch.optim.Optimizer) -> None:
        for key in [k for k, o in self._owner.items() if o == id(optimizer)]:
            group, natural = self._natural.pop(key)
            del self._owner[key]
            group[self.key] = natural


class LearningRate(DuringSteps):
    """Each step is made with `times` the rate that program and schedule set."""

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        return natural * self.option("times")


class NoDecay(DuringSteps):
    """No step decays a weight."""

    key = "weight_decay"
    alike = "{optimizer} has a weight decay of {value}: there is none to leave out"

    def changed(self, group: dict[str, Any], natural: Any) -> Any:
        return natural if isinstance(natural, (int, float)) and natural == 0 else 0.0

"""What a checkpoint gives besides weights is not taken: the optimizer's state, the schedule's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim import lr_scheduler

from traindx_tools.experiments.live.on_torch.stage import OnTorch


class StateNotLoaded(OnTorch):
    """`load_state_dict` of optimizers keeps the groups and takes no state; that of schedules does nothing."""

    def attach(self) -> None:
        of = str(self.option("of"))
        if of == "optimizer":
            self.patches.replace(torch.optim.Optimizer, "load_state_dict", self._without_state)
        else:
            kinds = [k for k in vars(lr_scheduler).values() if isinstance(k, type) and "load_state_dict" in vars(k)]
            for kind in dict.fromkeys(kinds):
                self.patches.replace(kind, "load_state_dict", self._nothing)
        self.ledger.unseen = f"no state of {'an optimizer' if of == 'optimizer' else 'a schedule'} of torch was loaded"

    def _without_state(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(optimizer: torch.optim.Optimizer, state_dict: Any) -> Any:
            if not isinstance(state_dict, Mapping) or not state_dict.get("state"):
                return original(optimizer, state_dict)
            self.ledger.held()
            return original(optimizer, {**state_dict, "state": {}})

        return load_state_dict

    def _nothing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(scheduler: Any, state_dict: Any) -> None:
            self.ledger.held()

        return load_state_dict

"""Another algorithm makes the steps, over the same groups."""

from __future__ import annotations

import types
from typing import Any

import torch

from traindx_tools.experiments.live.on_torch.stage import OnTorch

MADE = {"sgd": ("SGD", {"momentum": 0.0}), "momentum": ("SGD", {"momentum": 0.9}), "adam": ("Adam", {}),
        "adamw": ("AdamW", {}), "rmsprop": ("RMSprop", {}), "adagrad": ("Adagrad", {})}  # fmt: skip
"""Class and defaults by the name of the option."""


class AnotherOptimizer(OnTorch):
    """Each optimizer of the program hands its steps to one of another kind, which follows its rates and decays."""

    def attach(self) -> None:
        self.listen("optimizer_made", self._made)
        self._ours = False
        self.ledger.unseen = "no optimizer of torch was made"

    def _made(self, optimizer: torch.optim.Optimizer) -> None:
        name, more = MADE[self.option("name")]
        kind: Any = getattr(torch.optim, name)
        if self._ours:
            return
        if type(optimizer) is kind and all(optimizer.defaults.get(k) == v for k, v in more.items()):
            self.ledger.not_here(f"the program's optimizer is {self.option('name')} already")
            return
        original: Any = optimizer.step
        shadows: list[torch.optim.Optimizer] = []
        times = self.option("times", 1.0)

        def step(self_: Any, closure: Any = None) -> Any:
            if getattr(self_, "grad_scale", None) is not None:
                self.ledger.cannot("the loss scaler leaves unscaling to the fused optimizer")
            if self.ledger.off:
                return original(closure) if closure is not None else original()
            if not shadows:
                made = self.guarded(self._shadow, optimizer, kind, more)
                if made is None:
                    return original(closure) if closure is not None else original()
                shadows.append(made)
            self._follow(shadows[0], optimizer, times)
            self.ledger.held(f"{type(optimizer).__name__} replaced by {kind.__name__}")
            return shadows[0].step(closure)

        optimizer.step = types.MethodType(step, optimizer)  # type: ignore[method-assign]

    def _shadow(self, optimizer: torch.optim.Optimizer, kind: Any, more: dict[str, Any]) -> torch.optim.Optimizer:
        self._ours = True
        try:
            return kind([{"params": list(g["params"])} for g in optimizer.param_groups], lr=1e-3, **more)  # type: ignore[no-any-return]
        finally:
            self._ours = False

    def _follow(self, shadow: torch.optim.Optimizer, optimizer: torch.optim.Optimizer, times: float) -> None:
        """The rates, decays and parameters of the program's groups as they are now."""
        if len(shadow.param_groups) < len(optimizer.param_groups):
            for group in optimizer.param_groups[len(shadow.param_groups):]:
                shadow.add_param_group({"params": list(group["params"])})
        for ours, theirs in zip(shadow.param_groups, optimizer.param_groups, strict=True):
            ours["lr"] = float(theirs["lr"]) * times if isinstance(theirs["lr"], (int, float)) else theirs["lr"] * times
            ours["params"] = theirs["params"]
            if "weight_decay" in theirs and "weight_decay" in ours:
                ours["weight_decay"] = theirs["weight_decay"]

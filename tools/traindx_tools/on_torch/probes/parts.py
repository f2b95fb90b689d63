"""Always on: which parts the program has that an experiment can take away, each with where it was seen.

A screen that knows them tries what has something to take hold of in this program (`experiment.has` of the catalog).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from traindx_tools.experiments.trace import PARTS
from traindx_tools.finding import Finding
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.autocast import autocasting
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile

SETTLED_AT = 100
"""Steps after which nothing new is looked for, but what is told by a moment of its own."""
_ORDERS = {"random": ("shuffled", "draws its rows at random"), "weighted": ("weighted", "draws its rows by weights"),
           "stored": ("stored-order", "gives its rows in the order of the data set")}
_HALVES = (torch.float16, torch.bfloat16)


class PartsProbe(TorchProbe):
    """Names what there is; a part is told once, in the words of its first place."""

    name = "parts"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._parts: dict[str, str] = {}
        self._rates: dict[int, float] = {}
        self._asked = False
        self._passes = 0
        watch_compile()

    def next_look(self) -> int:
        """Parts of a step show in the first ones."""
        return 0 if self.scene.step < SETTLED_AT else self.NEVER

    def model_found(self, model: torch.nn.Module) -> None:
        """Layers, frozen parameters, half precision."""
        name = type(model).__name__
        for path, module in model.named_modules():
            where = f"{path or name} of {name}"
            if isinstance(module, torch.nn.modules.dropout._DropoutNd) and module.p > 0:
                self._has("dropout", f"{where} drops a share of {module.p:g}")
            elif isinstance(module, torch.nn.RNNBase) and module.dropout and module.num_layers > 1:
                self._has("dropout", f"{where} drops a share of {module.dropout:g} between its layers")
            elif isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                self._has("batch-norm", f"{where} is a {type(module).__name__}")
        parameters = list(model.named_parameters())
        still = [n for n, p in parameters if not p.requires_grad]
        if still and len(still) < len(parameters):
            self._has("frozen", f"{len(still)} of {len(parameters)} parameters of {name} have requires_grad=False")
        if any(p.dtype in _HALVES for _, p in parameters):
            self._has("half", f"{name} has parameters in half precision")

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Its decay and its kind."""
        name = type(optimizer).__name__
        decays = [g["weight_decay"] for g in optimizer.param_groups if g.get("weight_decay")]
        if decays:
            self._has("decay", f"{name} decays weights by {decays[0]:g}")
        if any("betas" in g or "alpha" in g for g in optimizer.param_groups):
            self._has("moments", f"{name} keeps moments of its gradients")

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """What came out of a file besides weights."""
        name = type(owner).__name__
        if kind == "optimizer" and isinstance(state, Mapping) and state.get("state"):
            self._has("state-loaded", f"{name} was given the state of another run or of an earlier part of this one")
        elif kind == "scheduler":
            self._has("schedule-loaded", f"{name} was given the state of another run or of an earlier part of this one")

    def rows_asked(self, dataset: Any, index: Any) -> None:
        """This process reads its rows itself."""
        self._asked = True

    def batch_given(self, batch: Any) -> None:
        """How rows are ordered, and who reads them."""
        draw = self.scene.draw
        if draw is None or not torch.is_grad_enabled() or (self.scene.models and not self.scene.models[0].training):
            return
        name = f"the DataLoader over {type(draw.dataset).__name__}"
        if draw.order in _ORDERS:
            self._has(_ORDERS[draw.order][0], f"{name} {_ORDERS[draw.order][1]}")
        if not self._asked:
            self._has("workers", f"{name} has worker processes")

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Autocast, and averages of weights."""
        if autocasting():
            self._has("autocast", f"{type(model).__name__} is called under autocast")
            self._has("half", f"{type(model).__name__} is called under autocast")
        if isinstance(self.scene.called, torch.optim.swa_utils.AveragedModel):
            self._has("average", "an AveragedModel is called")

    def after_backward(self, loss: torch.Tensor) -> None:
        """Counts passes without a step."""
        self._passes += 1

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Rates that change, gradients of several passes."""
        if self._passes > 1 and len(self.scene.optimizers) == 1:
            self._has("accumulation", f"{self._passes} backward passes came before a step of "
                                      f"{type(optimizer).__name__}")
        self._passes = 0
        for group in optimizer.param_groups:
            rate = group.get("lr")
            if isinstance(rate, (int, float)) and self._rates.setdefault(id(group), float(rate)) != float(rate):
                self._has("schedule", f"the rate of {type(optimizer).__name__} went from {self._rates[id(group)]:.4g} "
                                      f"to {float(rate):.4g} by step {self.scene.step}")
        if self.scene.step == SETTLED_AT:
            self._write()

    def scheduled(self, scheduler: Any) -> None:
        """A schedule of torch."""
        self._has("schedule", f"{type(scheduler).__name__} steps")

    def clipped(self) -> None:
        """Clipping by torch."""
        self._has("clipping", "gradients are clipped by torch.nn.utils")

    def scaler_updated(self, scaler: torch.amp.GradScaler) -> None:
        """Loss scaling."""
        if scaler.is_enabled():
            self._has("scaler", "a GradScaler scales the loss")

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """They are known all the same."""
        self._write()
        return ()

    def finish(self) -> Iterable[Finding]:
        """Writes them."""
        self._write()
        return ()

    def _has(self, part: str, told: str) -> None:
        self._parts.setdefault(part, told)

    def _write(self) -> None:
        if compiles():
            self._has("compiled", "torch.compile was called")
        if self.scene.step:
            self.scene.recorder.mark(PARTS, parts=dict(self._parts))

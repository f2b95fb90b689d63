"""What each rank of a data-parallel job holds before its steps, for a comparison after the run (R101, R102).

No rank is asked anything: every rank writes its own record, and who reads the run compares them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.replica_samples import comparable, constant, digests, glimpse, sample, spread
from traindx_tools.on_torch.measures.replica_windows import Windows, Wrappers
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.world import world_size

LOOKS = (*range(6), *(k for p in range(3, 11) for k in (2**p, 3 * 2 ** (p - 1))))
"""Steps before which weights and gradients are sampled: 22 in the first 1,536."""
WATCHED = 2_000
"""Steps after which nothing is looked at any more."""
KIND = "replica"


class ReplicasProbe(TorchProbe):
    """Gradients and weights of each rank of a data-parallel job, for a comparison after the run."""

    name = "replicas"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._wrappers, self._windows = Wrappers(), Windows()
        self._optimizer: torch.optim.Optimizer | None = None
        self._chosen: list[torch.nn.Parameter] = []
        self._names: list[str] = []
        self._one: torch.nn.Parameter | None = None
        """The one that is looked at in every step."""
        self._late: Late[tuple[str, int]] = Late()
        self._steps = 0
        self._after: torch.Tensor | None = None
        """A sample of one weight when the last step had ended."""
        self._written: torch.Tensor | None = None
        """Its last sample that something other than the optimizer had written, and the step."""
        self._in_model = self._exchanges = self._apart = False

    # ---- the moments

    def replicated(self, wrapper: torch.nn.Module) -> None:
        """Keeps which parameters are in its buckets."""
        self._wrappers.add(wrapper)

    def reduced(self) -> None:
        """A collective within a forward pass: the ranks hold parts of one model."""
        self._exchanges = self._exchanges or self._in_model

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What DDP decides here."""
        self._in_model = True
        called = self.scene.called
        if self._wrappers.made and called is not None and torch.is_grad_enabled():
            self._windows.forward(self._wrappers.within(called))

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """What follows is not within the model."""
        self._in_model = False

    def before_backward(self, loss: torch.Tensor) -> None:
        """A stage of a pipeline is given the gradient of its output; a loss is one number."""
        self._in_model = False
        self._apart = self._apart or loss.numel() > 1
        self._windows.backward()

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """The first one is watched, where there are several processes."""
        if self._optimizer is not None or self.done:
            return
        self._optimizer = optimizer
        if world_size() < 2 or self.scene.sharded:
            self.done = True
            return
        able = [p for group in optimizer.param_groups for p in group["params"]
                if comparable(p) and id(p) not in self._wrappers.ignored]
        self._chosen = spread(able, [p for p in able if id(p) not in self._wrappers.reduced])
        self._names = [f"{self.scene.parameter_paths.get(id(p), '?')} {list(p.shape)}" for p in self._chosen]
        self._one = next((p for p in self._chosen if p.is_contiguous()), None)
        self.done = not self._chosen
        if self._chosen:
            self._mark("setup", **self._setup())

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """What the step takes, and what it changes."""
        if optimizer is not self._optimizer or not self._chosen or _capturing():
            return
        self._windows.step()
        with torch.no_grad():
            self._note_written()
            if self._steps in LOOKS:
                self._late.send(("weight", self._steps), sample(self._chosen))
                self._late.send(("gradient", self._steps), sample([p.grad for p in self._chosen]))
                if self._written is not None:
                    self._late.send(("written", self._steps), self._written)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Writes what has arrived."""
        if optimizer is not self._optimizer or not self._chosen or _capturing():
            return
        if self._one is not None:
            self._after = glimpse(self._one)
        self._steps += 1
        self._write()
        if self._steps >= WATCHED:
            self._end()
            self.done = True

    def finish(self) -> Iterable[Finding]:
        """Writes what is left."""
        if self._chosen and not self.done:
            self._end()
        return ()

    # ---- what is kept

    def _note_written(self) -> None:
        """Keeps the last sample that was written between two steps: an average over the ranks is. Nothing waits."""
        if self._after is None or self._one is None:
            return
        now = glimpse(self._one)
        changed = (now != self._after).any()
        told = torch.cat([torch.full((1,), float(self._steps), device=now.device), now])
        before = torch.full_like(told, -1.0) if self._written is None else self._written
        self._written = torch.where(changed, told, before)

    def _setup(self) -> dict[str, Any]:
        distributed = torch.distributed
        ranks = self._wrappers.group or tuple(range(world_size()))
        return {"rank": distributed.get_rank(), "world": world_size(), "job": _job(), "names": self._names,
                "group": [len(ranks), ranks[0], ranks[-1]],
                "ddp": [id(p) in self._wrappers.reduced for p in self._chosen],
                "optimizers": len(self.scene.optimizers)}

    def _write(self, *, wait: bool = False) -> None:
        arrived = self._late.arrived(wait=wait)
        for (what, step), values in arrived:
            if what == "written":
                if values[0] >= 0:
                    self._mark(what, step=int(values[0]), values=[float(f"{v:.9g}") for v in values[1:] if v == v])
                continue
            more = {"constant": constant(values)} if what == "weight" and step == LOOKS[0] else {}
            self._mark(what, step=step, values=digests(values), **more)
        if arrived:
            self._mark("windows", **self._windows.told(), exchanges=self._exchanges, apart=self._apart,
                       hook=self._wrappers.has_hook(), several=len(self.scene.optimizers) > 1)

    def _end(self) -> None:
        if self._written is not None:
            self._late.send(("written", self._steps), self._written)
        with torch.no_grad():  # the weights that the program ends with
            self._late.send(("weight", self._steps), sample(self._chosen))
        self._write(wait=True)

    def _mark(self, what: str, **fields: Any) -> None:
        self.scene.recorder.mark(KIND, what=what, **fields)


def _job() -> str:
    """What the ranks of one job share."""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    return " ".join(os.environ.get(n, "") for n in names)


def _capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()

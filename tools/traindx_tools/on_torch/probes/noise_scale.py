"""The gradient noise scale where the training itself shows gradients of two batch sizes (T209).

Under accumulation: the norm after the first backward pass of a window against that after the last. Under DDP: the norm
of this rank's gradient, before it is averaged, against that of the average. Elsewhere, and where parameters are
sharded, it is not measured. What an accumulated loss is divided by does not matter: it cancels.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.noise_scale import NoiseScale, combined, from_norms
from traindx_tools.on_torch.measures.parameters import norms
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t209_noise_scale

KEPT, FEWEST, MOST_PASSES = 32, 8, 64
SAME = 1e-5
"""Relative: a norm that is taken twice of one gradient."""


class NoiseScaleProbe(TorchProbe):
    """Noise scale of the gradient under accumulation and DDP; looks at nothing anywhere else."""

    name = "noise-scale"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._cadence = Cadence.chosen(scene.options, "noise_scale", 16, 25)
        self._parameters: list[torch.nn.Parameter] = []
        self._late: Late[tuple[int, int, int, int]] = Late()
        self._pairs: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._batch = math.nan
        self._watched = self._passes = 0
        self._due = self._alone = False
        self._rows: list[int] = []
        """Samples of each training call of a model in this window."""
        self._seen: list[torch.Tensor] = []
        """Norms before and after each pass, each (1,); of the first pass also this rank's own and the loss scale."""
        self._own: list[torch.Tensor] = []
        self._factor = torch.ones(1)
        self._handles: list[Any] = []

    def next_look(self) -> int:
        """Where no step had several passes so far, now and then one is seen, in case that changes."""
        if self._watched or self._late or self._due:
            return 0
        return self._cadence.next_due(self.scene.step)

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """One optimizer over whole dense parameters is measured; two or shards are not."""
        held = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        whole = not any(hasattr(p, "to_local") for p in held) and not self.scene.sharded
        self._alone = len(self.scene.optimizers) == 1 and whole
        self._parameters = held

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """How many samples a call takes."""
        if self._due and torch.is_grad_enabled():
            first = next((t for _, t in named_tensors([args, kwargs]) if t.ndim), None)
            self._rows.append(0 if first is None else int(first.shape[0]))

    def before_backward(self, loss: torch.Tensor) -> None:
        """The norm that this pass adds to; under DDP, listens to this rank's own gradients."""
        self._passes += 1
        if not self._due or self._passes > MOST_PASSES:
            return
        self._seen.append(self._norm(self._gradients()))
        if self._passes == 1:
            self._factor = _scale(loss, self.scene.loss).to(self._seen[0].device)
        if self.scene.replicas > 1 and self._passes == 1:
            self._own = []
            self._handles = [p.register_hook(self._heard) for p in self._parameters]  # type: ignore[no-untyped-call]

    def after_backward(self, loss: torch.Tensor) -> None:
        """The norm that it leaves."""
        if not self._due or self._passes > MOST_PASSES or not self._seen:
            return
        self._seen.append(self._norm(self._gradients()))
        if self._passes == 1:
            self.let_go()
            self._seen += [self._norm(self._own, taken=True), self._factor]
            self._own = []

    def let_go(self) -> None:
        """Listens to no gradient any more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Sends the window's norms on their way and decides whether the next one is measured."""
        passes, self._passes = self._passes, 0
        rows, seen, self._rows, self._seen = self._rows, self._seen, [], []
        if self._due and seen and passes <= MOST_PASSES and len(rows) == passes and len(set(rows)) == 1 and rows[0] > 0:
            self._late.send((self.scene.step + 1, passes, rows[0], self.scene.replicas), torch.cat(seen))
        several = passes > 1 or self.scene.replicas > 1
        self._due = several and self._alone and len(self.scene.optimizers) == 1 and self._cadence.due(self._watched)
        self._watched += several

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read()

    def finish(self) -> Iterable[Finding]:
        """A remark where the batch is far from the scale; the first rank speaks for all."""
        self._read(wait=True)
        noise = self.noise
        if noise is not None and self.scene.recorder.rank == 0:
            yield from t209_noise_scale.check(noise, self.scene.step, 0)

    @property
    def noise(self) -> NoiseScale | None:
        """Over the last 32 measured steps; None before the first."""
        return combined(list(self._pairs), self._batch) if self._pairs else None

    def _gradients(self) -> list[torch.Tensor]:
        return [g for p in self._parameters if (g := p.grad) is not None and not g.is_sparse]

    def _norm(self, tensors: list[torch.Tensor], *, taken: bool = False) -> torch.Tensor:
        with torch.no_grad():
            if not tensors:
                return torch.zeros(1, device=self._parameters[0].device)
            each = torch.stack([t.to(tensors[0].device) for t in tensors]) if taken else norms(tensors)
            total: torch.Tensor = torch.linalg.vector_norm(each)
            return total.reshape(1)

    def _heard(self, gradient: torch.Tensor) -> None:
        with torch.no_grad():
            self._own.append(torch.linalg.vector_norm(gradient.detach(), dtype=torch.float32))

    def _read(self, *, wait: bool = False) -> None:
        for (step, passes, rows, replicas), values in self._late.arrived(wait=wait):
            first, own, factor, rest = values[:2], float(values[2]), float(values[3]), values[4:].reshape(-1, 2)
            before, after = [float(first[0]), *rest[:, 0]], [float(first[1]), *rest[:, 1]]
            if not _accumulated(before, after):
                continue
            small = own if replicas > 1 else after[0]
            big = rows * passes * replicas
            pair = from_norms((small / factor)**2, (after[-1] / passes / factor)**2, rows, big)
            if small > 0 and all(map(math.isfinite, pair)):
                self._pairs.append(pair)
                self._batch = float(big)
                self._record(step)

    def _record(self, step: int) -> None:
        noise = self.noise
        if noise is not None and noise.pairs >= FEWEST and noise.known:
            self.scene.recorder.metrics(step, {"gradient_noise_scale": noise.scale, "batch_samples": noise.batch})


def _accumulated(before: list[float], after: list[float]) -> bool:
    """Whether the window began at zero and every pass added to what the one before it had left."""
    return before[0] == 0.0 and all(abs(b - a) <= SAME * a for a, b in zip(after, before[1:], strict=False))


def _scale(loss: torch.Tensor, plain: torch.Tensor | None) -> torch.Tensor:
    """What a GradScaler multiplied the loss by, as (1,); 1 without one."""
    with torch.no_grad():
        if plain is None or loss.numel() != 1 or plain.numel() != 1:
            return torch.ones(1, device=loss.device)
        ratio = (loss.detach().float() / plain.float()).reshape(1)
        return torch.where(torch.isfinite(ratio) & (ratio > 0), ratio, torch.ones_like(ratio))

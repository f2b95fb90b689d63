"""The first losses of a model that a file filled whole (T344)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.losses import bound
from traindx_tools.on_torch.rules import t344_loaded_worse_than_guessing
from traindx_tools.on_torch.rules.t344_loaded_worse_than_guessing import LoadedStart
from traindx_tools.rows.spent import Spent

MOST_LOSSES = 32
"""Losses before the first update that are looked at."""
MOST_VALUES = 2**24


class LoadedStartProbe(TorchProbe):
    """Whether weights that were loaded know what this run asks them."""

    name = "loaded-start"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._spent = Spent(1.0, 0.0)
        self._filled: dict[int, frozenset[str]] = {}
        """The names of the tensors that were loaded, by `id` of the module."""
        self._late: Late[int] = Late()
        self._sums = [0.0, 0.0, 0.0]
        self._classes = self._count = 0
        self._model: torch.nn.Module | None = None
        self._ids = False

    def state_loaded(self, kind: str, holder: Any, state: Any, result: Any) -> None:
        """A state went into a module."""
        if kind == "model" and not self.scene.step and isinstance(holder, torch.nn.Module) and isinstance(state, dict):
            self._filled[id(holder)] = frozenset(map(str, state))

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Which model is asked, and whether by ids."""
        if self.scene.step or self._model is model or not _whole(model, self._filled.get(id(model), frozenset())):
            return
        self._model = model
        first = next((t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)), None)
        self._ids = first is not None and first.dtype in (torch.int64, torch.int32) and any(
            isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) for m in model.modules())

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """The loss and the hits of a cross entropy on what the model answered."""
        if self.scene.step or self._model is None or name != "cross_entropy" or self._count >= MOST_LOSSES or (
                not self._spent.open):
            return
        given = bound(name, args, kwargs)
        scores, target = given.get("input"), given.get("target")
        if given.get("weight") is not None or given.get("label_smoothing") or not _able(scores, target):
            return
        assert isinstance(scores, torch.Tensor)
        assert isinstance(target, torch.Tensor)
        classes = scores.shape[1]
        if not any(classes in p.shape for p in self._model.parameters()):
            return
        with self._spent.counted(), torch.no_grad():
            self._count += 1
            self._classes = classes
            self._late.send(0, _numbers(scores.detach(), target.detach(), given.get("ignore_index", -100)))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Judges after the first update."""
        if self.scene.step == 1 and self._count:
            for finding in self._findings():
                self.scene.recorder.finding(finding)
            self._count = 0

    def finish(self) -> Iterable[Finding]:
        """Judges a run that never came to an update."""
        yield from self._findings() if self._count else ()

    def _findings(self) -> Iterable[Finding]:
        for _, numbers in self._late.arrived(wait=True):
            self._sums = [a + float(b) for a, b in zip(self._sums, numbers, strict=True)]
        loss, hits, answers = self._sums
        if self._model is None or not answers:
            return
        tensors = len(self._filled[id(self._model)])
        yield from t344_loaded_worse_than_guessing.check(LoadedStart(
            type(self._model).__name__, tensors, loss / answers, hits / answers, int(answers), self._classes, self._ids,
            self.scene.recorder.rank))

    def next_look(self) -> int:
        """Never again after the first step."""
        return self.scene.step if not self.scene.step else self.scene.step + 1000


def _whole(model: torch.nn.Module, loaded: frozenset[str]) -> bool:
    """Whether every parameter was loaded, by its own name or by that of one that it is tied to."""
    named = dict(model.named_parameters(remove_duplicate=False)) if loaded else {}
    there = {id(p) for n, p in named.items() if n in loaded}
    return bool(named) and all(id(p) in there for p in named.values())


def _able(scores: Any, target: Any) -> bool:
    return (isinstance(scores, torch.Tensor) and isinstance(target, torch.Tensor) and scores.ndim >= 2
            and not target.is_floating_point() and 0 < scores.numel() <= MOST_VALUES
            and target.numel() * scores.shape[1] == scores.numel())


def _numbers(scores: torch.Tensor, target: torch.Tensor, ignored: int) -> torch.Tensor:
    """Sum of the losses, hits, and how many answers count; float32 shape (3,) on the device."""
    rows = scores.movedim(1, -1).reshape(-1, scores.shape[1]).float()
    wanted = target.reshape(-1)
    counted = (wanted != ignored) & (wanted >= 0) & (wanted < scores.shape[1])
    there = torch.where(counted, wanted, 0)
    lost = rows.logsumexp(1) - rows.gather(1, there.unsqueeze(1)).squeeze(1)
    hit = (rows.argmax(1) == there) & counted
    return torch.stack([torch.where(counted, lost, 0.0).sum(), hit.sum().float(), counted.sum().float()])

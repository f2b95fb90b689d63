"""Changes to how a DataLoader is run: without workers, with one, or with batches of another size."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from traindx_tools.experiments.live.on_torch.stage import OnTorch


class _OfLoaders(OnTorch):
    """Each DataLoader is made with other arguments."""

    def attach(self) -> None:
        self._signature = inspect.signature(DataLoader.__init__)
        self.patches.replace(DataLoader, "__init__", self._made)
        self.ledger.unseen = "no DataLoader was made"

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        """The arguments that differ; empty where the loader is as it should be already."""
        raise NotImplementedError

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(loader: Any, *args: Any, **kwargs: Any) -> None:
            new = self.guarded(self._arguments, loader, args, kwargs)
            if new is None:
                original(loader, *args, **kwargs)
                return
            original(loader, *new.args, **new.kwargs)

        return made

    def _arguments(self, loader: Any, args: Any, kwargs: Any) -> Any:
        bound = self._signature.bind(loader, *args, **kwargs)
        full = {k: p.default for k, p in self._signature.parameters.items()} | dict(bound.arguments)
        different = self.changed(full)
        if not different:
            return None
        self.ledger.held(f"DataLoader over {type(full['dataset']).__name__}")
        given = {k: v for k, v in bound.arguments.items() if k != "self"} | different
        return _Arguments((), given)


class _Arguments:
    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs


class NoWorkers(_OfLoaders):
    """Batches are made in the training's own process."""

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        if not told["num_workers"]:
            self.ledger.not_here(f"{_named(told)} is made with num_workers=0: there are no workers to do without")
            return {}
        return {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None, "timeout": 0,
                "multiprocessing_context": None}


class OneWorker(_OfLoaders):
    """Batches are made by one worker."""

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        if told["num_workers"] == 1:
            self.ledger.not_here(f"{_named(told)} is made with num_workers=1: it has one worker already")
            return {}
        return {"num_workers": 1}


class BatchSize(_OfLoaders):
    """Batches hold so many times the samples."""

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        size = told["batch_size"]
        if told["batch_sampler"] is not None or not isinstance(size, int):
            how = "has a batch sampler" if told["batch_sampler"] is not None else "makes no batches (batch_size=None)"
            self.ledger.not_here(f"{_named(told)} {how}: the program chooses the samples of each batch itself")
            return {}
        new = max(1, round(size * float(self.option("times"))))
        if new == size:
            self.ledger.not_here(f"{_named(told)} has a batch size of {size}, and {self.option('times'):g} times that "
                                 "is rounded to the same")
        return {"batch_size": new} if new != size else {}


def _named(told: dict[str, Any]) -> str:
    return f"the DataLoader over {type(told['dataset']).__name__}"

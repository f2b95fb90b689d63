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
        self.ledger.nowhere.append("no DataLoader was made")

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
            self.ledger.nowhere.append("the loaders have no workers anyway")
            return {}
        return {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None, "timeout": 0,
                "multiprocessing_context": None}


class OneWorker(_OfLoaders):
    """Batches are made by one worker."""

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        if told["num_workers"] == 1:
            self.ledger.nowhere.append("the loaders have one worker anyway")
            return {}
        return {"num_workers": 1}


class BatchSize(_OfLoaders):
    """Batches hold so many times the samples."""

    def changed(self, told: dict[str, Any]) -> dict[str, Any]:
        size = told["batch_size"]
        if told["batch_sampler"] is not None or not isinstance(size, int):
            self.ledger.nowhere.append("the program chooses the samples of each batch itself")
            return {}
        new = max(1, round(size * float(self.option("times"))))
        return {"batch_size": new} if new != size else {}

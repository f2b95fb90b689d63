"""Changes to what the training is given: one batch for ever, labels permuted, inputs zeroed."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from traindx_tools.experiments.live.batch_elements import (
    NoElement,
    element_of,
    found,
    fresh,
    is_array,
    mapped,
    parts,
    replaced,
)
from traindx_tools.experiments.live.on_torch.stage import OnTorch


class OneBatch(OnTorch):
    """Every batch of a training is the first one, in memory of its own each time.

    The loader still makes its batches, so that lengths of epochs and draws of random numbers stay what they were.
    """

    def attach(self) -> None:
        self._kept: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._given: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._arguments = _FirstArguments(self)
        self.listen("batch", self._batch)
        self.listen("before_forward", self._arguments.forward)
        self.listen("after_forward", self._arguments.output)
        self.listen("before_backward", self._arguments.backward)

    def _batch(self, loader: Any, batch: Any) -> Any:
        self._arguments.over = True
        if loader is None or not self.stage.training(loader):
            return None
        if loader in self._kept:
            self.ledger.held(f"{type(loader).__name__} over {type(loader.dataset).__name__}")
            return fresh(self._kept[loader])
        number = self._given.get(loader, 0)
        self._given[loader] = number + 1
        if number == self.option("number", 0):
            if not _holds_arrays(batch):
                self.ledger.cannot(f"the batch holds no arrays that could be kept: {parts(batch)}")
                return None
            self._kept[loader] = fresh(batch)
        return None


class _FirstArguments:
    """Where no DataLoader gives the batches: the arguments of the model, if its output holds the loss itself.

    Only then labels are among them; where the loss is computed outside, frozen inputs would meet other labels.
    """

    def __init__(self, owner: OneBatch) -> None:
        self._owner = owner
        self.over = False
        """A DataLoader gives the batches, or it is known that it cannot be done here."""
        self._module: Any = None
        self._kept: Any = None
        self._outputs: list[torch.Tensor] = []
        self._sound = False

    def forward(self, module: Any, args: Any, kwargs: Any) -> Any:
        if self.over or not self._owner.stage.training():
            return None
        if self._module is None:
            if self._owner.option("number", 0):
                return self._no("the batches are made by no DataLoader; number=0 alone can be kept")
            self._module, self._kept = module, (fresh(args), fresh(kwargs))
            return None
        if module is not self._module or not self._sound:
            return None
        self._owner.ledger.held(f"arguments of {type(module).__name__}")
        return fresh(self._kept[0]), fresh(self._kept[1])

    def output(self, module: Any, output: Any) -> None:
        if not self.over and module is self._module and not self._sound:
            self._outputs = []
            _collect(output, self._outputs)

    def backward(self, tensors: Any) -> None:
        if self.over or self._sound or self._module is None:
            return
        losses: list[torch.Tensor] = []
        _collect(tensors, losses)
        self._sound = any(x is loss for loss in losses for x in self._outputs)
        self._outputs = []
        if not self._sound:
            self._no("the batches are made by no DataLoader, and the loss is computed outside of the model: frozen "
                     "inputs would meet other labels")

    def _no(self, why: str) -> None:
        self.over = True
        self._kept = None
        self._owner.ledger.cannot(why)


class _OfABatch(OnTorch):
    """One part of each batch of a training is replaced: where the DataLoader gives it, else where the model gets it."""

    labels = False

    def attach(self) -> None:
        self._loads = self._calls = False
        self._path: str | None = None
        self.listen("batch", self._batch)
        self.listen("before_forward", self._forward)
        self.ledger.unseen = "no batch of a training was seen"

    def changed(self, value: Any, batch: Any) -> Any:
        """What stands for the part; None where nothing can."""
        raise NotImplementedError

    def _batch(self, loader: Any, batch: Any) -> Any:
        if self._calls:
            return None
        self._loads = True
        if loader is None or not self.stage.training(loader):
            return None
        return self._with(batch, f"{type(loader).__name__} over {type(loader.dataset).__name__}")

    def _forward(self, module: Any, args: Any, kwargs: Any) -> Any:
        if self._loads or not self.stage.training():
            return None
        self._calls = True
        whole = dict(kwargs) if self._in_keywords(args, kwargs) else tuple(args)
        given = self._with(whole, f"arguments of {type(module).__name__}")
        if given is None:
            return None
        return (args, given) if isinstance(whole, dict) else (given, kwargs)

    def _in_keywords(self, args: Any, kwargs: Any) -> bool:
        told = self.option("element")
        return not args or (told is not None and str(told).split(".")[0] in kwargs) or (self.labels and bool(kwargs))

    def _with(self, batch: Any, where: str) -> Any:
        try:
            told = self.option("element")
            path = element_of(batch, None if told is None else str(told), self.labels)
            value = found(batch, path)
            if not is_array(value):
                raise NoElement(f"{path!r} of the batch is a {type(value).__name__} and no array")
        except NoElement as error:
            self.ledger.cannot(str(error))
            return None
        new = self.changed(value, batch)
        if new is None:
            return None
        self.ledger.held(f"{path or 'the batch'} of {where}")
        return replaced(batch, path, new)


class LabelsPermuted(_OfABatch):
    """Labels change places within their batch, anew in each; its own generator leaves the training's draws alone."""

    labels = True

    def attach(self) -> None:
        super().attach()
        self._generator = torch.Generator()
        self._generator.manual_seed(int(self.option("seed", 0)))

    def changed(self, value: Any, batch: Any) -> Any:
        if value.ndim == 0:
            self.ledger.cannot("the labels have no axis along which they could change places")
            return None
        rows = int(value.shape[0])
        order = torch.randperm(rows, generator=self._generator)
        if rows < 2:
            self.ledger.not_here("the batches hold one label each, which cannot change places")
            return None
        return value[order.to(value.device)] if isinstance(value, torch.Tensor) else value[order.numpy()]


class InputsZeroed(_OfABatch):
    """One array of the inputs holds zeros."""

    def changed(self, value: Any, batch: Any) -> Any:
        return torch.zeros_like(value) if isinstance(value, torch.Tensor) else value * 0


def _holds_arrays(batch: Any) -> bool:
    there: list[bool] = []

    def look(value: Any) -> Any:
        there.append(is_array(value))
        return value if is_array(value) else mapped(look, value)

    look(batch)
    return any(there)


def _collect(value: Any, into: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        into.append(value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _collect(part, into)
    elif hasattr(value, "values") and hasattr(value, "keys"):
        for part in value.values():
            _collect(part, into)

"""Changes to what layers do: dropout off, statistics of the batch or of the run, the mode of the whole model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules import batchnorm

from traindx_tools.experiments.live.on_torch.stage import OnTorch
from traindx_tools.on_torch.structure import modules_of

DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


class NoDropout(OnTorch):
    """Nothing is dropped: the functions of `torch.nn.functional`, attention's own, and between layers of an RNN."""

    def attach(self) -> None:
        for name in DROPOUTS:
            self.patches.replace(functional, name, self._kept)
        self.patches.replace(functional, "scaled_dot_product_attention", self._attention)
        self.patches.replace(torch.nn.RNNBase, "forward", self._between_layers)
        for kind in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
            self.patches.replace(kind, "forward", self._between_layers)
        self.listen("model_found", self._look)
        self.ledger.unseen = "no dropout of torch with a rate above 0 was on in a training pass: nothing is dropped"

    def _look(self, model: torch.nn.Module) -> None:
        """Of a compiled model the calls are not seen; its layers are."""
        rates = [m.p for _, m in modules_of(model) if isinstance(m, torch.nn.modules.dropout._DropoutNd)]
        if any(rates):
            self.ledger.held(f"{sum(r > 0 for r in rates)} dropout layers of {type(model).__name__}")

    def _told(self) -> None:
        if not torch.compiler.is_compiling():
            self.ledger.held()

    def _kept(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def dropout(input: Any, p: float = 0.5, training: bool | None = None, inplace: bool = False) -> Any:
            on = original.__name__ not in ("alpha_dropout", "feature_alpha_dropout") if training is None else training
            if on and p > 0:
                self._told()
            return original(input, p, False, inplace)

        return dropout

    def _attention(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None,
                                         dropout_p: float = 0.0, *args: Any, **kwargs: Any) -> Any:
            if dropout_p > 0:
                self._told()
            return original(query, key, value, attn_mask, 0.0, *args, **kwargs)

        return scaled_dot_product_attention

    def _between_layers(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            rate = module.dropout
            if not rate or not module.training:
                return original(module, *args, **kwargs)
            self._told()
            module.dropout = 0.0
            try:
                return original(module, *args, **kwargs)
            finally:
                module.dropout = rate

        return forward


class _Statistics(OnTorch):
    """BatchNorm takes other statistics than its mode says, and writes none."""

    def attach(self) -> None:
        self.patches.replace(batchnorm._BatchNorm, "forward", self._forward)
        self.patches.replace(torch.nn.SyncBatchNorm, "forward", self._forward)
        self.ledger.unseen = self.missing

    missing = ""

    def applies(self, layer: Any, input: Any) -> bool:
        """Whether this call takes the other statistics."""
        raise NotImplementedError

    def normalised(self, layer: Any, input: Any) -> Any:
        """What it returns then."""
        raise NotImplementedError

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(layer: Any, input: Any) -> Any:
            if self.ledger.off or not self.applies(layer, input):
                return original(layer, input)
            if not torch.compiler.is_compiling():
                self.ledger.held(type(layer).__name__)
            return self.normalised(layer, input)

        return forward


class BatchStatistics(_Statistics):
    """Layers in eval mode normalise by the batch before them."""

    missing = "no BatchNorm layer with running statistics ran in eval mode"

    def applies(self, layer: Any, input: Any) -> bool:
        if layer.training or layer.running_mean is None:
            return False
        if input.numel() <= input.shape[1]:
            self.ledger.cannot("a batch holds one value for each channel, which has no spread")
            return False
        return True

    def normalised(self, layer: Any, input: Any) -> Any:
        return functional.batch_norm(input, None, None, layer.weight, layer.bias, True, 0.0, layer.eps)


class RunningStatistics(_Statistics):
    """Layers in training mode normalise by their running statistics, which stay as they are."""

    missing = "no BatchNorm layer with running statistics ran in training mode"

    def applies(self, layer: Any, input: Any) -> bool:
        return bool(layer.training) and layer.running_mean is not None

    def normalised(self, layer: Any, input: Any) -> Any:
        return functional.batch_norm(input, layer.running_mean, layer.running_var, layer.weight, layer.bias, False, 0.0,
                                     layer.eps)


class _Mode(OnTorch):
    """A model runs in another mode for the length of a call; each module has its own back after it."""

    to = False
    training = True
    """Of calls of a training, or of those of an evaluation."""

    def attach(self) -> None:
        self._before: list[Any] = []
        self.listen("before_forward", self._enter)
        self.listen("ended_forward", self._leave)
        if self.to and self.training:  # a training in eval mode is told from an evaluation by the loader it reads
            self.listen("batch", lambda loader, batch: None)
        self.ledger.unseen = (f"no module was in {'eval' if self.to else 'training'} mode in "
                              f"{'a training' if self.training else 'an evaluation'} pass")

    def _enter(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        if self.stage.training(self.stage.loader if self.training else None) is not self.training:
            return
        others = [m for _, m in modules_of(module)
                  if m.training is not self.to and not (self.to and not self.training and _keeps_statistics(m))]
        for one in others:
            one.training = self.to
            self._before.append(one)
        if others:
            self.ledger.held(f"{len(others)} modules of {type(module).__name__}")

    def _leave(self, _: torch.nn.Module) -> None:
        while self._before:
            self._before.pop().training = not self.to

    def detach(self) -> None:
        while self._before:
            self._before.pop().training = not self.to
        super().detach()


class EvalMode(_Mode):
    """Training passes run in eval mode."""


class TrainMode(_Mode):
    """Evaluation passes run in training mode, but for layers that would write running statistics."""

    to, training = True, False


class EvaluationInEvalMode(_Mode):
    """Evaluation passes run in eval mode."""

    training = False


class TrainingInTrainMode(_Mode):
    """Training passes run in training mode, with the running statistics of its batches."""

    to = True


def _keeps_statistics(module: Any) -> bool:
    return getattr(module, "running_mean", None) is not None or getattr(module, "track_running_stats", False)

"""Changes between backward pass and step: no clipping, gradients cleared, no accumulation, no loss scaling."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from traindx_tools.experiments.live.on_torch.stage import OnTorch
from traindx_tools.live.import_hook import after_import


class NoClipping(OnTorch):
    """Gradients stay as they are; the norm is measured and returned all the same."""

    def attach(self) -> None:
        module = sys.modules["torch.nn.utils.clip_grad"]
        both = (module, torch.nn.utils)
        self.patches.replace_everywhere(both, "clip_grad_norm_", self._norm)
        self.patches.replace_everywhere(both, "clip_grad_value_", self._value)
        if hasattr(module, "clip_grads_with_norm_"):
            self.patches.replace_everywhere(both, "clip_grads_with_norm_", self._value)
        after_import("torch.distributed.fsdp", self._sharded)
        self.ledger.unseen = ("neither clip_grad_norm_ nor clip_grad_value_ of torch was called: nothing is clipped, "
                              "or by the program's own code")

    def _norm(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0,
                            error_if_nonfinite: bool = False, foreach: bool | None = None) -> Any:
            here = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            norm = self.guarded(_total_norm, here, float(norm_type))
            if norm is None:
                more = {} if foreach is None else {"foreach": foreach}
                return original(here, max_norm, norm_type, error_if_nonfinite, **more)
            if error_if_nonfinite and not bool(torch.isfinite(norm)):
                return original(here, max_norm, norm_type, error_if_nonfinite)  # raises what the program expects
            self.ledger.held()
            return norm

        return clip_grad_norm_

    def _value(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def unclipped(*args: Any, **kwargs: Any) -> None:
            if self.ledger.off:
                original(*args, **kwargs)
            else:
                self.ledger.held()

        return unclipped

    def _sharded(self) -> None:
        fsdp = getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", None)
        if fsdp is not None and hasattr(fsdp, "clip_grad_norm_"):
            self.patches.replace(fsdp, "clip_grad_norm_", self._of_shards)

    def _of_shards(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_norm_(model: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            if self.ledger.off:
                return original(model, max_norm, *args, **kwargs)
            self.ledger.held()
            return original(model, float("inf"), *args, **kwargs)

        return clip_grad_norm_


def _total_norm(parameters: list[torch.Tensor], norm_type: float) -> torch.Tensor:
    """The norm over all gradients, as torch's own: a norm of the norms of each; no transfer to the host."""
    gradients = [p.grad.detach() for p in parameters if p.grad is not None]
    if not gradients:
        return torch.tensor(0.0)
    first = gradients[0].device
    norms = [torch.linalg.vector_norm(g, norm_type).to(first) for g in gradients]
    total: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    return total


class ClearGradients(OnTorch):
    """Gradients that a step has used are zeroed before the next backward pass adds to them.

    Whether there was anything to clear is looked up in the first steps and then ever more rarely: it waits for the GPU.
    """

    LOOKS = 3

    def attach(self) -> None:
        self._used: list[torch.optim.Optimizer] = []
        self._steps = 0
        self._dirty = False
        self.listen("after_step", self._stepped)
        self.listen("before_backward", self._clear)
        self.ledger.unseen = "no step of an optimizer of torch was followed by another backward pass"

    def _stepped(self, optimizer: torch.optim.Optimizer) -> None:
        if not any(o is optimizer for o in self._used):
            self._used.append(optimizer)

    def _clear(self, _: Any) -> None:
        if not self._used:
            return
        gradients = [p.grad for o in self._used for g in o.param_groups for p in g["params"] if p.grad is not None]
        self._used = []
        self._steps += 1
        if not gradients:
            self.ledger.not_here("no gradient is left at the next backward pass: the program clears them itself")
            return
        if not self._dirty and (self._steps <= self.LOOKS or self._steps & (self._steps - 1) == 0):
            self._dirty = any(bool(g.detach().abs().max() != 0) for g in gradients if g.numel())
        for gradient in gradients:
            gradient.detach().zero_()
        if not self._dirty:
            self.ledger.not_here("the gradients are 0 at each backward pass: the program clears them itself")
        if self._dirty:
            self.ledger.held(f"{len(gradients)} gradients")


class NoAccumulation(OnTorch):
    """A step after each backward pass: before the next forward pass of a training begins, what it left is applied.

    Only where one optimizer does all, with no loss scaler and no sharding: else steps would be made that the program
    never makes. The program's own step comes after the last backward pass of each window as before.
    """

    def attach(self) -> None:
        self._waiting = False
        self._stepping = False
        self.listen("optimizer_made", lambda _: None)
        self.listen("after_backward", self._backward)
        self.listen("after_step", self._stepped)
        self.listen("before_forward", self._forward)
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        self.patches.replace(scaler, "scale", self._scale)
        self.patches.replace(torch.nn.parallel.DistributedDataParallel, "no_sync", self._synchronised)
        self.ledger.unseen = "no backward pass of torch was seen"

    def _backward(self, _: Any) -> None:
        self._waiting = True
        self.ledger.not_here("no model is called between a backward pass and the next step: nothing is accumulated")

    def _stepped(self, _: Any) -> None:
        self._waiting = False

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            if scaler.is_enabled() and not self.ledger.off:
                self.ledger.cannot("a loss scaler stands between gradients and steps; lower the number of accumulated "
                                   "batches by set:KEY=1")
            return original(scaler, outputs)

        return scale

    def _synchronised(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def no_sync(model: Any) -> Any:
            return original(model) if self.ledger.off else contextlib.nullcontext()

        return no_sync

    def _forward(self, module: Any, args: Any, kwargs: Any) -> None:
        if not self._waiting or self._stepping or not self.stage.training():
            return
        optimizer = self._only()
        if optimizer is None:
            return
        self._stepping = True
        try:
            optimizer.step()
            optimizer.zero_grad()
        finally:
            self._stepping = False
        self._waiting = False
        self.ledger.held(f"{type(optimizer).__name__}, before a forward pass of {type(module).__name__}")

    def _only(self) -> torch.optim.Optimizer | None:
        own = [o for o in self.stage.optimizers if o.param_groups]
        if len(own) != 1 or type(own[0]).__name__ == "LBFGS":
            self.ledger.cannot(f"{len(own)} optimizers were made: which one steps when is the program's to say"
                               if len(own) != 1 else "LBFGS steps with a closure only")
            return None
        return own[0]


class NoLossScaling(OnTorch):
    """Losses are not scaled: the scaler is made, and does nothing."""

    def attach(self) -> None:
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        self.patches.replace(scaler, "__init__", self._made)
        self.ledger.unseen = "no GradScaler that is on was made"

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            if scaler._enabled and not self.ledger.off:
                scaler._enabled = False
                self.ledger.held()

        return made


def parameters_of(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.nn.Parameter]:
    """Every parameter that they move, once."""
    return list({id(p): p for o in optimizers for g in o.param_groups for p in g["params"]}.values())

"""Changes to how it is run: no compilation, no checkpointing, an error at the first NaN, full matrix products."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

from traindx_tools.experiments.live.on_torch.stage import OnTorch

_OWN = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
"""Keywords of `checkpoint` that are not the function's."""


class NoCompile(OnTorch):
    """`torch.compile` gives back what it was given."""

    def attach(self) -> None:
        self.patches.replace(torch, "compile", self._compile)
        self.patches.replace(torch.nn.Module, "compile", self._in_place)
        self.ledger.unseen = "nothing was compiled by torch.compile: the program runs eagerly already"

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(model: Any = None, **options: Any) -> Any:
            if self.ledger.off:
                return original(model, **options)
            if model is None:
                return lambda given: compile(given, **options)
            self.ledger.held()
            return model

        return compile

    def _in_place(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(module: Any, *args: Any, **options: Any) -> None:
            if self.ledger.off:
                original(module, *args, **options)
            else:
                self.ledger.held()

        return compile


class NoCheckpointing(OnTorch):
    """Activations are kept: the function is called once, as it is."""

    def attach(self) -> None:
        module = torch.utils.checkpoint
        self.patches.replace(module, "checkpoint", self._checkpoint)
        self.patches.replace(module, "checkpoint_sequential", self._sequential)
        self.ledger.unseen = "torch.utils.checkpoint was not called"
        late = sys.modules.get("transformers.modeling_utils")
        if late is not None and hasattr(late, "checkpoint"):
            self.patches.replace(late, "checkpoint", self._checkpoint)

    def _checkpoint(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self.ledger.off:
                return original(function, *args, **kwargs)
            if not torch.compiler.is_compiling():
                self.ledger.held()
            return function(*args, **{k: v for k, v in kwargs.items() if k not in _OWN})

        return checkpoint

    def _sequential(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def checkpoint_sequential(functions: Any, segments: int, input: Any, *args: Any, **kwargs: Any) -> Any:
            if self.ledger.off:
                return original(functions, segments, input, *args, **kwargs)
            self.ledger.held()
            for function in functions.children() if isinstance(functions, torch.nn.Sequential) else functions:
                input = function(input)
            return input

        return checkpoint_sequential


class StopAtNan(OnTorch):
    """A backward pass that makes a NaN raises, and names the operation of the forward pass."""

    def attach(self) -> None:
        torch.autograd.set_detect_anomaly(True)
        self.patches.later(_no_anomaly)
        self.listen("before_backward", lambda _: self.ledger.held("backward passes"))


def _no_anomaly() -> None:
    torch.autograd.set_detect_anomaly(False)


class FullProducts(OnTorch):
    """Products of float32 matrices and convolutions use float32 throughout."""

    def attach(self) -> None:
        self._set()
        self.listen("before_forward", self._again)
        self.ledger.unseen = "products are made in full float32 already"

    def _again(self, *_: Any) -> None:
        self._set()

    def _set(self) -> None:
        backends = torch.backends
        if torch.get_float32_matmul_precision() != "highest":
            torch.set_float32_matmul_precision("highest")
            self.ledger.held("matrix products")
        if backends.cudnn.allow_tf32 and torch.cuda.is_available():
            backends.cudnn.allow_tf32 = False
            self.ledger.held("convolutions")

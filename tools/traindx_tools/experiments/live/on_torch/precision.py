"""One floating type for all: whatever asks for a smaller one gets it; and autocast off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from traindx_tools.experiments.live.batch_elements import mapped
from traindx_tools.experiments.live.on_torch.stage import OnTorch
from traindx_tools.on_torch.structure import replicas_of

_HALF, _BFLOAT, _SINGLE, _DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64
_NARROWING = {torch.Tensor.half, torch.Tensor.bfloat16}
_VIEWS = {torch.Tensor.view, torch.Tensor.view_as}
"""Functions that look at the bits of a type and convert nothing."""
_SOURCES = {"from_numpy", "tensor", "as_tensor", "load", "frombuffer", "asarray"}


class NoAutocast(OnTorch):
    """Regions of autocast are entered and do nothing."""

    def attach(self) -> None:
        self.patches.replace(torch.amp.autocast_mode.autocast, "__init__", self._made)
        self.ledger.unseen = "no region of autocast that is on was entered: nothing is cast"

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(region: Any, *args: Any, **kwargs: Any) -> None:
            original(region, *args, **kwargs)
            if region._enabled and not self.ledger.off:
                region._enabled = False
                if not torch.compiler.is_compiling():
                    self.ledger.held()

        return made


class OneType(NoAutocast):
    """Every floating tensor that is made, converted or loaded has at least this type."""

    to = _SINGLE
    below: tuple[torch.dtype, ...] = (_HALF, _BFLOAT)

    def attach(self) -> None:
        super().attach()
        self.ledger.unseen = f"nothing of a type below {self.to} was asked for"
        self._known: set[int] = set()
        """Outermost modules that were widened."""
        mode: Any = _Types(self)
        mode.__enter__()
        self.patches.later(lambda: mode.__exit__(None, None, None))
        default = torch.get_default_dtype()
        if default in self.below:
            torch.set_default_dtype(self.to)
            self.patches.later(lambda: torch.set_default_dtype(default))
        self.patches.replace(torch, "set_default_dtype", self._default)
        self.listen("batch", lambda _, batch: self.widened(batch))
        self.listen("before_forward", self._call)
        self.listen("after_forward", self._look)

    def _default(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_default_dtype(kind: torch.dtype) -> None:
            original(self.type_for(kind))

        return set_default_dtype

    def told(self) -> None:
        """It took hold; what is compiled is not told, since the book is none of its graph."""
        if not torch.compiler.is_compiling():
            self.ledger.held()

    def type_for(self, kind: Any) -> Any:
        """The type that stands for one that was asked for."""
        if kind in self.below:
            self.told()
            return self.to
        return kind

    def widened(self, value: Any) -> Any:
        """A container with its floating tensors of this type; None where nothing changes."""
        changed: list[bool] = []

        def wide(part: Any) -> Any:
            if isinstance(part, torch.Tensor):
                if part.dtype not in self.below or part.requires_grad:
                    return part
                changed.append(True)
                return part.to(self.to)
            return mapped(wide, part)

        made = wide(value)
        if changed:
            self.ledger.held("a batch")
        return made if changed else None

    def _call(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        if type(module).__name__ == "FullyShardedDataParallel":
            self.ledger.cannot("FSDP keeps flat parameters in types of its own")
            return None
        if id(module) not in self._known:
            self._known.add(id(module))
            self._widen(module)
        return None if self.ledger.off else self.widened((args, kwargs))

    def _widen(self, module: torch.nn.Module) -> None:
        """Parameters and buffers that no function of torch's made: unpickled, or older than the change."""
        small = [p for p in module.parameters() if p.dtype in self.below]
        if small and replicas_of(module) != 1:
            self.ledger.cannot("parameters of a smaller type are shared with other ranks already")
            return
        for parameter in small:
            parameter.data = parameter.data.to(self.to)
            self.ledger.held(f"parameters of {type(module).__name__}")
        for owner in module.modules():
            for name, buffer in owner._buffers.items():
                if buffer is not None and buffer.dtype in self.below:
                    owner._buffers[name] = buffer.to(self.to)

    def _look(self, module: torch.nn.Module, output: Any) -> None:
        small: list[torch.dtype] = []

        def look(part: Any) -> Any:
            if isinstance(part, torch.Tensor):
                small.extend([part.dtype] if part.dtype in self.below else [])
                return part
            return mapped(look, part)

        look(output)
        if small:
            self.ledger.cannot(f"the output of {type(module).__name__} is {small[0]} all the same")


class Double(OneType):
    """Every floating tensor is float64."""

    to = _DOUBLE
    below = (_HALF, _BFLOAT, _SINGLE)

    def attach(self) -> None:
        super().attach()
        self.ledger.held("the default type of torch")


class _Types(TorchFunctionMode):
    """Replaces the types that functions of torch are asked for."""

    def __init__(self, owner: OneType) -> None:
        self._owner = owner

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        owner = self._owner
        if owner.ledger.off or func in _VIEWS:
            return func(*args, **kwargs)
        if func in _NARROWING or (func is torch.Tensor.float and owner.to is _DOUBLE):
            owner.told()
            return torch.Tensor.to(args[0], owner.to)
        args = tuple(owner.type_for(a) if isinstance(a, torch.dtype) else a for a in args)
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs = {**kwargs, "dtype": owner.type_for(kwargs["dtype"])}
        out = func(*args, **kwargs)
        if getattr(func, "__name__", "") in _SOURCES and owner.to is _DOUBLE:
            wide = owner.widened(out)
            return out if wide is None else wide
        if func is torch.Tensor.to and isinstance(out, torch.Tensor) and out.dtype in owner.below:
            return out.to(owner.to)  # `to(other)` of a tensor that is smaller
        return out

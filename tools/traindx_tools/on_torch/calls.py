"""Calls beside the step itself that tell what a program does: losses, files, states, schedules, gradients set back.

Each is a function of torch that is replaced by one that calls it and then tells the probes; what it returns is the
program's own. Calls that one of them makes itself (a module's state loaded by its parent's) are told once.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.utils import clip_grad
from torch.optim import lr_scheduler

from traindx_tools.knowledge.contracts import torch_losses
from traindx_tools.on_torch.moments import Moments
from traindx_tools.on_torch.patches import Function, Patches
from traindx_tools.on_variables.narrowed import is_converted
from traindx_tools.on_variables.roots import users_line

_REGISTERED: list[Function] = []
"""Kept for good: the table of torch knows functions by their identity, which another object may get after them."""
Told = Callable[[tuple[Any, ...], dict[str, Any], Any], None]


class Calls:
    """Puts the patches in and tells the moments of their calls."""

    def __init__(self, moments: Moments, quiet: Callable[[], bool]) -> None:
        self._moments, self._quiet = moments, quiet
        self._within: set[str] = set()
        """The kinds of calls that are running."""

    def patch(self, patches: Patches) -> None:
        """Replaces what this torch has of them."""
        functional: Any = torch.nn.functional
        for name in torch_losses():
            if _is_torchs_own(getattr(functional, name, None)):
                patches.replace(functional, name, self._loss(name))
        self._all(patches, torch.nn.Module, load_state_dict=self._module_loaded, state_dict=self._module_given,
                  zero_grad=self._cleared)
        self._all(patches, torch.optim.Optimizer, load_state_dict=self._optimizer_loaded, zero_grad=self._cleared)
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        self._all(patches, scaler, load_state_dict=self._scaler_loaded)
        for kind in list(vars(lr_scheduler).values()):
            if isinstance(kind, type) and issubclass(kind, _SCHEDULERS):
                self._all(patches, kind, load_state_dict=self._schedule_loaded, step=self._scheduled)
        self._all(patches, torch, load=self._read, save=self._written)
        for name in ("tensor", "as_tensor"):
            patches.replace(torch, name, functools.partial(self._converting, f"aten::{name}"))
        for home in (torch.nn.utils, clip_grad):
            self._all(patches, home, clip_grad_norm_=self._clipped, clip_grad_value_=self._clipped)
        self._distributed(patches)
        self._safetensors(patches)

    def _all(self, patches: Patches, owner: Any, **told: Told) -> None:
        for name, tell in told.items():
            if name in vars(owner):
                patches.replace(owner, name, functools.partial(self._told, name, tell))

    def _distributed(self, patches: Patches) -> None:
        self._all(patches, torch.nn.parallel.DistributedDataParallel, __init__=self._replicated)
        if torch.distributed.is_available():
            self._all(patches, torch.distributed, **dict.fromkeys(_COLLECTIVES, self._reduced))

    def _safetensors(self, patches: Patches) -> None:
        try:
            if importlib.util.find_spec("safetensors") is None:
                return
            home = importlib.import_module("safetensors.torch")
        except Exception:  # noqa: BLE001 - a broken installation is none of ours
            return
        self._all(patches, home, load_file=self._read, save_file=self._written)

    def _told(self, kind: str, tell: Told, original: Function) -> Function:
        here = self

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or kind in here._within or here._quiet():
                return original(*args, **kwargs)
            here._within.add(kind)
            try:
                result = original(*args, **kwargs)
            finally:
                here._within.discard(kind)
            tell(args, kwargs, result)
            return result

        return call

    # ---- what is told

    def _loss(self, name: str) -> Callable[[Function], Function]:
        def tell(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            self._moments.tell("loss_computed", name, args, kwargs, result)

        def make(original: Function) -> Function:
            ours = self._told("loss", tell, original)
            # `torch.jit.script` compiles the function behind a decorator that is marked like this.
            setattr(ours, "__script_if_tracing_wrapper", True)
            setattr(ours, "__original_fn", original)
            return ours

        return make

    def _converting(self, operator: str, original: Function) -> Function:
        here = self

        @functools.wraps(original)
        def convert(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if args and not torch.compiler.is_compiling() and is_converted(args[0]) and not here._quiet():
                here._moments.tell("converted", args[0], made, users_line())
            return made

        with contextlib.suppress(Exception):  # what is scripted finds the operator by the function's identity
            torch.jit._builtins._register_builtin(convert, operator)
            _REGISTERED.append(convert)
        return convert

    def _module_loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._loaded("model", args, kwargs, result)

    def _optimizer_loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._loaded("optimizer", args, kwargs, result)

    def _schedule_loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._loaded("scheduler", args, kwargs, result)

    def _scaler_loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._loaded("scaler", args, kwargs, result)

    def _loaded(self, kind: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        state = args[1] if len(args) > 1 else kwargs.get("state_dict")
        self._moments.tell("state_loaded", kind, args[0], state, result)

    def _module_given(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("state_given", args[0], result)

    def _cleared(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("cleared", args[0])

    def _replicated(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("replicated", args[0])

    def _reduced(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("reduced")

    def _clipped(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("clipped")

    def _scheduled(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("scheduled", args[0])
        if isinstance(args[0], lr_scheduler.ReduceLROnPlateau):
            self._moments.tell("watched", args[0], args[1] if len(args) > 1 else kwargs.get("metrics"))

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._moments.tell("file_read", args[0] if args else kwargs.get("f", kwargs.get("filename")), result)

    def _written(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        value = args[0] if args else kwargs.get("obj", kwargs.get("tensors"))
        path = args[1] if len(args) > 1 else kwargs.get("f", kwargs.get("filename"))
        self._moments.tell("file_written", path, value)


_COLLECTIVES = ("all_reduce", "all_to_all", "all_to_all_single")
_SCHEDULERS: tuple[type, ...] = (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)


def _is_torchs_own(function: Any) -> bool:
    """Not one that the program has put in its place: what it does is its own affair, and others look for it."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(os.path.dirname(torch.__file__))

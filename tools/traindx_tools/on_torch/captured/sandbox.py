"""Runs a copy of a model so that the program cannot tell afterwards: nothing that it holds is another than before.

Modules and tensors are copied. Generators of random numbers are set back: those of torch, numpy and Python, and those
that the model or the globals of the program's own files hold. Plain objects that a model shares with the rest of the
program (a configuration, a counter, a list of losses) are set back as well; a model that holds anything else is left
alone. What it prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import io
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.nonfinite.places import USER, owner
from traindx_tools.on_torch.snapshot.state import RandomState, without_autocast

MOST_OBJECTS = 5_000
_VALUES = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, torch.Size,
           torch.memory_format, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, range, slice,
           enum.Enum, np.generic, np.dtype, property)  # fmt: skip
"""What no call changes, or changes for nobody else."""


class Shared:
    """What a model shares with the program beyond modules and tensors, as it was."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._generators: list[tuple[Any, Any]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._seen: dict[int, Any] = {}
        for module in model.modules():
            for name, value in vars(module).items():
                self._take(value, f"{type(module).__name__}.{name}")
        for home in list(sys.modules.values()):
            file = getattr(home, "__file__", None)
            if isinstance(file, str) and owner(file) is USER:
                self._globals(vars(home))

    def restore(self) -> None:
        """Sets everything back."""
        for generator, state in self._generators:
            _set_state(generator, state)
        for holder, before in self._contents:
            _set_contents(holder, before)

    def _take(self, value: Any, where: str, depth: int = 8) -> None:
        if isinstance(value, (torch.Tensor, torch.nn.Module, *_VALUES)) or id(value) in self._seen:
            return
        if len(self._seen) > MOST_OBJECTS or not depth:
            raise NotKept(f"{where} holds too much to be set back")
        self._seen[id(value)] = value
        if _is_generator(value):
            self._generators.append((value, _state(value)))
        elif isinstance(value, np.ndarray):
            self._contents.append((value, value.copy()))
        elif isinstance(value, (dict, list, set, tuple, frozenset, deque, bytearray)):
            if not isinstance(value, (tuple, frozenset)):
                self._contents.append((value, value.copy()))
            for part in value.values() if isinstance(value, dict) else value:
                self._take(part, where, depth - 1)
        elif isinstance(value, functools.partial):
            self._take([value.func, *value.args, *value.keywords.values()], where, depth - 1)
        elif isinstance(value, types.MethodType):
            self._take(value.__self__, where, depth - 1)
        elif type(value).__module__.startswith("torch."):
            pass  # handles of hooks and the like
        elif hasattr(value, "__dict__") and not any(hasattr(type(value), n) for n in ("__slots__", "__next__")):
            self._contents.append((vars(value), dict(vars(value))))
            for part in vars(value).values():
                self._take(part, where, depth - 1)
        elif not hasattr(value, "__dict__") and not hasattr(type(value), "__next__"):
            pass  # without state of its own that Python could change
        else:
            raise NotKept(f"{where} is a {type(value).__name__}, which cannot be set back")

    def _globals(self, names: dict[str, Any]) -> None:
        """Numbers, generators and containers among a file's globals; what they hold is not looked into."""
        self._contents.append((names, dict(names)))
        for value in list(names.values()):
            if id(value) in self._seen:
                continue
            if _is_generator(value):
                self._seen[id(value)] = value
                self._generators.append((value, _state(value)))
            elif type(value) in (dict, list, set) and len(value) <= MOST_OBJECTS:
                self._seen[id(value)] = value
                self._contents.append((value, value.copy()))


@contextlib.contextmanager
def unnoticed(model: torch.nn.Module) -> Iterator[Callable[[], None]]:
    """Within it, a copy of the model may run; what is yielded sets shared things back between two calls.

    Raises NotKept for a model that holds what cannot be set back.
    """
    shared, before = Shared(model), RandomState.now()
    gradients = torch.is_grad_enabled()
    try:
        with without_autocast(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield shared.restore
    finally:
        torch.set_grad_enabled(gradients)
        before.restore()
        shared.restore()


def _is_generator(value: Any) -> bool:
    return isinstance(value, (torch.Generator, random.Random, np.random.Generator, np.random.RandomState,
                              np.random.BitGenerator))


def _state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.state


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.state = state


def _set_contents(holder: Any, before: Any) -> None:
    if isinstance(holder, np.ndarray):
        holder[...] = before
    elif isinstance(holder, (list, deque, bytearray)):
        if len(holder) != len(before) or any(a is not b for a, b in zip(holder, before, strict=True)):
            holder.clear()
            holder.extend(before)
    elif isinstance(holder, set):
        if holder != before:
            holder.clear()
            holder.update(before)
    else:
        for key in [k for k in holder if k not in before]:
            del holder[key]
        for key, value in before.items():
            if holder.get(key, _NOTHING) is not value:
                holder[key] = value


_NOTHING = object()

"""What the code of a model reads that is no tensor: plain attributes of modules, globals and closures.

These are numbers, texts and short lists of them; they are set back where a step is replayed. Where the code reads
something that changes and cannot be kept (an open file, a generator), the replayed loss tells, and these names help.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

MOST_ITEMS = 256
"""Of a list or dict; a longer one is data."""
MOST_NAMES = 4_000


def attributes_of(module: torch.nn.Module) -> dict[str, dict[str, Any]]:
    """The plain attributes of a module and of all that is below it, modes (`training`) included, by path."""
    return {path: told for path, part in module.named_modules()
            if (told := {k: v for k, v in vars(part).items() if is_plain(v) and _own(k)})}


def set_attributes(module: torch.nn.Module, told: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Sets them back; the names of those that were otherwise, but for modes and counters of torch."""
    parts, changed = dict(module.named_modules()), []
    for path, values in told.items():
        part = parts.get(path)
        for name, value in values.items() if part is not None else ():
            if not same(vars(part).get(name), value):
                vars(part)[name] = value
                if name != "training":
                    changed.append(f"{type(part).__name__}.{name}")
    return changed


class Outside:
    """The globals and closures that the code of these modules reads, as far as they are plain."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        self._places: dict[str, Any] = {}
        for function in _functions(modules):
            for name, place in _read_by(function):
                if len(self._places) < MOST_NAMES:
                    self._places.setdefault(name, place)

    def now(self) -> dict[str, Any]:
        """By name: `WEIGHT (train.py)`, `count (closure of forward)`."""
        return {name: value for name, place in self._places.items() if is_plain(value := _value(place))}

    def set_back(self, told: Mapping[str, Any]) -> list[str]:
        """Sets them back; the names of those that were otherwise."""
        changed = []
        for name, value in told.items():
            place = self._places.get(name)
            if place is not None and not same(_value(place), value):
                _set(place, value)
                changed.append(name)
        return changed


def is_plain(value: Any, depth: int = 3) -> bool:
    """A number, a text, or a short list of these."""
    if value is None or type(value) in (bool, int, float, str):
        return True
    if depth and type(value) in (list, tuple):
        return len(value) <= MOST_ITEMS and all(is_plain(v, depth - 1) for v in value)
    if depth and type(value) is dict:
        return len(value) <= MOST_ITEMS and all(type(k) in (str, int) and is_plain(v, depth - 1)
                                                for k, v in value.items())
    return False


def same(one: Any, other: Any) -> bool:
    """Equal, a NaN to itself."""
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _own(name: str) -> bool:
    """Not the tables that `nn.Module` itself keeps."""
    return not name.startswith(("_parameters", "_buffers", "_modules", "_non_persistent", "_backward_", "_forward_",
                                "_state_dict_", "_load_state_dict_", "_is_full_", "call_super"))


def _functions(modules: Sequence[torch.nn.Module]) -> Iterator[types.FunctionType]:
    kinds = dict.fromkeys(k for m in modules for part in m.modules() for k in type(part).__mro__)
    for kind in kinds:
        if not kind.__module__.startswith(("torch.", "builtins")):
            yield from (f for f in vars(kind).values() if isinstance(f, types.FunctionType))
    for module in modules:
        for part in module.modules():
            yield from (f for f in vars(part).values() if isinstance(f, types.FunctionType))


def _read_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    file = function.__code__.co_filename.replace("\\", "/").rpartition("/")[2]
    for name in _names(function.__code__):
        if name in function.__globals__ and not name.startswith("__"):
            yield f"{name} ({file})", (function.__globals__, name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            yield f"{name} (closure of {function.__qualname__})", cell


def _names(code: types.CodeType, depth: int = 4) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if depth and isinstance(constant, types.CodeType):
            yield from _names(constant, depth - 1)


def _value(place: Any) -> Any:
    if isinstance(place, tuple):
        return place[0].get(place[1], Ellipsis)
    try:
        return place.cell_contents
    except ValueError:  # an empty cell
        return Ellipsis


def _set(place: Any, value: Any) -> None:
    if isinstance(place, tuple):
        place[0][place[1]] = value
    else:
        place.cell_contents = value

"""From a variable to what lies in it: items, attributes, closures and caches. Runs no code of the value's own class."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import cache
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

MOST_ITEMS = 512
"""Items of one container that are looked at: its first and its last; the rest is counted by its length."""
PLAIN = (int, float, str, bytes, bool, type(None), type, ModuleType, BuiltinFunctionType, FrameType, GeneratorType,
         np.dtype, np.generic)
"""What nothing lies in."""


def children(value: Any) -> Iterator[tuple[str, Any, float]]:
    """(path step, child, how many items one looked-at item stands for)."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from (("[*]", v, scale) for (_, v), scale in some(list(dict.items(value))))
        if kind not in (dict, OrderedDict, defaultdict):
            yield from _attributes(value)
    elif base := next((b for b in (list, tuple, deque, set, frozenset) if issubclass(kind, b)), None):
        yield from (("[*]", v, scale) for v, scale in some(list(base.__iter__(value))))
    elif issubclass(kind, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f".{name}", cell.cell_contents, 1.0) for name, cell in cells if _filled(cell))
        yield from (("(default)", v, 1.0) for v in value.__defaults__ or ())
    elif issubclass(kind, MethodType):
        yield ("", value.__self__, 1.0)
    elif issubclass(kind, _CACHE):
        yield from (("(cache)", child, 1.0) for child in gc.get_referents(value))
    else:
        yield from _attributes(value)


_CACHE = type(cache(lambda: None))
"""What `functools.cache` and `lru_cache` make: it keeps the results it returned."""


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def some(items: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """The first and the last items of a container; each stands for its share of the whole."""
    if len(items) <= MOST_ITEMS:
        yield from ((item, 1.0) for item in items)
        return
    looked = (*items[: MOST_ITEMS // 2], *items[-MOST_ITEMS // 2 :])
    yield from ((item, len(items) / len(looked)) for item in looked)


def _attributes(value: Any) -> Iterator[tuple[str, Any, float]]:
    for name, child in own(value).items():
        if name in ("_parameters", "_buffers", "_modules") and issubclass(type(child), dict):
            yield from ((f".{n}", c, 1.0) for n, c in list(child.items()) if c is not None)
        else:
            yield (f".{name}", child, 1.0)


def own(value: Any) -> dict[str, Any]:
    """What stands in the object itself, read without its `__getattr__`."""
    try:
        own = dict(object.__getattribute__(value, "__dict__"))
    except (AttributeError, TypeError, ValueError):
        own = {}
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if isinstance(member, MemberDescriptorType):
                try:
                    own[name] = member.__get__(value, kind)
                except AttributeError:  # never set
                    continue
    return own

"""Which of the user's variables hold tensors, how many, and how much graph hangs on them.

A census walks forward from the user's variables through containers, attributes, closures and caches to tensors and
arrays. Paths are written with `[*]` for an index or a key, so that `losses[*]` is one holding however long it is.
Two censuses some steps apart show which holding grows: that variable is what keeps the memory.
The walk is bounded; it never copies a tensor, never synchronises and never holds a reference after it returns.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
import torch

from traindx_tools.on_torch.memory.roots import is_users, roots

MOST_OBJECTS = 200_000
"""Objects visited at most in one census."""
MOST_DEPTH = 8
MOST_ITEMS = 512
"""Items of one container that are looked at: its first and its last; the rest is counted by its length."""
MOST_NODES = 20_000
"""Autograd nodes that are walked at most from one holding."""


@dataclass
class Holding:
    """What one variable holds: `tensors` in it, how many of them carry a graph, `bytes` of distinct storage."""

    path: str
    """As the program would write it, `[*]` for an index or a key: `self.losses[*]`."""
    file: str
    function: str = ""
    """The function whose local it is; "" for a global."""
    tensors: int = 0
    with_graph: int = 0
    bytes: int = 0
    graph_nodes: int = 0
    """Autograd nodes reachable from one tensor of it (the last seen): grows when sums are chained over steps."""
    bounded: bool = False
    """It lies in a `deque(maxlen=...)`, which lets the oldest go by itself: a window, however full it is by now."""
    owner: tuple[str, str] | None = None
    """File and name of the program's own class whose attribute it is, where there is one."""


@dataclass(frozen=True)
class Census:
    """Holdings by file, function and path."""

    holdings: Mapping[tuple[str, str, str], Holding]
    complete: bool
    """False where the bound was reached before everything had been looked at."""


@dataclass
class _Walk:
    holdings: dict[tuple[str, str, str], Holding] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    storages: set[int] = field(default_factory=set)
    visited: int = 0


@dataclass(frozen=True)
class _Home:
    """What a value lies in, as far as it says how long it is kept and who put it there."""

    bounded: bool = False
    owner: tuple[str, str] | None = None

    def inside(self, value: Any) -> _Home:
        """The same for what lies in this value."""
        kind = type(value)
        if issubclass(kind, deque):
            return replace(self, bounded=self.bounded or deque.maxlen.__get__(value) is not None)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return replace(self, owner=(file, kind.__name__)) if isinstance(file, str) and is_users(file) else self


def take_census(seconds: float = 0.25) -> Census:
    """Walks every variable of the user, the nearest first, for at most `seconds` of this thread's CPU time."""
    deadline = time.thread_time() + seconds
    walk = _Walk()
    starts = list(roots())
    queue: deque[tuple[tuple[str, str, str], Any, int, float, _Home]] = deque(
        ((file, function, name), value, 0, 1.0, _Home()) for file, function, name, value in starts)
    walk.seen |= {id(walk), id(queue), id(starts), id(walk.__dict__)}
    while queue and walk.visited < MOST_OBJECTS and (walk.visited % 256 or time.thread_time() < deadline):
        place, value, depth, share, home = queue.popleft()
        if id(value) in walk.seen or issubclass(type(value), _PLAIN) or _ours(value):
            continue
        walk.seen.add(id(value))
        walk.visited += 1
        if issubclass(type(value), (torch.Tensor, np.ndarray)):
            _count(walk, place, value, share, home)
        elif depth < MOST_DEPTH:
            inside = home.inside(value)
            queue.extend(((*place[:2], place[2] + step), child, depth + 1, share * scale, inside)
                         for step, child, scale in _children(value))
    return Census(walk.holdings, not queue)


_PLAIN = (int, float, str, bytes, bool, type(None), type, ModuleType, BuiltinFunctionType, torch.dtype, torch.device,
          FrameType, GeneratorType, np.dtype, np.generic)


def _ours(value: Any) -> bool:
    return str(type(value).__module__).startswith("traindx_tools.")


def _children(value: Any) -> Iterator[tuple[str, Any, float]]:
    """(path step, child, how many items one looked-at item stands for). Runs no code of the value's own class."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from (("[*]", v, scale) for (_, v), scale in _some(list(dict.items(value))))
        if kind not in (dict, OrderedDict, defaultdict):
            yield from _attributes(value)
    elif base := next((b for b in (list, tuple, deque, set, frozenset) if issubclass(kind, b)), None):
        yield from (("[*]", v, scale) for v, scale in _some(list(base.__iter__(value))))
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


def _some(items: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """The first and the last items of a container; each stands for its share of the whole."""
    if len(items) <= MOST_ITEMS:
        yield from ((item, 1.0) for item in items)
        return
    looked = (*items[: MOST_ITEMS // 2], *items[-MOST_ITEMS // 2 :])
    yield from ((item, len(items) / len(looked)) for item in looked)


def _attributes(value: Any) -> Iterator[tuple[str, Any, float]]:
    for name, child in _own(value).items():
        if name in ("_parameters", "_buffers", "_modules") and issubclass(type(child), dict):
            yield from ((f".{n}", c, 1.0) for n, c in list(child.items()) if c is not None)
        else:
            yield (f".{name}", child, 1.0)


def _own(value: Any) -> dict[str, Any]:
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


def _count(walk: _Walk, place: tuple[str, str, str], value: torch.Tensor | np.ndarray, share: float,
           home: _Home) -> None:
    held = walk.holdings.setdefault(place, Holding(place[2], place[0], place[1], bounded=home.bounded,
                                                   owner=home.owner))
    held.tensors += round(share) if share > 1 else 1
    held.bytes += int(_new_bytes(walk, value) * share)
    if isinstance(value, torch.Tensor) and value.grad_fn is not None:
        held.with_graph += round(share) if share > 1 else 1
        held.graph_nodes = graph_nodes(value)


def _new_bytes(walk: _Walk, value: torch.Tensor | np.ndarray) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes) if value.base is None else 0
    try:
        storage = value.untyped_storage()
        key, size = storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError):  # sparse, meta and functional tensors have no storage of their own
        return 0
    if not key or key in walk.storages:
        return 0
    walk.storages.add(key)
    return int(size)


def graph_nodes(tensor: torch.Tensor, most: int = MOST_NODES) -> int:
    """Autograd nodes behind a tensor, `most` at most."""
    if tensor.grad_fn is None:
        return 0
    seen: set[Any] = set()
    stack: list[Any] = [tensor.grad_fn]
    while stack and len(seen) < most:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack.extend(n for n, _ in node.next_functions if n is not None)
    return len(seen)

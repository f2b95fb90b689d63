"""Which of the user's variables hold tensors, how many, and how much graph hangs on them.

A census walks forward from the user's variables through containers, attributes, closures and caches to tensors and
arrays. Paths are written with `[*]` for an index or a key, so that `losses[*]` is one holding however long it is.
Two censuses some steps apart show which holding grows: that variable is what keeps the memory.
The walk is bounded; it never copies a tensor, never synchronises and never holds a reference after it returns.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from traindx_tools.on_variables.roots import is_users, roots
from traindx_tools.on_variables.walk import PLAIN, children

MOST_OBJECTS = 200_000
"""Objects visited at most in one census."""
MOST_DEPTH = 8
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
                         for step, child, scale in children(value))
    return Census(walk.holdings, not queue)


_PLAIN = (*PLAIN, torch.dtype, torch.device)


def _ours(value: Any) -> bool:
    return str(type(value).__module__).startswith("traindx_tools.")


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

"""Goes through the program's variables, the nearest first, for a bounded time, and hands out what a look is after."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from traindx_tools.on_variables.roots import roots
from traindx_tools.on_variables.walk import PLAIN, children

MOST_OBJECTS, MOST_DEPTH = 40_000, 6
FEW_KEYS = 100
"""Keys of a dict of texts up to which a path tells them: those of parameters."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Visited(Generic[T]):
    """A value that was asked for. `in_module`: whether a model of torch holds it."""

    file: str
    path: str
    value: Any
    taken: T
    in_module: bool


def visit(take: Callable[[Any], T | None], seconds: float) -> Iterator[Visited[T]]:
    """Every value of which `take` makes something, each object once; the others are entered. `seconds` are of this
    thread's processor time."""
    until, seen, visited = time.thread_time() + seconds, set[int](), 0
    queue: deque[tuple[str, str, Any, int, bool]] = deque(
        (file, name, value, 0, False) for file, _, name, value in roots())
    while queue and visited < MOST_OBJECTS and (visited % 64 or time.thread_time() < until):
        file, path, value, depth, held = queue.popleft()
        if id(value) in seen or issubclass(type(value), PLAIN):
            continue
        seen.add(id(value))
        visited += 1
        taken = take(value)
        if taken is not None:
            yield Visited(file, path, value, taken, held)
        elif depth < MOST_DEPTH:
            inside = held or _is_module(value)
            queue.extend((file, path + step, child, depth + 1, inside) for step, child in _inside(value))


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """What lies in a value, with the keys of a dict of few texts as they are."""
    if type(value) is dict and 0 < len(value) <= FEW_KEYS and all(type(k) is str for k in value):
        yield from ((f"[{key!r}]", child) for key, child in list(value.items()))
    else:
        yield from ((step, child) for step, child, _ in children(value))


def _is_module(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    module = getattr(getattr(torch, "nn", None), "Module", None)
    return module is not None and issubclass(type(value), module)


def is_of_jax(value: Any) -> bool:
    """Whether it is an array of jax."""
    jax: Any = sys.modules.get("jax")
    return jax is not None and issubclass(type(value), jax.Array)


def _has_memory(tensor: Any) -> bool:
    """Whether its values are there: sharding gives the memory of whole parameters back between two uses."""
    if tensor.device.type == "meta":
        return False
    needed = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
    return bool(tensor.untyped_storage().size() >= needed)


def is_float_array(value: Any) -> bool:
    """Whether it is an array of floats of numpy, torch or jax (bfloat16 as well) that can be read here.

    Told by its class: any other object is asked for nothing, some end the process when they are.
    """
    kind, torch = type(value), sys.modules.get("torch")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):  # a sharded one is read by all ranks together
        return bool(value.layout == torch.strided and value.is_floating_point() and _has_memory(value))
    if is_of_jax(value):
        jax: Any = sys.modules["jax"]
        return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.floating) and value.is_fully_addressable)
    return kind is np.ndarray and bool(value.dtype.kind == "f")

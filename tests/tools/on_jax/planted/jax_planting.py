"""A JAX function with one planted origin of a non-finite value, and what small ones are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

MARK = "# <- origin"
Case = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Planted:
    """A function with its arguments, the primitive, the reason and the line that are to be named."""

    name: str
    make: Case
    op: str
    reason: str
    file: str
    line: int
    family: str
    path: tuple[str, ...]


PLANTED: list[Planted] = []


def planted(family: str, op: str, reason: str, *path: str) -> Callable[[Case], Case]:
    def add(make: Case) -> Case:
        lines, first = inspect.getsourcelines(make)
        here = [first + i for i, text in enumerate(lines) if MARK in text]
        assert len(here) == 1, make
        file = Path(inspect.getfile(make)).name
        PLANTED.append(Planted(make.__name__, make, op, reason, file, here[0], family, path))
        return make

    return add


def weights(inputs: int = 4, hidden: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"a": jnp.asarray(rng.normal(size=(inputs, hidden)), jnp.float32),
            "b": jnp.asarray(rng.normal(size=(hidden, 1)), jnp.float32)}


def net(p: dict[str, Any], x: Any) -> Any:
    return jnp.tanh(x @ p["a"]) @ p["b"]


X = jnp.asarray(np.random.default_rng(1).normal(size=(5, 4)), jnp.float32)
ONE_ZERO = jnp.array([1.0, 2.0, 0.0, 3.0, 4.0])

"""A function that is called from outside: what `jax.jit` made, and how it is told about its calls."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from traindx_tools.on_jax.places import is_users
from traindx_tools.on_jax.state import Feeding

_numbers = itertools.count()


class Observer(Protocol):
    """Who sees the calls."""

    def observed(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls `watched.inner` and returns what it returned."""

    def quiet(self) -> bool:
        """Whether a call now is none of the user's program: within a trace, or our own."""


class Watched:
    """Stands where a jitted function stands: everything but the call from outside goes to that."""

    def __init__(self, inner: Any, observer: Observer, *, kind: str = "jit", static: frozenset[str] = frozenset(),
                 donated: bool = False) -> None:
        functools.update_wrapper(self, inner)
        self.__wrapped__ = getattr(inner, "__wrapped__", inner)
        self.inner, self._observer = inner, observer
        self.kind, self.static_names, self.donates = kind, static, donated
        self.name: str = getattr(inner, "__name__", type(inner).__name__)
        self.place = caller()
        self.number = next(_numbers)
        """One that no other function of this process has."""
        self.argnums: Any = 0
        """Of an eager gradient: the argument that it is of."""
        self.calls = 0
        self.differentiates = False
        """Whether a gradient was asked for while it was traced."""
        self.feeding: Feeding | None = None
        """What of its outputs it gets back as arguments, learned from its first calls."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._observer.quiet():
            return self.inner(*args, **kwargs)
        return self._observer.observed(self, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not yet there: an object that is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As the jitted function's own."""
        return self.inner.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As the jitted function's own."""
        return self.inner.trace(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.inner,)

    def __repr__(self) -> str:
        return repr(self.inner)


def _itself(inner: Any) -> Any:
    return inner


def caller() -> tuple[str, int] | None:
    """The line of the user's code that is being run."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file):
            return (file if file.startswith("<") else os.path.abspath(file)), frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def static_names(fn: Callable[..., Any], numbers: Any, names: Any) -> frozenset[str]:
    """The names of the arguments that a jit was told to keep static."""
    told = {names} if isinstance(names, str) else set(names or ())
    positions = {numbers} if isinstance(numbers, int) else set(numbers or ())
    try:
        parameters = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        parameters = []
    return frozenset(told | {parameters[i] for i in positions if -len(parameters) <= i < len(parameters)})

"""Functions of others replaced by ours, and put back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Patches:
    """The replacements of one owner of ours. Each stands for the original in name and signature."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """`owner.name` becomes `make(original)`. Raises AttributeError where there is none."""
        original = getattr(owner, name)
        ours = functools.wraps(original)(make(original))
        setattr(owner, name, ours)
        self._undo.append(lambda: setattr(owner, name, original) if getattr(owner, name) is ours else None)

    def replace_everywhere(self, owners: tuple[Any, ...], name: str,
                           make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """The same function under several roofs: one replacement stands in all of them that hold the original."""
        original = getattr(owners[0], name)
        ours = functools.wraps(original)(make(original))
        for owner in owners:
            if getattr(owner, name, None) is original:
                setattr(owner, name, ours)
                self._undo.append(functools.partial(_put_back, owner, name, ours, original))

    def later(self, undo: Callable[[], None]) -> None:
        """Something else that is taken back with the patches."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Takes everything back, the last first."""
        while self._undo:
            self._undo.pop()()


def _put_back(owner: Any, name: str, ours: Any, original: Any) -> None:
    if getattr(owner, name) is ours:
        setattr(owner, name, original)

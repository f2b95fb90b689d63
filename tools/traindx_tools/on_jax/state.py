"""Which outputs of a function are its state: those that the next call gets as arguments."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

LOOKS = 4
"""Calls after the first one that are looked at to find out what is fed back."""


def output_names(output: Any) -> list[str]:
    """`[0]['enc']['w']` for each leaf of an output."""
    import jax

    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(output)[0]]


class Seen(Protocol):
    """What is needed of a call of a function."""

    step: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    leaves: list[Any]


class Feeding:
    """Learns in the first calls which output leaf is which argument leaf of the next call."""

    def __init__(self, call: Seen) -> None:
        self.fed: dict[int, int] = {}
        """Argument leaf by output leaf."""
        self._before: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._looks = 0
        self._keep(call)

    @property
    def learning(self) -> bool:
        """Whether it looks at calls still."""
        return self._looks < LOOKS

    def look(self, call: Seen) -> None:
        """Compares the arguments of a call with what the call before gave."""
        import jax

        if call.step == 1:
            return
        self._looks += 1
        for j, leaf in enumerate(jax.tree_util.tree_leaves((call.args, call.kwargs))):
            known = self._before.get(id(leaf))
            if known is not None and known[1]() is leaf:
                self.fed[known[0]] = j
        if self.learning:
            self._keep(call)
        else:
            self._before.clear()

    def _keep(self, call: Seen) -> None:
        import jax

        leaves = call.leaves or jax.tree_util.tree_leaves(call.output)
        self._before = {id(x): (i, r) for i, x in enumerate(leaves) for r in [reference(x)] if r is not None}


def reference(leaf: Any) -> weakref.ref[Any] | None:
    """By which an array is known again while it lives, and does not live longer; None for plain numbers."""
    try:
        return weakref.ref(leaf)
    except TypeError:
        return None

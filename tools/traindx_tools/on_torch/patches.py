"""Functions of torch that are replaced while the instruments watch, each undone where it is still ours at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Patches:
    """What was replaced in this process."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return bool(self._undo)

    def replace(self, owner: Any, name: str, make: Callable[[Function], Function]) -> None:
        """Puts `make(original)` in the place of `owner.name`."""
        original = getattr(owner, name)
        own = name in vars(owner)
        ours = make(original)
        setattr(owner, name, ours)

        def undo() -> None:
            if vars(owner).get(name) is ours:
                if own:
                    setattr(owner, name, original)
                else:
                    delattr(owner, name)

        self._undo.append(undo)

    def at_end(self, undo: Callable[[], None]) -> None:
        """Something else that is undone with them, such as the removal of a hook."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Puts the originals back; what was patched over ours by others stays."""
        while self._undo:
            self._undo.pop()()

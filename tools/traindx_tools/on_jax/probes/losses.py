"""Always on: shapes of what optax losses are given, at the line that calls them (J403)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.probe import JaxProbe
from traindx_tools.on_jax.rules import j403_target_broadcast
from traindx_tools.on_jax.rules.j403_target_broadcast import Compared

MOST, MOST_TOLD = 256, 4


class Losses(JaxProbe):
    """Keeps the shapes; reads no value."""

    name = "jax-losses"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._calls: dict[Compared, None] = {}

    def loss_called(self, name: str, shapes: tuple[tuple[int, ...], ...], place: tuple[str, int] | None) -> None:
        """A loss was called, or traced."""
        if len(shapes) >= 2 and len(self._calls) < MOST:
            file, line = place or (None, None)
            self._calls[Compared(name, shapes[0], shapes[1], file, line)] = None

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        told = dict.fromkeys(f"loss {c.loss}{f' at {c.file}:{c.line}' if c.file else ''} on {list(c.prediction)}, "
                             f"{list(c.target)}" for c in self._calls)
        self.scene.facts.extend(list(told)[:MOST_TOLD])
        return list(j403_target_broadcast.check(list(self._calls)))

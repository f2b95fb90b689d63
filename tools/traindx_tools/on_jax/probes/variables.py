"""What the variables hold while a program trains: stored entries that change, digits that are lost (V101 to V107)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_variables.watch import VariablesWatch


class VariablesProbe(JaxProbe):
    """Looks after calls 4, 8, 16, ... of compiled functions."""

    name = "variables"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._watch = VariablesWatch(scene.recorder.mark)

    def converted(self, before: Any, after: Any, place: tuple[str, int] | None) -> None:
        """Looks at what is left."""
        self._watch.conversions.look(before, after, place)

    def after_call(self, call: Call) -> None:
        """Looks, where it is time."""
        self._watch.stepped(call.number)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from self._watch.findings(self.scene.recorder.rank)

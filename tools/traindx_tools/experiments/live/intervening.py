"""The form of what applies one change in a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.live.ledger import Ledger
from traindx_tools.experiments.live.patches import Patches


class Intervening:
    """Applies a change from `attach()` on, until `detach()`. Its faults cost itself and never the training."""

    def __init__(self, change: Change, ledger: Ledger) -> None:
        self.change, self.ledger = change, ledger
        self.patches = Patches()

    def attach(self) -> None:
        """Puts its patches in."""

    def finish(self) -> None:
        """The program ends: what can be said now only."""

    def detach(self) -> None:
        """Takes its patches out."""
        self.patches.undo()

    def option(self, name: str, otherwise: Any = None) -> Any:
        """The value of an option, as the table read it."""
        return self.change.options.get(name, otherwise)

    def guarded(self, call: Callable[..., Any], *args: Any) -> Any:
        """What the call returns; None where the change is off or the call raised, which switches it off."""
        if self.ledger.off:
            return None
        try:
            return call(*args)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not become the training's
            self.ledger.failed(error)
            return None

"""What a session may still spend, over all questions, processes and crashes: in dollars, or in tokens where nobody
says what a token costs.

An amount is set aside before a question is asked and settled by what the API reports. What was set aside and never
settled (a kill in between) counts as spent: nobody knows better.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from traindx.durable import StateNotWritable
from traindx_tools import unlinked

Unit = Literal["dollars", "tokens"]

LEAST: dict[Unit, float] = {"dollars": 0.01, "tokens": 2_000.0}
"""With less than this left nothing is begun."""


@dataclass
class Purse:
    """What one session may spend, `total` in all. `ledger` is a file in the session's folder."""

    total: float
    ledger: Path
    unit: Unit = "dollars"
    _set_aside: dict[int, float] = field(default_factory=dict)
    _spent: float = 0.0
    _next: int = 1

    def __post_init__(self) -> None:
        for entry in self._entries():
            number, amount = int(entry["n"]), float(entry[self.unit])
            if entry["what"] == "set-aside":
                self._set_aside[number] = amount
            else:
                self._set_aside.pop(number, None)
                self._spent += amount
            self._next = max(self._next, number + 1)

    @property
    def spent(self) -> float:
        """What is gone, with what is set aside for questions on their way."""
        return self._spent + sum(self._set_aside.values())

    @property
    def left(self) -> float:
        """What may still be set aside."""
        return max(self.total - self.spent, 0.0)

    @property
    def told(self) -> str:
        """Where it stands, in words."""
        return f"{self.amount(self.spent)} of {self.amount(self.total)} are spent or set aside"

    def amount(self, much: float) -> str:
        """An amount in words."""
        return f"${much:.2f}" if self.unit == "dollars" else f"{much:,.0f} tokens"

    def set_aside(self, most: float) -> tuple[int, float] | None:
        """A number and an amount, at most `most`; None where too little is left. Raises StateNotWritable."""
        amount = min(most, self.left)
        if amount < LEAST[self.unit]:
            return None
        number, self._next = self._next, self._next + 1
        self._write(number, "set-aside", amount)
        self._set_aside[number] = amount
        return number, amount

    def settle(self, number: int, took: float | None) -> None:
        """What it really took; None where that is unknown: then all of it is gone. Raises StateNotWritable."""
        amount = self._set_aside.pop(number)
        self._spent += amount if took is None else took
        self._write(number, "spent", amount if took is None else took)

    def _write(self, number: int, what: str, amount: float) -> None:
        try:
            unlinked.append(self.ledger, json.dumps({"n": number, "what": what, self.unit: amount}) + "\n")
        except OSError as error:
            raise StateNotWritable(self.ledger, error) from error

    def _entries(self) -> list[dict[str, str | float]]:
        try:
            lines = self.ledger.read_text(encoding="ascii").splitlines()
        except OSError:
            return []
        out = []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # cut off by a kill: the amount was never used
            if isinstance(entry, dict) and self.unit in entry:
                out.append(entry)
        return out

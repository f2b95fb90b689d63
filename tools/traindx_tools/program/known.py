"""How a fact of the program is known; a reader of facts can weigh them, a check must not."""

from __future__ import annotations

from enum import Enum


class Known(str, Enum):
    """Where a fact comes from."""

    RAN = "ran"
    """Seen in a process that ran."""
    DERIVED = "derived"
    """Follows from the text of the program."""
    GUESSED = "guessed"
    """Rests on a name or a default."""

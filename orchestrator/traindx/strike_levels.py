"""What the protocol does at a number of strikes."""

from __future__ import annotations

from typing import NamedTuple

STRIKES_OUT = 3
"""After so many failed fixes an approach is refused (the three-strike rule)."""


class Level(NamedTuple):
    """The rule at a number of strikes, in words for a person and for an investigator."""

    title: str
    rule: str


LEVELS: tuple[Level, ...] = (
    Level("no strike", "First fix of this approach."),
    Level("strike 1: more evidence", "The fix failed. Gather more evidence before another one: log or probe what the "
                                     "diagnosis assumed, and compare with what was expected."),
    Level("strike 2: question the cause", "Two fixes failed. The hypothesis itself is in doubt: look for evidence "
                                          "against it, and for another cause that explains the same symptom."),
    Level("strike 3: stop", "Three fixes failed. No further variation of this approach is tried. Here is what the "
                            "three failures showed: shall a fundamentally different approach be tried?"),
)


def level(count: int) -> Level:
    """The behaviour at this many strikes."""
    return LEVELS[min(count, STRIKES_OUT)]

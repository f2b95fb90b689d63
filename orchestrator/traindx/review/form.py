"""What the form of a review carries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """What the form carries, and what was typed into it before."""

    secret: str
    """Comes back with the decision: a page of somebody else's cannot know it."""
    comment: str = ""
    error: str = ""
    """Why the last decision was not recorded."""
    recorded: str = ""
    """What was recorded; the form is gone then."""
    follows: bool = False
    """Whether the session goes on behind the page, which then asks for itself again every few seconds."""
    look: int = 0
    """Makes the address of the next look another one: a browser that is sent to the address that it is at, with a
    place in the page behind it, goes to that place and asks for nothing."""

"""Whether the command that was run in a copy did any training that could be looked at: by what is remarked of it."""

from __future__ import annotations

from collections.abc import Iterable

NEVER_TRAINED = "before it trained, so that nothing can be compared"
NO_METRICS = "it printed and wrote no metrics, so that nothing can be compared"
UNREADABLE = "nothing of it could be read"


def fruitless(remarks: Iterable[str]) -> str:
    """The remark that the command which was run did no training that could be looked at, "" where there is none."""
    return next((r for r in remarks for why in (NEVER_TRAINED, NO_METRICS, UNREADABLE) if why in r), "")

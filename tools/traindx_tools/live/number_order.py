"""Names with numbers in them: by text `scan10` comes before `scan2`, by number behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

_NUMBER = re.compile(r"([0-9]+)")
FEWEST, MOST = 16, 1_000_000
"""Names below which an order says nothing, and above which none is looked at."""


def by_number(text: str) -> tuple[Any, ...]:
    """The key by which names are in the order of their numbers; texts and numbers alternate in it."""
    return tuple(int(p) if i % 2 else p for i, p in enumerate(_NUMBER.split(text))), text


def texts_of(items: Sequence[Any]) -> list[str] | None:
    """The items as texts where all of them are texts or paths; None otherwise, and where they are too few or many."""
    if not FEWEST <= len(items) <= MOST or not isinstance(items[0], (str, os.PathLike)):
        return None
    if not all(isinstance(i, (str, os.PathLike)) for i in items):
        return None
    texts = [os.fspath(i) for i in items]
    return texts if all(isinstance(t, str) for t in texts) else None

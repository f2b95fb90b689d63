"""How much time an instrument may take of the program: a little at once, then a share of what has passed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE, SHARE = 4.0, 0.03
"""Seconds that short runs may cost, and the share of the time of long ones."""


class Spent:
    """The time that was taken so far."""

    def __init__(self, at_once: float = AT_ONCE, share: float = SHARE) -> None:
        self._at_once, self._share = at_once, share
        self._began, self.seconds = time.monotonic(), 0.0

    @property
    def open(self) -> bool:
        """Whether there is time left now."""
        return self.seconds < self._at_once + self._share * (time.monotonic() - self._began)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What happens within counts."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin

"""What one run says of a set of differences, and the form of a test."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from traindx_tools.errors import TraindxError

Items = frozenset[int]
"""Differences by their number in the space; those in the set are as in the bad run, all others as in the good one."""


class Shown(str, Enum):
    """FAIL: the symptom came. PASS: it did not, and the run got as far as it should. UNRESOLVED: neither can be said,
    as where the run ended with an error of its own."""

    FAIL = "fail"
    PASS = "pass"
    UNRESOLVED = "unresolved"


Test = Callable[[Items], Shown]
"""Runs with these differences and says what was shown. Asked twice for one set it answers the same."""


class OutOfRuns(TraindxError):
    """The budget of runs or of time is spent; what was run is kept, so that a second call goes on from there."""

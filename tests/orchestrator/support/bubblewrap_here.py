"""Whether tests of bubblewrap run here: with the program that TRAINDX_BUBBLEWRAP names, else with the one of PATH.

Where it is named, they run and fail with it; where none is found or permitted, they are skipped, and the end of the
test run says how many were not run and why.
"""

from __future__ import annotations

import os

import pytest

from traindx.runner import bubblewrap

PROGRAM = bubblewrap.find(os.environ, "/nowhere")
NAMED = os.path.isabs(os.environ.get(bubblewrap.SWITCH, ""))


def why_not() -> str:
    """Why they do not run; empty where they do."""
    if NAMED:
        return ""
    if PROGRAM is None:
        return f"bubblewrap is not installed or switched off; {bubblewrap.SWITCH}=/path/to/bwrap names one"
    return "" if bubblewrap.works(PROGRAM) else "bubblewrap is not permitted here"


WHY_NOT = why_not()
needs_bubblewrap = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
ENVIRONMENT = {} if PROGRAM is None else {bubblewrap.SWITCH: PROGRAM}
"""For a runner that shall use it."""


def not_run(skipped: list[pytest.TestReport]) -> str:
    """What is said at the end of a test run; empty where nothing of it was left out."""
    left_out = sum(1 for report in skipped if WHY_NOT and WHY_NOT in str(report.longrepr))
    return f"{left_out} tests of the sandbox with bubblewrap were not run: {WHY_NOT}" if left_out else ""

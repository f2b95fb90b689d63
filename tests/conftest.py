"""Each test begins as a new program would: nothing was said yet, nothing was compiled yet.

Both are facts of a whole process, and many tests share one.
"""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _as_a_new_program() -> None:
    notice = sys.modules.get("traindx_tools.live.notice")
    if notice is not None:
        notice._said.clear()
    compilations = sys.modules.get("traindx_tools.on_torch.speed.compilations")
    if compilations is not None:
        compilations._asked.clear()
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        dynamo.counters.clear()
        dynamo.clear_compilation_metrics()

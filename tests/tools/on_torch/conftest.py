"""Each test begins as a program that has compiled nothing: whether one compiles is a fact of the whole process."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _nothing_compiled_yet() -> None:
    compilations = sys.modules.get("traindx_tools.on_torch.speed.compilations")
    if compilations is not None:
        compilations._asked.clear()
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if counters is not None:
        counters.clear()

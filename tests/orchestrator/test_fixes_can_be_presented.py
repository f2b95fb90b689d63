"""No failure mode offers a fix that the gate would refuse to present."""

from __future__ import annotations

import pytest

from traindx.sections import empty
from traindx_tools.catalog.catalog import FailureMode, load_catalog

MODES = list(load_catalog().values())
FIELDS = ("summary", "change", "metric", "verify", "otherwise")


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.id)
def test_both_fixes_say_everything_that_the_gate_asks_for(mode: FailureMode) -> None:
    for fix in (mode.targeted, mode.broader):
        assert [f for f in FIELDS if empty(getattr(fix, f))] == []

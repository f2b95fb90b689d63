"""An effect stands behind a cause that was seen in the run, however sure the effect is."""

from __future__ import annotations

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.triage import rank

MODES = load_catalog()


def finding(rule: str, severity: Severity = Severity.HIGH, **measured: Value) -> Finding:
    where = Location(module="features.1", step=3.0)
    return Finding(rule, rule, severity, Bearing.CAUSE, f"{rule} was seen", where, "torch probe", measured)


@pytest.mark.parametrize("cause", [
    finding("T507", kind="stale"), finding("T301", Severity.CRITICAL, kind="left-out"),
])
def test_what_is_seen_of_values_has_a_cause_of_its_own(cause: Finding) -> None:
    saturated = finding("T502", kind="tanh")
    found = rank([saturated, cause], MODES)
    assert found[0].mode.id != "act.saturated"
    assert "act.saturated" in [h.mode.id for h in found]


def test_alone_it_is_what_is_told() -> None:
    assert rank([finding("T502", kind="tanh")], MODES)[0].mode.id == "act.saturated"

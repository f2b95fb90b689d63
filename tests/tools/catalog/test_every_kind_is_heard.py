"""What the audit finds and calls medium or more speaks for a failure mode, or else a diagnosis could not name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.catalog.catalog import Speaks, load_catalog
from traindx_tools.code_audit import audit
from traindx_tools.finding import Finding, Severity

TOOLS = Path(__file__).parents[1]
FAULTY = sorted([*TOOLS.glob("on_code/fixtures/*/bad*.py"),
                 *(p for p in TOOLS.glob("invariants/variants/*/*.py") if "# FAULT" in p.read_text())])
COMPANIONS = frozenset({"C128"})
"""Numbers outside of what is usual: they go along with a mode and are never it by themselves."""


def heard(finding: Finding, entries: list[Speaks]) -> bool:
    return any(e.role in ("cause", "sign") and e.matches(finding) for e in entries)


@pytest.mark.slow
def test_each_kind_of_finding_speaks_for_a_mode() -> None:
    entries = [e for mode in load_catalog().values() for e in mode.speaks_for]
    mute = {(f.rule, f.measured.get("kind"), p.name) for p in FAULTY for f in audit([p]).findings
            if f.severity.rank >= Severity.MEDIUM.rank and f.rule not in COMPANIONS and not heard(f, entries)}
    assert mute == set()

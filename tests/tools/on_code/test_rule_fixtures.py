"""Every rule of the code auditor: the faulty scripts it sees, the healthy twins that it leaves alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.code_audit.entry import INVARIANTS, ROOMS
from traindx_tools.edits.patches import applied
from traindx_tools.finding import Finding, Severity
from traindx_tools.rules import rules_in

FIXTURES = Path(__file__).parent / "fixtures"
RULES = sorted(p.name for p in FIXTURES.iterdir() if p.is_dir())
REMARKS = {"c371/bad_minmax_hand", "c138", "c129", "c137", "c277"}
BAD = sorted(FIXTURES.glob("*/bad_*.py"))
GOOD = sorted(FIXTURES.glob("*/good_*.py"))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def of_rule(path: Path, findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.rule.lower() == path.parent.name]


@pytest.mark.parametrize("path", BAD, ids=name)
def test_sees_the_fault_at_a_line_of_the_file(path: Path) -> None:
    found = of_rule(path, audit([path]).findings)
    assert found
    for finding in found:
        assert finding.where.file == str(path)
        assert finding.where.quote
        assert finding.where.quote in path.read_text()
        assert Finding.from_json(json.loads(json.dumps(finding.to_json()))).statement == finding.statement
    assert any(f.severity.rank >= Severity.MEDIUM.rank for f in found) or {path.parent.name, name(path)} & REMARKS


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_leaves_healthy_code_alone(path: Path) -> None:
    """No finding of the rule itself, and none of high severity of any rule."""
    result = audit([path])
    findings = result.findings
    assert not result.notes
    assert not of_rule(path, findings)
    assert not [f for f in findings if f.severity.rank >= Severity.HIGH.rank]


@pytest.mark.parametrize("room", ROOMS)
def test_every_rule_has_a_page_and_fixtures(room: str) -> None:
    for module in rules_in(room):
        rule = module.rule
        is_invariant = module.module.startswith(INVARIANTS)
        assert is_invariant or module.module.rpartition(".")[2].startswith(rule.id.lower() + "_")
        assert len(module.doc) > 150
        for text in (rule.name, rule.title, rule.sees, rule.matters, *rule.alike, *rule.confirm):
            assert text.strip()
        assert rule.id.lower() in RULES
        assert list((FIXTURES / rule.id.lower()).glob("bad_*.py"))
        assert list((FIXTURES / rule.id.lower()).glob("good_*.py"))


def test_a_stale_patch_is_refused() -> None:
    path = FIXTURES / "c109" / "bad_dataset.py"
    (patch,) = next(f for f in audit([path]).findings if f.patch).patch
    with pytest.raises(ValueError, match="no longer reads"):
        applied(path.read_text(), (dataclasses.replace(patch, original="something else"),))

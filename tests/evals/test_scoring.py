"""The scorer itself: right, wrong, abstained and false alarms are told apart."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


scoring, fixing = beside("scoring"), beside("fixing")
eval_cases = beside("eval_cases")

TRUTH = {"healthy": False, "needs": "log", "accept": ["zero_grad"], "reject": ["learning rate"],
         "location": "train.py:30", "location_alt": []}
HEALTHY = {**TRUTH, "healthy": True, "accept": [], "reject": [], "location": None}


def cause(issue: str, confidence: float = 0.9, location: str | None = "train.py:32") -> dict[str, Any]:
    return {"issue": issue, "mechanism": "", "confidence": confidence, "location": location}


def result(causes: list[dict[str, Any]], hypotheses: list[dict[str, Any]] | None = None,
           findings: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    status = "diagnosis_complete" if causes else "needs_more_data"
    return {"status": status, "root_causes": causes, "hypotheses": hypotheses or causes, "findings": findings or []}


@pytest.mark.parametrize(("given", "outcome"), [
    (result([cause("zero_grad is missing")]), "right"),
    (result([cause("learning rate too high")]), "wrong"),
    (result([], [cause("learning rate too high", 0.4), cause("zero_grad is missing", 0.3)]), "third"),
    (result([], [cause("learning rate too high", 0.4)]), "abstained"),
    (result([], [cause("zero_grad is missing", 0.4)]), "right"),
    (result([]), "abstained"),
])
def test_outcomes_of_a_faulty_case(given: dict[str, Any], outcome: str) -> None:
    assert scoring.score("a", TRUTH, given, "code").outcome == outcome


def test_a_location_within_three_lines_counts() -> None:
    assert scoring.score("a", TRUTH, result([cause("zero_grad")]), "code").located is True
    assert scoring.score("a", TRUTH, result([cause("zero_grad", location="train.py:34")]), "code").located is False
    assert scoring.score("a", TRUTH, result([cause("zero_grad", location=None)]), "code").located is False


def test_a_healthy_case_is_an_alarm_when_any_serious_finding_is_reported() -> None:
    serious, remark = [{"severity": "high"}], [{"severity": "low"}, {"severity": "info"}]
    assert scoring.score("a", HEALTHY, result([], findings=remark), "log").outcome == "quiet"
    assert scoring.score("a", HEALTHY, result([], findings=serious), "log").outcome == "alarm"
    assert scoring.score("a", HEALTHY, result([cause("x")]), "log").outcome == "alarm"


def test_naming_a_tempting_cause_is_marked() -> None:
    both = result([cause("zero_grad is missing; the learning rate is fine")])
    assert scoring.score("a", TRUTH, both, "code").tempted is True


@pytest.mark.parametrize(("check", "output", "failed", "held"), [
    ("acc 0\\.9", "x\nacc 0.95\n", False, True),
    ("^acc 0\\.9", "x\nacc 0.85\n", False, False),
    ("acc 0\\.9", "acc 0.95\n", True, False),
    ("exit!=0", "", True, True),
    ("exit!=0 && Error", "ValueError: x", True, True),
    ("exit!=0 && Error", "fine", True, False),
    ("exit!=0", "", False, False),
])
def test_a_check_of_a_case_is_a_pattern_an_exit_code_or_both(check: str, output: str, failed: bool, held: bool) -> None:
    assert fixing.holds(check, output, failed=failed) is held


def scored(confidence: float, outcome: str) -> Any:
    return scoring.Score("c", "code", "log", False, outcome, None, confidence, "a cause", "diagnosis_complete")


def test_the_band_from_nine_tenths_on_must_be_right() -> None:
    kept = [scored(0.95, "right")] * 9 + [scored(0.95, "wrong"), scored(0.6, "abstained")]
    assert eval_cases.unreliable(kept) == []
    (missed,) = eval_cases.unreliable([*kept, scored(0.91, "wrong")])
    assert "9/11" in missed
    assert eval_cases.unreliable([]) == []


def test_reliability_is_told_by_band() -> None:
    told = list(eval_cases.reliability([scored(0.95, "right"), scored(0.75, "wrong"), scored(0.0, "abstained")]))
    assert told[-1].split()[-3:] == ["1/1", "(100", "%)"]
    assert "0/1" in next(t for t in told if "0.7 to 0.8" in t)

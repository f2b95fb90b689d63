"""Two faults that were each seen are both told; rivals share what is certain."""

from __future__ import annotations

from pathlib import Path

from traindx.diagnose import diagnose
from traindx.view import APART, BESIDE, View

GOOD = """
import torch
from torch import nn

net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(100):
    loss = nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 4, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TWO = GOOD.replace("    optimizer.zero_grad()\n", "").replace("net(torch", "torch.softmax(net(torch").replace(
    "8)), torch", "8)), -1), torch")


def test_two_faults_are_both_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TWO)
    report = diagnose([tmp_path / "train.py"])
    first, second = report.seen.verdict.hypotheses[:2]
    assert {first.mode.id, second.mode.id} == {"accum.zero-grad-missing", "loss.softmax-before-ce"}
    assert min(first.confidence, second.confidence) > 0.3


def test_one_fault_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GOOD.replace("    optimizer.zero_grad()\n", ""))
    report = diagnose([tmp_path / "train.py"])
    assert BESIDE.split(":")[0] not in report.terminal({}, verbose=True)


def hypotheses(*given: float) -> View:
    told = [{"issue": f"{i}", "confidence": c, "for": (), "against": ()} for i, c in enumerate(given)]
    return View({"status": "diagnosis_complete", "hypotheses": told})


def test_only_what_is_more_than_certain_together_is_explained() -> None:
    view = hypotheses(0.97, 0.97, 0.66, 0.03, 0.02)
    assert [view.beside(h) for h in view.hypotheses] == ["", BESIDE, APART, "", ""]


def test_rivals_share_what_is_certain() -> None:
    """Confidences of causes that are no neighbours of the first add up to no more than 1 with it."""
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.finding import Bearing, Finding, Location, Severity
    from traindx_tools.triage import rank

    nan = Finding(rule="L101", title="t", severity=Severity.CRITICAL, bearing=Bearing.SIGN, statement="nan",
                  where=Location(file="log.txt", line=4, step=4.0), source="log.txt", measured={"onset": "abrupt"})
    ranked = rank([nan], load_catalog())
    assert sum(h.confidence for h in ranked if h.speaks_for) <= 1


def test_code_without_a_log_is_counted_as_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GOOD)
    said = diagnose([tmp_path / "train.py"]).terminal({}, verbose=True)
    assert "What was read  no metrics, 1 file of code" in said
    assert "0 values" not in said

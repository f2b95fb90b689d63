"""Fixes that are believed only where something was seen: a newcomer's four cases, through the commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"

REPLACED_HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 96), nn.ReLU())
        self.fc = nn.Linear(96, 100)

    def forward(self, x):
        return self.fc(self.body(x))


torch.manual_seed(0)
model = Net()
opt = torch.optim.AdamW([
    {"params": model.body.parameters(), "lr": 1e-4},
    {"params": model.fc.parameters(), "lr": 1e-2},
])
model.fc = nn.Linear(96, 5)
x = torch.randn(256, 16)
y = x[:, :5].argmax(1)
for step in range(120):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")
"""


def traindx(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "traindx", *arguments], cwd=cwd, capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=240)


def begun(work: Path, verify: str, symptom: str = "loss is nan") -> dict[str, Any]:
    done = traindx("debug", ".", "--symptom", symptom, "--verify", verify, "--json", cwd=work)
    assert done.returncode == 1, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def shown(work: Path, session: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(traindx("show", session, "--json", cwd=work).stdout)
    return result


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "work"))


@pytest.mark.slow
def test_an_edit_that_the_command_does_not_execute_is_not_verified(work: Path) -> None:
    waiting = begun(work, f"{sys.executable} -c 'print(1)'")
    done = traindx("approve", waiting["session"], "--option", "A", cwd=work)
    assert done.returncode == 3, done.stderr
    assert "not verified, the change was not executed" in done.stdout
    after = shown(work, waiting["session"])
    assert (after["status"], after["verification"], after["strikes"]) == ("not_executed", "not_executed", 0)
    good = traindx("resume", waiting["session"], "--verify", f"{sys.executable} train.py", cwd=work)
    assert good.returncode == 0, good.stderr
    assert shown(work, waiting["session"])["verification"] == "fixed"


@pytest.mark.slow
def test_a_command_that_touches_no_training_shows_no_effect(work: Path) -> None:
    before = (work / "train.py").read_text()
    waiting = begun(work, "true")
    done = traindx("approve", waiting["session"], "--option", "A", cwd=work)
    assert done.returncode == 3, done.stderr
    assert "effect not shown" in done.stdout
    assert "verified (" not in done.stdout
    assert shown(work, waiting["session"])["verification"] == "passed_effect_not_shown"
    assert not (work / "scratch/debug/strikes.jsonl").exists()
    taken = traindx("resume", waiting["session"], "--failed", "--comment", "still nan", cwd=work)
    assert "taken back" in taken.stdout
    assert (work / "train.py").read_text() == before


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_head_that_was_replaced_after_the_optimizer_was_built(tmp_path: Path) -> None:
    """The diff neither raises nor leaves the fault, and the text says what happened."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(REPLACED_HEAD)
    audit = traindx("audit", "train.py", "--patch", cwd=tmp_path)
    assert "+model.fc = nn.Linear(96, 5)" in audit.stdout or "+opt = torch.optim.AdamW([" in audit.stdout
    assert '+    {"params": model.fc.parameters(), "lr": 1e-2},\n     {"params"' not in audit.stdout
    watched = traindx("run", "--", sys.executable, "train.py", cwd=tmp_path)
    assert watched.returncode == 0, watched.stderr
    waiting = begun(tmp_path, f"{sys.executable} train.py", "the model does not learn")
    assert "`fc` of Net" in waiting["diagnosis"]["root_cause"]
    assert "was replaced at train.py:21, after the optimizer was built at train.py:17" in (
        waiting["diagnosis"]["root_cause"])
    done = traindx("approve", waiting["session"], "--option", "A", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = shown(tmp_path, waiting["session"])["attempts"][0]["verification"]
    assert (after["result"], after["own_error"]) == ("fixed", "")
    assert any("loss, which should go down, went from" in c for c in after["compared"])


@pytest.mark.slow
def test_the_same_diff_is_not_offered_again_without_a_word(work: Path) -> None:
    first = begun(work, "false")
    assert [f["option"] for f in first["diagnosis"]["options"]] == ["A", "B"]
    traindx("approve", first["session"], "--option", "A", cwd=work)
    again = begun(work, "false")
    preferred, other = again["diagnosis"]["options"]
    assert (preferred["option"], other["option"]) == ("B", "A")
    assert "This diff was tried on " in other["change"]
    assert first["session"] in other["change"]
    assert f"--option {preferred['option']}" in again["next_step"]
    assert traindx("approve", again["session"], "--option", "A", cwd=work).returncode == 3
    again = begun(work, "false")
    assert all(not f["edits"] for f in again["diagnosis"]["options"]), "a diff that failed twice is not offered"
    traindx("approve", again["session"], "--option", "A", cwd=work)
    code = (work / "train.py").read_text()
    (work / "train.py").write_text(code.replace("EPS = 1e-12", "EPS = 1e-5"))
    last = traindx("resume", again["session"], cwd=work)
    assert last.returncode == 1, last.stderr
    report = Path(shown(work, again["session"])["documents"]["strike_report.md"]).read_text()
    assert "the verification failed; whether the symptom stayed was not measured" in report
    assert "did not remove the symptom" not in report
    standing = report.partition("Hypotheses that still stand")[2]
    assert "its fix was tried 1 time here" in standing.split("\n- ")[1]

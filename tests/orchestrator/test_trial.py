"""A change is tried before it is offered: parsed, audited, and run with consent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from traindx.hindrances import Change
from traindx.model import Verify
from traindx.trial import sound, what_fails
from traindx.trial_run import TrialRun
from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.finding import Finding, Patch
from traindx_tools.source_files.texts import Text, read_texts

REPLACED = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 96), nn.ReLU())
        self.fc = nn.Linear(96, 100)

    def forward(self, x):
        return self.fc(self.body(x))


model = Net()
opt = torch.optim.AdamW([
    {"params": model.body.parameters(), "lr": 1e-4},
    {"params": model.fc.parameters(), "lr": 1e-2},
])
model.fc = nn.Linear(96, 5)
for step in range(150):
    x, y = torch.randn(32, 16), torch.randint(0, 5, (32,))
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GROUP = '    {"params": model.fc.parameters(), "lr": 1e-2},\n'
TWICE = REPLACED.replace(GROUP, GROUP * 2)
RIGHT = REPLACED.replace("model.fc = nn.Linear(96, 5)\n", "").replace("opt = ", "model.fc = nn.Linear(96, 5)\nopt = ")


@pytest.fixture
def texts(tmp_path: Path) -> list[Text]:
    (tmp_path / "train.py").write_text(REPLACED)
    return read_texts([tmp_path / "train.py"])[0]


def failure(texts: list[Text], new: str) -> str:
    before = audit_texts(texts).findings
    assert [f.rule for f in before] == ["C276"]
    return what_fails(texts, {texts[0].path: new}, before)


def test_a_head_that_is_replaced_later_is_told_as_such_and_its_patch_passes(texts: list[Text]) -> None:
    found = audit_texts(texts).findings[0]
    assert "was replaced at" in found.statement
    assert "after the optimizer was built at" in found.statement
    assert found.patch
    assert sound([found], texts) == ((found,), {})
    assert failure(texts, RIGHT) == ""


def test_a_change_that_leaves_the_finding_is_not_offered(texts: list[Text]) -> None:
    assert "still finds C276" in failure(texts, TWICE)


def test_a_change_that_does_not_parse_is_not_offered(texts: list[Text]) -> None:
    assert "does not parse" in failure(texts, REPLACED + "(\n")


def test_a_change_that_brings_a_finding_is_not_offered(texts: list[Text]) -> None:
    assert "which is new" in failure(texts, RIGHT.replace("    opt.zero_grad()\n", ""))


def test_lines_that_moved_are_no_new_findings(tmp_path: Path) -> None:
    """The second fault stays where it was, two lines further down: it is not the change's doing."""
    two = RIGHT.replace("    opt.zero_grad()\n", "")
    (tmp_path / "train.py").write_text(two)
    texts = read_texts([tmp_path / "train.py"])[0]
    before = audit_texts(texts).findings
    assert [f.rule for f in before] == ["C101"]
    assert what_fails(texts, {texts[0].path: "# one\n# two\n" + two}, []) == ""


def test_a_file_that_did_not_parse_before_and_a_notebook_are_not_judged() -> None:
    broken = Text("old.py", "print 'python 2'\n", "")
    assert what_fails([broken], {"old.py": "print 'two'\n"}, []) == ""
    assert what_fails([Text("n.ipynb", "x = (", "")], {"n.ipynb": "x = ("}, []) == ""


def test_of_several_changes_the_one_that_fails_is_left_out(texts: list[Text]) -> None:
    found = audit_texts(texts).findings[0]
    at = REPLACED.split("\n").index(GROUP.rstrip("\n")) + 1
    bad = Patch(texts[0].path, at, at, GROUP.rstrip("\n"), (GROUP * 2).rstrip("\n"), "train fc too")
    offered, left_out = sound([Finding(**{**vars(found), "patch": (bad,)})], texts)
    assert offered[0].patch == ()
    assert "still finds C276" in left_out[bad]


LOOP = "rate = 10\nfor step in range(5):\n    print('step', step, 'loss', 1 / rate)\n"


def own_error(tmp_path: Path, before: str, after: str, command: str = f"{sys.executable} train.py") -> str:
    root = tmp_path / "work"
    root.mkdir()
    (root / "train.py").write_text(before)
    run = TrialRun(Verify(command=command), root, tmp_path / "scratch")
    found = run.own_error([Change("train.py", before, after)], {"train.py": after.encode()})
    assert (root / "train.py").read_text() == before
    assert not list((tmp_path / "scratch").glob("trials/*/*/copy"))
    assert run.own_error([], {"train.py": after.encode()}) == found, "remembered"
    return found


def test_an_error_of_its_own_disqualifies_a_change(tmp_path: Path) -> None:
    assert own_error(tmp_path, LOOP, LOOP.replace("10", "0")) == "ZeroDivisionError: division by zero"


def test_an_error_that_the_unfixed_code_has_as_well_does_not(tmp_path: Path) -> None:
    before = LOOP + "raise RuntimeError('step 4')\n"
    assert own_error(tmp_path, before, before.replace("10", "1").replace("step 4", "step 5")) == ""


@pytest.mark.parametrize(("after", "command"), [
    (LOOP.replace("10", "1"), f"{sys.executable} train.py"), (LOOP.replace("10", "0"), "true"),
    (LOOP.replace("10", "0"), "no-such-program")])
def test_a_run_that_shows_no_new_error_lets_it_pass(tmp_path: Path, after: str, command: str) -> None:
    assert own_error(tmp_path, LOOP, after, command) == ""


@pytest.mark.slow
def test_a_run_that_goes_on_is_ended_after_some_steps(tmp_path: Path) -> None:
    endless = "import time\nrate = 10\nwhile True:\n    time.sleep(0.05)\n    print('loss', 1 / rate, flush=True)\n"
    assert own_error(tmp_path, endless, endless.replace("10", "1")) == ""


def test_a_trial_of_a_change_is_said_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "train.py").write_text("x = 1\nprint('step 1 loss 0.5')\n")
    heard: list[str] = []
    run = TrialRun(Verify(command=f"{sys.executable} train.py"), root, tmp_path / "scratch", heard.append)
    changes = [Change("train.py", "x = 1\n", "x = 2\n")]
    for _ in range(2):
        assert run.own_error(changes, {"train.py": b"x = 2\nprint('step 1 loss 0.5')\n"}) == ""
    assert len(heard) == 1
    assert heard[0].startswith("the proposed change of train.py runs in a copy, 40 s at most")
    assert " since " in heard[0]

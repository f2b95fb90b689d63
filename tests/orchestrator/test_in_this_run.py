"""Fix texts say it for this run: its step, its command, its names, the line that is meant, where the metric stands."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from traindx.code_names import NO_NAMES, read_names
from traindx.diagnose import diagnose
from traindx.in_this_run import ThisRun, at_the_line, with_levels
from traindx.places import Places
from traindx.promised import promises_of
from traindx_tools.on_logs.run import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
CODE = "import torch\nnet = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nopt.step()\n"
KNOWN = ThisRun("step 1175", "step 1275", "python fit.py --fast", read_names([ast.parse(CODE)]))


@pytest.mark.parametrize(("generic", "here"), [
    ("rerun to ten times the failing step: no NaN", "run `python fit.py --fast` again to step 1275: no NaN"),
    ("the loss stays finite past the failing step", "the loss stays finite past step 1175"),
    ("look at the failing batch", "look at the batch of step 1175"),
    ("call optimizer.step() before scheduler.step()", "call opt.step() before scheduler.step()"),
    ("see optimizer.wrong-group", "see optimizer.wrong-group"),
    ("nothing of this run in it", "nothing of this run in it")])
def test_what_is_known_of_the_run_is_said(generic: str, here: str) -> None:
    assert KNOWN.told(generic) == here
    assert ThisRun().told(generic) == generic, "what is not known stays as the catalog says it"


def test_of_several_replacements_those_that_the_code_holds() -> None:
    text = "replace log(softmax(x)) by log_softmax(x), log(sigmoid(x)) by logsigmoid(x), BCELoss by BCEWithLogitsLoss"
    here = ThisRun(names=read_names([ast.parse("import math\ndef sigmoid(x):\n    return x\nmath.log(sigmoid(1))\n")]))
    assert here.told(text) == "replace log(sigmoid(x)) by logsigmoid(x)"
    assert ThisRun(names=NO_NAMES).told(text) == text
    assert here.told("replace this by that") == "replace this by that"


def test_the_line_is_quoted_where_it_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n# a comment\ny = '`'\n")
    places = Places(tmp_path)
    assert at_the_line("make it 2", ("train.py", 1), places) == "make it 2, in `x = 1`"
    for place in (("train.py", 2), ("train.py", 3), ("train.py", 99), ("nowhere.py", 1)):
        assert at_the_line("make it 2", place, places) == "make it 2"


def test_where_a_promised_metric_stands_promises_nothing_more() -> None:
    run = diagnose([EXAMPLES / "torch-softmax-ce" / "log.txt"]).seen.run
    said = with_levels("loss falls below 1; grad_norm grows", run)
    assert said.startswith("loss falls below 1; grad_norm grows (now: loss 1.27")
    assert promises_of(said) == promises_of("loss falls below 1; grad_norm grows")
    assert with_levels("loss falls", Run()) == "loss falls"
    assert with_levels("it is better", run) == "it is better"


def test_a_diagnosis_speaks_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))
    monkeypatch.chdir(work)
    made = diagnose(["."]).diagnosis
    assert made is not None
    first, second = made.options
    assert first.verify == "run `python train.py` again to step 1275: no non-finite loss or grad_norm"
    assert "past step 1175" in first.metric
    assert ", in `loss = -np.mean(label * np.log(prob) + " in second.instructions[0].text
    assert "softmax" not in second.instructions[0].text

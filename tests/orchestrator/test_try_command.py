"""`traindx try`: what is known of a program, how, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx import cli

TRAIN = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(100):
    loss = nn.functional.cross_entropy(net(torch.randn(3, 4)), torch.randint(0, 2, (3,)))
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
"""


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["try", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_entities_order_and_conditions_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    code, out, _ = ran(capsys, "train.py")
    assert code == 0
    assert "optimizer SGD, made at train.py:5: holds Sequential of train.py:4 [derived]" in out
    assert "loss cross_entropy at train.py:7: given logits (3, 2), classes (3,) [derived]" in out
    assert "expected order up to a step: 4 x (forward > loss > backward) > step" in out
    assert "    if once in 4 turns (line 9)" in out
    assert "unknown: nothing that was asked for" in out


def test_what_is_unknown_is_told_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("import helpers\n" + TRAIN + "helpers.finish(opt)\n")
    _, out, _ = ran(capsys, str(tmp_path / "train.py"))
    assert "unknown: helpers.finish at" in out
    assert "is given an optimizer, and its text is not known" in out


def test_json_holds_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    code, out, _ = ran(capsys, "--json", str(tmp_path / "train.py"))
    (told,) = json.loads(out)
    assert code == 0
    assert told["framework"] == "torch"
    assert told["usual_order"][0].startswith("4 x (forward > loss > backward) > step")
    assert any(m.strip().startswith("backward at line 8") for m in told["runs"][0]["moments"])


@pytest.mark.parametrize("text", ["def f(:\n", "\0\0", ""])
def test_what_cannot_be_read_is_an_error_that_says_what_to_give(text: str, tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text(text)
    code, out, err = ran(capsys, str(tmp_path / "broken.py"))
    assert (code == 2 and "give a file that ends in .py or .ipynb" in err) or (not text and code == 0)
    assert "Traceback" not in out + err


def test_nothing_given_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(capsys)
    assert code == 2
    assert "give a Python file" in err


def test_a_notebook_is_told_by_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    head, loop = TRAIN.split("for i", 1)
    cells = [{"cell_type": "code", "source": s} for s in (head, f"for i{loop}")]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))
    monkeypatch.chdir(tmp_path)
    code, out, _ = ran(capsys, "train.ipynb")
    assert code == 0
    assert "optimizer SGD, made at train.ipynb:cell 1:5: holds Sequential of train.ipynb:cell 1:4 [derived]" in out
    assert "if once in 4 turns (cell 2:4)" in out
    assert "run from train.ipynb:cell 1:1" in out
    (told,) = json.loads(ran(capsys, "--json", ".")[1])
    assert told["runs"][0]["at"] == "train.ipynb:cell 1:1"
    assert any(m.strip().startswith("backward at cell 2:3") for m in told["runs"][0]["moments"])

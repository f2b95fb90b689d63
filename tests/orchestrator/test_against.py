"""`traindx diagnose --against GOOD`: what a person sees and what a program parses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx import cli

CODE = """\
import torch
from torch import nn


def train(data):
    net = nn.Linear(3, 4)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in data:
        opt.zero_grad()
        nn.CrossEntropyLoss()(net(x), y).backward()
        opt.step()
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("good", "bad"):
        folder = tmp_path / name
        folder.mkdir()
        bad = name == "bad"
        rows = [f"step {10 * i} loss {2.3 / (1 + i / 50):.4f} grad_norm 1.{i % 7}0 lr {5.0 if bad else 0.001}"
                for i in range(50)]
        if bad:
            rows += [f"step {500 + 10 * i} loss {1.2 * 10 ** (i + 1):.4e} grad_norm {3.0 * 30 ** (i + 1):.4e} lr 5.0"
                     for i in range(8)] + [f"step {580 + 10 * i} loss nan grad_norm nan lr 5.0" for i in range(10)]
        else:
            rows += [f"step {500 + 10 * i} loss {1.15 - 0.01 * i:.4f} grad_norm 1.00 lr 0.001" for i in range(18)]
        (folder / "log.txt").write_text("\n".join([f"PyTorch version: 2.{4 if bad else 1}.0", *rows]) + "\n")
        (folder / "config.yaml").write_text(f"optimizer:\n  lr: {5.0 if bad else 0.001}\nbatch_size: 64\n")
        (folder / "train.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("sure_figures")
def test_the_comparison_is_in_the_result(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["diagnose", "bad", "--against", "good", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert set(found) == {"here", "there", "metrics", "only_here", "only_there", "settings", "versions", "code",
                          "ranked", "remarks", "events", "nearest", "data"}
    assert (found["here"], found["there"]) == (["bad"], ["good"])
    steps = {m["name"]: m["step"] for m in found["metrics"]}
    assert 490 <= steps["loss"] <= 520
    assert found["settings"][0]["statement"] == "optimizer.lr: 5.0 here, 0.001 there (5e+03 times as much)"
    assert found["versions"][0]["statement"] == "torch: 2.4.0 here, 2.1.0 there"
    assert found["ranked"][0]["undo"] == "set optimizer.lr to 0.001"
    assert "the diagnosis is about it" in "; ".join(found["ranked"][0]["why"])
    assert found["code"] == []


@pytest.mark.slow
def test_the_block_on_the_terminal_and_in_the_page(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "bad" / "train.py").write_text(CODE.replace("        opt.zero_grad()\n", ""))
    cli.run(["diagnose", "bad", "--against", "good", "--out", "out", "-v"])
    said = capsys.readouterr().out
    block = said[said.index("Beside the run that works"):said.index("Next commands")]
    assert "loss: " in block
    assert "-        opt.zero_grad()" in block
    flat = " ".join(block.split())
    assert "C101 is on a line that differs" in flat
    assert "Change one at a time and run again after each: take train.py from the working run" in flat
    assert "git diff --no-index good/train.py bad/train.py" in said
    page = (runs / "out" / "report.html").read_text()
    assert "Beside the run that works" in page
    assert (runs / "out" / "plots" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "take train.py from the working run" in page
    assert json.loads((runs / "out" / "diagnosis.json").read_text())["comparison"]["code"][0]["functions"] == ["train"]


@pytest.mark.usefixtures("sure_figures")
def test_a_log_alone_is_compared_too(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("good", "bad"):
        for other in ("train.py", "config.yaml"):
            (runs / name / other).unlink()
    assert cli.run(["diagnose", "bad/log.txt", "--against", "good/log.txt", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert any("no code was given with either run" in r for r in found["remarks"])


@pytest.mark.parametrize(("bad", "good", "words"), [
    ("bad", "bad", "is the run itself"), ("bad/log.txt", "bad/log.txt", "is the run itself"),
    ("bad", "bad/../bad", "as bad/../bad: nothing would differ"),
    (".", "good", "not two runs"), ("bad/log.txt", "bad", "not two runs"),
    ("bad", "nowhere", "nowhere"), ("bad", "", ""),
])
def test_what_is_no_other_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str], bad: str, good: str,
                                         words: str) -> None:
    assert cli.run(["diagnose", bad, "--against", good, "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert "Traceback" not in said.err


@pytest.mark.slow
def test_terminal_codes_of_the_other_run_do_not_reach_the_terminal(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "good" / "config.yaml").write_text('"lr\\e[31m": "\\e]0;x\\a"\n')
    (runs / "bad" / "train.py").write_text(CODE + "# \x1b[2J\n")
    cli.run(["diagnose", "bad", "--against", "good"])
    assert "\x1b" not in capsys.readouterr().out


def _course(rate: float, *, worse: bool) -> str:
    """Equal digit for digit for 120 records, then the learning rate is `rate`."""
    rows = []
    for i in range(170):
        up = 2.0 ** max(0, i - 120) if worse else 1.0
        rows.append(f"step {10 * i} loss {(0.35 + 1.9 * 0.97**i + 0.01 * (i % 3)) * up:.4f} "
                    f"lr {3e-4 if i < 120 else rate:.1e}")
    return "\n".join(rows) + "\n"


def test_a_rate_that_parts_first_moves_the_suspects(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.log").write_text(_course(2.7e-3, worse=True))
    (tmp_path / "good.log").write_text(_course(3e-4, worse=False))
    cli.run(["diagnose", "bad.log", "--against", "good.log", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["hypotheses"][0]["issue"].startswith("The learning rate")
    (parting,) = [f for f in found["findings"] if f["rule"] == "L802" and f["measured"].get("against")]
    assert parting["statement"].startswith("learning_rate is 0.0027 here and 0.0003 in the run that works, from step")
    assert any("and yet learning_rate does in the log" in r for r in found["comparison"]["remarks"])


def test_of_a_run_that_is_well_no_parting_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.log").write_text(_course(1e-4, worse=False))
    (tmp_path / "good.log").write_text(_course(3e-4, worse=False))
    cli.run(["diagnose", "one.log", "--against", "good.log", "--json"])
    assert not [f for f in json.loads(capsys.readouterr().out)["findings"] if f["rule"] == "L802"]


def test_a_loop_of_links_is_no_other_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text(_course(0.1, worse=False))
    (tmp_path / "good.log").symlink_to(tmp_path / "good.log")
    assert cli.run(["diagnose", str(tmp_path / "train.log"), "--against", str(tmp_path / "good.log")]) == 2
    assert "is a link that leads to itself" in capsys.readouterr().err

"""Only the files of the run are judged, blamed and changed; the output says which they are, and options change it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from traindx.cli import run as traindx
from traindx.mcp_paths import Reach
from traindx.mcp_tools import call
from traindx.session import SessionResult, run_debug_session_sync
from traindx_tools.errors import BadUsage

TRAIN = """import numpy as np
rng = np.random.default_rng(0); w = np.zeros(8); true = rng.normal(size=8)
for step in range(400):
    x = rng.normal(size=(64, 8)); err = x @ w - x @ true
    w -= 0.05 * 2 * x.T @ err / 64
    if step % 10 == 0:
        print(f"step {step} loss {float((err**2).mean()) + 0.1 + 0.01*rng.normal():.4f}")
"""
FAULTY = """import torch
from torch import nn
model = nn.Linear(4, 1); opt = torch.optim.SGD(model.parameters(), lr=0.1)
accum = 4
for i in range(100):
    x = torch.randn(8, 4); y = x.sum(1, keepdim=True)
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x), y) / accum
    loss.backward()
    if (i + 1) % accum == 0:
        opt.step()
    if i % 10 == 0:
        print(f"step {i} loss {loss.item():.4f}")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A healthy run with an old script beside it and one below it, which nothing imports."""
    home = tmp_path / "r1"
    (home / "old").mkdir(parents=True)
    (home / "train.py").write_text(TRAIN)
    (home / "old_experiment.py").write_text(FAULTY)
    (home / "old" / "regress.py").write_text(FAULTY)
    out = subprocess.run([sys.executable, "train.py"], cwd=home, capture_output=True, text=True, check=True)
    (home / "train.log").write_text(out.stdout)
    monkeypatch.chdir(tmp_path)
    return home


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = traindx(["diagnose", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("paths", [["r1"], ["r1/train.log"], ["r1/train.log", "r1/train.py"]])
def test_an_old_script_beside_a_healthy_run_is_not_blamed(paths: list[str], folder: Path,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    code, result = told(capsys, *paths)
    assert (code, result["status"]) == (0, "healthy")
    assert result["scope"]["entry"] == result["scope"]["judged"] == ["train.py"]
    assert "old_experiment.py" in result["scope"]["beside"]
    assert "old_experiment" not in json.dumps([result["findings"], result["hypotheses"]])


def test_a_new_run_judges_what_its_command_starts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = told(capsys, "r1/train.log", "r1/train.py", "--run", f"{sys.executable} train.py")
    assert (code, result["status"]) == (0, "healthy")
    assert result["scope"]["judged"] == ["train.py"]
    assert "the command starts it" in result["scope"]["how"]


def test_the_first_lines_say_what_was_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traindx(["diagnose", "r1"])
    first = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    assert "Judged train.py (entry point train.py: train.log has its name)." in first
    assert "2 files beside it were not judged: old_experiment.py, old/regress.py." in first
    assert "--entry FILE" in first
    assert "--all" in first


def test_entry_and_all_change_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = told(capsys, "r1", "--entry", "r1/old_experiment.py")
    assert code in (1, 3)
    assert result["scope"]["judged"] == ["old_experiment.py"]
    assert "C113" in {f["rule"] for f in result["findings"]}
    code, result = told(capsys, "r1", "--all")
    assert code in (1, 3)
    assert result["scope"]["beside"] == []


@pytest.mark.parametrize("entry", ["nowhere.py", "r1/train.log", "r1"])
@pytest.mark.parametrize("command", ["diagnose", "debug"])
def test_a_wrong_entry_is_bad_usage(command: str, entry: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert traindx([command, "r1", "--entry", entry]) == 2
    error = capsys.readouterr().err
    assert f"--entry {entry}" in error
    assert "Traceback" not in error


def evidence(result: SessionResult) -> str:
    return (Path(result.folder) / "journal.jsonl").read_text()


def test_a_session_judges_what_its_verification_starts(folder: Path) -> None:
    (folder / "train.log").rename(folder / "out.txt")  # no name that tells, and a print that both scripts have
    assert "C113" not in evidence(run_debug_session_sync("", folder, verify=f"{sys.executable} train.py", report=False))
    other = run_debug_session_sync("", folder, verify=f"{sys.executable} old_experiment.py", report=False)
    assert "C113" in evidence(other)


def test_a_session_takes_an_entry(folder: Path) -> None:
    other = run_debug_session_sync("", folder, entry=folder / "old_experiment.py", report=False)
    assert "C113" in evidence(other)
    assert "C113" not in evidence(run_debug_session_sync("", folder, entry="train.py", report=False))
    with pytest.raises(BadUsage, match="does not exist"):
        run_debug_session_sync("", folder, entry="nowhere.py")


def test_the_mcp_tool_tells_the_scope(folder: Path) -> None:
    def ask(**arguments: Any) -> dict[str, Any]:
        answer = call("diagnose_run", {"max_chars": 50_000, **arguments}, Reach.of(folder), print)
        made: dict[str, Any] = json.loads(answer)
        return made

    assert ask(paths=["."])["scope"]["judged"] == ["train.py"]
    assert ask(paths=["."], entry=["old_experiment.py"])["scope"]["judged"] == ["old_experiment.py"]
    assert ask(paths=["."], everything=True)["scope"]["beside"] == []
    assert ask(paths=["train.log", "old_experiment.py"])["scope"]["judged"] == ["old_experiment.py"]
    with pytest.raises(BadUsage, match="does not exist"):
        ask(paths=["."], entry=["nowhere.py"])


@pytest.mark.slow
def test_a_new_run_names_places_as_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vae").mkdir()
    (tmp_path / "vae" / "train_vae.py").write_text("print('step 0 loss 1.0')\nraise ValueError('no')\n")
    monkeypatch.chdir(tmp_path)
    _, result = told(capsys, "vae", "--run", f"{sys.executable} train_vae.py")
    text = json.dumps({**result, "analysis_artifacts": {}})
    assert "vae/train_vae.py" not in text.replace(str(tmp_path), "")
    assert "/rerun/" not in text


RUN = "".join(f"epoch {i} loss {2.3 * 0.9**i:.4f} lr {0.1 * (1 - i / 20):.5f}\n" for i in range(20))


def test_several_runs_in_one_log_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    half = RUN[: len(RUN) // 2].rpartition("\n")[0]
    log.write_text(f"{half}\nepoch 10 loss nan lr 0.05\nepoch 11 loss nan lr 0.05\n{RUN}")
    assert traindx(["diagnose", str(log)]) == 0
    first = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    assert "Run 2 of 2 (run.log, from line" in first
    assert "Run 1 of 2 (run.log, lines 1 to" in first
    assert "nan" in first
    code, result = told(capsys, str(log), "--which", "1")
    assert code != 0
    assert (result["judged_run"], [r["number"] for r in result["runs"]]) == (1, [1, 2])
    assert traindx(["diagnose", str(log), "--which", "3"]) == 2
    assert "there is no run 3" in capsys.readouterr().err

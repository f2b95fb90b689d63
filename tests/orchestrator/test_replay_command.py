"""`traindx replay STEP --run CMD`: the program started in a protected copy, the captured step put in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from traindx.cli import run as traindx
from traindx_tools.live.step_file import steps_in

PROGRAM = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(1024, 8)
y = x[:, :1] + 0.1 * torch.randn(1024, 1)
x[777, 3] = float("inf")
open("written_by_the_program", "w").write("here")
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True)
for epoch in range(3):
    for a, b in loader:
        loss = nn.functional.mse_loss(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            sys.exit("not finite")
        optimizer.step()
"""
COMMAND = f"{sys.executable} train.py"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(folder)
    assert traindx(["run", "--snapshot", "--second-pass", "never", "--out", "run", "--", *COMMAND.split()]) == 1
    (folder / "written_by_the_program").unlink()
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_step_is_replayed_bit_for_bit_and_the_project_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {p: p.stat().st_mtime_ns for p in home.rglob("*")}
    capsys.readouterr()
    assert traindx(["replay", "run", "--run", COMMAND, "--json"]) == 1
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["why"] == ""
    assert told["study"]["exact"] is True
    assert told["study"]["row_numbers"] == [777]
    assert {f["rule"] for f in told["findings"]} == {"T101", "X301"}
    assert all("replays/copies" not in f["statement"] for f in told["findings"])
    after = {p: p.stat().st_mtime_ns for p in home.rglob("*") if "scratch" not in p.parts}
    assert {p: t for p, t in before.items() if p.is_file()} == {p: t for p, t in after.items() if p.is_file()}
    folder = home / "scratch/debug/replays"
    assert not list((folder / "copies").glob("run-*"))
    assert next(folder.glob("rank*/*.md")).read_text().startswith("# Step ")

    assert traindx(["replay", str(steps_in(home / "run")[0]), "--run", COMMAND]) == 1
    out = capsys.readouterr().out
    assert "without a change it is the captured step bit for bit (loss and update)" in out
    assert "  rows-left-out " in out
    assert "first output that is not finite: 0 (Linear)" in out

    traindx(["data", "run"])
    assert "a step that `traindx run --snapshot` kept, and no data" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_keeps_a_step_from_being_replayed_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = str(steps_in(home / "run")[0])
    capsys.readouterr()
    (home / "train.py").write_text(PROGRAM.replace("32, 1)", "32, 2)"))
    assert traindx(["replay", step, "--run", COMMAND]) == 3
    assert "the program's Sequential is another one: `4.weight` is [2, 32] there and was [1, 32]" in \
        capsys.readouterr().out
    (home / "train.py").write_text("raise ValueError('no data')\n")
    assert traindx(["replay", step, "--run", COMMAND]) == 3
    assert "not replayed: the program ended before its first step: ValueError: no data" in capsys.readouterr().out


def test_a_step_is_not_run_without_consent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = tmp_path / "rank00000-step00000001-loss.step.npz"
    step.write_bytes(b"")
    assert traindx(["replay", str(step)]) == 2
    assert "add --run CMD" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "said"), [("missing.step.npz", "is no step that traindx captured"),
                                            (".", "holds no captured step: `traindx run --snapshot"),
                                            ("train.py", "is no captured step: one is")])
def test_what_is_no_step_is_said(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    assert traindx(["replay", name, "--run", "python train.py"]) == 2
    assert said in capsys.readouterr().err


def test_why_no_step_was_kept_is_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {"kind": "step", "step": 9, "symptom": "loss", "failed": "the step holds 9.0 GiB and at most 2.0 GiB"}
    (tmp_path / "rank00000.jsonl").write_text(json.dumps(record) + "\n")
    assert traindx(["replay", str(tmp_path), "--run", "python train.py"]) == 2
    assert "step 9 went wrong and was not kept: the step holds 9.0 GiB" in capsys.readouterr().err


def test_several_steps_are_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (3, 4):
        (tmp_path / f"rank00000-step0000000{number}-loss.step.npz").write_bytes(b"")
    assert traindx(["replay", str(tmp_path), "--run", "python train.py"]) == 2
    assert "holds 2 captured steps: name one of them" in capsys.readouterr().err

"""Experiments on torch programs: instruments change no result, and changes inside the process take hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from traindx.cli import run as traindx
from traindx.experiment_place import ProtectedPlace
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.preparing import preparing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
x = torch.randn(256, 8)
y = x.sum(1, keepdim=True)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True)
for epoch in range(3):
    for a, b in loader:
        loss = ((model(a) - b) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), flush=True)
"""
COMMAND = f"{sys.executable} train.py"


def project(tmp_path: Path, rate: str) -> Path:
    home = tmp_path / "project"
    home.mkdir()
    (home / "train.py").write_text(PROGRAM.replace("RATE", rate))
    return home


def test_a_control_has_the_losses_of_a_bare_run_bit_for_bit(tmp_path: Path) -> None:
    home = project(tmp_path, "0.01")
    place = ProtectedPlace(home, tmp_path / "runs")
    environment = {**os.environ, "OMP_NUM_THREADS": str(place.threads), "MKL_NUM_THREADS": str(place.threads)}
    bare = subprocess.run([sys.executable, "train.py"], cwd=home, capture_output=True, text=True, check=True,
                          env=environment, timeout=300).stdout
    prepare = preparing(COMMAND, home)
    control = place.run(prepare(Change(), 0), lambda _: False, seconds=300)
    hooks = place.run(prepare(Change("placebo"), 0), lambda _: False, seconds=300)
    other = place.run(prepare(Change(), 1), lambda _: False, seconds=300)
    printed = [(t.folder / "output.log").read_text() for t in (control, hooks, other)]
    assert len(bare.splitlines()) == 24
    assert printed[0] == bare
    assert printed[1] == bare
    assert printed[2] != bare, "a placebo has another seed"
    measured = control.curves["live/loss"].values.tolist()
    assert measured == [float.fromhex(x) for x in bare.split()]


def test_a_learning_rate_is_proved_and_what_is_not_used_is_said(tmp_path: Path,
                                                                 capsys: pytest.CaptureFixture[str]) -> None:
    home = project(tmp_path, "50.0")
    code = traindx(["experiment", str(home), "--run", COMMAND, "--change", "learning-rate:times=0.001", "--change",
                    "no-clipping", "--symptom", "the loss is NaN", "--budget", "580", "--json"])
    told = json.loads(capsys.readouterr().out)["experiments"]
    assert code == 1
    assert [(e["id"], e["verdict"]) for e in told] == [("X001", "removes"), ("X002", "inconclusive")]
    assert told[0]["controls"][0] <= 4, "a NaN at step 3 ends at step 3"
    assert all(r["stopped"] == "decided" for r in told[0]["runs"] if r["run"].startswith("control"))
    assert "took hold nowhere" in told[1]["statement"]

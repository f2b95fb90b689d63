"""Pipes that have the names of what is read beside a log: nobody writes to them, so opening one would wait for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.stores import mlflow_files

TRAINS = """\
import json
import torch

settings = json.load(open("settings.json"))
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(300):
    optimizer.zero_grad()
    loss = model(torch.zeros(3)).sum()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item()}")
"""
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {t} loss {3 / (1 + t / 50):.4f}\n" for t in range(300)))
    return path


@pytest.mark.parametrize("name", ["notes.ipynb", "run.sh", "data.py", "settings.json", "meta.yaml", "run-1.wandb",
                                  "traindx.toml", "events.out.tfevents.1.host.1.0", "rank_1.log", "mlflow.db"])
def test_a_pipe_beside_the_log_is_left_alone(log: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    (log.parent / "train.py").write_text(TRAINS)
    os.mkfifo(log.with_name(name))
    assert diagnose([log]).run.find("loss")
    assert diagnose(["."]).run.find("loss")


def test_a_real_notebook_beside_the_log_is_read_all_the_same(log: Path) -> None:
    os.mkfifo(log.with_name("a.ipynb"))
    log.with_name("b.ipynb").write_text('{"nbformat": 4, "metadata": {}, "cells": []}')
    assert diagnose([log]).run.find("loss")


def test_a_run_of_mlflow_whose_description_is_a_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.yaml")
    mlflow_files.forget()
    assert not mlflow_files.is_run(tmp_path)
    with pytest.raises(UnreadableInput, match="a pipe, socket or device"):
        diagnose([tmp_path])

"""Every command that a diagnosis prints works as it is pasted: it is run here, in many situations, and none refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from traindx import cli, group
from traindx.diagnose import diagnose
from traindx.next_steps import code_above
from traindx.rerun import with_rerun

TRAIN = """import torch
import torch.nn.functional as F
net = torch.nn.Linear(4, 10)
opt = torch.optim.SGD(net.parameters(), lr=10000.0)
for step in range(60):
    loss = F.cross_entropy(net(torch.randn(8, 4)), torch.zeros(8).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f} acc 0.1")
"""
FLAT = "".join(f"step {i} loss {2.302 + 0.001 * (i % 3):.4f} acc 0.101\n" for i in range(60))
NAN = "".join(f"step {i} loss {2 - i / 100:.4f}\n" for i in range(40)) + "step 40 loss nan\n" * 20
TRAINS = (" --run ", " -- ", "traindx experiment ", "traindx debug ", "traindx replay ")
"""Commands that run the training or change it: of these the words are checked, and nothing is run."""


def notebook(folder: Path) -> Path:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
              "source": TRAIN.splitlines(keepends=True)}]
    path = folder / "train.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def weights(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(folder / "weights.npz", **{"head.weight": rng.normal(size=(4, 4)), "head.bias": np.zeros(4)})


def data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name, scale in (("train", 1.0), ("val", 16.0)):
        np.savez(folder / f"{name}.npz", x=scale * rng.random((400, 8)).astype("float32"), y=rng.integers(0, 3, 400))


def make(folder: Path, situation: str) -> list[str]:
    """The files of a situation; the paths that are given for it."""
    if "checkpoint" in situation:
        weights(folder)
    if "data" in situation:
        data(folder)
    if "notebook" in situation:
        notebook(folder)
    for name, text in FILES.get(situation, {}).items():
        written(folder, name, text)
    return GIVEN.get(situation, [*FILES.get(situation, {})])


FILES: dict[str, dict[str, str]] = {
    "a flat log": {"log.txt": FLAT},
    "a log with NaN": {"log.txt": NAN},
    "a text": {"log.txt": "hello\nworld\n"},
    "numbers without names": {"log.txt": "".join(f">> {i}: {i / 9:.3f} / 1\n" for i in range(60))},
    "a traceback": {"log.txt": 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
                               "RuntimeError: CUDA out of memory\n"},
    "code": {"train.py": TRAIN},
    "a notebook": {},
    "a notebook and its log": {"log.txt": FLAT},
    "a folder": {"train.py": TRAIN, "log.txt": FLAT},
    "a log in a folder": {"runs/one/log.txt": FLAT},
    "a log below its code": {"train.py": TRAIN, "runs/log.txt": FLAT},
    "a file with an odd name": {"my log; x.txt": FLAT},
    "a checkpoint and a log": {"log.txt": FLAT},
    "data and a notebook": {},
    "a folder with data and a log": {"log.txt": FLAT},
}
GIVEN = {"a notebook": ["train.ipynb"], "a notebook and its log": ["train.ipynb", "log.txt"], "a folder": ["."],
         "a log below its code": ["runs/log.txt"], "a checkpoint and a log": ["weights.npz", "log.txt"],
         "data and a notebook": ["train.ipynb"], "a folder with data and a log": ["."]}


def words_are_known(command: str) -> bool:
    program, name, *arguments = shlex.split(command)
    found = group.traindx.get_command(click.Context(group.traindx), name)
    options = {o for p in found.params for o in (*p.opts, *p.secondary_opts)} if found else set()
    ours = arguments[:arguments.index("--")] if "--" in arguments else arguments
    return program == "traindx" and all(a in options for a in ours if a.startswith("--"))


@pytest.mark.parametrize("situation", FILES)
def test_every_next_command_works(situation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    """With and without a symptom; what both name is run once."""
    monkeypatch.chdir(tmp_path)
    given = make(tmp_path, situation)
    told = [c for s in ("", "the loss does not fall") for c in diagnose(given, symptom=s).next_checks]
    for command in dict.fromkeys(told):
        if not command.startswith("traindx "):
            continue
        assert words_are_known(command), command
        if not any(part in command for part in TRAINS):
            code = cli.run(tuple(shlex.split(command)[1:]))
            assert code != 2, f"{command}\n{capsys.readouterr().err}"


def test_a_run_in_a_copy_names_no_path_that_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    written(work, "job.py", "for i in range(60):\n    print(f'step {i} loss 2.302 acc 0.1')\n")
    monkeypatch.chdir(work)
    report = with_rerun(diagnose(["job.py"], symptom="the loss does not fall"), "python job.py", work,
                        tmp_path / "rerun", 60, 0)
    assert report.seen.records
    for command in report.next_checks:
        words = shlex.split(command)
        assert "copy" not in words, command
        assert str(tmp_path / "rerun") not in command


def test_no_folder_above_where_one_stands_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "train.py", TRAIN)
    log = written(tmp_path, "runs/one/log.txt", FLAT)
    monkeypatch.chdir(log.parent)
    assert code_above(["log.txt"]) is None
    assert code_above([str(log.parent)]) is None
    monkeypatch.chdir(tmp_path)
    assert code_above(["runs/one/log.txt"]) == tmp_path
    monkeypatch.chdir(tmp_path / "runs")
    assert code_above([str(log)]) is None
    written(log.parent, "train.py", TRAIN)
    monkeypatch.chdir("/")
    assert code_above([str(log)]) == log.parent, "the folder of a log is where it was given from"

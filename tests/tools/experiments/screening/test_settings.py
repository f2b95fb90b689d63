"""What can be changed in a program, read from its text: settings with their values, files named alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.interventions import prepare
from traindx_tools.experiments.interventions.writing.program import Program
from traindx_tools.experiments.screening.arms import alike, arms_of
from traindx_tools.experiments.screening.settings import settings_of
from traindx_tools.experiments.screening.values import other_values

SCRIPT = '''
import argparse, json
from dataclasses import dataclass
WIDTH = 32
@dataclass
class Config:
    dropout: float = 0.5
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--schedule", default="cosine", choices=["cosine", "constant"])
    parser.add_argument("--nesterov", action="store_true")
    parser.add_argument("--widths", nargs="+", default=[1, 2])
    args = parser.parse_args()
    config = json.load(open("run.json"))
    if config["loss"]["kind"] == "focal":
        pass
    elif config["loss"]["kind"] == "plain":
        pass
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.json").write_text('{"loss": {"kind": "focal", "gamma": 2.0}, "WIDTH": 16, "list": [1, 2],\n'
                                       ' "stats": "stats_old.json"}\n')
    (tmp_path / "stats_old.json").write_text("{}")
    (tmp_path / "stats_new.json").write_text("{}")
    return tmp_path


def test_options_keys_and_defaults_with_their_values(project: Path) -> None:
    found = {s.typed: (s.value, s.choices) for s in settings_of(Program("python train.py --lr 3.0", project))}
    assert found == {
        "lr": (3.0, ()), "schedule": ("cosine", ("constant",)), "nesterov": (False, ()),
        "run.json:loss.kind": ("focal", ("plain",)), "run.json:loss.gamma": (2.0, ()), "run.json:WIDTH": (16, ()),
        "run.json:stats": ("stats_old.json", ("stats_new.json",)), "train.py:Config.dropout": (0.5, ())}


def test_every_arm_can_be_made_and_changes_one_place(project: Path) -> None:
    arms = arms_of("python train.py", project, ["settings"])
    for arm in arms:
        made = prepare(arm.change, "python train.py", project)
        assert (made.command != "python train.py") + len(made.files) == 1, arm.said
    assert [a.said for a in arms][:3] == ["lr: 0.1 -> 0.01", "schedule: cosine -> constant", "nesterov: False -> True"]


@pytest.mark.parametrize(("value", "others"), [
    (True, (False,)), (0, (1,)), (1, (4, 0)), (8, (2, 32)), (1000, (250, 20, 4000)), (-1, (1,)), (0.0, (0.1,)),
    (0.999, (0.99, 0.9999)),
    (0.9, (0.0, 0.99)), (1e-8, (1e-9, 1e-7)), (0.5, (0.05, 0.75)), (0.001, (0.0001, 0.01)), (2.0, (0.2, 20.0)),
    ("text", ()), (float("nan"), ()), (float("inf"), ())])
def test_other_values_lie_well_apart(value: object, others: tuple[object, ...]) -> None:
    assert other_values(value) == others  # type: ignore[arg-type]


def test_files_named_alike(tmp_path: Path) -> None:
    for name in ("part-1.npz", "part-2.npz", "part-3.npz", "train.csv", "fold1.csv", "fold2.csv", "run-1.py",
                 "run-2.py", "run-3.py"):
        (tmp_path / name).write_text("x")
    assert list(alike(tmp_path)) == [["part-1.npz", "part-2.npz", "part-3.npz"]]


def test_what_cannot_be_screened_is_said(project: Path) -> None:
    with pytest.raises(BadUsage, match=r"--screen takes settings, files, stages.*got layers"):
        arms_of("python train.py", project, ["layers"])
    with pytest.raises(BadUsage, match="starts no Python file"):
        arms_of("make train", project)


def test_damaged_configurations_are_passed_over(project: Path) -> None:
    (project / "run.json").write_text("{")
    assert "lr" in {s.typed for s in settings_of(Program("python train.py", project))}

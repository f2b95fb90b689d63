"""Files whose names, or those of their folders, say together on which data their values were measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.on_logs import Run, read_run

FALLS = [round(1.2 * math.exp(-i / 10) + 0.1, 5) for i in range(40)]
RISES = [round(v + 0.0004 * i * i, 5) for i, v in enumerate(FALLS)]
TRAIN, HELD = ("loss", FALLS), ("loss", RISES)


def table(path: Path, name: str, values: list[float], more: str = "", end: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    head, cell = (f",{more}", ",0.001") if more else ("", "")
    path.write_text(f"step,{name}{head}\n" + "".join(f"{i},{v}{cell}\n" for i, v in enumerate(values)) + end)
    return path


def groups(run: Run) -> dict[str, str]:
    return {s.source.replace("\\", "/").split("//")[-1]: s.group for s in run.series}


def read(root: Path, *files: tuple[str, tuple[str, list[float]]], more: str = "") -> dict[str, str]:
    for name, (metric, values) in files:
        table(root / name, metric, values, more=more)
    return {Path(k).relative_to(root).as_posix(): g for k, g in groups(read_run([root])).items()}


@pytest.mark.parametrize(("train", "held", "group"), [
    ("train/a.csv", "validation/b.csv", "validation"), ("Train/a.csv", "Val/a.csv", "validation"),
    ("learn_error.csv", "test_error.csv", "test"), ("loss_train.csv", "loss_val.csv", "validation"),
    ("train.csv", "eval.csv", "validation"), ("x/train/a.csv", "x/test/a.csv", "test")])
def test_what_two_names_say_together_is_the_group(train: str, held: str, group: str, tmp_path: Path) -> None:
    assert read(tmp_path, (train, TRAIN), (held, HELD)) == {train: "train", held: group}


@pytest.mark.parametrize(("one", "other"), [
    ("a/a.csv", "validation/b.csv"), ("train_a.csv", "val_b.csv"), ("x/train/a.csv", "y/validation/a.csv"),
    ("train-val.csv", "train-test.csv"), ("trains.csv", "values.csv"), ("train-small/a.csv", "test-small/a.csv")])
def test_other_names_say_nothing(one: str, other: str, tmp_path: Path) -> None:
    assert set(read(tmp_path, (one, TRAIN), (other, HELD)).values()) == {"train"}


def test_a_file_of_a_training_is_one_whatever_it_is_called(tmp_path: Path) -> None:
    assert set(read(tmp_path, ("train/a.csv", TRAIN), ("test/a.csv", HELD), more="learning_rate").values()) == {"train"}


def test_names_that_tell_their_own_group_and_other_metrics_stay(tmp_path: Path) -> None:
    assert set(read(tmp_path, ("train/a.csv", TRAIN), ("val/a.csv", ("train/loss", RISES))).values()) == {"train"}
    assert set(read(tmp_path / "2", ("train/a.csv", TRAIN), ("val/a.csv", ("reward", RISES))).values()) == {"train"}


def test_a_file_that_is_cut_and_one_that_is_none_cost_nothing_else(tmp_path: Path) -> None:
    table(tmp_path / "train" / "a.csv", "loss", FALLS)
    table(tmp_path / "validation" / "a.csv", "loss", RISES, end="41,0.")
    (tmp_path / "validation" / "b.csv").write_bytes(b"\x00\xff" * 40)
    assert sorted(groups(read_run([tmp_path])).values()) == ["train", "validation"]


def test_the_folders_of_summaries_are_one_run_whose_overfitting_is_told(tmp_path: Path) -> None:
    """The layout of `keras.callbacks.TensorBoard`."""
    for folder, values in (("train", FALLS), ("validation", RISES)):
        table(tmp_path / "logs" / folder / "summary.csv", "epoch_loss", values)
    seen = examine([tmp_path / "logs"], root=tmp_path)
    assert len(seen.runs) <= 1
    assert {f.rule for f in seen.findings} >= {"L203"}

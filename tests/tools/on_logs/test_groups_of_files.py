"""Files whose names, or those of their folders, say together on which data their values were measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.each_run import each_run
from traindx_tools.on_logs.reading import joined, read_parts

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


def again(path: Path, values: list[float], times: int = 3) -> None:
    """A table to which each of several runs has appended its rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("step,loss\n" + "".join(f"{i},{v}\n" for _ in range(times) for i, v in enumerate(values)))


def test_a_group_of_a_files_name_stays_where_the_file_holds_several_runs(tmp_path: Path) -> None:
    again(tmp_path / "train" / "a.csv", FALLS)
    again(tmp_path / "validation" / "a.csv", RISES)
    runs = [joined(one.reading) for one in each_run(read_parts([tmp_path]))]
    assert [{s.group: len(s) for s in run.series} for run in runs] == [{"train": 40, "validation": 40}] * 3
    assert all(s.values.tolist() == (FALLS if s.group == "train" else RISES) for run in runs for s in run.series)


def test_several_runs_of_one_file_take_no_group_from_another_that_says_its_own(tmp_path: Path) -> None:
    again(tmp_path / "train" / "a.csv", FALLS)
    table(tmp_path / "val" / "a.csv", "train/loss", RISES)
    runs = [joined(one.reading) for one in each_run(read_parts([tmp_path]))]
    assert {s.group for run in runs for s in run.series} == {"train"}
    assert len(runs) == 3


@pytest.mark.parametrize("kept", ["", "step,loss\n", "step,loss\n0,\n0,x\n\x00\n"])
def test_an_empty_file_beside_several_runs_changes_nothing(tmp_path: Path, kept: str) -> None:
    again(tmp_path / "train" / "a.csv", FALLS)
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation" / "a.csv").write_text(kept)
    assert [len(joined(one.reading).series) for one in each_run(read_parts([tmp_path]))] == [1, 1, 1]


def test_columns_named_by_the_code_stand_in_the_group_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nnet = torch.nn.Linear(4, 1)\nfor epoch in range(20):\n    for x, y in batches():\n"
        "        cost = ((net(x) - y) ** 2).mean()\n        cost.backward()\n    print(epoch, cost.item())\n")
    for name, values in (("loss_train.txt", FALLS), ("loss_val.txt", RISES)):
        (tmp_path / name).write_text("".join(f"{i} {v}\n" for i, v in enumerate(values)))
    run = read_run([tmp_path / "loss_train.txt", tmp_path / "loss_val.txt"])
    assert {s.group: s.values.tolist() for s in run.series} == {"train": FALLS, "validation": RISES}

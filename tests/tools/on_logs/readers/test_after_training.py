"""Held-out values without a counter stand at the step of the training before them; an own counter wins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run

EVERY = range(10, 70, 10)


def rows(first: bool = False) -> Iterator[dict[str, float]]:
    if first:
        yield {"val_loss": 3.5}
    for step in range(1, 61):
        yield {"step": step * 10, "loss": round(3 - step / 30, 4)}
        if step in EVERY:
            yield {"val_loss": round(3.2 - step / 30, 4), "val_acc": step / 100}


def written(folder: Path, form: str, told: list[dict[str, float]]) -> Run:
    names = list(dict.fromkeys(n for row in told for n in row))
    lines = {"log": [" ".join(f"{n.replace('val_', 'val ')} {v}" for n, v in r.items()) for r in told],
             "jsonl": [json.dumps(r) for r in told],
             "csv": [",".join(names), *(",".join(str(r.get(n, "")) for n in names) for r in told)]}[form]
    (folder / f"train.{form}").write_text("".join(f"{line}\n" for line in lines))
    return read_run([folder / f"train.{form}"])


def of(run: Run, group: str = "validation", name: str = "loss") -> Series:
    (series,) = [s for s in run.series if (s.name, s.group) == (name, group)]
    return series


@pytest.mark.parametrize("form", ["log", "jsonl", "csv"])
def test_held_out_values_stand_at_the_step_before_them(tmp_path: Path, form: str) -> None:
    run = written(tmp_path, form, list(rows()))
    assert of(run).step.tolist() == of(run, name="accuracy").step.tolist() == [10.0 * s for s in EVERY]
    assert of(run, "train").step.tolist() == [10.0 * s for s in range(1, 61)]


@pytest.mark.parametrize("form", ["log", "jsonl", "csv"])
def test_an_evaluation_before_the_first_step_stands_at_0(tmp_path: Path, form: str) -> None:
    assert of(written(tmp_path, form, list(rows(first=True)))).step.tolist() == [0, *(10.0 * s for s in EVERY)]
    resumed = [{k: v + 5_000 if k == "step" else v for k, v in r.items()} for r in rows(first=True)]
    assert of(written(tmp_path, form, resumed)).unit == "line"  # of a run that goes on nobody knows where it stood


@pytest.mark.parametrize("form", ["log", "jsonl", "csv"])
@pytest.mark.parametrize("counted", ["epoch", "step"])
def test_an_own_counter_wins(tmp_path: Path, form: str, counted: str) -> None:
    told = [{"epoch": 1 + (len(r) < 2), **r} for r in rows()]
    told = [{**({counted: i} if "val_loss" in r else {"epoch": 1 + i // 11, "step": r.get("step", 0)}),
             **{k: v for k, v in r.items() if k not in ("epoch", "step")}} for i, r in enumerate(told)]
    held_out = of(written(tmp_path, form, told))
    own = [i for i, r in enumerate(told) if "val_loss" in r]
    assert (held_out.epoch if counted == "epoch" else held_out.step).tolist() == own
    assert np.isnan(held_out.step if counted == "epoch" else held_out.epoch).all()


def test_epochs_are_taken_over_as_well(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"epoch {e} loss {2 - e / 10}\nval loss {2.2 - e / 10}\n" for e in range(1, 9)))
    held_out = of(read_run([log]))
    assert held_out.epoch.tolist() == list(range(1, 9))
    assert np.isnan(held_out.step).all()


def test_the_batches_of_an_evaluation_are_no_records_of_a_step(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {s} loss {2 - s / 100}\n" + "".join(f"val loss {2.2 - s / 100 + b / 50:.3f}\n"
                                                                      for b in range(9)) for s in range(10, 90, 10)))
    assert of(read_run([log])).unit == "line"


def test_ranks_stand_at_the_steps_of_their_own_training(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"[rank{r}] step {s + r} loss {2 - s / 100}\n[rank{r}] val loss {2.2 - s / 100}\n"
                           for s in range(10, 90, 10) for r in range(2)))
    told = {s.rank: s.step.tolist() for s in read_run([log]).series if s.group == "validation"}
    assert told == {r: [s + r for s in range(10, 90, 10)] for r in range(2)}


@pytest.mark.parametrize("text", ["val loss 0.5\n" * 8, "loss 0.5\nval loss 0.6\n" * 8,
                                  "step nan loss 0.5\nval loss 0.6\n" * 8, "val loss 0.5\nstep 10 loss 0.4\n"])
def test_without_a_training_that_counts_nothing_is_placed(tmp_path: Path, text: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(text)
    assert all(np.isnan(s.step).all() for s in read_run([log]).series if s.group == "validation")

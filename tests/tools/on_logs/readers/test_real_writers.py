"""Fixtures that the real writers produced (`tests/fixtures/logs/make_fixtures.py`) are read completely."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"


def one(run: Run, name: str, group: str = "train", original: str | None = None) -> Series:
    found = [s for s in run.find(name, group=group) if original in (None, s.original)]
    assert len(found) == 1, [(s.name, s.original) for s in run.series]
    return found[0]


def test_hf_trainer_state_is_read_with_steps_and_plan() -> None:
    run = read_run([LOGS / "hf_trainer_state.json"])
    history = json.loads((LOGS / "hf_trainer_state.json").read_text())["log_history"]
    loss = one(run, "loss")
    assert loss.step.tolist() == [r["step"] for r in history if "loss" in r]
    assert loss.values.tolist() == [r["loss"] for r in history if "loss" in r]
    assert one(run, "loss", "validation").original == "eval_loss"
    assert (run.planned_steps, run.planned_unit) == (12.0, "step")
    assert run.artifacts[0].format == "hf_trainer_state"


def test_hf_stdout_gives_the_same_losses_by_epoch_and_no_step() -> None:
    run = read_run([LOGS / "hf_trainer.log"])
    loss = one(run, "loss", original="loss")
    assert loss.values.tolist() == [2.426, 2.425, 2.432, 2.428]
    assert np.isnan(loss.step).all()
    assert loss.unit == "epoch"
    assert loss.epoch.tolist() == [0.375, 0.75, 1.125, 1.5]
    assert run.artifacts[0].format == "hf_trainer_log"
    assert run.planned_steps == 12.0
    assert not any("shard" in s.original.lower() for s in run.series)


def test_truncated_trainer_state_gives_the_records_before_the_damage(tmp_path: Path) -> None:
    text = (LOGS / "hf_trainer_state.json").read_text()
    (tmp_path / "state.json").write_text(text[:text.index('"step": 9')])
    run = read_run([tmp_path / "state.json"])
    assert one(run, "loss").step.tolist() == [3.0, 6.0]
    assert "damaged" in run.artifacts[0].note


def test_lightning_csv_keeps_interleaved_rows_apart() -> None:
    run = read_run([LOGS / "lightning_metrics.csv"])
    rows = list(csv.DictReader((LOGS / "lightning_metrics.csv").open()))
    loss, val = one(run, "loss"), one(run, "loss", "validation")
    assert loss.values.tolist() == [float(r["train_loss"]) for r in rows if r["train_loss"]]
    assert val.step.tolist() == [float(r["step"]) for r in rows if r["val_loss"]]
    assert run.artifacts[0].format == "lightning_csv"


def test_tensorboard_scalars_equal_what_its_own_reader_gives() -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(LOGS / "events.tfevents"), size_guidance={"scalars": 0})
    events.Reload()
    run = read_run([LOGS / "events.tfevents"])
    theirs = events.Scalars("Loss/train")
    loss = one(run, "loss")
    assert loss.step.tolist() == [e.step for e in theirs]
    np.testing.assert_array_equal(loss.values, [e.value for e in theirs])
    assert math.isnan(loss.values[-1])
    assert one(run, "loss", "validation").values.tolist() == [2.5, 1.25, float(np.float32(2.5 / 3)), 0.625, 0.5]
    assert {s.original for s in run.series} == {"Loss/train", "Loss/val"}


def test_tensorboard_counts_damage_and_reads_on(tmp_path: Path) -> None:
    data = bytearray((LOGS / "events.tfevents").read_bytes())
    at = data.index(b"Loss/train") + 12
    data[at] ^= 0xFF
    (tmp_path / "e").write_bytes(data)
    run = read_run([tmp_path / "e"])
    assert "1 damaged" in run.artifacts[0].note
    assert len(one(run, "loss")) == 5


def test_tensorboard_cut_in_a_record_says_so(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes((LOGS / "events.tfevents").read_bytes()[:-7])
    run = read_run([tmp_path / "e"])
    assert "ends in the middle" in run.artifacts[0].note


def test_keras_bar_and_short_form_give_one_value_an_epoch() -> None:
    run = read_run([LOGS / "keras.log"])
    loss = one(run, "loss")
    assert loss.values.tolist() == [0.808, 0.8036, 0.7996, 0.7955, 0.7914]
    assert np.isnan(loss.step).all()
    assert loss.epoch.tolist() == [1, 2, 3, 1, 2]
    assert one(run, "loss", "validation").values.tolist() == [0.805, 0.8008, 0.7967, 0.7928, 0.7891]
    assert run.artifacts[0].format == "keras"


def test_keras_csv_logger() -> None:
    run = read_run([LOGS / "keras_history.csv"])
    assert one(run, "accuracy", "validation").epoch.tolist() == [0, 1, 2]


def test_lightning_bar_gives_no_step() -> None:
    run = read_run([LOGS / "lightning.log"])
    assert {(s.name, s.group) for s in run.series} == {("loss", "train"), ("loss", "validation")}
    assert all(np.isnan(s.step).all() for s in run.series)


def test_a_folder_of_everything_is_read_at_once() -> None:
    run = read_run([LOGS])
    formats = {a.format for a in run.artifacts}
    assert {"hf_trainer_state", "hf_trainer_log", "lightning_csv", "tensorboard", "keras", "csv", "python",
            "megatron", "fairseq", "torchtitan"} <= formats

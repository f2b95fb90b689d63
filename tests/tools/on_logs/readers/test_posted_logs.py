"""Lines as people post them: what was taken for a value, lost, or put into another group than its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run

BARS = Path(__file__).parents[3] / "fixtures" / "bars"
"""keras_*.log: Keras 3.15.1 on torch, `fit` of four epochs with eight batches, then `evaluate` with ten."""
FITTED = [0.6879, 0.6734, 0.6656, 0.6648]


def read(folder: Path, *lines: str) -> Run:
    (folder / "train.log").write_text("".join(f"{line}\n" for line in lines))
    return read_run([folder / "train.log"])


def of(run: Run, name: str, group: str = "train") -> Series:
    (series,) = [s for s in run.series if (s.name, s.group) == (name, group)]
    return series


@pytest.mark.parametrize("log", ["keras_fit_and_evaluate", "keras_verbose_2"])
def test_an_evaluation_behind_a_fit_of_keras_is_no_record_of_the_training(log: str) -> None:
    run = read_run([BARS / f"{log}.log"])
    loss = of(run, "loss")
    assert (loss.values.tolist(), loss.epoch.tolist()) == (FITTED, [1, 2, 3, 4])
    assert of(run, "loss", "validation").values.tolist() == [0.6134, 0.6004, 0.599, 0.5988]
    assert of(run, "loss", "test").values.tolist() == [0.6516]
    assert of(run, "accuracy", "test").values.tolist() == [0.5875]


def test_a_fit_that_is_called_again_with_other_batches_is_a_training(tmp_path: Path) -> None:
    run = read(tmp_path, *(line for n in range(6) for line in (
        "Epoch 1/1", f"{8 + n}/{8 + n} - 0s - 3ms/step - loss: {0.9 - n / 10:.4f} - val_loss: 0.7")))
    assert {s.group for s in run.series if s.name == "loss"} == {"train", "validation"}
    assert of(run, "loss").values == pytest.approx([0.9 - n / 10 for n in range(6)])


def test_a_line_of_keras_without_an_epoch_stays_what_it_was(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"{5 + n}/{5 + n} - 0s - 3ms/step - loss: {0.9 - n / 10:.4f}" for n in range(6)))
    assert {s.group for s in run.series} == {"train"}


@pytest.mark.parametrize(("line", "name"), [
    ("Iteration {i} of 900 - avg loss over last 100: {v:.4f} - elapsed {i}.5s", "loss"),
    ("step {i} mean reward over the past 100 episodes: {v:.4f}", "reward"),
    ("step {i} loss (last 50): {v:.4f}", "loss"), ("step {i} top 5: {v:.4f} loss 0.5", "accuracy_top5"),
    ("step {i} loss np.float64({v:.4f}) lr 0.1", "loss"), ("step {i} | loss: np.float32({v:.4f}) |", "loss"),
])
def test_a_number_that_is_part_of_a_name_or_type_is_no_value(tmp_path: Path, line: str, name: str) -> None:
    run = read(tmp_path, *(line.format(i=i, v=2 - i / 900) for i in range(10, 100, 10)))
    series = of(run, name)
    assert series.step.tolist() == list(range(10, 100, 10))
    assert series.values == pytest.approx([2 - i / 900 for i in range(10, 100, 10)], abs=1e-4)


@pytest.mark.parametrize("line", ["step {i} last: {v:.4f} loss 0.5", "step {i} recent 5 {v:.4f} loss 0.5",
                                  "step {i}: loss 0.5 of last {v:.4f}", "step {i} np.float32({v:.4f} loss 0.5"])
def test_what_only_looks_like_such_a_name_is_left_alone(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, *(line.format(i=i, v=2 - i / 900) for i in range(10, 100, 10)))
    assert of(run, "loss").values.tolist() == [0.5] * 9
    assert of(run, "loss").step.tolist() == list(range(10, 100, 10))


def test_dots_end_a_sentence(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"step {i} loss {2 - i / 10}\nEvaluating on 500 samples... accuracy = {40 + i}.5 %"
                           for i in range(9)))
    assert of(run, "accuracy", "validation").values.tolist() == [40.5 + i for i in range(9)]
    assert of(run, "accuracy", "validation").step.tolist() == list(range(9))


@pytest.mark.parametrize("written", ["[np.float32({a}), np.float32({b})]", "[{a}, {b}]", "[{a} {b}]"])
def test_a_list_of_scores_is_one_a_class(tmp_path: Path, written: str) -> None:
    """nnU-Net 2 prints its validation so."""
    lines = [f"2026-11-27 10:0{e}:00.1: {text}" for e in range(6) for text in (
        f"Epoch {e} ", f"train_loss {-0.2 - e / 20} ", f"val_loss {-0.1 - e / 20} ",
        f"Pseudo dice {written.format(a=0.5 + e / 20, b=0.3 + e / 20)} ")]
    run = read(tmp_path, *lines)
    for part, first in enumerate((0.5, 0.3)):
        dice = of(run, f"dice/{part}", "validation")
        assert dice.values == pytest.approx([first + e / 20 for e in range(6)])
        assert dice.epoch.tolist() == list(range(6))


def test_one_value_in_brackets_and_a_list_of_rates_keep_their_name(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"step {i} acc [0.{50 + i}] lr [0.1, 0.2] loss [0.5, 0.6]" for i in range(9)))
    assert {"accuracy", "learning_rate", "loss"} <= {s.name for s in run.series}


def test_an_estimators_evaluation_is_held_out(tmp_path: Path) -> None:
    run = read(tmp_path, *(line for i in range(0, 900, 100) for line in (
        f"I1127 10:00:0{i // 100}.123456 140234567890 basic_session_run_hooks.py:249] loss = {2 - i / 900}, step = {i}",
        f"I1127 10:00:0{i // 100}.2 140234567890 basic_session_run_hooks.py:692] global_step/sec: 22.5",
        f"I1127 10:00:0{i // 100}.3 140234567890 estimator.py:2039] Saving dict for global step {i}: accuracy = 0.8, "
        f"global_step = {i}, loss = {57.75 - i / 900}")))
    assert of(run, "loss").values == pytest.approx([2 - i / 900 for i in range(0, 900, 100)])
    assert of(run, "loss", "validation").step.tolist() == list(range(0, 900, 100))
    assert of(run, "throughput").values.tolist() == [22.5] * 9


def test_a_checkpoint_behind_the_name_of_a_logger_is_no_record(tmp_path: Path) -> None:
    run = read(tmp_path, *(line for u in range(100, 900, 100) for line in (
        f"2026-11-27 10:00:0{u // 100} | INFO | train_inner | epoch 001: {u} / 900 loss={2 - u / 900:.3f}, "
        f"num_updates={u}, lr=0.0005",
        f"2026-11-27 10:00:0{u // 100} | INFO | fairseq.checkpoint_utils | Saved checkpoint out/c{u}.pt "
        f"(epoch 1 @ {u} updates, score 2.375) (writing took 1.23 seconds)")))
    assert {s.name for s in run.series} == {"loss", "learning_rate"}
    assert {n.kind for n in run.notes} == {"checkpoint"}


def test_a_boosters_own_warnings_are_read_as_such(tmp_path: Path) -> None:
    run = read(tmp_path, "[LightGBM] [Info] Total Bins 670", *(line for i in range(1, 9) for line in (
        "[LightGBM] [Warning] No further splits with positive gain, best gain: -inf",
        f"[{i}]\ttrain's auc: {0.5 + i / 40}")))
    assert {s.name for s in run.series} == {"auc"}
    assert np.isfinite(of(run, "auc").values).all()
    assert run.artifacts[0].unused <= 1

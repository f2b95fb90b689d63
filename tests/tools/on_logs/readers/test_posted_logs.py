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


def test_the_quickstart_of_pytorch_measures_a_test_set(tmp_path: Path) -> None:
    run = read(tmp_path, *(line for e in range(5) for line in (
        "", f"Epoch {e + 1}", "-" * 31,
        *(f"loss: {2 - e / 10 - b / 9e4:>7f}  [{b:>5d}/60000]" for b in (64, 6464, 12864)),
        "Test Error: ", f" Accuracy: {60 + e * 3.1:>0.1f}%, Avg loss: {2.95 - e / 10:>8f} ", "")))
    for name, values in (("accuracy", [60 + e * 3.1 for e in range(5)]), ("loss", [2.95 - e / 10 for e in range(5)])):
        told = of(run, name, "test")
        assert told.values == pytest.approx(values)
        assert told.epoch.tolist() == [1, 2, 3, 4, 5]
        assert np.isnan(told.step).all()  # the counter of the lines above starts over with each epoch
    assert of(run, "loss").step.tolist() == [60_000 * e + b for e in range(5) for b in (64, 6464, 12864)]


@pytest.mark.parametrize(("heading", "group"), [
    ("Validation:", "validation"), ("== Eval results ==", "validation"), ("[TEST]", "test"),
    ("--- Dev set ---", "validation"),
    ("Training statistics:", "train"), ("Tester:", "train"), ("Test it now:", "train"), ("Test 3:", "train")])
def test_a_heading_of_a_group_is_that_of_the_indented_lines_below_it(tmp_path: Path, heading: str, group: str) -> None:
    run = read(tmp_path, *(line for e in range(6) for line in (
        f"epoch {e} lr 0.1", heading, f"  acc: 0.{50 + e}", f"  f1: 0.{40 + e}", f"  took {e}.5 s")))
    assert of(run, "accuracy", group).values.tolist() == [round(0.5 + e / 100, 2) for e in range(6)]
    assert of(run, "f1", group).values.tolist() == [round(0.4 + e / 100, 2) for e in range(6)]
    assert group == "train" or of(run, "f1", group).epoch.tolist() == list(range(6))


def test_a_heading_is_of_nothing_that_is_not_indented_below_it(tmp_path: Path) -> None:
    run = read(tmp_path, *(line for s in range(1, 80) for line in (
        f"step {s} loss {2 - s / 100}", "Validation:", f"step {s} grad_norm 1.5", f"  acc: 0.{100 + s}")))
    assert of(run, "accuracy").step.tolist() == list(range(1, 80))
    assert {s.group for s in run.series} == {"train"}


def test_groups_alone_beside_a_named_loss_and_one_of_the_training_are_no_losses(tmp_path: Path) -> None:
    """As the examples of PyTorch Geometric print."""
    run = read(tmp_path, *(f"Epoch: {e:03d}, Loss: {2 / e:.4f}, Train: {0.5 + e / 20:.4f}, Val: {0.4 + e / 20:.4f}, "
                           f"Test: {0.3 + e / 20:.4f}" for e in range(1, 9)))
    assert of(run, "loss").values == pytest.approx([2 / e for e in range(1, 9)], abs=1e-4)
    assert [s.group for s in run.series if s.name == "loss"] == ["train"]
    assert sorted(s.group for s in run.series if s.name != "loss") == ["test", "train", "validation"]


@pytest.mark.parametrize("line", ["epoch {e} train {v:.3f} val {v:.3f}1", "epoch {e} loss {v:.3f} val {v:.3f}1",
                                  "epoch {e}: loss train={v:.3f} val={v:.3f}1"])
def test_groups_alone_are_losses_elsewhere(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, *(line.format(e=e, v=2 / e) for e in range(1, 9)))
    assert {s.group for s in run.series if s.name == "loss"} == {"train", "validation"}


def test_a_duration_that_grows_evenly_counts_nothing(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"Ep:{e} | TrLoss:{2 / e:.4f} | VlLoss:{2.2 / e:.4f} | t:{60 + e}s" for e in range(1, 9)))
    assert np.isnan(of(run, "loss").step).all()
    assert of(run, "time/t").values.tolist() == [60 + e for e in range(1, 9)]


def test_the_best_epoch_that_is_told_again_is_no_record(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"epoch {e} train loss {2 / e:.4f} val loss {1 + abs(e - 5) / 10:.4f}" for e in range(1, 9)),
               "Best epoch: 5 (val loss 1.0000)")
    assert of(run, "loss", "validation").epoch.tolist() == list(range(1, 9))


def test_names_behind_their_values_as_darknet_prints_them(tmp_path: Path) -> None:
    run = read(tmp_path, *(f" {i}: {2 / i:.6f}, {3 / i:.6f} avg loss, 0.001000 rate, 1.231 seconds, {i * 64} images, "
                           "2.1 hours left" for i in range(1, 12)))
    loss = of(run, "loss")
    assert loss.step.tolist() == list(range(1, 12))
    assert loss.values == pytest.approx([3 / i for i in range(1, 12)], abs=1e-6)
    run = read(tmp_path, *(f"epoch {e} {2 / e:.3f} train loss | {3 / e:.3f} val loss | 0.{50 + e} val acc"
                           for e in range(1, 9)))
    assert of(run, "loss", "validation").values == pytest.approx([3 / e for e in range(1, 9)], abs=1e-3)
    assert of(run, "accuracy", "validation").values.tolist() == [round(0.5 + e / 100, 2) for e in range(1, 9)]


@pytest.mark.parametrize("line", [
    "step {i} loss: {v:.3f} acc, 5 batches", "step {i} loss {v:.3f} acc {v:.3f}, 3 epochs",
    "step {i} loss={v:.3f} s, acc={v:.3f} loss"])
def test_names_before_their_values_stay_those(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, *(line.format(i=i, v=2 / i) for i in range(1, 12)))
    assert of(run, "loss").values == pytest.approx([2 / i for i in range(1, 12)], abs=1e-3)


def test_the_number_of_a_net_or_an_output_is_no_value(tmp_path: Path) -> None:
    """As Caffe's solver prints."""
    run = read(tmp_path, *(line for i in range(0, 900, 100) for line in (
        f"I1127 10:00:0{i // 100}.1  4242 solver.cpp:228] Iteration {i}, loss = {2 - i / 900:.5f}",
        f"I1127 10:00:0{i // 100}.2  4242 solver.cpp:337] Iteration {i}, Testing net (#0)",
        f"I1127 10:00:0{i // 100}.3  4242 solver.cpp:404]     Test net output #0: accuracy = 0.{50 + i // 50}",
        f"I1127 10:00:0{i // 100}.3  4242 solver.cpp:404]     Test net output #1: loss = {2.5 - i / 900:.5f} (* 1)")))
    assert {(s.group, s.name) for s in run.series} == {("train", "loss"), ("test", "accuracy"), ("test", "loss")}
    assert of(run, "accuracy", "test").step.tolist() == list(range(0, 900, 100))
    assert read(tmp_path, *(f"step #{i} loss {2 - i / 10}" for i in range(9))).loss.step.tolist() == list(range(9))


def test_a_table_whose_names_are_of_several_words(tmp_path: Path) -> None:
    """As scikit-learn's gradient boosting prints."""
    run = read(tmp_path, "      Iter       Train Loss   Remaining Time ", *(
        f"{i:10d} {2 / i:16.4f} {(20 - i) / 3:15.2f}s" for i in range(1, 11)))
    assert of(run, "loss").step.tolist() == list(range(1, 11))
    assert of(run, "loss").values == pytest.approx([2 / i for i in range(1, 11)], abs=1e-4)


def test_a_table_of_single_words_stays_one(tmp_path: Path) -> None:
    run = read(tmp_path, "epoch   loss acc    lr", *(f"{e}   {2 / e:.4f} 0.{50 + e}    0.1" for e in range(1, 9)))
    assert {s.name for s in run.series} == {"loss", "accuracy", "learning_rate"}
    assert of(run, "loss").epoch.tolist() == list(range(1, 9))


def test_full_bars_of_epochs_that_are_not_printed_give_no_step(tmp_path: Path) -> None:
    run = read(tmp_path, *(f"loss: {2 - e / 10:.4f} ||: 100%|##########| 230/230 [00:1{e}<00:00, 15.3it/s]\n"
                           f"validation accuracy: 0.{50 + e}" for e in range(6)))
    assert np.isnan(of(run, "loss").step).all()
    assert of(run, "loss").values == pytest.approx([2 - e / 10 for e in range(6)])

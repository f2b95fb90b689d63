"""Formats that were read wrongly once: values, places and groups of each, and shapes beside them that must stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.configs.files import read_config
from traindx_tools.on_logs.readers.line_tokens import split
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run, Series


def read(tmp_path: Path, text: str) -> Run:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    return read_run(path)


def only(run: Run, name: str, group: str = "train") -> Series:
    found = [s for s in run.series if s.name == name and s.group == group]
    assert len(found) == 1, [(s.name, s.group, s.original) for s in run.series]
    return found[0]


def values(run: Run, name: str, group: str = "train") -> list[float]:
    return [round(float(v), 9) for v in only(run, name, group).values]


# units in names


def test_a_power_of_ten_in_the_name_is_the_unit_of_the_values(tmp_path: Path) -> None:
    lines = [f"step:{i} - train/loss:{2 - i / 10:.4f} - train/lr(1e-3):3.0000 - train/time(s):0.5000" for i in range(5)]
    run = read(tmp_path, "\n".join([*lines, "step:4 - val/loss:1.7000"]))
    assert values(run, "learning_rate") == [0.003] * 5
    assert values(run, "loss") == [2.0, 1.9, 1.8, 1.7, 1.6]
    assert values(run, "step_time") == [0.5] * 5
    assert only(run, "loss", "validation").step.tolist() == [4.0]


@pytest.mark.parametrize(("name", "rate"), [("lr(1e-6)", 3e-6), ("lr (1e-3)", 3e-3), ("learning_rate(10^-4)", 3e-4)])
def test_the_unit_counts_in_a_table_too(tmp_path: Path, name: str, rate: float) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(f"step,loss,{name}\n" + "".join(f"{i},{1 / (i + 1)},3.0\n" for i in range(4)))
    found = next(s for s in read_run(path).series if s.name == "learning_rate")
    assert found.values.tolist() == pytest.approx([rate] * 4)


@pytest.mark.parametrize(("line", "tokens"), [
    ("lr(1e-3): 3.0", ["3.0"]), ("train/lr(1e-3):3.0 - loss:2.5", ["3.0", "2.5"]), ("lr(3e-4): 2", ["3e-4", "2"]),
    ("loss 0.5 (1e-3)", ["0.5", "1e-3"]), ("lr(1e-3", ["1e-3"])])
def test_only_a_power_of_ten_right_behind_a_name_is_part_of_it(line: str, tokens: list[str]) -> None:
    assert split(line)[1::2] == tokens


# meters: value (mean so far)


def meters() -> str:
    lines = []
    for e in range(2):
        lines += [f"Train: {e} [{b:>4d}/100 ({b:>3d}%)]  Loss: {6.9 - e - b / 100:#.3g} (6.95)  Time: 0.404s,  300.80/s"
                  f"  (0.424s,  290.80/s)  LR: 1.000e-03  Data: 0.010 (0.012)" for b in (0, 50, 99)]
        lines += [f"Test: [{b:>4d}/9]  Time: 0.3 (0.3)  Loss:  {6.0 + b:>6.4f} ({5.9 - e:>6.4f})  "
                  f"Acc@1: {0.0 if b == 9 else 12.5:>7.4f} ({11.1111 + e:>7.4f})" for b in (0, 5, 9)]
    return "\n".join(lines) + "\n"


def test_the_epoch_before_a_count_of_batches_is_no_metric(tmp_path: Path) -> None:
    run = read(tmp_path, meters())
    assert {s.name for s in run.series if s.group == "train"} == {
        "loss", "step_time", "throughput", "learning_rate", "data_time"}
    assert only(run, "loss").step.tolist() == [0, 50, 99, 100, 150, 199]
    assert only(run, "loss").epoch.tolist() == [0, 0, 0, 1, 1, 1]


def test_of_an_evaluation_the_mean_at_its_end_counts_and_of_training_the_value_of_the_step(tmp_path: Path) -> None:
    run = read(tmp_path, meters())
    accuracy = only(run, "accuracy", "test")
    assert accuracy.values.tolist() == [11.1111, 12.1111]
    assert accuracy.epoch.tolist() == [0, 1]
    assert accuracy.unit == "epoch"
    assert values(run, "loss", "test") == [5.9, 4.9]
    assert values(run, "loss")[:3] == [6.9, 6.4, 5.91]


def test_a_second_value_in_brackets_without_a_count_of_batches_is_no_meter(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"epoch {e} val_loss {0.9 - e / 10:.2f} (0.30)\n" for e in range(4)))
    assert values(run, "loss", "validation") == [0.9, 0.8, 0.7, 0.6]


def test_how_many_batches_a_mean_is_over_is_not_where_it_stands(tmp_path: Path) -> None:
    lines = [f"iter {i}: loss {4.9 - i / 1000:.4f}\n" + (f"rank0: val_loss {4.8 - i / 2000:.4f} (250 batches)\n"
             if i % 500 == 0 else "") for i in range(0, 1001, 50)]
    run = read(tmp_path, "".join(lines))
    validation = next(s for s in run.series if s.group == "validation")
    assert validation.values.tolist() == [4.8, 4.55, 4.3]
    assert not (validation.step == 250).any()
    assert only(run, "loss").step.tolist() == [float(i) for i in range(0, 1001, 50)]


# detectors


BAR = "100%|##########| 8/8 [00:03<00:00,  2.34it/s]"


def detector(header: str, losses: str, classes: str, start: int) -> str:
    lines = []
    for e in range(start, start + 3):
        lines += ["", header, *(losses.format(e=e, a=part - e / 100) + f": {percent}%|##  | 4/8 [00:01<00:01]"
                                for part, percent in ((0.9, 12), (0.5, 50))),
                  f"{losses.format(e=e, a=0.2 - e / 100)}: {BAR}", f"{classes}: {BAR}",
                  f"                   all        128        929    {0.3 + e / 10:.3f}    0.400    0.350    0.200",
                  "                person        128        254      0.900      0.900      0.900      0.900"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("header", "losses", "classes", "start", "terms"), [
    ("     Epoch   gpu_mem       box       obj       cls    labels  img_size",
     "       {e}/2     1.85G   {a:.5f}   0.06000   0.02000       117       640",
     "                 Class     Images     Labels          P          R     mAP@.5 mAP@.5:.95", 0,
     {"loss/box", "loss/obj", "loss/cls"}),
    ("      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
     "        {e}/3      2.16G      {a:.3f}      1.500      1.300         27        640",
     "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95)", 1,
     {"loss/box", "loss/cls", "loss/dfl"}),
], ids=["yolov5", "ultralytics"])
def test_a_detectors_losses_and_its_scores_over_all_classes(tmp_path: Path, header: str, losses: str, classes: str,
                                                             start: int, terms: set[str]) -> None:
    run = read(tmp_path, detector(header, losses, classes, start))
    assert terms <= {s.name for s in run.series}
    box = only(run, "loss/box")
    assert box.values.tolist() == pytest.approx([0.2 - e / 100 for e in range(start, start + 3)])
    assert box.epoch.tolist() == [start, start + 1, start + 2]
    assert values(run, "precision", "validation") == pytest.approx([0.3 + e / 10 for e in range(start, start + 3)])
    assert values(run, "recall", "validation") == [0.4] * 3
    assert values(run, "map50", "validation") == [0.35] * 3
    assert values(run, "map50_95", "validation") == [0.2] * 3
    assert only(run, "recall", "validation").epoch.tolist() == [start, start + 1, start + 2]


@pytest.mark.parametrize("bar", ["100%|####| 50/50 [00:10<00:00,  5.0it/s]", "100% ━━━━━━━━━━━━ 50/50 5.0it/s 10.0s",
                                 "100%|██████████| 50/50 5.0it/s 10.0s", "100%: ━━━━━━━━━━ 50/50 10.0s"])
def test_the_bar_behind_a_row_of_losses(tmp_path: Path, bar: str) -> None:
    head = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
    classes = f"                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): {bar}\n"
    rows = [f"        {e}/3      2.16G      {1 - e / 10:.3f}      1.500      1.300         27        640: {bar}\n"
            for e in (1, 2, 3)]
    scores = "                   all        128        929      0.640      0.537      0.605      0.446\n"
    run = read(tmp_path, "".join(head + row + classes + scores for row in rows))
    assert only(run, "loss/box").values.tolist() == pytest.approx([0.9, 0.8, 0.7])
    assert only(run, "loss/dfl").epoch.tolist() == [1, 2, 3]
    assert values(run, "map50", "validation") == [0.605] * 3


def test_masks_have_scores_of_their_own(tmp_path: Path) -> None:
    run = read(tmp_path, "  Class  Images  Instances  Box(P  R  mAP50  mAP50-95)  Mask(P  R  mAP50  mAP50-95)\n"
                         "  all  8  20  0.1  0.2  0.3  0.4  0.5  0.6  0.7  0.8\n")
    found = {s.original: float(s.values[0]) for s in run.series}
    assert found["metrics/recall(B)"] == 0.2
    assert found["metrics/mAP50-95(M)"] == 0.8


def test_a_header_of_classes_without_its_row_gives_nothing_and_hides_nothing(tmp_path: Path) -> None:
    run = read(tmp_path, "  Class  Images  Labels  P  R  mAP@.5  mAP@.5:.95: 100%|#| 1/1\n  all  8  broken\n"
                         "step 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss 0.3\n")
    assert values(run, "loss") == [0.5, 0.4, 0.3]


# bars, durations, counters


def test_a_bar_with_its_own_count_behind_the_episode(tmp_path: Path) -> None:
    drawn = [f"Episode [{e}/2]: {100 * i // 4:>3d}%|{'#' * i}| {i}/4 [00:0{i}<00:03,  1.20s/it, "
             f"policy_loss={-0.01 * i}, reward={e + 0.1 * i:.3g}, kl=0.001, act_lr=1e-06]"
             for e in (1, 2) for i in range(1, 5)]
    run = read(tmp_path, "\r".join(drawn) + "\n")
    reward = only(run, "reward")
    assert reward.values.tolist() == [1.1, 1.2, 1.3, 1.4, 2.1, 2.2, 2.3, 2.4]
    assert reward.step.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert reward.epoch.tolist() == [1] * 4 + [2] * 4


@pytest.mark.parametrize("left", ["1 day, 20:31:00", "12 days, 1:02:03", "0:31:07", "1d 02:03:04"])
def test_the_days_of_a_duration_belong_to_it(tmp_path: Path, left: str) -> None:
    run = read(tmp_path, "".join(
        f"Training  [{i}/125000]  eta: {left}  lr: 0.0001 (0.0001)  total_loss: {11 - i / 10:.4f} ({11 - i / 20:.4f})  "
        "time: 1.282  data: 0.003  max mem: 20000\n" for i in range(0, 50, 10)))
    assert "eta" not in {s.original for s in run.series}
    assert values(run, "loss") == [11.0, 10.0, 9.0, 8.0, 7.0]
    assert values(run, "learning_rate") == [0.0001] * 5
    assert only(run, "loss").step.tolist() == [0, 10, 20, 30, 40]


def test_a_count_of_batches_is_no_time_of_a_step(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(
        f"[epoch=1][batch={b}/10]:\n\t Train time/epoch: 0\n\t Train time/batch: {b - 1}\n\t Train loss/train/total: "
        f"{2.3 - b / 10:.4f}\n\t Train time/train: {b * 0.01}\n" for b in range(1, 7)))
    assert not {"step_time", "epoch_time"} & {s.name for s in run.series}
    assert values(run, "loss") == pytest.approx([2.2, 2.1, 2.0, 1.9, 1.8, 1.7])
    assert only(run, "loss").step.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("seconds", [[0.31, 0.32, 0.30, 0.35], [3, 3, 4, 3], [3, 4, 6, 9]])
def test_a_duration_under_the_same_name_stays_one(tmp_path: Path, seconds: list[float]) -> None:
    run = read(tmp_path, "".join(f"step {i} loss {2 - i / 10:.2f} time/batch: {t}\n" for i, t in enumerate(seconds)))
    assert only(run, "step_time").values.tolist() == seconds


def test_the_score_from_which_boosting_starts_is_no_reward(tmp_path: Path) -> None:
    run = read(tmp_path, "[LightGBM] [Info] Number of positive: 212, number of negative: 357\n"
                         "[LightGBM] [Info] Start training from score -0.521150\n" + "".join(
        f"[{i}]\ttraining's binary_logloss: {0.6 - i / 20:.6f}\tvalid_1's binary_logloss: {0.61 - i / 25:.6f}\n"
        for i in range(1, 6)))
    assert {s.name for s in run.series} == {"loss"}
    assert values(run, "loss", "validation") == pytest.approx([0.57, 0.53, 0.49, 0.45, 0.41])
    assert only(run, "loss").step.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("setting", ["gradient accumulation steps: 4", "Gradient Accumulation steps = 4",
                                     "warmup steps: 100", "max step: 5000"])
def test_a_setting_that_ends_in_steps_is_no_step(tmp_path: Path, setting: str) -> None:
    run = read(tmp_path, f"{setting}\nloss: 2.5000\nloss: 2.4\nloss: 2.3\nloss: 2.2\n")
    assert values(run, "loss") == [2.5, 2.4, 2.3, 2.2]
    assert np.isnan(only(run, "loss").step).all()


def test_a_heading_that_is_a_step_still_places_the_next_line(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"steps: {i}\nloss: {3 - i}\n" for i in range(1, 5)))
    assert only(run, "loss").step.tolist() == [1, 2, 3, 4]


# tags of YAML


SPEECH = """seed: 1234
__set_seed: !apply:torch.manual_seed [!ref <seed>]
output_folder: !ref results/<seed>
lr: 0.001
epoch_counter: !new:speechbrain.utils.epoch_loop.EpochCounter
    limit: !ref <number_of_epochs>
opt_class: !name:torch.optim.Adadelta
    rho: 0.95
"""


def test_a_programs_own_tags_are_read_as_data() -> None:
    found = read_config("hparams.yaml", SPEECH)
    assert found["lr"] == 0.001
    assert found["opt_class.rho"] == 0.95
    assert found["output_folder"] == "results/<seed>"


@pytest.mark.parametrize("text", ["x: !!python/object/apply:os.system ['id']\n", "x: !include other.yaml\n"])
def test_tags_that_ask_for_objects_or_other_files_are_refused(text: str) -> None:
    with pytest.raises(UnreadableInput, match="tag at line 1"):
        read_config("a.yaml", text)


def test_the_only_evaluation_counts_batches_of_its_own(tmp_path: Path) -> None:
    train = "".join(f"INFO - Epoch(train) [{e}][{b}/270]  lr: 1.0e-03  loss: {3 - e - b / 300:.4f}\n"
                    for e in (1, 2) for b in range(10, 271, 20))
    run = read(tmp_path, train + "INFO - Epoch(val) [2][10/10]    accuracy/top1: 71.2\n")
    score = only(run, "accuracy", "validation")
    assert np.isnan(score.step).all()
    assert score.epoch.tolist() == [2.0]
    assert only(run, "loss").step[-1] == 540
    alone = read(tmp_path, "step 10/10 loss 0.5\n")
    assert only(alone, "loss").step.tolist() == [10.0]

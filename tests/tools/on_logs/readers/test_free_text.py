"""What the general reader finds in lines that nobody's trainer in particular prints."""

from __future__ import annotations

import math

import pytest

from traindx_tools.on_logs import Run, read_run


def read(text: str) -> Run:
    return read_run(["-"], stdin=text.encode())


def found(run: Run) -> dict[tuple[str, str], list[float]]:
    return {(s.group, s.name): s.values.tolist() for s in run.series}


@pytest.mark.parametrize(("line", "expected", "step", "epoch"), [
    ("step 25 loss 0.73 lr 8e-04", {("train", "loss"): [0.73], ("train", "learning_rate"): [8e-4]}, 25, math.nan),
    ("[6/36] loss: 1.6006  it/s: 1.22", {("train", "loss"): [1.6006], ("train", "throughput"): [1.22]}, 6, math.nan),
    ("epoch 3 step 136/192 loss +nan grad -inf", None, 136, 3),
    ("Epoch 3/10 - loss: 0.5 - val_loss: 0.6", {("train", "loss"): [0.5], ("validation", "loss"): [0.6]}, math.nan, 3),
    ("iter=1,200 loss=1.5e+00 tokens=1.2k", {("train", "loss"): [1.5], ("train", "tokens"): [1200]}, 1200, math.nan),
    ("[rank3] step 10: loss 2.5", {("train", "loss"): [2.5]}, 10, math.nan),
    ("rank 1: step 10 loss 2.5", {("train", "loss"): [2.5]}, 10, math.nan),
    ("step 7 | recon 0.9 | commit 0.1 | perplexity 6.18 / 128",
     {("train", "loss/recon"): [0.9], ("train", "loss/commit"): [0.1], ("train", "codebook_perplexity"): [6.18],
      ("train", "codebook_size"): [128]}, 7, math.nan),
    ("step 7 loss tensor(0.5432, device='cuda:0', grad_fn=<NllLossBackward0>)", {("train", "loss"): [0.5432]}, 7,
     math.nan),
    ("{'step': 7, 'loss': np.float64(0.25), 'kl': 0.0}", {("train", "loss"): [0.25], ("train", "kl"): [0.0]}, 7,
     math.nan),
    ("step 7 mem 2.5GB workers 348 MB loss 1.0", {("train", "memory"): [2560], ("train", "memory/workers"): [348],
                                                  ("train", "loss"): [1.0]}, 7, math.nan),
    ("2026-11-27T21:17:14.614Z INFO trainer: step=7 loss=0.5", {("train", "loss"): [0.5]}, 7, math.nan),
    ("INFO:root:Epoch 2, train loss 0.5, val loss 0.75, val acc 81.5%",
     {("train", "loss"): [0.5], ("validation", "loss"): [0.75], ("validation", "accuracy"): [81.5]}, math.nan, 2),
    ("schritt ✓ step 5 → loss ≈ 0.25", {("train", "loss"): [0.25]}, 5, math.nan),
    ("step 9 train 1.25 val 1.5", {("train", "loss"): [1.25], ("validation", "loss"): [1.5]}, 9, math.nan),
    ("ep 3 | it 400 | L_rec 0.123 | L_kl 4.5e-3 | L_tot 0.128 | 35.2 img/s | 12.3k tok/s",
     {("train", "loss/recon"): [0.123], ("train", "kl"): [4.5e-3], ("train", "loss"): [0.128],
      ("train", "throughput"): [35.2], ("train", "tokens_per_second"): [12300]}, 400, 3),
    ("[Epoch 7] train: loss=0.5 acc=0.8 | val: loss=0.6 acc=0.7 | lr: 3.0e-04 | 12.4s",
     {("train", "loss"): [0.5], ("train", "accuracy"): [0.8], ("validation", "loss"): [0.6],
      ("validation", "accuracy"): [0.7], ("train", "learning_rate"): [3e-4]}, math.nan, 7),
    ("step 1 | gnorm enc 0.12 dec 0.45 | loss 2.5", {("train", "grad_norm/enc"): [0.12],
                                                     ("train", "grad_norm/dec"): [0.45], ("train", "loss"): [2.5]}, 1,
     math.nan),
    ("Epoch 1: val loss = 0.25, best val loss = 0.2", {("validation", "loss"): [0.25],
                                                       ("validation", "best_loss"): [0.2]}, math.nan, 1),
    ("step 400, loss is nan, stopping", None, 400, math.nan),
    ("iteration 5: policy_loss=-0.5 value_loss=1.5 entropy=1.0",
     {("train", "loss/policy"): [-0.5], ("train", "loss/value"): [1.5], ("train", "entropy"): [1.0]}, 5, math.nan),
    ("After 300 steps: loss 0.5", {("train", "loss"): [0.5]}, 300, math.nan),
])
def test_one_line(line: str, expected: dict[tuple[str, str], list[float]] | None, step: float, epoch: float) -> None:
    run = read(line + "\n")
    if expected is not None:
        assert found(run) == expected
    for s in run.series:
        assert s.step[0] == step or (math.isnan(step) and math.isnan(s.step[0]))
        assert s.epoch[0] == epoch or (math.isnan(epoch) and math.isnan(s.epoch[0]))
        assert s.line.tolist() == [1]


def test_non_finite_values_keep_their_sign() -> None:
    values = found(read("step 1 loss +nan grad_norm -inf lr inf\n"))
    assert math.isnan(values["train", "loss"][0])
    assert values["train", "grad_norm"] == [-math.inf]
    assert values["train", "learning_rate"] == [math.inf]


def test_steps_are_never_invented() -> None:
    run = read("loss 0.5\nloss 0.4\n\nloss 0.3\n")
    loss = run.loss
    assert loss is not None
    assert all(math.isnan(s) for s in loss.step)
    assert loss.unit == "line"
    assert loss.position.tolist() == [1, 2, 4]


def test_time_is_seconds_since_the_first_record() -> None:
    run = read("".join(f"2026-11-27 23:59:{50 + i}.500 | step {i} loss 1.0\n" for i in (0, 5))
               + "2026-11-28 00:00:00.500 | step 6 loss 1.0\n")
    assert run.loss is not None
    assert run.loss.time.tolist() == [0, 5, 10]


def test_ranks_make_series_of_their_own() -> None:
    run = read("[rank0] step 1 loss 0.5\n[rank1] step 1 loss 0.6\n[rank0] step 2 loss 0.4\n[rank1] step 2 loss 0.5\n")
    assert {s.rank: s.values.tolist() for s in run.series} == {0: [0.5, 0.4], 1: [0.6, 0.5]}
    assert run.world_size == 2


def test_traceback_text_is_no_metric_and_an_error_is_found() -> None:
    run = read("step 1 loss 0.5\nTraceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
               "    step(loss=3.0)\n    loss: 3.0\nValueError: step 3 loss 7.0\nstep 2 loss 0.4\n")
    assert found(run) == {("train", "loss"): [0.5, 0.4]}
    assert [e.type for e in run.errors] == ["ValueError"]


def test_world_size_in_a_record_and_workers_as_ranks() -> None:
    assert read("rank=0 world_size=4 step=1 loss=0.5\n").world_size == 4
    assert [s.rank for s in read("worker 0: step 3 loss 0.5\nworker 1: step 3 loss 0.6\n").series] == [0, 1]


def test_before_and_after_are_two_values() -> None:
    assert found(read("eval reward before 0.5065 after 0.5065\n")) == {("validation", "reward"): [0.5065, 0.5065]}


def test_settings_are_no_metrics() -> None:
    run = read("particles 16  steps 50  dt 0.005\nlr: 0.001\nbatch_size: 32\n"
               "processes 2  steps/epoch 32  total steps 192\n")
    assert run.series == ()
    assert run.planned_steps == 192
    assert run.world_size == 2


def test_indented_lines_belong_to_the_line_above() -> None:
    run = read("step 100, lr = 0.01\n    train loss = 0.5\n    test accuracy = 0.9\n"
               "step 200, lr = 0.01\n    train loss = 0.4\n")
    assert run.loss is not None
    assert run.loss.step.tolist() == [100, 200]


@pytest.mark.parametrize("line", [
    "Validation loss decreased (0.345 --> 0.321). Saving model ...",
    "Epoch 5: reducing learning rate of group 0 to 1.0000e-04.",
    "Epoch 3: val_loss improved from 0.5 to 0.4, saving model to best.keras",
    "dataset: 50000 train, 10000 val; classes 10; random baseline loss 2.3026",
    "GPU 0: 45% util, 12345MiB / 81559MiB",
    "step 5 of the plan: lower the loss",
])
def test_remarks_are_no_records(line: str) -> None:
    assert read(f"{line}\n").series == ()


def test_resume_is_a_note_and_no_record() -> None:
    run = read("epoch 1 loss 0.5\nResuming training from last.pt, epoch 24\nepoch 24 loss 0.4\n")
    assert [(n.kind, n.line) for n in run.notes] == [("resume", 2)]
    assert run.loss is not None
    assert run.loss.epoch.tolist() == [1, 24]


def test_table_with_a_header() -> None:
    run = read("step    loss    val_loss\n----------------\n100     0.5     0.6\n200     0.4     0.5\n")
    assert found(run) == {("train", "loss"): [0.5, 0.4], ("validation", "loss"): [0.6, 0.5]}
    assert run.loss is not None
    assert run.loss.step.tolist() == [100, 200]


def test_markdown_table() -> None:
    run = read("| epoch | train loss | accuracy |\n|---|---|---|\n| 1 | 0.5 | 0.6 |\n| 2 | 0.4 | nan |\n")
    assert found(run)["train", "loss"] == [0.5, 0.4]


def test_utf16_of_a_powershell_redirect() -> None:
    run = read_run(["-"], stdin="step 1 loss 0.5\r\nstep 2 loss 0.4\r\n".encode("utf-16"))
    assert found(run) == {("train", "loss"): [0.5, 0.4]}


def test_main_loss_prefers_the_total_then_components() -> None:
    run = read("step 1 recon 0.5 kl 0.1\nstep 2 recon 0.4 kl 0.2\n")
    assert run.loss is not None
    assert run.loss.original == "recon"
    assert {s.name for s in run.components()} == {"loss/recon", "kl"}
    assert read("step 1 Loss_D: 0.5 Loss_G: 0.1\n").loss is None


def test_two_names_for_a_loss_in_one_record_stay_apart() -> None:
    run = read("step 1 loss 0.5 total_loss 0.7\nstep 2 loss 0.4 total_loss 0.6\n")
    assert found(run) == {("train", "loss"): [0.5, 0.4], ("train", "loss/total"): [0.7, 0.6]}


PAIR = {("train", "loss"): [0.48], ("train", "accuracy"): [0.91], ("validation", "loss"): [0.55],
        ("validation", "accuracy"): [0.88]}
PERCENT = {**PAIR, ("train", "accuracy"): [91.2], ("validation", "accuracy"): [88.1]}


@pytest.mark.parametrize(("line", "expected"), [
    ("epoch 3 train loss/acc 0.48/0.91  val loss/acc 0.55/0.88", PAIR),
    ("ep 3 | train 0.48/0.91 | valid 0.55/0.88", PAIR),
    ("epoch 3 train: 0.48 (acc 0.91) val: 0.55 (acc 0.88)", PAIR),
    ("epoch 3 train loss 0.48 acc 0.91 | val loss 0.55 acc 0.88", PAIR),
    ("epoch 3 train 0.48 (91.2%)  valid 0.55 (88.1%)", PERCENT),
    ("epoch 3 trn 0.48, 91.2%; val 0.55, 88.1%", PERCENT),
    ("epoch 3 train loss 0.48 / 91.2% val loss 0.55 / 88.1%",
     {("train", "loss"): [0.48], ("validation", "loss"): [0.55]}),  # 91.2 % of what is not said: left out
    ("epoch 3 train loss 0.48 (-2.5%) val loss 0.55 (2.5% better)",
     {("train", "loss"): [0.48], ("validation", "loss"): [0.55]}),
    ("epoch 3 train 3/10 loss 0.48", {("train", "loss"): [0.48]}),
    ("epoch 3 train/val loss: 0.48/0.55", {("train", "loss"): [0.48], ("validation", "loss"): [0.55]}),
    ("epoch 3 loss (train/val): 0.48 / 0.55", {("train", "loss"): [0.48], ("validation", "loss"): [0.55]}),
    ("epoch 3 loss/acc 0.48/0.91", {("train", "loss"): [0.48], ("train", "accuracy"): [0.91]}),
    ("epoch 3 acc 9850/10000 loss nan/inf was seen", {("train", "accuracy"): [0.985]}),
])
def test_a_loss_and_its_accuracy_side_by_side(line: str, expected: dict[tuple[str, str], list[float]]) -> None:
    assert found(read(line)) == expected


@pytest.mark.parametrize(("line", "group"), [
    ("epoch 9 loss nan/0.5 acc 88.1%", "train"), ("epoch 9 train/val loss: 0.200/nan", "validation"),
    ("epoch 9 train/val loss: nan/nan", "train"),
])
def test_nan_beside_a_stroke_is_a_value(line: str, group: str) -> None:
    run = found(read(line))
    assert math.isnan(run[group, "loss"][0])
    assert not any("nan" in name for _, name in run)


@pytest.mark.parametrize(("line", "name"), [
    ("epoch {i} loss 0.5{i} acc 0.8{i} val 0.7{i}", "accuracy"), ("{i}: acc=0.8{i} (val=0.7{i})", "accuracy"),
    ("step {i} loss 0.5{i} f1 0.8{i} | val 0.7{i}", "f1"),
    ("epoch {i} loss 0.5{i} val 0.7{i}", "loss"), ("epoch {i} loss 0.5{i} lr 0.01 val 0.7{i}", "loss"),
    ("epoch {i} train 0.5{i} acc 0.8{i} val 0.7{i} acc 0.6{i}", "loss"),
    ("epoch {i} loss 0.5{i} acc 0.8{i} val 0.7{i} acc 0.6{i}", "loss")])
def test_a_bare_val_measures_what_was_named_before_it(line: str, name: str) -> None:
    run = read_run(["-"], stdin="".join(line.format(i=i) + "\n" for i in range(1, 9)).encode())
    found = [s for s in run.series if s.group == "validation" and s.values[0] == 0.71]
    assert [s.name for s in found] == [name], [(s.name, s.group) for s in run.series]

"""Rules about learning on logs as they are printed: what they say of a faulty run, and that they spare its twin."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from learning_builder import decay, findings, only, read, run, series, serious

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import Note


def test_uniform_guess_is_told_with_its_logarithm(tmp_path: Path) -> None:
    text = "".join(
        f"step {10 * k} | loss {2.3026 + 0.0003 * (-1) ** k:.4f} | acc {0.1 + 0.004 * (-1) ** k:.3f}\n"
        for k in range(1, 13)
    )
    r = read(tmp_path, log=text)
    f = only(r, "l202_arithmetic_constant")
    assert "ln(10) = 2.3026" in f.statement
    assert "uniform guess over 10 classes" in f.statement
    assert "from step 10 to 120" in f.statement
    assert f.measured["classes"] == 10
    assert f.severity is Severity.HIGH
    assert only(r, "l211_accuracy_at_chance").measured["chance"] == pytest.approx(0.1)
    assert only(r, "l201_plateau").measured["pace"] == "flat"


def test_loss_that_starts_at_ln_c_and_falls_is_healthy(tmp_path: Path) -> None:
    text = "".join(
        f"step {10 * k} | loss {2.3026 * math.exp(-0.2 * (k - 1)):.4f} | acc {1 - 0.9 * math.exp(-0.2 * k):.3f}\n"
        for k in range(1, 20)
    )
    assert not serious(read(tmp_path, log=text))


def test_converged_near_a_logarithm_is_no_uniform_guess() -> None:
    rng = np.random.default_rng(0)
    r = run(series("loss", decay(rng, 60, 6.0, math.log(10), 0.0005, 9)))
    assert not serious(r)


def test_preference_loss_at_ln_2() -> None:
    loss = math.log(2) + 1e-4 * np.random.default_rng(1).standard_normal(20)
    f = only(
        run(series("loss", loss), series("reward/margins", np.zeros(20), original="rewards/margins")),
        "l202_arithmetic_constant",
    )
    assert f.measured["binary"] is True
    assert "ln 2" in f.statement


def test_stated_vocabulary(tmp_path: Path) -> None:
    log = "".join(f"iter {k}: loss {6.2146 + 0.002 * (-1) ** k:.4f}, time 12ms\n" for k in range(30))
    f = only(read(tmp_path, log=log, config="model:\n  vocab_size: 500\n"), "l202_arithmetic_constant")
    assert f.measured["classes"] == 500
    assert "vocab_size = 500" in f.statement


@pytest.mark.parametrize(("classes", "floor"), [(3, 0.5514), (4, 0.7437), (7, 1.1651), (10, 1.4612)])
def test_double_softmax_floor(tmp_path: Path, classes: int, floor: float) -> None:
    log = "".join(
        f"Epoch {k}/15 - loss: {0.5 * math.exp(-k):.4f} - val_loss: {floor + 0.04 / k**2 + 5e-4:.4f} - "
        f"val_accuracy: 1.0\n"
        for k in range(1, 16)
    )
    r = read(tmp_path, log=log)
    f = only(r, "l202_arithmetic_constant")
    assert f.measured["kind"] == "double-softmax"
    assert f.measured["classes"] == classes
    assert f"-ln(e/(e+{classes - 1}))" in f.statement
    assert only(r, "l205_loss_accuracy_contradiction").measured["double_softmax_classes"] == classes


def test_double_softmax_with_errors_adds_a_nat_for_each(tmp_path: Path) -> None:
    acc = 0.1 + 0.7 * (1 - np.exp(-0.4 * np.arange(20)))
    rows = "".join(f"{k},{(2.3026 if k == 0 else 1.4612 + 1 - a):.4f},{a:.4f}\n" for k, a in enumerate(acc))
    f = only(read(tmp_path, csv="epoch,train_loss,train_acc\n" + rows), "l202_arithmetic_constant")
    assert f.measured["classes"] == 10
    assert f.measured["group"] == "train"


def test_usual_overconfident_classifier_is_no_double_softmax() -> None:
    n = 30
    t = np.arange(n) / n
    r = run(
        series("loss", 2.3 * np.exp(-8 * t) + 1e-3, epochs=True),
        series("accuracy", 0.8 - 0.7 * np.exp(-8 * t), group="validation", epochs=True),
        series("loss", 0.62 + 1.6 * np.exp(-9 * t), group="validation", epochs=True),
    )
    assert not findings(r, "l202_arithmetic_constant", "l205_loss_accuracy_contradiction")


def test_target_variance_from_a_logged_variance(tmp_path: Path) -> None:
    log = "".join(f"step {k} mse {3.02 + 0.02 * (-1) ** k:.3f} target_var 3.01\n" for k in range(1, 20))
    f = only(read(tmp_path, log=log), "l202_arithmetic_constant")
    assert f.measured["kind"] == "target-variance"


@pytest.mark.parametrize(("factor", "faulty"), [(4.0, True), (1.02, False), (2.5, False)])
def test_training_loss_multiplied_by_the_accumulation_steps(factor: float, faulty: bool) -> None:
    rng = np.random.default_rng(2)
    val = decay(rng, 8, 3.0, 1.5, 0.003)
    r = run(
        series("loss", factor * decay(rng, 80, 3.0, 1.5, 0.01)),
        series("loss", val, group="validation", every=100),
        gradient_accumulation_steps=4,
    )
    found = [f for f in findings(r, "l202_arithmetic_constant") if f.measured["kind"] == "loss-ratio"]
    assert bool(found) is faulty
    assert not found or "is 4 times" in found[0].statement or "is 4 times the validation loss" in found[0].statement


def test_crawl_is_told_from_flat(tmp_path: Path) -> None:
    log = "".join(
        f"Epoch {k:02d}: loss={1.8 - 0.0004 * k:.4f} acc={0.17 + 0.001 * k:.3f} lr=0.1\n" for k in range(1, 26)
    )
    f = only(read(tmp_path, log=log), "l201_plateau")
    assert f.measured["pace"] == "crawl"
    assert f.severity is Severity.HIGH


def test_plateau_without_a_witness_is_only_a_pattern() -> None:
    f = only(run(series("loss", 4.4 + 0.002 * np.random.default_rng(3).standard_normal(40))), "l201_plateau")
    assert (f.bearing, f.severity) == (Bearing.COMPANION, Severity.MEDIUM)


def overfitting_log(rise: float, accuracy: str = "flat") -> str:
    rows = []
    for k in range(1, 31):
        val = 0.54 + 0.3 * math.exp(-k) + rise * max(0, k - 4) / 26
        acc = 0.75 + (0.002 * k if accuracy == "improves" else -0.003 * k if accuracy == "falls" else 0.0)
        rows.append(f"epoch {k} train_loss {math.exp(-0.3 * k):.4f} val_loss {val:.4f} val_acc {acc:.4f}\n")
    return "".join(rows)


def test_overfitting_names_minimum_and_end(tmp_path: Path) -> None:
    f = only(read(tmp_path, log=overfitting_log(0.35)), "l203_overfitting")
    assert "reaches its minimum 0.545" in f.statement
    assert "at epoch 4" in f.statement
    assert "at epoch 30" in f.statement
    assert f.measured["val_min_at"] == 4
    assert f.measured["growth"] == pytest.approx(0.89 / 0.5455, rel=0.02)
    assert f.measured["fell_first"] is True
    assert f.severity is Severity.HIGH


@pytest.mark.parametrize(
    ("rise", "accuracy", "severity"),
    [
        (0.02, "flat", None),
        (0.04, "flat", Severity.LOW),
        (0.09, "improves", Severity.LOW),
        (0.15, "flat", Severity.MEDIUM),
        (0.4, "falls", Severity.HIGH),
        (0.4, "improves", Severity.MEDIUM),
    ],
)
def test_overfitting_severity(tmp_path: Path, rise: float, accuracy: str, severity: Severity | None) -> None:
    found = findings(read(tmp_path, log=overfitting_log(rise, accuracy)), "l203_overfitting")
    assert [f.severity for f in found] == ([severity] if severity else [])


def test_both_losses_rising_is_no_overfitting() -> None:
    val = np.concatenate([np.linspace(2, 1, 10), np.linspace(1.1, 4, 10)])
    assert not findings(
        run(series("loss", val * 0.9, epochs=True), series("loss", val, group="validation", epochs=True)),
        "l203_overfitting",
    )


def test_noisy_validation_is_no_overfitting() -> None:
    rng = np.random.default_rng(4)
    val = 0.8 * (1 + 0.08 * rng.standard_normal(30))
    assert not serious(
        run(
            series("loss", decay(rng, 30, 2, 0.6, 0.01), epochs=True),
            series("loss", val, group="validation", epochs=True),
        )
    )


def test_accuracy_that_declines_without_a_validation_loss() -> None:
    acc = np.concatenate([np.linspace(0.4, 0.8, 10), np.linspace(0.79, 0.7, 20)])
    f = only(
        run(
            series("loss", np.exp(-0.2 * np.arange(30)), epochs=True),
            series("accuracy", acc, group="validation", epochs=True),
        ),
        "l203_overfitting",
    )
    assert f.measured["kind"] == "accuracy"


def test_validation_that_runs_away_is_not_overfitting(tmp_path: Path) -> None:
    log = "".join(f"[{k}/10] train_loss={0.7 * 0.85**k:.4f} eval_loss={3.0 * 1.9**k:.3f}\n" for k in range(1, 11))
    r = read(tmp_path, log=log)
    f = only(r, "l204_train_validation_gap")
    assert f.measured["kind"] == "growing"
    assert "without ever falling" in f.statement
    assert not findings(r, "l203_overfitting")


def test_erratic_validation() -> None:
    val = np.array([2.0, 9.0, 1.2, 30.0, 1.1, 25.0, 1.5, 60.0, 1.3, 40.0, 1.0, 80.0])
    f = only(
        run(
            series("loss", np.linspace(0.8, 0.3, 12), epochs=True), series("loss", val, group="validation", epochs=True)
        ),
        "l204_train_validation_gap",
    )
    assert f.measured["kind"] == "erratic"


@pytest.mark.parametrize(
    ("train", "val", "accuracy"),
    [
        ((0.5, 0.1), (0.7, 0.6), 0.8),
        ((0.3, 0.01), (0.35, 0.2), 0.95),
        ((2.3, 1.5), (2.0, 1.1), 0.6),
        ((0.01, 0.002), (0.05, 0.045), 0.99),
    ],
)
def test_usual_gaps(train: tuple[float, float], val: tuple[float, float], accuracy: float) -> None:
    r = run(
        series("loss", np.geomspace(*train, 12), epochs=True),
        series("loss", np.geomspace(*val, 12), group="validation", epochs=True),
        series("accuracy", np.full(12, accuracy) + 0.001 * np.arange(12), group="validation", epochs=True),
    )
    assert not findings(r, "l204_train_validation_gap")


def test_training_accuracy_that_ignores_a_falling_loss() -> None:
    f = only(
        run(
            series("loss", np.geomspace(2.3, 0.05, 20), epochs=True),
            series("accuracy", 0.1 + 0.003 * np.sin(np.arange(20)), epochs=True),
        ),
        "l205_loss_accuracy_contradiction",
    )
    assert f.measured["kind"] == "accuracy-chance"


def test_sawtooth_in_steps_that_start_anew(tmp_path: Path) -> None:
    log = "".join(
        f"Epoch [{e}/6] Step [{s}/50] Loss: {4.0 - 0.06 * s + 0.05 * ((s * 7 + e) % 3):.4f}\n"
        for e in range(1, 7)
        for s in range(10, 51, 10)
    )
    f = only(read(tmp_path, log=log), "l206_sawtooth")
    assert f.measured["boundaries_up"] == 5
    assert "at 5 of 5 epoch starts" in f.statement


def test_step_down_at_epoch_starts_is_healthy(tmp_path: Path) -> None:
    log = "".join(
        f"Epoch [{e}/6] Step [{s}/50] Loss: {3.0 * 0.7**e + 0.02 * ((s * 7 + e) % 3):.4f}\n"
        for e in range(1, 7)
        for s in range(10, 51, 10)
    )
    assert not serious(read(tmp_path, log=log))


def test_step_at_resume_names_the_learning_rate(tmp_path: Path) -> None:
    first = "".join(f"epoch {k} loss {0.4 * 0.9**k + 0.02:.5f} lr {0.1 - 0.004 * k:.4f}\n" for k in range(20))
    then = "".join(
        f"epoch {k} loss {0.09 * 0.8 ** (k - 20) + 0.025:.5f} lr {0.1 if k == 20 else 0.1 - 0.004 * k:.4f}\n"
        for k in range(20, 26)
    )
    f = only(
        read(tmp_path, log=first + "Resuming training from checkpoint last.pt (epoch 20)\n" + then),
        "l207_step_at_boundary",
    )
    assert f.measured["kind"] == "resume"
    assert f.measured["lr_after"] == pytest.approx(0.1)
    assert "where the run was resumed" in f.statement
    assert not findings(
        read(tmp_path, log=first + "Resuming training from checkpoint last.pt (epoch 20)\n"), "l207_step_at_boundary"
    )


def test_lasting_step_at_one_epoch_start() -> None:
    loss = np.concatenate([np.linspace(1.2, 0.6, 60), np.full(40, 1.5)]) + 0.01 * np.random.default_rng(
        5
    ).standard_normal(100)
    f = only(run(series("loss", loss, epoch=np.arange(100) // 10)), "l207_step_at_boundary")
    assert f.measured["kind"] == "epoch"
    assert f.measured["at"] == 610


def test_evaluation_at_chance_beside_perfect_training(tmp_path: Path) -> None:
    log = "".join(
        f"step {50 * k} train_loss {0.02 / k:.4f} train_acc 0.998 test_loss {5 + 0.3 * k:.3f} test_acc 0.1{k % 3}0\n"
        for k in range(1, 12)
    )
    r = read(tmp_path, log=log)
    f = only(r, "l208_train_good_eval_chance")
    assert "training accuracy reaches 0.998" in f.statement
    assert not findings(r, "l203_overfitting", "l211_accuracy_at_chance")


def test_overfitted_accuracy_is_not_at_chance() -> None:
    acc = 0.55 - 0.3 * np.exp(-np.arange(20) / 3)
    assert not findings(
        run(
            series("accuracy", 1 - 0.6 * np.exp(-np.arange(20)), epochs=True),
            series("accuracy", acc, group="validation", epochs=True),
        ),
        "l208_train_good_eval_chance",
    )


def test_weight_of_the_configuration_makes_a_term_dominate(tmp_path: Path) -> None:
    log = "".join(
        f"step {10 * k} recon {0.7 + 0.01 * (k % 3):.4f} commit {0.05 - 0.0002 * k:.4f}\n" for k in range(1, 30)
    )
    r = read(tmp_path, log=log, config="commitment_cost: 40.0\nlr: 0.001\n")
    f = only(r, "l209_component_domination")
    assert f.measured["kind"] == "weighted"
    assert f.measured["weight"] == 40.0
    usual = tmp_path / "usual"
    usual.mkdir()
    assert not serious(read(usual, log=log, config="commitment_cost: 0.25\n"))


def test_reconstruction_above_its_kl_term_is_usual() -> None:
    r = run(series("loss/recon", np.geomspace(300, 80, 20)), series("kl", np.linspace(2, 12, 20)))
    assert not findings(r, "l209_component_domination")


def test_a_term_that_the_total_does_not_hold_dominates_nothing(tmp_path: Path) -> None:
    rows = [f"step {i * 10} loss {2 / (1 + i):.4f} rec {2 / (1 + i):.4f} kl {15 + 0.1 * i:.3f}\n" for i in range(12)]
    assert not findings(read(tmp_path, log="".join(rows)), "l209_component_domination")
    held = [f"step {i * 10} loss {17 + 2 / (1 + i):.4f} rec {2 / (1 + i):.4f} kl 17.0\n" for i in range(12)]
    assert only(read(tmp_path, log="".join(held)), "l209_component_domination").measured["kind"] == "auxiliary"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.0] * 12, "zero"),
        ([0.5] * 6 + [0.0] * 6, "became-zero"),
        ([0.1234] * 12, "constant"),
        ([0.5, 0.3, 0.1, 0.02, 0.001] + [0.0] * 7, None),
        ([0.1] * 12, None),
        ([0.0] * 3 + [0.2] * 9, None),
    ],
)
def test_dead_terms(values: list[float], kind: str | None) -> None:
    r = run(series("loss", np.geomspace(3, 1, 12)), series("loss/contrastive", values))
    assert [f.measured["kind"] for f in findings(r, "l210_dead_term")] == ([kind] if kind else [])


def test_policy_loss_of_zero_is_no_dead_term() -> None:
    r = run(
        series("loss", np.linspace(1, 0.5, 20)),
        series("loss/policy", np.zeros(20)),
        series("reward", np.linspace(0, 1, 20)),
    )
    assert not findings(r, "l210_dead_term")


def test_accuracy_in_per_cent_and_a_class_count_in_the_log(tmp_path: Path) -> None:
    log = "Dataset: 5000 images, 20 classes\n" + "".join(
        f"Epoch {k}: loss 4.{k % 4}71 acc {5.0 + 0.2 * (-1) ** k:.2f}%\n" for k in range(1, 12)
    )
    f = only(read(tmp_path, log=log), "l211_accuracy_at_chance")
    assert f.measured["classes"] == 20
    assert f.measured["accuracy"] == pytest.approx(0.05, abs=0.003)


def test_convergence_is_a_remark() -> None:
    f = only(run(series("loss", 0.45 + 2 * np.exp(-np.arange(40) / 4))), "l212_converged")
    assert f.severity is Severity.INFO
    assert f.measured["kind"] == "fell"


def test_narrow_predictions_against_the_target(tmp_path: Path) -> None:
    log = "".join(
        f"epoch {k} train_mse {9.0 + 0.03 * (-1) ** k:.3f} val_r2 {0.01 + 0.002 * (k % 3):.4f} pred_std 0.05{k % 10}\n"
        for k in range(1, 16)
    )
    f = only(read(tmp_path, log=log), "l213_prediction_collapse")
    assert f.measured["share"] == pytest.approx(0.018, abs=0.003)
    wide = run(
        series("mse", np.geomspace(9, 1, 15)),
        series("r2", 1 - np.geomspace(1, 0.1, 15), group="validation"),
        series("prediction_std", np.linspace(0.5, 2.8, 15)),
    )
    assert not findings(wide, "l213_prediction_collapse")


def test_representations_of_unit_length_are_not_collapsed() -> None:
    r = run(
        series("loss", np.linspace(-0.2, -0.9, 20)),
        series("embedding_std", np.full(20, 0.0221) + 1e-4 * np.arange(20), original="embedding_std"),
    )
    assert not findings(r, "l213_prediction_collapse")
    gone = run(series("loss", np.linspace(-0.2, -0.999, 20)), series("z_std", np.geomspace(0.02, 1e-6, 20)))
    assert findings(gone, "l213_prediction_collapse")


def test_same_class_for_every_sample() -> None:
    r = run(
        series("loss", np.linspace(0.7, 0.66, 12), epochs=True),
        series("accuracy", np.full(12, 0.6125), group="validation", epochs=True),
    )
    assert only(r, "l213_prediction_collapse").measured["kind"] == "same-class"


def test_sources_are_recognised_by_their_mean(tmp_path: Path) -> None:
    rows = []
    for k in range(1, 21):
        parts = [0.69 + 0.02 * ((k * j) % 3 - 1) for j in (1, 2)] + [0.6 * math.exp(-0.2 * k)]
        rows.append(
            f"step {k} loss {sum(parts) / 3:.4f} emails {parts[0]:.4f} papers {parts[1]:.4f} tickets {parts[2]:.4f}\n"
        )
    f = only(read(tmp_path, log="".join(rows)), "l214_component_disparity")
    assert f.measured["learned"] == ("tickets",)
    assert f.measured["stuck"] == ("emails", "papers")
    assert f.measured["learned_position"] == "last"


def test_evaluation_before_and_after_in_one_line(tmp_path: Path) -> None:
    log = "".join(
        f"{{'step': {k}, 'loss': {0.5 + 0.01 * (k % 4)}, 'grad_norm': 0.2{k}, 'learning_rate': 0.001}}\n"
        for k in range(1, 15)
    )
    f = only(read(tmp_path, log=log + "val score before 0.4375 after 0.4375\n"), "l215_metric_unchanged")
    assert f.measured["grad_norm_nonzero"] is True
    changed = tmp_path / "changed"
    changed.mkdir()
    assert not findings(read(changed, log=log + "val score before 0.4375 after 0.5125\n"), "l215_metric_unchanged")


@pytest.mark.parametrize(
    ("values", "found"), [([3.2817] * 4, True), ([3.2817, 3.2817, 3.2816, 3.2817], False), ([3.2] * 4, False)]
)
def test_validation_loss_that_never_changes(values: list[float], found: bool) -> None:
    r = run(series("loss", np.linspace(3, 2.5, 40)), series("loss", values, group="validation", every=100))
    assert bool(findings(r, "l215_metric_unchanged")) is found


def test_repeated_accuracy_beside_a_moving_loss_is_not_unchanged() -> None:
    r = run(
        series("loss", np.linspace(3, 2.5, 40)),
        series("accuracy", [0.8125] * 6, group="validation"),
        series("loss", np.linspace(0.9, 0.8, 6), group="validation"),
    )
    assert not findings(r, "l215_metric_unchanged")


def test_weights_that_do_not_move() -> None:
    r = run(series("loss", 0.5 + 0.1 * np.sin(np.arange(20))), series("weight_norm", np.full(20, 12.3456)))
    assert only(r, "l215_metric_unchanged").measured["kind"] == "weights"


def test_before_and_after_in_a_note() -> None:
    note = Note("other", "perplexity before training: 21.374, after training: 21.374", "train.log", 50)
    found: list[Finding] = findings(
        run(series("loss", 0.5 + 0.1 * np.sin(np.arange(20))), notes=(note,)), "l215_metric_unchanged"
    )
    assert [f.measured["kind"] for f in found] == ["before-after"]
    assert found[0].where.line == 50


def test_first_loss_is_a_multiple_of_the_vocabulary_logarithm(tmp_path: Path) -> None:
    log = "".join(f"step {k} loss {43.29 * math.exp(-0.05 * (k - 1)):.3f}\n" for k in range(1, 40))
    config = "vocab_size: 50257\ngradient_accumulation_steps: {}\n"
    f = only(read(tmp_path, log=log, config=config.format(4)), "l202_arithmetic_constant")
    assert f.measured["kind"] == "loss-ratio-at-start"
    assert not findings(read(tmp_path, log=log, config=config.format(8)), "l202_arithmetic_constant")


def test_rest_with_much_variance_left_is_called_stalled(tmp_path: Path) -> None:
    log = "".join(f"step {k} mse {0.8 + 1.4 * math.exp(-k):.4f} (data var 2.2{k % 5})\n" for k in range(1, 30))
    f = only(read(tmp_path, log=log), "l212_converged")
    assert f.measured["kind"] == "stalled"
    assert f.severity is Severity.INFO


def test_a_loss_that_climbs_in_every_epoch_and_drops_at_its_start(tmp_path: Path) -> None:
    noise = np.random.default_rng(4)

    def log(slope: float) -> str:
        loss = {i: 1.8 * np.exp(-i / 300) + 0.3 + slope * (i % 100 / 100 - 0.5) for i in range(0, 600, 5)}
        return "\n".join(f"[{i}] epoch={i // 100} loss={y + 0.02 * noise.normal():.4f}" for i, y in loss.items())

    f = only(read(tmp_path, log=log(0.8)), "l206_sawtooth")
    assert (f.measured["kind"], f.measured["boundaries_up"], f.severity) == ("climbing", 5, Severity.MEDIUM)
    assert findings(read(tmp_path, log=log(0.0)), "l206_sawtooth") == []


@pytest.mark.parametrize(("accuracies", "carries_over"), [
    ([0.35, 0.32, 0.33, 0.30, 0.30, 0.29, 0.30, 0.30], False),  # never better than at first, below a coin
    ([0.35, 0.41, 0.44, 0.45, 0.44, 0.43, 0.43, 0.43], True),  # a little was learned
    ([0.91, 0.90, 0.90, 0.90, 0.89, 0.89, 0.89, 0.89], True),  # fine-tuned: good from the first evaluation on
])
def test_overfitting_says_whether_anything_held_for_held_out_data(tmp_path: Path, accuracies: list[float],
                                                                  carries_over: bool) -> None:
    text = "".join(f"epoch {k + 1}  train {1.4 * math.exp(-0.8 * k):.3f} (88.1%)  valid {1.4 + 0.6 * k:.3f} "
                   f"({100 * acc:.1f}%)\n" for k, acc in enumerate(accuracies))
    f = only(read(tmp_path, log=text), "l203_overfitting")
    assert f.measured["carries_over"] is carries_over
    assert ("never was better than at first" in f.statement) is not carries_over

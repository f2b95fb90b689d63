"""L105, L106, L107, L109, L201, L204, L205, L213, L219 to L222, L311, L603: kinds of faults that look like success."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numerics_builder import check_of, note, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.run import Run

NOISE = np.random.default_rng(0)


def found(r: Run, module: str) -> list[Finding]:
    return list(check_of(module)(r))


def only(r: Run, module: str) -> Finding:
    (f,) = found(r, module)
    return f


def falling(n: int, first: float = 2.3, last: float = 0.4) -> np.ndarray:
    return last + (first - last) * np.exp(-np.arange(n) / (n / 5)) + 0.01 * NOISE.standard_normal(n)


# L106, L107: few records, changes of the task


@pytest.mark.parametrize("values", [[1.6, 1.7, 756, 162], [1.6, 1.5, 1.9, 40, 756, 300, 162], [0.9, 70, 81]])
def test_a_loss_that_blew_up_and_came_down_a_bit_has_diverged(values: list[float]) -> None:
    f = only(run(series("loss", values)), "l106_divergence")
    assert (f.severity, f.measured["worse_than_start"]) == (Severity.HIGH, True)
    assert f.measured["position"] == values.index(next(v for v in values if v > 10 * values[0])) + 1


def test_a_single_outlier_among_few_is_no_divergence() -> None:
    assert found(run(series("loss", [1.6, 1.5, 756, 1.4, 1.3])), "l106_divergence") == []


def test_a_loss_printed_as_zero_that_comes_back_has_diverged() -> None:
    y = [2.08, 0.03, 0.0, 0.0, 0.0, 0.4, 0.5, 0.7, 0.9, 1.3, 1.9, 2.0, 2.07, 2.07, 2.08, 2.06, 2.07, 2.08]
    assert only(run(series("loss", y)), "l106_divergence").measured["best"] == 0


def stages(falls: bool) -> np.ndarray:
    tail = np.exp(-np.arange(30) / 10) if falls else np.ones(30)
    return np.concatenate([falling(30, 1.2, 0.01), 0.5 + 0.7 * tail + 0.005 * NOISE.standard_normal(30)])


@pytest.mark.parametrize(("after", "severity"), [
    (0.97, Severity.LOW), (0.7, Severity.MEDIUM), (None, Severity.MEDIUM)])
def test_a_loss_that_jumps_while_the_evaluation_goes_on_has_lost_nothing(after: float | None,
                                                                         severity: Severity) -> None:
    loss = series("loss", [4.1, 0.4, 0.23, 0.19, 0.17, 0.14, 0.13, 0.12, 0.116, 0.109, 0.52, 0.39, 0.38, 0.36, 0.33,
                           0.34, 0.31, 0.31, 0.31, 0.3, 0.29, 0.29, 0.28, 0.28])
    lines = len(loss) if after is not None else 0
    score = [0.92 + 0.005 * min(i, 10) if i <= 10 else after for i in range(lines)]
    given = [loss, *([series("accuracy", score, group="val")] if score else [])]
    (f,) = found(run(*given), "l107_spike")
    assert f.severity is severity


@pytest.mark.parametrize("told", ["note", "column"])
def test_a_harder_stage_whose_loss_falls_is_no_divergence(told: str) -> None:
    loss = series("loss", stages(falls=True))
    length = series("len", [3.0] * 30 + [6.0] * 30)
    r = run(loss, notes=(note("change", "stage 2: sequence length 6", 31),)) if told == "note" else run(loss, length)
    assert found(r, "l106_divergence") == found(r, "l107_spike") == []


def test_a_stage_that_destroys_is_one_still() -> None:
    r = run(series("loss", stages(falls=False)), series("len", [3.0] * 30 + [6.0] * 30))
    assert len(found(r, "l106_divergence")) == 1


def test_a_spike_that_is_far_from_back_is_not_called_back() -> None:
    y = falling(40)
    y[20:23] = (500, 120, 0.9)
    f = only(run(series("loss", y)), "l107_spike")
    assert "is back at" in f.statement
    y[22:24] = (80, 60)
    assert "is back at 80" not in only(run(series("loss", y)), "l107_spike").statement


# L105: skipped steps that only lines announce


def overflow_log(skips: int, records: int) -> str:
    lines = [f"[2026-03-01 10:00:00,000] [INFO] [loss_scaler.py:183] OVERFLOW! Rank 0 Skipping step. "
             f"Attempted loss scale: {2.0 ** (16 - i):g}, reducing to {2.0 ** (15 - i):g}" for i in range(skips)]
    return "\n".join([*lines, *(f"step {i} loss {2 - i / 50:.3f}" for i in range(records))]) + "\n"


def test_overflow_after_overflow_is_a_collapse_of_the_scale() -> None:
    f = only(read_run(["-"], stdin=overflow_log(20, 3).encode()), "l105_loss_scale_collapse")
    assert (f.measured["halvings"], f.measured["first"]) == (20, 32768)


def test_a_scaler_that_finds_its_range_is_left_alone() -> None:
    assert found(read_run(["-"], stdin=overflow_log(5, 60).encode()), "l105_loss_scale_collapse") == []
    assert found(read_run(["-"], stdin=b"OVERFLOW! Skipping step, reducing to x-1\n" * 9 + b"step 1 loss 2\n"),
                 "l105_loss_scale_collapse") == []


# L109


def test_a_count_that_is_zero_from_the_start() -> None:
    nan = [np.nan] * 9
    f = only(run(series("loss", nan), series("n_target_tokens", [0.0] * 9)), "l109_zero_count_at_onset")
    assert f.measured["kind"] == "zero-always"
    assert found(run(series("loss", nan), series("n_target_tokens", [64.0] * 9)), "l109_zero_count_at_onset") == []


@pytest.mark.parametrize("line", ["loaded data.csv: 2000 rows, 9 missing values in 'hum'", "2000 samples, NaN: 12"])
def test_missing_values_that_the_log_counts(line: str) -> None:
    log = f"{line}\n" + "".join(f"step {i} loss {'nan' if i > 4 else 2 - i / 10}\n" for i in range(12))
    assert [f.measured["kind"] for f in found(read_run(["-"], stdin=log.encode()), "l109_zero_count_at_onset")] == [
        "missing-told"]


@pytest.mark.parametrize("line", ["loaded data.csv: 2000 rows, 0 missing values", "2000 samples", "2000 rows nan: 0"])
def test_no_missing_values_are_no_hint(line: str) -> None:
    log = f"{line}\n" + "".join(f"step {i} loss {'nan' if i > 4 else 2 - i / 10}\n" for i in range(12))
    assert found(read_run(["-"], stdin=log.encode()), "l109_zero_count_at_onset") == []


# L201, L204, L205, L213


def test_a_lower_bound_that_rises_is_learned() -> None:
    assert found(run(series("elbo", -27 + 9 * (1 - np.exp(-np.arange(30) / 4)))), "l201_plateau") == []


def test_a_loss_that_repeats_to_the_last_digit_says_so() -> None:
    assert only(run(series("mse", [21.258712] * 10)), "l201_plateau").measured["exact"] is True


def test_a_training_set_known_by_heart_beside_a_flat_validation() -> None:
    train, held_out = [0.000002, 0.000001, *([0.0] * 10)], [0.0826, 0.0825] * 6
    f = only(run(series("loss", train), series("loss", held_out, group="validation")), "l204_train_validation_gap")
    assert f.severity is Severity.MEDIUM
    train = (0.06 * np.exp(-np.arange(12) / 3)).tolist()
    healthy = run(series("loss", train), series("loss", [t + 0.01 for t in train], group="validation"))
    assert found(healthy, "l204_train_validation_gap") == []


def test_a_validation_loss_far_below_a_regularised_training_loss_is_no_gap() -> None:
    train = [1.41, 1.04, 0.96, 0.92, 0.88, 0.89, 0.87, 0.85, 0.83, 0.81, 0.80, 0.84]
    held_out = [0.022, 0.064, 0.095, 0.099, 0.101, 0.104, 0.108, 0.113, 0.114, 0.116, 0.117, 0.118]
    easier = run(series("loss", train), series("loss", held_out, group="validation"))
    assert found(easier, "l204_train_validation_gap") == []
    above = run(series("loss", train), series("loss", [20 * h for h in held_out], group="validation"))
    assert only(above, "l204_train_validation_gap").measured["kind"] == "growing"


def test_a_cross_entropy_below_zero() -> None:
    y = -2.0 * np.arange(1, 16) ** 1.2
    f = only(run(series("loss", y), series("accuracy", [0.1] * 15)), "l205_loss_accuracy_contradiction")
    assert f.measured["kind"] == "negative-loss"
    learns = series("accuracy", np.linspace(0.1, 0.95, 15))
    assert found(run(series("loss", y), learns), "l205_loss_accuracy_contradiction") == []
    bounded = run(series("loss", -2.0 + np.exp(-np.arange(15.0))), series("accuracy", [0.1] * 15))
    assert found(bounded, "l205_loss_accuracy_contradiction") == []


@pytest.mark.parametrize("name", ["val_recall", "flagged", "predicted_positives", "f1"])
def test_a_rare_class_that_is_never_named(name: str) -> None:
    acc = series("accuracy", [0.7, 0.9, *([0.975] * 10)], group="validation")
    f = only(run(acc, series(name, [0.3, 0.1, *([0.0] * 10)])), "l213_prediction_collapse")
    assert f.measured["kind"] == "never-positive"
    assert found(run(acc, series(name, [0.0] * 8 + [0.2, 0.4, 0.5, 0.5])), "l213_prediction_collapse") == []


def test_recall_of_held_out_data_says_nothing_beside_the_accuracy_of_training() -> None:
    train = series("accuracy", [0.8, 0.99, *([1.0] * 10)])
    missed = series("recall", [0.3, 0.1, *([0.0] * 10)], group="test")
    assert found(run(train, missed), "l213_prediction_collapse") == []
    tested = series("accuracy", [0.7, 0.9, *([0.975] * 10)], group="test")
    assert only(run(train, tested, missed), "l213_prediction_collapse").measured["accuracy"] == 0.975


def test_an_accuracy_above_every_recall_is_of_other_samples() -> None:
    level = [0.5, 0.9, *([0.99] * 10)]
    rare = series("recall_ball", [0.0] * 12)
    usual = series("recall_ok", [0.9, *([0.995] * 11)])
    f = only(run(series("accuracy", level), rare, usual), "l213_prediction_collapse")
    assert f.measured["kind"] == "never-positive"
    for other in (series("recall_ok", [0.6] * 11 + [0.76]), series("recall_ok", [math.nan] * 12)):
        assert found(run(series("accuracy", level), rare, other), "l213_prediction_collapse") == []
    fitted = replace(series("accuracy", level), original="train_acc")
    assert found(run(fitted, rare), "l213_prediction_collapse") == []


# L219 to L222


def test_weights_that_shrink_while_nothing_is_learned() -> None:
    norm = series("weight_norm", 3 * np.exp(-np.arange(30) / 6))
    f = only(run(norm, series("loss", [1.79] * 30)), "l219_weights_shrink")
    assert (f.severity, f.measured["first"] > 10 * f.measured["last"]) == (Severity.HIGH, True)  # type: ignore[operator]
    assert found(run(norm, series("loss", falling(30))), "l219_weights_shrink") == []
    assert found(run(series("weight_norm", [np.nan] * 9), series("loss", [1.0] * 9)), "l219_weights_shrink") == []


@pytest.mark.parametrize(("name", "dead", "alive"), [
    ("active_frac", [0.0] * 20, [0.4] * 20), ("relu/dead_ratio", [1.0] * 20, [0.2] * 20),
    ("dead_units", [100.0] * 20, [3.0] * 20), ("frac_active", [0.5] * 8 + [0.0] * 12, [0.02] * 20)])
def test_units_that_are_all_off(name: str, dead: list[float], alive: list[float]) -> None:
    assert only(run(series(name, dead)), "l220_inactive_units").where.step is not None
    assert found(run(series(name, alive)), "l220_inactive_units") == []
    assert found(run(series(name, [np.nan] * 20)), "l220_inactive_units") == []


def test_a_test_far_below_a_validation_that_equals_training() -> None:
    def r(train: float, held_out: float, test: float) -> Run:
        return run(series("accuracy", [train] * 6), series("accuracy", [held_out] * 6, group="validation"),
                   series("accuracy", [test], group="test"))

    assert only(r(0.98, 0.98, 0.76), "l221_test_below_validation").measured["gap"] == pytest.approx(0.22)
    assert found(r(0.98, 0.80, 0.76), "l221_test_below_validation") == []
    assert found(r(0.98, 0.97, 0.94), "l221_test_below_validation") == []


STUCK = [2.66, 3.1, 4.9, 4.2, 3.7, 2.9, *(2.49 + 0.02 * NOISE.standard_normal(24))]


def test_a_spike_after_which_nothing_is_learned() -> None:
    f = only(run(series("loss", STUCK), series("accuracy", [0.1] * 30), series("learning_rate", [0.1] * 30)),
             "l222_spike_then_stuck")
    assert (f.measured["peak"], f.measured["lr"], f.measured["signs"]) == (4.9, 0.1, 2)


@pytest.mark.parametrize("case", ["recovers", "learns", "no sign", "broken"])
def test_spikes_that_are_no_destruction(case: str) -> None:
    loss, acc = STUCK, np.full(30, 0.1)
    if case == "recovers":
        loss = [2.66, 3.1, 4.9, 4.2, *falling(26, 2.9, 0.3)]
    if case == "learns":
        acc = np.linspace(0.1, 0.8, 30)
    if case == "broken":
        loss = [*STUCK[:-1], float("nan")]
    r = run(series("loss", loss)) if case == "no sign" else run(series("loss", loss), series("accuracy", acc))
    assert found(r, "l222_spike_then_stuck") == []


# L311


def configured(rates: list[float], **config: object) -> Run:
    return run(series("learning_rate", rates), series("loss", falling(len(rates))), config=config)


@pytest.mark.parametrize("rates", [[0.01] * 8, [1e-3] * 8, [0.0, 0.002, 0.004, 0.003, 0.002, 0.001]])
def test_a_rate_that_is_not_the_configured_one(rates: list[float]) -> None:
    f = only(configured(rates, **{"optim.lr": 3e-4}), "l311_lr_not_as_configured")
    assert (f.measured["configured"], f.measured["setting"]) == (3e-4, "optim.lr")


@pytest.mark.parametrize(("rates", "config"), [
    ([3e-4] * 8, {"lr": 3e-4}), ([0.0, 1e-4, 2e-4, 3e-4, 2e-4, 1e-4], {"lr": 3e-4}),
    ([1e-4, 5e-5, 2e-5, 1e-5, 0.0], {"lr": 3e-4}), ([2.4e-3] * 8, {"lr": 3e-4, "world_size": 8}),
    ([6e-4] * 8, {"lr": 3e-4, "batch_size": 512}), ([0.01] * 8, {"lr": 3e-4, "lr_head": 0.01}),
    ([0.01] * 8, {"lr": 3e-4, "scale_lr": True}), ([0.01] * 8, {"lr": "auto"}), ([0.01] * 8, {"lr": [1, 2]}),
    ([0.01] * 8, {}), ([float("nan")] * 8, {"lr": 3e-4}),
    ([0.00216, 0.00297, 0.0029, 0.0024, 0.0012, 0.0003], {"lr": 0.00216})])  # read off the log's own first line
def test_rates_that_a_schedule_or_scaling_explains(rates: list[float], config: dict[str, object]) -> None:
    assert found(configured(rates, **config), "l311_lr_not_as_configured") == []


def decay(start: float, kind: str, n: int = 20) -> list[float]:
    """Rates at steps 1 to n of a run of n steps."""
    p = np.arange(1, n + 1) / n
    return list(start * {"linear": 1 - p, "cosine": (1 + np.cos(math.pi * p)) / 2, "exponential": 0.01**p,
                         "inverse": (1 + 1000 * p) ** -0.5, "square": (1 - p) ** 2}[kind])


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_an_even_decay_that_began_elsewhere(kind: str) -> None:
    f = only(configured(decay(5e-5, kind), **{"learning-rate": 2e-3}), "l311_lr_not_as_configured")
    assert f.measured["configured"] == 2e-3
    assert "at its start" in f.statement
    assert found(configured(decay(2e-3, kind), lr=2e-3), "l311_lr_not_as_configured") == []


@pytest.mark.parametrize("kind", ["exponential", "inverse", "square"])
def test_where_an_uneven_decay_began_is_not_known(kind: str) -> None:
    assert found(configured(decay(5e-5, kind), lr=2e-3), "l311_lr_not_as_configured") == []


def test_a_decay_that_was_recorded_from_its_middle_on() -> None:
    late = decay(2e-3, "linear", 40)[25:]
    recorded = run(series("learning_rate", late, step=range(26, 41)), series("loss", falling(15)), config={"lr": 2e-2})
    assert found(recorded, "l311_lr_not_as_configured") == []


# L603


def test_the_negative_entropy_of_stable_baselines() -> None:
    reward = series("reward", [20.0, 15.0] * 15)
    r = run(series("loss/entropy", -1.79 * np.exp(-np.arange(30) / 2)), reward)
    assert only(r, "l603_entropy_collapse").measured["kind"] == "collapsed"
    assert found(run(series("loss/entropy", [-1.7] * 30), reward), "l603_entropy_collapse") == []


def test_odd_values_break_none_of_them() -> None:
    odd = [float("inf"), -1e308, 0.0, float("nan"), 1e308, 5.0]
    names = ("loss", "accuracy", "weight_norm", "active_frac", "learning_rate", "recall", "loss/entropy", "reward")
    failed: list[str] = []
    judge_run(run(*(series(n, odd * 4) for n in names), series("loss", odd, group="validation"),
                  config={"lr": 10**400}), failed)
    assert failed == []

"""L223, L307, L204, L302, L213: runs that end far from where a model without skill would stand."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import check_of, note, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.run import Run

NOISE = np.random.default_rng(7)
N = np.arange(30.0)


def found(r: Run, module: str = "l223_worse_than_no_skill") -> list[Finding]:
    return list(check_of(module)(r))


def only(r: Run, module: str = "l223_worse_than_no_skill") -> Finding:
    (f,) = found(r, module)
    return f


RUINED = -69 - 900 * np.exp(-N) + 5 * NOISE.standard_normal(30)
LEARNING = 0.9 - 30 * np.exp(-N / 4) + 0.02 * NOISE.standard_normal(30)


def test_r2_far_below_zero_late_in_the_run_is_found() -> None:
    f = only(run(series("mse", 74 + 3000 * np.exp(-N)), series("r2", RUINED, group="validation")))
    assert f.severity is Severity.HIGH
    assert f.measured["kind"] == "unbounded"
    assert f.measured["train"] == "unknown"
    assert -80 < f.measured["level"] < -60
    assert (f.where.step, f.where.end_step) == (21, 30)


@pytest.mark.parametrize("values", [LEARNING, -9 * np.exp(-np.arange(5) / 3), 0.02 * NOISE.standard_normal(30),
                                    -0.3 + 0.05 * NOISE.standard_normal(30), [-69.0, -50.0]])
def test_r2_that_rises_or_lies_about_zero_is_left_alone(values: np.ndarray) -> None:
    assert found(run(series("r2", values, group="validation"))) == []


def test_whether_training_fits_is_told_by_the_same_error_on_both() -> None:
    held_out = series("mse", np.full(30, 50.0), group="validation")
    score = series("r2", np.full(30, -4.0), group="validation")
    assert only(run(series("mse", np.full(30, 1.0)), held_out, score)).measured["train"] == "learned"
    assert only(run(series("mse", np.full(30, 45.0)), held_out, score)).measured["train"] == "worse"


def test_squared_error_beside_the_variance_of_the_target_tells_the_same() -> None:
    variance = series("target_var", np.full(30, 1.0))
    assert only(run(series("mse", np.full(30, 74.0), group="validation"), variance)).measured["kind"] == "unbounded"
    assert found(run(series("mse", np.full(30, 0.9), group="validation"), variance)) == []


@pytest.mark.parametrize(("name", "bad", "good"), [("auc", 0.21, 0.48), ("mcc", -0.6, -0.03), ("kappa", -0.4, 0.0),
                                                  ("spearman", -0.8, 0.1)])
def test_a_score_of_an_order_that_is_turned_round(name: str, bad: float, good: float) -> None:
    assert only(run(series(name, np.full(12, bad), group="validation"))).measured["kind"] == "inverted"
    assert found(run(series(name, np.full(12, good), group="validation"))) == []


DOWN = np.exp(-N / 8) + 0.01 * NOISE.standard_normal(30)
TURNED = 0.5 - 0.12 * (1 - np.exp(-N / 4)) + 0.01 * NOISE.standard_normal(30)
"""An area or concordance that settles at 0.38."""


@pytest.mark.parametrize("name", ["c_index", "auc", "concordance"])
def test_an_order_that_settles_below_chance_in_training_while_the_loss_falls(name: str) -> None:
    f = only(run(series("loss", DOWN), series(name, TURNED)))
    assert (f.measured["kind"], f.measured["chance"]) == ("inverted", 0.5)
    assert "the loss rewards the opposite" in f.statement
    assert found(run(series("loss", DOWN), series(name, 1.0 - TURNED))) == []
    assert found(run(series("loss", DOWN), series(name, 0.49 + 0.03 * NOISE.standard_normal(30)))) == []
    assert found(run(series("loss", DOWN[::-1]), series(name, TURNED))) == [], "a loss that rises diverges"


def test_held_out_records_share_their_samples_so_that_their_number_decides() -> None:
    held_out = series("auc", 0.42 + 0.005 * NOISE.standard_normal(30), group="validation")
    loss = series("loss", DOWN)
    assert found(run(loss, held_out)) == []
    assert found(run(loss, held_out, config={"n_val": 100})) == []
    assert only(run(loss, held_out, config={"n_val": 4000})).measured["kind"] == "inverted"


def test_an_accuracy_below_one_in_k_beside_a_trained_one_is_numbered_otherwise() -> None:
    config = {"num_classes": 5}
    below = series("accuracy", 0.06 + 0.004 * NOISE.standard_normal(30), group="validation")
    trained = series("accuracy", 1.0 - 0.8 * np.exp(-N / 5))
    f = only(run(series("loss", DOWN), trained, below, config=config))
    assert (f.measured["train"], f.measured["classes"]) == ("learned", 5)
    assert "numbered otherwise" in f.statement
    chance = series("accuracy", 0.2 + 0.02 * NOISE.standard_normal(30), group="validation")
    assert found(run(series("loss", DOWN), trained, chance, config=config)) == []
    one_answer = series("accuracy", np.full(30, 0.06), group="validation")
    assert found(run(series("loss", DOWN), trained, one_answer, config=config)) == []
    assert found(run(series("loss", DOWN), trained, below, config={"num_classes": "many"})) == []


def test_an_area_whose_chance_is_the_share_of_positives_is_left_alone() -> None:
    assert found(run(series("loss", DOWN), series("pr_auc", np.full(30, 0.1), group="validation"))) == []


def test_the_explained_variance_of_a_value_function_is_no_fault() -> None:
    r = run(series("explained_variance", np.full(12, -2.0)), series("reward", N[:12]))
    assert found(r) == []


def test_values_that_are_not_finite_are_no_skill() -> None:
    assert found(run(series("r2", [np.nan] * 9, group="validation"), series("auc", [], group="validation"))) == []


def test_a_huge_learning_rate_beside_a_ruined_score_is_too_high() -> None:
    ruined = run(series("mse", 74 + 3000 * np.exp(-N)), series("r2", RUINED, group="validation"),
                 series("learning_rate", np.full(30, 5.0)))
    f = only(ruined, "l307_lr_extreme")
    assert (f.measured["kind"], f.measured["specific"]) == ("high", True)
    healthy = run(series("mse", 0.05 + np.exp(-N)), series("r2", LEARNING, group="validation"),
                  series("learning_rate", np.full(30, 5.0)))
    assert found(healthy, "l307_lr_extreme") == []


def test_an_error_ten_times_training_s_at_every_evaluation_is_a_gap_even_if_it_falls() -> None:
    train = series("rmse", 14 + 30 * np.exp(-N / 2))
    far = series("rmse", 690 - 220 * N / 29, group="validation")
    assert only(run(train, far), "l204_train_validation_gap").measured["kind"] == "from-start"
    other_unit = series("rmse", 20 * (14 + 30 * np.exp(-N / 2)), group="validation")
    assert found(run(train, other_unit), "l204_train_validation_gap") == []


def test_a_gap_that_a_late_first_evaluation_finds_open_is_none_from_the_start() -> None:
    train = series("loss", 0.12 + 2.2 / (1 + np.arange(300.0)), every=100)
    late = np.full(300, np.nan)
    late[100::20] = 0.6 - 0.005 * np.arange(10)

    def gap(values: np.ndarray) -> list[Finding]:
        told = ~np.isnan(values)
        held_out = series("loss", values[told], group="validation", step=100.0 * (1 + np.flatnonzero(told)))
        return found(run(train, held_out), "l204_train_validation_gap")

    assert gap(late) == []
    assert [f.measured["kind"] for f in gap(4 * late)] == ["from-start"], "no better than a model that was not trained"
    assert gap(np.where(np.isnan(late), np.nan, np.inf)) == []


def schedule(steps: int = 16) -> np.ndarray:
    up = np.array([0.0019, 0.0039, 0.0059])
    return np.concatenate([up, 0.0059 - 0.00022 * np.arange(1, steps - 2)])


def test_a_second_warmup_at_the_resume_is_a_restart() -> None:
    rate = series("learning_rate", [*schedule(), *schedule()])
    loss = series("loss", 1.3 + np.exp(-np.arange(32.0)))
    resumed = note("resume", "== fortgesetzt bei Schritt 16 ==", 17)
    f = only(run(loss, rate, notes=(resumed,)), "l302_lr_restart")
    assert f.measured["at_resume"] is True
    assert f.measured["to_peak"] is True
    assert f.where.step == 17
    goes_on = series("learning_rate", [*schedule(), *(schedule()[-1] - 0.0001 * np.arange(1, 17))])
    assert found(run(loss, goes_on, notes=(resumed,)), "l302_lr_restart") == []
    assert found(run(loss, rate), "l302_lr_restart") == [], "a cycle that nobody resumed may be meant"


def test_a_recall_of_zero_under_a_possessive_name_is_seen() -> None:
    text = "\n".join(f"[{20 * i}]\ttrain's binary_logloss: {0.6 - i / 40:.4f}\tvalid's accuracy: 0.98350\t"
                     f"valid's recall: {0.11 if i < 2 else 0.0:.4f}" for i in range(1, 15))
    assert {f.measured.get("kind") for f in judge_run(read_run(["-"], stdin=text.encode()))
            if f.rule == "L213"} == {"never-positive"}


PINNED = np.concatenate([[43.0, 274.0], 2233.7 + 0.3 * NOISE.standard_normal(14)])
CLIMBING = np.concatenate([[4.5, 28.0], np.linspace(99, 350, 14)])
DECAY = 0.05 * np.cos(np.linspace(0, np.pi / 2, 16)) ** 2


def test_a_norm_that_stands_while_the_rate_falls_says_so() -> None:
    r = run(series("loss", CLIMBING), series("grad_norm", PINNED), series("learning_rate", DECAY))
    assert only(r, "l102_gradient_explosion").measured["despite_decay"] is True
    assert only(r, "l106_divergence").measured["despite_decay"] is True


def test_a_norm_that_scatters_or_a_rate_that_stays_says_nothing_of_the_kind() -> None:
    wild = PINNED * (1 + 0.3 * NOISE.standard_normal(16))
    r = run(series("loss", CLIMBING), series("grad_norm", wild), series("learning_rate", DECAY))
    assert only(r, "l102_gradient_explosion").measured["despite_decay"] is False
    for rate in (series("learning_rate", np.full(16, 0.05)), None):
        r = run(series("loss", CLIMBING), series("grad_norm", PINNED), *([rate] if rate else []))
        assert only(r, "l102_gradient_explosion").measured["despite_decay"] is False
        assert only(r, "l106_divergence").measured["despite_decay"] is False


def layers(*levels: float) -> Run:
    norms = [series(f"grad_norm/l{i:02d}", np.full(12, v)) for i, v in enumerate(levels)]
    return run(series("loss", 1.386 + 0.001 * NOISE.standard_normal(12)), *norms)


@pytest.mark.parametrize("levels", [(2e-9, 5e-7, 2e-4, 7e-2, 0.3), (0.3, 7e-2, 2e-4, 5e-7, 2e-9)])
def test_norms_that_lose_a_factor_a_layer_vanish_by_depth(levels: tuple[float, ...]) -> None:
    assert only(layers(*levels), "l103_gradient_vanishing").measured["by_depth"] is True


@pytest.mark.parametrize("levels", [(2e-9, 0.3, 2e-4, 0.5, 7e-2), (2e-9, 0.3, 0.2), (2e-9, 0.4, 0.1, 0.3)])
def test_norms_in_any_order_do_not(levels: tuple[float, ...]) -> None:
    assert only(layers(*levels), "l103_gradient_vanishing").measured["by_depth"] is False


def test_layers_that_all_learn_are_left_alone() -> None:
    assert found(layers(0.1, 0.2, 0.3, 0.4, 0.5), "l103_gradient_vanishing") == []

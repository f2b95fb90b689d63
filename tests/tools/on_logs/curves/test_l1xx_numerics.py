"""L101-L108: a faulty run each rule sees, the healthy twin that it leaves alone, and what it measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numerics_builder import findings, run, series, serious

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import Run

NAN = math.nan


def only(r: Run, module: str) -> Finding:
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


FALLING = [2.3, 1.9, 1.6, 1.4, 1.3, 1.2, 1.15, 1.1, 1.05, 1.0]


# L101


def test_abrupt_nan_names_place_last_value_and_learning_rate() -> None:
    f = only(run(series("loss", [*FALLING, NAN, NAN, NAN], every=10),
                 series("grad_norm", [1.0] * 10 + [NAN] * 3, every=10),
                 series("learning_rate", [3e-4] * 13, every=10)), "l101_nonfinite")
    assert f.severity is Severity.CRITICAL
    assert f.measured["onset"] == "abrupt"
    assert (f.measured["metric"], f.measured["position"], f.measured["last_finite"]) == ("loss", 110.0, 1.0)
    assert f.measured["lr"] == pytest.approx(3e-4)
    assert f.measured["first"] == ("loss", "grad_norm")
    assert f.statement.startswith("loss turns nan between step 100 and step 110 (last finite value 1)")
    assert f.where.line == 11


def test_what_is_logged_at_every_step_breaks_at_one() -> None:
    f = only(run(series("loss", [*FALLING, NAN, NAN, NAN])), "l101_nonfinite")
    assert f.statement.startswith("loss is nan from step 11 on (last finite value 1 at step 10)")


def test_sparse_records_that_recover_name_the_record() -> None:
    f = only(run(series("loss", [*FALLING, NAN, 1.0, 1.0, 1.0], every=10)), "l101_nonfinite")
    assert "is nan at step 110 (last finite value 1 at step 100); later values are finite again" in f.statement


def test_ramp_of_the_gradient_norm_before_nan() -> None:
    grad = [1.2, 1.3, 1.1, 1.2, 1.4, 1.2, 4.0, 22.0, 96.0, 310.0]
    f = only(run(series("loss", [*FALLING, NAN, NAN]), series("grad_norm", [*grad, NAN, NAN])), "l101_nonfinite")
    assert f.measured["onset"] == "ramp"
    assert f.measured["ramp_metric"] == "grad_norm"
    assert f.measured["ramp_ratio"] > 100  # type: ignore[operator]
    assert "grad_norm rose from 1.2 at step 6 to 310 at step 10 before" in f.statement


def test_a_loss_that_rose_tenfold_from_its_lowest_value_to_its_highest_is_a_ramp() -> None:
    f = only(run(series("loss", [0.114, 1.86, 1.83, 8.19, NAN, NAN])), "l101_nonfinite")
    assert (f.measured["onset"], f.measured["ramp_metric"]) == ("ramp", "loss")
    assert f.measured["ramp_ratio"] == pytest.approx(71.8, abs=0.1)
    assert "loss rose from 0.114 at step 1 to 8.19 at step 4 before" in f.statement


def test_a_noisy_loss_is_no_ramp_and_is_not_said_never_to_have_risen_tenfold() -> None:
    f = only(run(series("loss", [2.3, 0.9, 0.3, 0.02, 0.2, 0.1, 0.3, 0.05, 0.25, 0.2, NAN, NAN])), "l101_nonfinite")
    assert f.measured["onset"] == "abrupt"
    assert "rose tenfold before" not in f.statement
    assert "no loss or gradient norm stood tenfold above its usual level just before" in f.statement


def test_second_record_is_from_start() -> None:
    f = only(run(series("loss", [1.39, NAN, NAN, NAN])), "l101_nonfinite")
    assert f.measured["onset"] == "from-start"


def test_never_finite() -> None:
    f = only(run(series("loss", [NAN] * 5, every=4)), "l101_nonfinite")
    assert f.measured["onset"] == "from-start"
    assert "from its first record (step 4) on" in f.statement


def test_term_that_breaks_before_the_total() -> None:
    f = only(run(series("loss", [3.0, 2.0, 1.5, 1.2, NAN, NAN]), series("loss/kl", [0.1, 0.2, 0.3, NAN, NAN, NAN]),
                 series("loss/recon", [2.9, 1.8, 1.2, 0.9, 0.8, 0.7])), "l101_nonfinite")
    assert f.measured["metric"] == "loss/kl"
    assert f.measured["later"] == ("loss",)
    assert f.measured["intact"] == ("loss/recon",)


def test_small_term_that_grows_is_no_ramp() -> None:
    f = only(run(series("loss/recon", [42.0, 17, 15, 15, 15, 14, 14, 14, NAN, NAN]),
                 series("kl", [0.001, 0.002, 0.004, 0.01, 0.03, 0.05, 0.09, 0.12, NAN, NAN])), "l101_nonfinite")
    assert f.measured["onset"] == "abrupt"


def test_loss_scale_is_told() -> None:
    f = only(run(series("loss", [2.0, 1.5, 1.0, NAN, NAN]),
                 series("loss_scale", [1024.0, 1024.0, 1024.0, 64.0, 4.0])), "l101_nonfinite")
    assert f.measured["loss_scale"] == 64.0
    assert f.measured["loss_scale_first"] == 1024.0


def test_loss_that_is_nan_once_and_recovers() -> None:
    f = only(run(series("loss", [2.0, 1.5, NAN, 1.2, 1.1, 1.0])), "l101_nonfinite")
    assert f.severity is Severity.MEDIUM
    assert f.measured["recovered"] is True


def test_a_loss_that_begins_with_nan_and_was_finite_for_too_short_a_time() -> None:
    assert only(run(series("loss", [NAN, 1.2, 1.1])), "l101_nonfinite").measured["recovered"] is True
    assert only(run(series("loss", [NAN] * 6 + [1.2] * 6)), "l101_nonfinite").measured["recovered"] is True


def test_validation_loss_only() -> None:
    f = only(run(series("loss", FALLING), series("loss", [2.0, NAN, NAN], group="validation")), "l101_nonfinite")
    assert f.measured["group"] == "validation"
    assert f.statement.startswith("validation loss")


@pytest.mark.parametrize("healthy", [
    series("grad_norm", [math.inf, NAN, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    series("perplexity", [math.inf, 900.0, 80.0]),
    series("auc", [NAN, NAN, NAN]),
    series("reward_std", [0.1, NAN, NAN]),
    series("loss", [NAN, NAN, 1.2, 1.1], group="validation"),
    series("loss", [NAN, 1.2, NAN, 1.1, NAN, 1.0], group="validation"),
    series("loss", [2.0, 1.9, 1.8, NAN, 1.7, 1.6, 1.5, NAN, 1.4, 1.3, 1.2, NAN, 1.1]),
    series("best_loss", [math.inf, 2.0, 1.5], group="validation"),
    series("loss/td", [NAN, 0.9, 0.8, 0.7, 0.6, 0.5]),
], ids=lambda s: f"{s}{len(s)}")
def test_non_finite_values_that_mean_nothing(healthy) -> None:  # type: ignore[no-untyped-def]
    assert serious(run(series("loss", FALLING), healthy), "l101_nonfinite") == []


def test_nan_iterations_that_are_counted() -> None:
    f = only(run(series("loss", FALLING), series("nan_steps", [0] * 6 + [1, 0, 2, 3])), "l101_nonfinite")
    assert f.measured["onset"] == "counted"


# L102


def test_explosion_that_ends_in_nan() -> None:
    f = only(run(series("loss", [*FALLING, NAN]),
                 series("grad_norm", [1.2, 1.1, 1.3, 1.2, 1.2, 4, 30, 400, 9000, 2e5, NAN])), "l102_gradient_explosion")
    assert f.measured["onset"] == "ramp"
    assert f.measured["peak"] == 2e5
    assert f.severity is Severity.HIGH


def test_explosion_that_stays_high() -> None:
    loss = [4.5, 28, 99, 86, 113, 219, 216, 206, 235, 366, 330, 351]
    f = only(run(series("loss", loss), series("grad_norm", [43, 274] + [2233.0] * 10)), "l102_gradient_explosion")
    assert f.measured["ratio"] == pytest.approx(2233 / 43, rel=0.01)


def test_huge_from_the_first_record_and_not_learning() -> None:
    f = only(run(series("loss", [5.0, 5.1, 5.0, 5.2, 5.1, 5.0]), series("grad_norm", [4e4] * 6)),
             "l102_gradient_explosion")
    assert f.measured["onset"] == "from-start"


@pytest.mark.parametrize("grad", [
    [300.0, 80, 20, 9, 5, 4, 3, 3, 3, 3],
    [1.0, 1, 1, 1, 2500, 1, 1, 1, 1, 1],
    [5000.0, 5100, 4900, 5200, 5000, 4800, 5100, 5000, 5000, 4900],
    [1e-4, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.5, 0.5, 0.5, 0.5],
], ids=["large at the start", "one spike", "summed loss", "leaving a flat start"])
def test_large_gradients_of_runs_that_learn(grad: list[float]) -> None:
    assert findings(run(series("loss", FALLING), series("grad_norm", grad)), "l102_gradient_explosion") == []


# L103, L104


def test_vanishing_norm_with_an_unmoved_loss() -> None:
    f = only(run(series("loss", [2.303, 2.302, 2.303, 2.302, 2.303, 2.302]), series("grad_norm", [3e-9] * 6)),
             "l103_gradient_vanishing")
    assert f.measured["scope"] == "whole"


def test_dead_first_layers() -> None:
    f = only(run(series("grad_norm/layer0", [1e-10] * 5), series("grad_norm/layer5", [1e-3] * 5),
                 series("grad_norm/head", [0.4] * 5)), "l103_gradient_vanishing")
    assert f.measured["module"] == "layer0"


def test_modules_within_a_few_decades() -> None:
    assert findings(run(series("grad_norm/a", [0.01] * 5), series("grad_norm/b", [1.0] * 5)),
                    "l103_gradient_vanishing") == []


def test_zero_gradient_in_reinforcement_learning() -> None:
    f = only(run(series("reward", [0.1, 0.12, 0.09, 0.1]), series("grad_norm", [0.0] * 4)), "l104_gradient_zero")
    assert f.measured["reinforcement"] is True
    assert "exactly 0 in every record" in f.statement


def test_gradient_that_dies_midway() -> None:
    f = only(run(series("loss", [2.3, 2.2, 2.1] + [2.1] * 10), series("grad_norm", [1.0, 0.9, 0.8] + [0.0] * 10)),
             "l104_gradient_zero")
    assert (f.measured["onset"], f.measured["position"]) == ("later", 4.0)


def test_one_module_without_gradient() -> None:
    f = only(run(series("grad_norm/encoder", [0.0] * 6), series("grad_norm/decoder", [0.5] * 6)), "l104_gradient_zero")
    assert f.measured["module"] == "encoder"


def test_zeros_beside_an_accuracy_that_rises_all_along_are_of_a_part_that_is_frozen() -> None:
    rising = series("accuracy", [0.47, 0.59, 0.66, 0.72, 0.74], group="val")
    assert findings(run(rising, series("grad_norm", [0.0] * 5)), "l104_gradient_zero") == []
    still = series("accuracy", [0.47, 0.49, 0.46, 0.48, 0.47], group="val")
    assert only(run(still, series("grad_norm", [0.0] * 5)), "l104_gradient_zero").measured


def test_single_zero_gradients() -> None:
    assert findings(run(series("reward", np.linspace(0, 1, 10)), series("grad_norm", [0.1, 0, 0.2, 0.1, 0, 0.1, 0.1, 0,
                                                                                        0.2, 0.1])),
                    "l104_gradient_zero") == []


# L105


@pytest.mark.parametrize(("scale", "halvings"), [
    ([65536, 32768, 8192, 1024, 128, 16, 2, 1, 1, 1], 16),
    ([1024, 1024, 64, 4, 0.25, 0.0156], 16),
    ([2.0**16, 2.0**14, 2.0**12, 2.0**10, 2.0**8, 2.0**6, 2.0**4], 12),
])
def test_scale_that_walks_down(scale: list[float], halvings: int) -> None:
    f = only(run(series("loss", [2.0] * len(scale)), series("loss_scale", scale)), "l105_loss_scale_collapse")
    assert f.measured["halvings"] == halvings
    assert f.measured["loss_nonfinite"] == "never"


def test_loss_that_turns_nan_with_the_scale() -> None:
    f = only(run(series("loss", [2.0, 1.0, NAN, NAN, NAN, NAN]),
                 series("loss_scale", [1024.0, 1024, 64, 4, 0.25, 0.0156])), "l105_loss_scale_collapse")
    assert f.measured["loss_nonfinite"] == "same"


@pytest.mark.parametrize("scale", [
    [65536, 32768, 16384, 16384, 16384, 16384, 16384, 32768],
    [65536, 65536, 32768, 32768, 32768, 32768],
    [1.0] * 8,
    [65536, 1024, 512, 256, 256, 256, 256, 256, 256, 256, 256, 256, 512, 512],
    [128.0] * 8,
])
def test_scales_that_work(scale: list[float]) -> None:
    assert findings(run(series("loss_scale", scale)), "l105_loss_scale_collapse") == []


# L106, L107


def test_divergence_after_a_curriculum_step() -> None:
    loss = [2.3, 1.8, 1.4, 1.1, 0.95, 0.85, 1.3, 2.2, 3.4, 4.1]
    f = only(run(series("loss", loss, step=None, epoch=range(1, 11))), "l106_divergence")
    assert f.measured["position"] in (7.0, 8.0)
    assert f.where.unit == "epoch"


def test_loss_that_grows_from_the_first_record() -> None:
    f = only(run(series("loss", [4.5, 28, 99, 86, 113, 219, 216, 206, 235, 366])), "l106_divergence")
    assert f.measured["onset"] == "from-start"
    assert f.severity is Severity.HIGH


@pytest.mark.parametrize("loss", [
    [2.3, 1.8, 1.4, 1.1, 0.95, 0.85, 0.8, 0.9, 0.82, 0.78, 0.8, 0.77],
    [5.2, 5.6, 3.6, 6.5, 2.1, 5.9, 15.8, 33.1, 23.9, 1.6, 16.6, 9.4, 3.0, 2.2],
    [3.25, 2.98, 3.32, 4.18, 3.93, 4.15, 4.17, 3.83, 3.98, 4.35, 4.22, 4.09, 4.21, 3.68],
    [0.69, 0.5, 0.2, 0.01, 0.001, 0.0011, 0.0013, 0.0012, 0.0014],
], ids=["noisy", "sawtooth", "noisy and flat", "wandering near zero"])
def test_noise_is_no_divergence(loss: list[float]) -> None:
    assert serious(run(series("loss", loss)), "l106_divergence") == []


def test_spike_that_comes_back_is_a_remark() -> None:
    loss = [*FALLING, 1.0, 6.5, 1.4, 1.0, 0.98, 0.97, 0.96, 0.95, 0.95, 0.94]
    f = only(run(series("loss", loss, every=5)), "l107_spike")
    assert f.severity is Severity.INFO
    assert f.measured["recovered"] is True
    assert f.measured["position"] == 60.0


def test_jump_that_stays() -> None:
    loss = [*FALLING, *[0.99, 0.98] * 5, *[3.1, 3.0, 3.05, 2.95, 3.0] * 3]
    f = only(run(series("loss", loss)), "l107_spike")
    assert f.severity is Severity.MEDIUM
    assert f.measured["recovered"] is False
    assert f.measured["position"] == 21.0


def test_jump_in_the_last_record_cannot_be_judged() -> None:
    f = only(run(series("loss", [*FALLING, *FALLING[-1:] * 10, 9.0])), "l107_spike")
    assert f.severity is Severity.INFO
    assert f.measured["recovered"] is None


# L108


def test_loss_that_grows_to_millions() -> None:
    f = only(run(series("loss", [2.2, 203.0, 5.3e6, 1.7e11, NAN])), "l108_loss_magnitude")
    assert f.measured["onset"] == "grown"


def test_raw_targets_that_are_not_learned() -> None:
    f = only(run(series("loss", [4.1e10, 4.2e10, 4.1e10, 4.1e10, 4.2e10])), "l108_loss_magnitude")
    assert (f.measured["onset"], f.severity) == ("from-start", Severity.MEDIUM)


def test_loss_of_exactly_zero_with_a_broken_gradient() -> None:
    f = only(run(series("loss", [0.0] * 6), series("grad_norm", [NAN] * 6)), "l108_loss_magnitude")
    assert f.measured["gradient_nonfinite"] is True


def test_loss_that_drops_to_zero_at_once() -> None:
    f = only(run(series("loss", [2.1, 1.9, 1.8, 0.0, 0.0, 0.0, 0.0])), "l108_loss_magnitude")
    assert f.measured["position"] == 4.0
    assert f.bearing is Bearing.SIGN


def test_policy_loss_of_zero() -> None:
    assert findings(run(series("loss", [0.0] * 6), series("reward", [0.1] * 6)), "l108_loss_magnitude") == []

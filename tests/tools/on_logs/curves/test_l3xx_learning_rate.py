"""L301-L308: a faulty schedule each rule sees, the healthy twin that it leaves alone, and what it measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numerics_builder import findings, note, run, series

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import Run


def only(r: Run, module: str) -> Finding:
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


def cosine(u: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.cos(np.pi * np.clip(u, 0, 1)))


def losses(n: int) -> np.ndarray:
    return 0.4 + 2 * np.exp(-np.arange(n) / (n / 4))


# L301, L306


def accelerated(k: int, n: int = 24, every: int = 8, warm: int = 20) -> np.ndarray:
    steps = np.arange(1, n + 1) * every * k
    total = n * every
    return 1e-3 * np.minimum(steps / warm, np.clip((total - steps) / (total - warm), 0, 1))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_schedule_that_is_advanced_once_a_process(k: int) -> None:
    r = run(series("loss", losses(24), every=8), series("learning_rate", accelerated(k), every=8), planned_steps=192.0,
            world_size=k)
    pace = only(r, "l306_lr_wrong_pace")
    assert (pace.measured["k"], pace.measured["integer"]) == (k, True)
    assert pace.measured["equals"] == "number of processes (world size)"
    assert (pace.severity, pace.bearing) == (Severity.HIGH, Bearing.CAUSE)
    zero = only(r, "l301_lr_zero")
    assert zero.measured["share"] == pytest.approx(1 / k, abs=0.05)
    assert f"step {192 // k} of 192 planned ({100 // k} %)" in zero.statement
    assert f"{192 - 192 // k} steps follow without learning" in zero.statement


def test_world_size_from_a_note() -> None:
    r = run(series("loss", losses(24), every=8), series("learning_rate", accelerated(2), every=8), planned_steps=192.0,
            notes=(note("world_size", "processes 2  steps/epoch 32", 1),))
    assert only(r, "l306_lr_wrong_pace").measured["equals"] == "number of processes (world size)"


def test_scheduler_stepped_at_every_micro_batch() -> None:
    lr = 3e-4 * cosine(np.arange(1, 101) / 25)
    r = run(series("loss", losses(100), every=10), series("learning_rate", lr, every=10), planned_steps=1000.0,
            config={"trainer.gradient_accumulation_steps": 4})
    f = only(r, "l306_lr_wrong_pace")
    assert (f.measured["k"], f.measured["equals"], f.measured["shape"]) == (4, "gradient accumulation steps", "cosine")


def test_end_between_two_records_is_read_off_the_shape() -> None:
    lr = 1e-3 * np.clip(1 - np.arange(1, 13) * 50 / 300, 0, 1)
    f = only(run(series("learning_rate", lr, every=50), planned_steps=600.0), "l306_lr_wrong_pace")
    assert f.measured["end"] == pytest.approx(300, abs=1)


def test_decay_that_was_built_for_eight_times_the_steps() -> None:
    lr = 1e-3 * cosine(np.arange(1, 41) / 320)
    f = only(run(series("learning_rate", lr, every=25), planned_steps=1000.0,
                 config={"accumulate_grad_batches": 8}), "l306_lr_wrong_pace")
    assert (f.measured["kind"], f.measured["k"]) == ("too-slow", 8)
    assert f.measured["equals"] == "gradient accumulation steps"


def test_without_a_plan_the_log_is_the_measure() -> None:
    f = only(run(series("learning_rate", accelerated(2), every=8)), "l301_lr_zero")
    assert f.measured["planned_known"] is False
    assert "of 192 logged" in f.statement


def test_learning_rate_of_zero_from_the_start() -> None:
    f = only(run(series("loss", [2.3, 2.31, 2.29, 2.3, 2.3, 2.31]), series("learning_rate", [0.0] * 6)), "l301_lr_zero")
    assert f.measured["onset"] == "from-start"
    assert (f.severity, f.measured["rounded"]) == (Severity.HIGH, False)


@pytest.mark.parametrize(("norms", "severity"), [
    ([5.3072, 7.5175, 4.3031, 4.9351, 8.1383, 1.8092], Severity.LOW),
    ([5.30721173, 7.51752201, 4.30311, 4.9351, 8.1383, 1.8092], Severity.HIGH),
    ([5.0, 7.0, 4.0, 4.0, 8.0, 1.0], Severity.HIGH),
    ([math.nan] * 6, Severity.HIGH),
], ids=["both rounded to four places", "raw", "a count", "nothing"])
def test_a_rate_that_is_rounded_to_zero_as_all_numbers_of_the_log(norms: list[float], severity: Severity) -> None:
    losses = series("loss", [0.9941, 0.9995, 1.1482, 1.1278, 1.1856, 0.9948])
    f = only(run(losses, series("grad_norm", norms), series("learning_rate", [0.0] * 6)), "l301_lr_zero")
    assert f.severity is severity
    assert ("below 5e-05" in f.statement) is (severity is Severity.LOW)


U = np.arange(1, 61) / 60
HELD = np.maximum(cosine(U * 1.5), 0.1)


@pytest.mark.parametrize("lr", [
    cosine(U), 1 - U, (1 - U) ** 2, np.minimum(1, (1 - U) / 0.2), HELD,
    np.where(U < 0.5, 1, np.where(U < 0.75, 0.1, 0.01)), np.concatenate([[0.0], cosine(U[:-1])]),
    np.maximum(1 - U * 1.08, 0), np.ones(60), 0.98 ** np.arange(60), np.full(60, 1e-9),
], ids=["cosine", "linear", "polynomial", "wsd", "held at a tenth", "steps", "zero first", "a little early", "constant",
        "exponential", "tiny"])
@pytest.mark.parametrize("known", [True, False])
def test_schedules_on_time(lr: np.ndarray, known: bool) -> None:
    r = run(series("loss", losses(60), every=10), series("learning_rate", 3e-4 * lr, every=10),
            planned_steps=600.0 if known else None)
    assert findings(r, "l301_lr_zero", "l306_lr_wrong_pace", "l303_lr_geometric_decay", "l302_lr_restart",
                    "l304_lr_per_epoch_step_confusion") == []


def test_run_that_was_stopped_half_way() -> None:
    lr = 3e-4 * cosine(np.arange(1, 31) / 60)
    assert findings(run(series("learning_rate", lr, every=10), planned_steps=600.0), "l306_lr_wrong_pace") == []


def test_linear_decay_to_a_third_that_is_meant() -> None:
    lr = 1e-3 * np.linspace(1, 1 / 3, 60)
    assert findings(run(series("learning_rate", lr), planned_steps=60.0), "l306_lr_wrong_pace") == []


# L302


def test_back_at_the_initial_rate_for_one_epoch_after_a_resume() -> None:
    epoch = np.arange(30.0)
    lr = 0.1 * cosine(epoch / 32)
    lr[24] = 0.1
    loss = losses(30)
    loss[24] *= 1.4
    kw = {"step": None, "epoch": epoch}
    f = only(run(series("loss", loss, **kw), series("learning_rate", lr, **kw),
                 notes=(note("resume", "Resuming training from last.pt, epoch 24", 24),)), "l302_lr_restart")
    assert f.bearing is Bearing.CAUSE
    assert (f.measured["position"], f.measured["at_resume"], f.measured["initial"]) == (24.0, True, True)
    assert f.measured["one_record"] is True
    assert "at the resume" in f.statement


def test_schedule_that_starts_over_without_a_note() -> None:
    lr = 1e-3 * np.concatenate([cosine(np.arange(30) / 60), cosine(np.arange(30) / 60)])
    f = only(run(series("loss", losses(60)), series("learning_rate", lr)), "l302_lr_restart")
    assert (f.measured["position"], f.measured["to_peak"]) == (31.0, True)


@pytest.mark.parametrize("lr", [
    np.tile(cosine(np.arange(15) / 15), 4),
    np.concatenate([cosine(np.arange(n) / n) for n in (8, 16, 32)]),
    np.concatenate([0.05 + 0.95 * cosine(np.arange(n) / n) for n in (20, 40)]),
    1 - np.abs(2 * ((np.arange(60) / 20) % 1) - 1),
    np.concatenate([np.linspace(0.1, 1, 18), cosine(np.arange(42) / 42)]),
], ids=["SGDR", "SGDR with growing cycles", "one restart", "triangular", "one cycle"])
def test_restarts_that_are_meant(lr: np.ndarray) -> None:
    n = len(lr)
    assert findings(run(series("loss", losses(n)), series("learning_rate", 1e-3 * lr)), "l302_lr_restart") == []


# L303, L304


def test_layer_decay_applied_at_every_step() -> None:
    steps = np.array([5, 10, 15, 20, 25, 30, 35, 40, 60, 80, 100, 120.0])
    lr = np.where(steps <= 10, steps * 2e-4, 2e-3 * 0.75 ** (steps - 10))
    f = only(run(series("loss", losses(12), step=steps), series("learning_rate", lr, step=steps)),
             "l303_lr_geometric_decay")
    assert f.measured["ratio"] == pytest.approx(0.75, rel=1e-3)
    assert f.measured["flat"] == 0
    assert f.bearing is Bearing.CAUSE
    assert "multiplied by 0.75 every step from step 10 on: 0.002 at step 10" in f.statement


def test_ratio_is_a_step_not_a_record() -> None:
    lr = 0.1 * 0.98 ** (np.arange(1, 41) * 25)
    f = only(run(series("learning_rate", lr, every=25)), "l303_lr_geometric_decay")
    assert f.measured["ratio"] == pytest.approx(0.98, rel=1e-4)


def test_stairs_that_fall_every_few_steps() -> None:
    lr = 0.1 * 0.1 ** (np.arange(120) // 10)
    f = only(run(series("learning_rate", lr), planned_steps=1000.0), "l303_lr_geometric_decay")
    assert f.measured["ratio"] == pytest.approx(0.1**0.1, rel=0.05)
    assert 0.85 < float(str(f.measured["flat"])) < 0.95


def test_cosine_in_epochs_that_is_stepped_at_every_batch() -> None:
    steps = np.arange(0, 600, 2.0)
    lr = 1e-3 * 0.5 * (1 + np.cos(np.pi * steps / 12))
    f = only(run(series("loss", losses(300), step=steps, epoch=steps / 50),
                 series("learning_rate", lr, step=steps, epoch=steps / 50), config={"epochs": 12}),
             "l304_lr_per_epoch_step_confusion")
    assert f.measured["kind"] == "per-batch"
    assert f.measured["period"] == pytest.approx(24, abs=3)


def test_decay_over_as_many_steps_as_there_are_epochs() -> None:
    steps = np.arange(1, 401.0)
    lr = 1e-3 * np.clip(1 - steps / 20, 0, 1)
    f = only(run(series("learning_rate", lr, step=steps, epoch=np.ceil(steps / 20)), config={"num_epochs": 20}),
             "l304_lr_per_epoch_step_confusion")
    assert f.measured["schedule_end"] == pytest.approx(20, abs=1)


def test_warm_up_in_steps_that_moves_once_an_epoch() -> None:
    epoch = np.arange(1, 21.0)
    f = only(run(series("learning_rate", 1e-3 * epoch / 500, step=None, epoch=epoch), planned_steps=20.0,
                 planned_unit="epoch"), "l304_lr_per_epoch_step_confusion")
    assert f.measured["kind"] == "per-epoch"
    assert "still rises when training ends" in f.statement


def test_warm_up_of_epochs_in_a_run_that_was_stopped() -> None:
    epoch = np.arange(1, 6.0)
    assert findings(run(series("learning_rate", 1e-4 * epoch, step=None, epoch=epoch), planned_steps=90.0,
                        planned_unit="epoch"), "l304_lr_per_epoch_step_confusion") == []


# L305


def test_loss_that_blows_up_in_the_first_steps_and_stays() -> None:
    loss = np.concatenate([[2.3, 5.0, 9.0, 8.0], 4 + np.linspace(1, 0, 36)])
    f = only(run(series("loss", loss), series("learning_rate", np.full(40, 1e-3))), "l305_lr_no_warmup")
    assert f.measured["peak"] == 9.0


def test_early_bump_that_is_gone() -> None:
    loss = np.concatenate([[2.3, 5.0, 4.0], losses(60)])
    assert findings(run(series("loss", loss), series("learning_rate", np.full(63, 1e-3))), "l305_lr_no_warmup") == []


def test_early_rise_during_a_warm_up() -> None:
    loss = np.concatenate([[2.3, 5.0, 9.0, 8.0], 4 + np.linspace(1, 0, 36)])
    lr = 1e-3 * np.minimum(1, np.arange(1, 41) / 10)
    assert findings(run(series("loss", loss), series("learning_rate", lr)), "l305_lr_no_warmup") == []


# L307


BLOWS_UP = [2.3, 203, 5e6, 2e11, 8e22, math.nan, math.nan]


def test_extreme_rate_and_a_ramp() -> None:
    f = only(run(series("loss", BLOWS_UP), series("learning_rate", [20.0] * 7), config={"optimizer": "SGD"}),
             "l307_lr_extreme")
    assert (f.measured["optimizer"], f.measured["factor"], f.measured["specific"]) == ("sgd", 20.0, True)
    assert f.bearing is Bearing.SIGN


def test_rate_of_one_with_an_optimizer_that_is_not_named() -> None:
    f = only(run(series("loss", BLOWS_UP), series("learning_rate", [1.0] * 7)), "l307_lr_extreme")
    assert f.measured["specific"] is True


def test_plan_of_one_epoch_is_no_slow_schedule() -> None:
    lr = 1e-3 * (1 - np.arange(1, 101) / 1000)
    assert findings(run(series("learning_rate", lr, every=10), planned_steps=1000.0, config={"epochs": 10}),
                    "l306_lr_wrong_pace") == []


def test_rate_from_the_configuration() -> None:
    f = only(run(series("loss", BLOWS_UP), config={"optim.name": "adamw", "optim.lr": "0.5"}), "l307_lr_extreme")
    assert (f.measured["from_config"], f.measured["optimizer"]) == (True, "adamw")


def test_rate_that_is_far_too_small() -> None:
    f = only(run(series("loss", 2.3 + 0.001 * np.sin(np.arange(30))), series("learning_rate", [1e-10] * 30)),
             "l307_lr_extreme")
    assert f.measured["kind"] == "low"


@pytest.mark.parametrize(("lr", "optimizer", "loss"), [
    (20.0, "SGD", losses(20)), (1.0, "Prodigy", BLOWS_UP), (10.0, "LARS", BLOWS_UP), (0.1, "SGD", BLOWS_UP),
    (1e-4, "AdamW", BLOWS_UP), (0.3, "", BLOWS_UP), (1e-10, "adam", losses(20)),
])
def test_rates_that_are_usual_or_do_no_harm(lr: float, optimizer: str, loss: list[float]) -> None:
    r = run(series("loss", loss), series("learning_rate", [lr] * len(loss)), config={"optimizer": optimizer})
    assert findings(r, "l307_lr_extreme") == []


# L308


def test_cosine_that_does_not_move() -> None:
    f = only(run(series("learning_rate", [1e-3] * 40, every=10), planned_steps=400.0,
                 config={"train.lr_scheduler_type": "cosine"}), "l308_lr_constant_though_scheduled")
    assert f.measured["schedule"] == "cosine"


def test_warm_up_that_does_not_happen() -> None:
    f = only(run(series("learning_rate", [1e-3] * 10, every=10), planned_steps=10_000.0,
                 config={"warmup_steps": 100}), "l308_lr_constant_though_scheduled")
    assert f.measured["setting"] == "warmup_steps"


@pytest.mark.parametrize(("config", "lr", "planned"), [
    ({}, [1e-3] * 40, 400.0), ({"lr_scheduler_type": "constant_with_warmup"}, [1e-3] * 40, 400.0),
    ({"lr_scheduler_type": "cosine"}, list(1e-3 * cosine(np.arange(40) / 40)), 400.0),
    ({"lr_scheduler_type": "cosine"}, [1e-3] * 40, 10_000.0), ({"scheduler": "ReduceLROnPlateau"}, [1e-3] * 40, 400.0),
])
def test_rates_that_agree_with_their_configuration(config: dict[str, str], lr: list[float], planned: float) -> None:
    assert findings(run(series("learning_rate", lr, every=10), planned_steps=planned, config=config),
                    "l308_lr_constant_though_scheduled") == []


@pytest.mark.parametrize(("k", "found"), [(4, True), (3, False)])
def test_slow_schedule_without_a_plan_needs_the_number_of_its_cause(k: int, found: bool) -> None:
    lr = 1e-3 * cosine(np.arange(1, 61) / 240)
    r = run(series("loss", losses(60), every=10), series("learning_rate", lr, every=10),
            config={"gradient_accumulation_steps": k})
    assert bool(findings(r, "l306_lr_wrong_pace")) is found

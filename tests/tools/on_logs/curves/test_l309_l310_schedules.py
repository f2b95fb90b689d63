"""L309 and L310: a warm-up without end, a schedule that turns, and the schedules that look like them and are meant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numerics_builder import check_of, findings, note, run, series

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import Run

WARM, TURN = "l309_lr_warmup_never_ends", "l310_lr_turns_again"


def only(r: Run, module: str) -> Finding:
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


def steps(n: int, every: int = 10) -> np.ndarray:
    return np.arange(1, n + 1) * float(every)


def losses(n: int) -> np.ndarray:
    return 0.3 + 2 * np.exp(-np.arange(n) / (n / 4))


def ramped(n: int, length: float, peak: float = 2e-3, every: int = 10) -> np.ndarray:
    return peak * np.minimum(1.0, steps(n, every) / length)


def wave(n: int, length: float, peak: float = 4e-3, every: int = 10) -> np.ndarray:
    return peak * 0.5 * (1 + np.cos(np.pi * steps(n, every) / length))


def with_rate(rate: np.ndarray, every: int = 10, **kw: object) -> Run:
    return run(series("loss", losses(len(rate)), every=every), series("learning_rate", rate, every=every), **kw)


# L309


@pytest.mark.parametrize("times", [1.0, 1.5, 4.0, 16.0, 400.0])
def test_warm_up_longer_than_the_run(times: float) -> None:
    r = with_rate(ramped(32, 320 * times), planned_steps=320.0, config={"optim.lr": 2e-3})
    f = only(r, WARM)
    assert (f.severity, f.bearing) == (Severity.HIGH, Bearing.CAUSE)
    assert f.measured["share"] == pytest.approx(1 / times)
    assert f"{100 / times:.3g} % of the configured 0.002" in f.statement
    assert "the warm-up never ends" in f.statement


def test_a_log_of_the_beginning_of_a_long_run_is_a_remark() -> None:
    f = only(with_rate(ramped(32, 2000), planned_steps=32_000.0), WARM)
    assert (f.severity, f.bearing, f.measured["ended"]) == (Severity.INFO, Bearing.COMPANION, False)
    assert "1 % of the 32000 planned" in f.statement


def test_without_a_plan_a_rising_rate_is_no_fault() -> None:
    assert only(with_rate(ramped(32, 2000)), WARM).severity is Severity.LOW


@pytest.mark.parametrize("text", ["Training complete in 3m 20s", "`Trainer.fit` stopped: `max_epochs=10` reached.",
                                  "Finished training."])
def test_the_log_says_that_the_run_is_over(text: str) -> None:
    f = only(with_rate(ramped(32, 2000), notes=(note("other", text, 40),)), WARM)
    assert (f.severity, f.measured["ended"]) == (Severity.HIGH, True)


def test_the_last_epoch_of_a_planned_number() -> None:
    rate = series("learning_rate", ramped(30, 2000), every=10, epoch=np.repeat([1, 2, 3], 10))
    assert only(run(rate, planned_steps=3.0, planned_unit="epoch"), WARM).measured["ended"] is True
    assert only(run(rate, planned_steps=9.0, planned_unit="epoch"), WARM).measured["ended"] is False


def _stairs(levels: int, held: int, last: int | None = None) -> np.ndarray:
    """A rate that holds each level for so many records."""
    rate = np.repeat(5e-6 * np.arange(1, levels + 1), held)
    return rate if last is None else np.r_[rate[:-held], np.full(last, rate[-1])]


def test_a_rate_that_rises_once_an_epoch_is_stepped_in_another_unit() -> None:
    config = {"train.lr": 1e-3, "train.warmup_steps": 200, "train.epochs": 8}
    rate = series("learning_rate", _stairs(8, 4), every=50, epoch=np.repeat(np.arange(8.0), 4))
    f = only(run(series("loss", losses(32), every=50), rate, config=config), WARM)
    assert (f.measured["kind"], f.measured["ended"], f.severity) == ("unit", True, Severity.HIGH)
    assert "the schedule is stepped in another unit" in f.statement
    assert "the last of the 8 planned epochs" in f.statement


def test_levels_without_a_shorter_warm_up_say_nothing_of_the_unit() -> None:
    rate = series("learning_rate", _stairs(8, 4), every=50, epoch=np.repeat(np.arange(8.0), 4))
    f = only(run(rate, config={"train.lr": 1e-3, "train.warmup_steps": 20_000, "train.epochs": 8}), WARM)
    assert (f.measured["kind"], f.measured["ended"]) == ("length", True)


def test_levels_that_have_arrived_are_a_warm_up_that_ended() -> None:
    rate = series("learning_rate", _stairs(8, 4, last=20), every=50)
    assert not findings(run(rate, config={"train.lr": 1e-3, "train.warmup_steps": 200}, planned_steps=2400.0), WARM)


HEALTHY_RISES = {
    "warm-up that ends": ramped(32, 40),
    "warm-up and cosine": np.where(steps(32) < 50, 1e-3 * steps(32) / 50, wave(32, 320)),
    "constant": np.full(32, 1e-3),
    "range test": 1e-6 * 1.3 ** np.arange(32),
    "bends over": 1e-3 * 0.5 * (1 - np.cos(np.pi * steps(32) / 330)),
    "triangle": np.interp(steps(32) % 160, [0, 80, 160], [1e-5, 1e-3, 1e-5]),
    "one cycle": np.interp(steps(32), [0, 100, 320], [1e-5, 1e-3, 1e-6]),
    "zero": np.zeros(32),
    "fine-tuning": np.linspace(2e-5, 0, 32),
}


@pytest.mark.parametrize("name", HEALTHY_RISES)
def test_schedules_that_reach_their_peak(name: str) -> None:
    assert findings(with_rate(HEALTHY_RISES[name], planned_steps=320.0), WARM, TURN) == []


def test_a_range_test_that_says_so() -> None:
    r = with_rate(ramped(32, 2000), planned_steps=320.0, notes=(note("other", "LR range test from 1e-5", 1),))
    assert findings(r, WARM) == []


def test_a_rate_that_moves_once_an_epoch_is_the_other_rule() -> None:
    rate = series("learning_rate", 1e-6 * np.arange(1, 11), step=None, epoch=np.arange(1.0, 11.0))
    r = run(rate, planned_steps=10.0, planned_unit="epoch")
    assert [f.rule for f in findings(r, "l304_lr_per_epoch_step_confusion", WARM)] == ["L304"]


# L310


@pytest.mark.parametrize("length", [120, 150, 160, 200, 250])
@pytest.mark.parametrize("floor", [0.0, 1e-5])
def test_cosine_that_runs_past_its_end(length: int, floor: float) -> None:
    f = only(with_rate(floor + wave(32, length), planned_steps=320.0), TURN)
    assert f.bearing is Bearing.CAUSE
    assert f.measured["schedule_end"] == pytest.approx(length, abs=10)
    assert "mirroring the decay" in f.statement
    assert f.where.step == pytest.approx(length, abs=10)


def test_after_a_warm_up_and_through_coarse_digits() -> None:
    rate = np.where(steps(40) < 60, 1e-3 * steps(40) / 60, 1e-3 * 0.5 * (1 + np.cos(np.pi * (steps(40) - 60) / 200)))
    assert only(with_rate(np.round(rate, 5)), TURN).measured["share"] == pytest.approx(0.8, abs=0.15)


def test_a_triangle_past_its_end() -> None:
    assert only(with_rate(1e-3 * np.abs(1 - steps(40) / 250)), TURN).severity is Severity.HIGH


def test_the_loss_around_the_turn_is_told() -> None:
    loss = np.concatenate([np.linspace(2, 0.5, 16), np.linspace(0.5, 0.9, 16)])
    r = run(series("loss", loss, every=10), series("learning_rate", wave(32, 160), every=10))
    f = only(r, TURN)
    assert f.measured["loss_worse"] is True
    assert f.measured["loss_after"] > f.measured["loss_before"]


MEANT = {
    "several periods": wave(64, 80),
    "warm restarts": 1e-3 * 0.5 * (1 + np.cos(np.pi * (steps(40) % 130) / 130)),
    "one restart": np.concatenate([wave(16, 160), wave(16, 160)]),
    "cyclic triangle": np.interp(steps(40) % 160, [0, 80, 160], [1e-5, 1e-3, 1e-5]),
    "one and a half triangles": np.interp(steps(32) % 213, [0, 106, 213], [1e-5, 1e-3, 1e-5]),
    "second stage with a warm-up": np.concatenate([wave(20, 200, 1e-3), [2.5e-4, 5e-4, 7.5e-4], wave(20, 200, 1e-3)]),
    "step decay": np.repeat([1e-2, 1e-3, 1e-4], 12),
    "clamped": wave(32, 160) * (steps(32) <= 160),
    "constant": np.full(32, 3e-4),
    "reduced on a plateau": np.repeat([1e-3, 5e-4, 2.5e-4, 1.25e-4], 10),
    "linear": np.linspace(1e-3, 0, 40),
}


@pytest.mark.parametrize("name", MEANT)
def test_schedules_that_are_meant(name: str) -> None:
    assert findings(with_rate(MEANT[name]), TURN) == []


def test_a_configured_cycle_is_meant() -> None:
    r = with_rate(wave(32, 160), config={"lr_scheduler": "cyclic"})
    assert findings(r, TURN) == []


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), max_size=60),
       st.sampled_from([None, "auto"]), st.sampled_from([None, 0.0, 7.0, 1e308]))
def test_any_rate_is_judged_without_an_error(values: list[float], step: str | None, planned: float | None) -> None:
    r = run(series("learning_rate", values, step=step), series("loss", values[::-1], step=step), planned_steps=planned)
    for module in (WARM, TURN):
        for f in check_of(module)(r):
            assert f.statement
            assert f.where is not None


@settings(max_examples=60, deadline=None)
@given(st.integers(12, 200), st.integers(1, 500), st.floats(1e-6, 0.5), st.floats(0.0, 0.3), st.booleans(),
       st.sampled_from(["cosine", "linear", "constant"]))
def test_a_usual_schedule_is_never_reported(n: int, every: int, peak: float, warm: float, digits: bool,
                                            shape: str) -> None:
    u = np.arange(1, n + 1) / n
    after = np.clip((u - warm) / (1 - warm), 0, 1)
    level = {"cosine": 0.5 * (1 + np.cos(np.pi * after)), "linear": 1 - after, "constant": np.ones(n)}[shape]
    rate = peak * np.where(u < warm, u / max(warm, 1e-9), level)
    rate = np.array([float(f"{v:.3g}") for v in rate]) if digits else rate
    assert findings(with_rate(rate, every, planned_steps=float(n * every)), WARM, TURN) == []

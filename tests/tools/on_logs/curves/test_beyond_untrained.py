"""A loss far worse than that of an untrained model for a few records: a finding, though training recovered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numerics_builder import findings, run, series
from test_l112_brief_spike import NOISES

from traindx_tools.examine import examine
from traindx_tools.finding import Finding

STEPS = np.arange(5, 1005, 5)
LOSS = 0.03 + 2.0 * np.exp(-STEPS / 60) + 0.004 * np.sin(STEPS * 1.7)
NORM = 0.4 + 0.05 * np.sin(STEPS * 2.3)
THERE = STEPS == 370


def of(rule: str, loss: np.ndarray, norm: np.ndarray = NORM) -> list[Finding]:
    return findings(run(series("loss", loss, every=5), series("grad_norm", norm, every=5)), rule)


def test_a_loss_of_hundreds_of_thousands_that_comes_back() -> None:
    (found,) = of("l107_spike", np.where(THERE, 411_222.0, LOSS))
    assert (found.severity.value, found.where.step, found.measured["recovered"]) == ("medium", 370, True)
    assert "more than ten times the largest loss of the first tenth" in found.statement
    (both,) = of("l112_brief_spike", np.where(THERE, 411_222.0, LOSS), np.where(THERE, 1799.0, NORM))
    assert both.severity.value == "medium"


@pytest.mark.parametrize("peak", [1.5, 15.0])
def test_a_spike_as_bad_as_an_untrained_model_is_a_remark(peak: float) -> None:
    """15 is four hundred times the neighbourhood and less than ten times the loss at first."""
    loss = np.where(THERE, peak, LOSS)
    assert [f.severity.value for f in of("l107_spike", loss)] == ["info"]
    assert all(f.severity.value == "info" for f in of("l112_brief_spike", loss, np.where(THERE, 1799.0, NORM)))


def test_a_run_that_began_low_needs_a_spike_a_hundred_times_its_neighbourhood() -> None:
    flat = 0.5 + 0.004 * np.sin(STEPS * 1.7)
    assert [f.severity.value for f in of("l107_spike", np.where(THERE, 20.0, flat))] == ["info"]
    assert [f.severity.value for f in of("l107_spike", np.where(THERE, 80.0, flat))] == ["medium"]


def test_a_loss_that_touches_zero_is_judged_as_well() -> None:
    touches = np.where(STEPS == 900, 0.0, LOSS)
    assert [f.severity.value for f in of("l112_brief_spike", np.where(THERE, 411_222.0, touches))] == ["medium"]
    assert all(f.severity.value == "info" for f in of("l112_brief_spike", touches))


def test_it_is_not_called_a_run_with_nothing_wrong(tmp_path: Path) -> None:
    for name, loss in (("bad", np.where(THERE, 411_222.0, LOSS)), ("good", LOSS)):
        (tmp_path / f"{name}.log").write_text("".join(
            f"step {s} loss {y:.4f} grad_norm {g:.4f}\n" for s, y, g in zip(STEPS, loss, NORM, strict=True)))
    assert examine([tmp_path / "bad.log"], root=tmp_path).verdict.status == "needs_more_data"
    assert examine([tmp_path / "good.log"], root=tmp_path).verdict.status == "healthy"


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("records", [60, 600, 20_000])
def test_healthy_noise_is_never_so_high(noise: str, records: int) -> None:
    for seed in range(10):
        g = np.random.default_rng(1000 * records + seed)
        loss = 0.05 + 3 * np.exp(-6 * np.linspace(0, 1, records)) + NOISES[noise](g, records)
        told = of("l107_spike", np.maximum(loss, 0.01), np.exp(0.3 * g.standard_t(3, records).clip(-8, 8)))
        assert not any(f.measured["beyond_untrained"] for f in told)

"""Words against the record: what is not read is said so, and what another metric does is not this one's symptom."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.examine import examine
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom import SymptomAnswer, answers_to, parse


def series(name: str, values: Sequence[float] | np.ndarray) -> Series:
    """A series of training with a record at every tenth step."""
    n = len(values)
    unknown = np.full(n, np.nan)
    return Series(
        name, name, "train", "run.log", np.asarray(values, dtype=np.float64), np.arange(n) * 10.0, unknown, unknown,
        np.arange(1, n + 1), None,
    )  # fmt: skip


def answer(words: str, *found: Series) -> SymptomAnswer:
    (told,) = answers_to(words, Run(series=found))
    return told


def falling(n: int = 100) -> np.ndarray:
    return 0.4 + 2 * np.exp(-np.arange(n) / 20) + np.random.default_rng(0).normal(0, 0.01, n)


@pytest.mark.parametrize(
    "words",
    [
        "loss decreases very slowly compared to the pytorch version",
        "损失在第300步变成NaN",
        "stuck at " + "9" * 400,
        "loss is stuck at 1e999",
        "stuck at 2^99999",
        "hello",
    ],
)
def test_what_is_not_read_is_repeated_and_the_run_is_not_called_healthy(tmp_path: Path, words: str) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i} loss {y:.4f}\n" for i, y in enumerate(falling())), encoding="utf-8")
    found = examine([log], symptom=words, root=tmp_path)
    assert found.verdict.status == "needs_more_data"
    assert words[:20] in found.verdict.reason


def test_an_infinite_norm_is_no_nan_of_the_loss() -> None:
    norm = np.ones(100)
    norm[40:] = np.inf
    told = answer("loss went to NaN", series("loss", falling()), series("grad_norm", norm))
    assert told.answer == "not_seen"
    assert told.is_open
    assert "loss is finite in all 100 records" in told.statement
    assert "grad_norm is inf at" in told.statement
    whole = answer("it went to NaN", series("loss", falling()), series("grad_norm", norm))
    assert whole.answer == "seen", "of the run as a whole any metric may be meant"


def test_overflows_that_a_scaler_skips_stay_expected() -> None:
    norm = np.ones(100)
    norm[[5, 40]] = np.inf
    told = answer("loss went to NaN", series("loss", falling()), series("grad_norm", norm),
                  series("loss_scale", np.full(100, 65536.0)))  # fmt: skip
    assert told.answer == "not_seen"
    assert told.expected
    assert not told.is_open


def test_a_nan_behind_the_end_of_the_record_is_not_refuted() -> None:
    assert answer("the loss is NaN at step 500", series("loss", falling())).refuted
    assert answer("the loss is NaN at step 50000", series("loss", falling())).is_open


def test_a_part_of_the_loss_is_one() -> None:
    box = falling()
    box[50:] = np.nan
    assert answer("loss went to NaN", series("loss", falling()), series("loss_bbox", box)).answer == "seen"


@pytest.mark.parametrize("noise", [0.005, 0.1])
def test_a_rise_by_a_fifth_is_no_plateau(noise: float) -> None:
    rising = np.concatenate([falling(80), 0.45 * np.linspace(1, 1.4, 40)])
    rising += np.random.default_rng(2).normal(0, noise * 0.4, 120)
    told = answer("is the loss plateauing near the end?", series("loss", rising))
    assert told.answer == "not_seen"
    assert not told.is_open
    assert answer("the loss is flat near the end", series("loss", rising)).is_open


def test_a_level_is_a_plateau() -> None:
    level = np.concatenate([falling(80), 0.44 + np.random.default_rng(3).normal(0, 0.01, 60)])
    assert answer("is the loss plateauing near the end?", series("loss", level)).answer == "seen"


def _restarted(restarts: bool, rough: float) -> tuple[Series, Series]:
    """Two cycles; the loss rises by half where the learning rate restarts and ends lower than before."""
    step = np.arange(50)
    loss = np.concatenate([2 - 0.02 * step, 1.6 - 0.016 * step]) * (1 + np.random.default_rng(4).normal(0, rough, 100))
    rate = np.concatenate([1e-3 * (1 - step / 50)] * 2) if restarts else np.full(100, 1e-3)
    return series("loss", loss), series("learning_rate", rate)


@pytest.mark.parametrize("rough", [0.002, 0.05])
@pytest.mark.parametrize("words", ["loss jumps at step 500", "the loss rises at step 500", "loss spike at step 500"])
def test_a_rise_where_the_rate_restarts_is_expected(words: str, rough: float) -> None:
    told = answer(words, *_restarted(True, rough))
    assert told.answer == "seen", told.statement
    assert "the learning rate restarts there" in told.expected
    assert "no step" not in told.statement
    without = answer(words, *_restarted(False, rough))
    assert without.answer == "seen"
    assert not without.expected


@pytest.mark.parametrize("words", ["loss jumps at step 500", "loss spike at step 500"])
def test_a_loss_without_a_rise_there_refutes_it(words: str) -> None:
    assert answer(words, series("loss", falling())).refuted


@pytest.mark.parametrize(
    "words", ["nan " * 1000, "loss is nan and " * 250, "loss nan, " * 400, "the loss rises " * 260]
)
def test_the_time_grows_with_the_text(words: str) -> None:
    start = time.process_time()
    parse(words, ("loss",))
    assert time.process_time() - start < 1.5

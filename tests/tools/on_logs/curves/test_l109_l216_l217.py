"""L109, L216, L217: a count of zero at the first NaN, a score that never changes, a loss without a trend."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numerics_builder import check_of, note, run, series

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import Run

ZERO, CONSTANT, STILL = "l109_zero_count_at_onset", "l216_metric_exactly_constant", "l217_never_moves"


def found(r: Run, *modules: str) -> list[Finding]:
    return [f for m in modules for f in check_of(m)(r)]


def only(r: Run, module: str) -> Finding:
    (f,) = found(r, module)
    return f


def broken(n: int, at: int, seed: int = 0) -> np.ndarray:
    y = 1.5 + 0.1 * np.random.default_rng(seed).standard_normal(n)
    y[at:] = np.nan
    return y


def counts(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(40, 400, n).astype(np.float64)


# L109


@pytest.mark.parametrize("name", ["labelled_px", "n_valid", "tokens_kept", "mask_sum", "positives", "num_boxes", "n"])
@pytest.mark.parametrize("at", [2, 15])
def test_a_count_that_is_zero_where_the_loss_breaks(name: str, at: int) -> None:
    c = counts(40)
    c[at] = 0
    f = only(run(series("loss", broken(40, at)), series(name, c)), ZERO)
    assert (f.measured["kind"], f.measured["metric"], f.measured["records_before"]) == ("zero-count", name, at)
    assert (f.severity, f.bearing) == (Severity.CRITICAL, Bearing.SIGN)
    assert f"{name} is 0 at step {at + 1}, the first record in which loss is nan" in f.statement
    assert f.where.step == at + 1


def test_a_share_and_an_infinite_loss() -> None:
    loss = broken(20, 10)
    loss[10] = np.inf
    share = np.full(20, 0.5)
    share[10] = 0
    assert only(run(series("nll", loss), series("valid_share", share)), ZERO).measured["kind"] == "zero-count"


def healthy_or_unclear() -> Iterator[tuple[str, Run]]:
    c = counts(40)
    c[15] = 0
    yield "finite loss", run(series("loss", np.full(40, 1.0)), series("labelled_px", c))
    often = c.copy()
    often[3] = 0
    yield "zero before without harm", run(series("loss", broken(40, 15)), series("labelled_px", often))
    yield "positive at the break", run(series("loss", broken(40, 15)), series("labelled_px", counts(40)))
    gone = counts(40)
    gone[15:] = 0
    yield "zero for good", run(series("loss", broken(40, 15)), series("n_codes_live", gone))
    accuracy = np.full(40, 0.5)
    accuracy[15] = 0
    yield "an outcome", run(series("loss", broken(40, 15)), series("accuracy", accuracy))
    yield "another file", run(series("loss", broken(40, 15)), series("labelled_px", c, source="b.txt", step=None))
    yield "nothing", run()


@pytest.mark.parametrize(("name", "r"), list(healthy_or_unclear()))
def test_what_is_no_count_of_zero(name: str, r: Run) -> None:
    assert found(r, ZERO) == []


def test_a_count_that_is_often_zero_later_is_weaker() -> None:
    c = counts(40)
    c[15::2] = 0
    assert only(run(series("loss", broken(40, 15)), series("labelled_px", c)), ZERO).bearing is Bearing.COMPANION


@pytest.mark.parametrize(("value", "kind"), [
    (np.nan, "input-nonfinite"), (np.inf, "input-nonfinite"), (1e6, "extreme")])
def test_inputs_that_were_bad_on_arrival(value: float, kind: str) -> None:
    x = np.random.default_rng(1).standard_normal(40)
    x[15] = value
    f = only(run(series("loss", broken(40, 15)), series("x_absmax", x)), ZERO)
    assert f.measured["kind"] == kind


def test_an_output_that_breaks_later_is_a_consequence() -> None:
    x = np.ones(40)
    x[20:] = np.nan
    assert found(run(series("loss", broken(40, 15)), series("x_mean", x)), ZERO) == []


# L216


def scatter(n: int, level: float, seed: int, share: float = 0.03) -> np.ndarray:
    return level * (1 + share * np.random.default_rng(seed).standard_normal(n))


def test_only_a_scale_trains() -> None:
    r = run(series("loss", 1.7969 - 0.0003 * np.arange(10), group="validation"),
            series("accuracy", np.full(10, 0.14), group="validation"))
    f = only(r, CONSTANT)
    assert (f.measured["pace"], f.measured["value"], f.measured["records"]) == ("crawl", 0.14, 10)
    assert "0.14 to the last digit in all 10 records" in f.statement


@pytest.mark.parametrize("name", ["recall_1", "accuracy", "f1", "hit_10", "mrr"])
def test_nothing_trains(name: str) -> None:
    r = run(series("loss", scatter(30, 0.86, 4)), series(name, np.full(30, 0.01)))
    assert only(r, CONSTANT).measured["pace"] == "still"
    told = [f for f in found(r, "l201_plateau", STILL) if f.severity is Severity.HIGH]
    assert [f.rule for f in told] == ["L201" if name == "accuracy" else "L217"]
    assert told[0].measured["corroborated"] is True
    assert name == "accuracy" or f"{name} stays at 0.01" in told[0].statement


def learning() -> Iterator[tuple[str, Run]]:
    n = 20
    yield "the loss falls", run(series("loss", np.linspace(2, 1, n)), series("accuracy", np.full(n, 0.5)))
    yield "the score moves", run(series("loss", scatter(n, 2, 1)), series("accuracy", np.r_[np.full(n - 1, 0.5), 0.55]))
    yield "perfect", run(series("loss", scatter(n, 0.001, 1)), series("accuracy", np.ones(n)))
    yield "perfect per cent", run(series("loss", scatter(n, 0.001, 1)), series("accuracy", np.full(n, 100.0)))
    yield "zero", run(series("loss", scatter(n, 2, 1)), series("exact_match", np.zeros(n)))
    yield "few records", run(series("loss", scatter(4, 2, 1)), series("accuracy", np.full(4, 0.5)))
    yield "no learning rate", run(series("loss", np.full(n, 2.0)), series("accuracy", np.full(n, 0.5)),
                                  series("learning_rate", np.zeros(n)))
    yield "another score moves", run(series("loss", scatter(n, 2, 1)), series("accuracy", np.full(n, 0.5)),
                                     series("f1", np.linspace(0.2, 0.4, n)))
    yield "nothing", run()


@pytest.mark.parametrize(("name", "r"), list(learning()))
def test_what_is_learning_or_says_nothing(name: str, r: Run) -> None:
    assert found(r, CONSTANT) == []


# L217


def test_without_a_second_metric_it_is_a_remark() -> None:
    f = only(run(series("loss", scatter(40, 2.1, 3))), STILL)
    assert (f.severity, f.bearing) == (Severity.INFO, Bearing.COMPANION)


def moving() -> Iterator[tuple[str, Run]]:
    n = 60
    low = series("accuracy", scatter(n, 0.1, 8))
    yield "a slow fall", run(series("loss", scatter(n, 1, 2) * np.linspace(2, 1.6, n)), low)
    yield "converged", run(series("loss", scatter(n, 0.1, 2)), series("accuracy", scatter(n, 0.93, 3, 0.005)))
    yield "fell at once", run(series("loss", np.r_[2.3, scatter(n - 1, 0.7, 2)]), low)
    yield "too noisy to tell", run(series("loss", scatter(n, 1.0, 2, 0.6)), low)
    yield "no learning rate", run(series("loss", scatter(n, 2, 2)), low, series("learning_rate", np.zeros(n)))
    yield "rewards", run(series("loss", scatter(n, 2, 2)), series("reward", scatter(n, 1, 3)))
    yield "adversaries", run(series("generator_loss", scatter(n, 2, 2)), series("discriminator_loss", scatter(n, 1, 3)))
    yield "broken", run(series("loss", np.r_[scatter(n - 1, 2, 2), np.nan]), low)
    yield "resumed", run(series("loss", scatter(n, 2, 2), step=1000.0 + np.arange(n)),
                         notes=(note("resume", "resumed", 1),))
    yield "nothing", run()


@pytest.mark.parametrize(("name", "r"), list(moving()))
def test_what_moves_or_cannot_be_told(name: str, r: Run) -> None:
    assert [f for f in found(r, STILL) if f.severity is not Severity.INFO] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_loss_that_falls_is_never_called_still(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 200))
    fall = rng.uniform(0.12, 0.8) * np.linspace(0, 1, n) ** rng.uniform(0.3, 1.0)
    y = 2 * (1 - fall) + rng.uniform(0.01, 0.2) * rng.standard_normal(n)
    r = run(series("loss", y), series("recall_1", np.full(n, 0.01)))
    assert found(r, STILL) == []


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40),
       st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40), st.sampled_from([None, "auto"]))
def test_any_values_are_judged_without_an_error(a: list[float], b: list[float], step: str | None) -> None:
    r = run(series("loss", a, step=step), series("accuracy", b, step=step), series("x_mean", b[::-1], step=step),
            series("mask_sum", b, step=step))
    for module in (ZERO, CONSTANT, STILL):
        for f in check_of(module)(r):
            assert f.statement

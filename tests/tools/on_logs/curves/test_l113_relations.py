"""Relations that hold to the last digit and break; what never held, or rightly changes, is left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Floats, Series

N = 600
RNG = np.random.default_rng(4)
LOSS = 2 + np.exp(-np.arange(N) / 100) + RNG.normal(0, 0.03, N)
CLS, BOX = np.abs(RNG.normal(1, 0.1, N)), np.abs(RNG.normal(0.5, 0.05, N)) * np.exp(-np.arange(N) / 300)
LATE = np.arange(N) >= 400


def broken(*several: Series) -> list[Finding]:
    return findings(run(*several), "l113_relation_breaks")


def sums(total: Floats, *parts: Floats) -> list[Finding]:
    return broken(series("loss", total), *(series(f"loss/{'abcdef'[i]}", p) for i, p in enumerate(parts)))


@pytest.mark.parametrize("digits", [12, 4, 3])
@pytest.mark.parametrize("base", [np.e, 2.0])
def test_a_perplexity_that_is_no_longer_the_exponential(base: float, digits: int) -> None:
    loss = np.round(LOSS, digits)
    (found,) = broken(series("loss", loss), series("perplexity", np.round(base**LOSS * np.where(LATE, 1.3, 1), digits)))
    assert (found.where.step, found.measured["kind"], found.severity) == (401, "exponential", Severity.MEDIUM)
    assert found.measured["ratio"] == pytest.approx(1.3, rel=0.01)


def test_bits_are_a_loss_by_a_constant() -> None:
    (found,) = broken(series("loss", LOSS), series("bits_per_byte", 0.31 * LOSS * np.where(LATE, 1.02, 1)))
    assert (found.where.step, found.measured["kind"]) == (401, "bits")


def test_a_total_that_is_no_longer_the_sum() -> None:
    total = 2 * CLS + 0.5 * BOX
    (found,) = sums(np.where(LATE, total + RNG.normal(0.2, 0.05, N), total), CLS, BOX)
    assert (found.where.step, found.measured["kind"], found.severity) == (401, "sum", Severity.MEDIUM)
    assert "2 loss/a + 0.5 loss/b" in found.statement


def test_a_term_that_no_longer_counts_is_minor_and_one_that_is_switched_on_a_remark() -> None:
    (out,) = sums(CLS + BOX * np.where(LATE, 0, 1), CLS, BOX)
    (on,) = sums(CLS + BOX * np.where(LATE, 0.5, 0), CLS, BOX)
    (annealed,) = sums(CLS + BOX * np.clip((np.arange(N) - 300) / 200, 0, 1), CLS, BOX)
    (both,) = sums(np.where(LATE, CLS + 2 * BOX, 3 * CLS + BOX), CLS, BOX)
    assert (out.measured["kind"], out.severity, out.measured["part"]) == ("term-left-out", Severity.LOW, "loss/b")
    assert {f.measured["kind"] for f in (on, annealed, both)} == {"weight-changed"}
    assert {f.severity for f in (on, annealed, both)} == {Severity.INFO}


def test_a_total_beside_another_loss() -> None:
    total = series("loss/total", np.where(LATE, CLS, CLS + BOX))
    (found,) = broken(series("loss", LOSS), series("loss/cls", CLS), series("loss/box", BOX), total)
    assert (found.measured["metric"], found.measured["part"]) == ("loss/total", "loss/box")


def windowed(y: Floats, width: int) -> Floats:
    return np.convolve(y, np.ones(width) / width, mode="full")[:len(y)]


@pytest.mark.parametrize("perplexity", [
    np.exp(LOSS), np.exp(windowed(LOSS, 20)), windowed(np.exp(LOSS), 20), np.exp(LOSS * np.where(LATE, 1, 0.9)),
    np.minimum(np.exp(LOSS), 12.0), np.where(np.arange(N) == 300, 50, np.exp(LOSS)), np.exp(LOSS) * (1 + 1e-3 * LATE),
    np.exp(LOSS - 0.2), np.full(N, 7.0),
], ids=["holds", "mean of the loss", "mean of exponentials", "held at the end only", "capped", "one record",
        "a thousandth", "other tokens", "constant"])
def test_a_perplexity_that_is_in_order(perplexity: Floats) -> None:
    assert broken(series("loss", LOSS), series("perplexity", perplexity)) == []


def test_a_mean_of_exponentials_where_the_loss_jumps() -> None:
    """In a quiet stretch it agrees to the digits; then batches differ more, and it lies above."""
    loss = np.where(LATE, 4 + RNG.normal(0, 0.5, N), 2 + RNG.normal(0, 0.01, N))
    excess = np.where(LATE, np.exp(0.125), 1)
    assert broken(series("loss", loss), series("perplexity", np.exp(loss) * excess)) == []


@pytest.mark.parametrize("total", [
    CLS + BOX, CLS + BOX + 1e-4 * np.arange(N), CLS + 0.3 * BOX + RNG.normal(0, 0.01, N), windowed(CLS + BOX, 10),
    (CLS + BOX).astype(np.float32).astype(float) * (1 + 1e-7 * LATE),
], ids=["holds", "a regulariser", "noise", "another window", "float32"])
def test_a_total_that_is_in_order(total: Floats) -> None:
    assert sums(total, CLS, BOX) == []


def test_a_part_that_is_0_at_first_has_no_known_weight() -> None:
    extra = np.where(LATE, CLS * RNG.uniform(0.5, 1, N), 0.0)
    assert sums(CLS + BOX + 0.7 * extra, CLS, BOX, extra) == []
    assert sums(CLS + BOX + np.where(LATE, extra, 0), CLS, 2 * CLS) == []


def test_other_groups_and_ranks_are_not_compared() -> None:
    off = np.exp(LOSS) * np.where(LATE, 1.3, 1)
    assert broken(series("loss", LOSS), series("perplexity", off, group="validation")) == []
    assert broken(series("loss", LOSS, rank=0), series("perplexity", off, rank=1)) == []


def test_different_lines_with_equal_steps() -> None:
    late = replace(series("perplexity", np.exp(LOSS) * np.where(LATE, 1.3, 1)), line=np.arange(5000, 5000 + N))
    assert len(broken(series("loss", LOSS), late)) == 1


@pytest.mark.parametrize("values", [[], [1.0] * 100, [np.nan] * 100, [np.inf, 1.0] * 50, [1e300, -1e300] * 50,
                                    [-1e5] * 60, list(range(100))])
def test_hostile_values(values: list[float]) -> None:
    several = [series(n, values) for n in ("loss", "loss/a", "loss/b", "perplexity", "bpc", "kl")]
    assert broken(*several) == []
    assert broken(series("loss", LOSS), *several[1:]) == []

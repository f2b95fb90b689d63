"""L106: a loss that rises because the log shows one of its weights growing is told as that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves import l106_divergence, l107_spike

RECORDS = 24
TIME = np.arange(RECORDS)
BETA = np.clip((TIME - 6) / 12, 0, 1)
KL = 3.0 + 15.0 * np.exp(-np.maximum(TIME - 5, 0) / 2.0) * (1 - np.exp(-TIME - 0.5))
REC = 1.5 + 10 * np.exp(-TIME.astype(float)) + 1.0 * BETA


def judged(folder: Path, columns: dict[str, object], places: int = 4) -> list[Finding]:
    names = list(columns)
    values = [np.broadcast_to(np.asarray(columns[n], dtype=float), (RECORDS,)) for n in names]
    rows = [",".join(["epoch", *names])]
    rows += [",".join([str(i), *(f"{v[i]:.{places}f}" for v in values)]) for i in range(RECORDS)]
    (folder / "metrics.csv").write_text("\n".join(rows) + "\n")
    return list(l106_divergence.check(read_run([folder / "metrics.csv"])))


@pytest.mark.parametrize("places", [2, 4, 12])
@pytest.mark.parametrize("named", [("rec", "kl", "beta"), ("part_a", "penalty", "alpha")])
def test_a_rise_that_a_growing_weight_makes_is_low_and_says_so(tmp_path: Path, places: int,
                                                               named: tuple[str, str, str]) -> None:
    rest, term, weight = named
    shown = [np.round(v, places) for v in (REC, KL, BETA)]
    (finding,) = judged(tmp_path, {"loss": shown[0] + shown[2] * shown[1], rest: REC, term: KL, weight: BETA}, places)
    assert finding.severity.value == "low"
    assert f"{weight}, the weight of {term}, goes from 0 to 1" in finding.statement
    assert finding.measured["another_objective"] is True


@pytest.mark.parametrize("spoil", [
    lambda c: {**c, "rec": c["rec"] + 40 * BETA, "loss": c["loss"] + 40 * BETA},  # worse at the last weight too
    lambda c: {**c, "loss": c["loss"] + 0.05 * np.sin(TIME) + 2 * BETA},  # not the sum of what is logged
    lambda c: {n: c[n] for n in ("loss", "rec", "kl")},  # the weight is not logged
    lambda c: {**c, "beta": np.where(TIME == 12, np.nan, BETA)},
    lambda c: {**c, "beta": -BETA},
], ids=["worse", "another sum", "no weight", "a hole", "negative"])
def test_any_other_rise_stays_what_it_was(tmp_path: Path,
                                          spoil: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> None:
    columns = {"loss": REC + BETA * KL + 2 * BETA, "rec": REC + 2 * BETA, "kl": KL, "beta": BETA}
    (finding,) = judged(tmp_path, spoil(columns))  # type: ignore[arg-type]
    assert finding.severity.value in ("high", "medium")
    assert finding.measured["another_objective"] is False


def with_added(rest: np.ndarray, size: float = 2.0) -> dict[str, object]:
    outline = np.where(TIME < 8, 0.0, size / (1 + np.maximum(TIME - 8, 0)) + 0.4)
    return {"total_loss": rest + outline, "region": rest, "outline": outline}


def test_a_rise_that_a_term_makes_which_is_added_is_low_and_says_so(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, with_added(0.05 + 0.6 * np.exp(-TIME / 2.0)))
    assert finding.severity.value == "low"
    assert "outline counts from there on" in finding.statement
    assert [f for f in l107_spike.check(read_run([tmp_path / "metrics.csv"])) if f.severity.rank > 1] == []


@pytest.mark.parametrize("columns", [
    with_added(0.05 + 0.6 * np.exp(-TIME / 2.0) + np.where(TIME > 8, 0.3, 0.0)),  # the rest rises as well
    {"total_loss": np.where(TIME < 8, 0.1, 2.0), "region": np.full(RECORDS, 0.1)},  # nothing was added in the log
    {"total_loss": np.where(TIME < 8, 0.1, 2.0), "scale": np.where(TIME < 8, 0.0, 900.0)}])  # no term of it
def test_a_rise_beside_an_added_term_stays_what_it_is(tmp_path: Path, columns: dict[str, object]) -> None:
    (finding,) = judged(tmp_path, columns)
    assert finding.severity.value in ("high", "medium")

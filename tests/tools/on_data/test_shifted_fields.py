"""A column that is shifted in one file, stretch or group; lags by design, noise and slow series beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d153_shifted_field

Seen = Callable[[ModuleType, Path], list[Finding]]
Values = np.ndarray[Any, np.dtype[np.float64]]
WEIGHTS = np.array([0.7, -1.2, 0.9, 0.4, -0.8])


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def rows(seed: int, count: int, slow: bool = False) -> tuple[Values, Values]:
    """Five inputs, and a target that they make."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5))
    if slow:
        for at in range(1, count):
            x[at] += 0.995 * x[at - 1]
    return x, x @ WEIGHTS + 0.3 * rng.normal(size=count)


def columns(x: Values, y: Values) -> dict[str, Any]:
    return {f"f{k}": x[:, k] for k in range(5)} | {"target": y}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "npz", "hdf5"])
@pytest.mark.parametrize("lag", [1, -1, 2])
def test_one_file(form: str, lag: int, tmp_path: Path, seen_by: Seen) -> None:
    for k in range(5):
        x, y = rows(10 * k, 300)
        table(tmp_path / f"part_{k}", form, columns(x, np.roll(y, lag) if k == 3 else y))
    (finding,) = alarms(seen_by(d153_shifted_field, tmp_path))
    assert (finding.measured["field"], finding.measured["lag"]) == ("target", lag)
    assert finding.measured["shard"].startswith("part_3")  # type: ignore[union-attr]


@pytest.mark.parametrize("slow", [False, True])
def test_a_stretch(slow: bool, tmp_path: Path, seen_by: Seen) -> None:
    x, y = rows(1, 2400, slow)
    y[900:1500] = np.roll(y[900:1500], 2)
    table(tmp_path / "d", "csv", columns(x, y))
    (finding,) = alarms(seen_by(d153_shifted_field, tmp_path))
    assert np.abs(np.asarray(finding.measured["rows"], float) - (900, 1500)).max() < 10


def test_a_group(tmp_path: Path, seen_by: Seen) -> None:
    x, y = rows(2, 2000)
    site = np.random.default_rng(2).integers(0, 6, 2000)
    own = np.flatnonzero(site == 2)
    y[own] = np.roll(y[own], 1)
    table(tmp_path / "d", "csv", columns(x, y) | {"site": [f"s{k}" for k in site]})
    (finding,) = alarms(seen_by(d153_shifted_field, tmp_path))
    assert "site 's2'" in finding.statement


def healthy(x: Values, y: Values) -> Values:
    return y


def lag_by_design(x: Values, y: Values) -> Values:
    return np.roll(y, -1)


def noisier_at_the_end(x: Values, y: Values) -> Values:
    return y + np.where(np.arange(len(y)) > 1500, 6.0, 0.0) * np.random.default_rng(0).normal(size=len(y))


def other_relation_at_the_end(x: Values, y: Values) -> Values:
    return np.where(np.arange(len(y)) > 1500, x @ WEIGHTS[::-1], y)


def unrelated(x: Values, y: Values) -> Values:
    return np.random.default_rng(1).normal(size=len(y))


def smoothed(x: Values, y: Values) -> Values:
    return np.convolve(y, np.ones(5) / 5, "same")


@pytest.mark.parametrize("how", [healthy, lag_by_design, noisier_at_the_end, other_relation_at_the_end, unrelated,
                                 smoothed])
@pytest.mark.parametrize("slow", [False, True])
def test_what_is_no_shift(how: Callable[[Values, Values], Values], slow: bool, tmp_path: Path, seen_by: Seen) -> None:
    x, y = rows(3, 2400, slow)
    table(tmp_path / "d", "csv", columns(x, how(x, y)))
    assert not alarms(seen_by(d153_shifted_field, tmp_path))


def test_it_is_told_once(tmp_path: Path) -> None:
    for k in range(5):
        x, y = rows(10 * k, 300)
        table(tmp_path / f"part_{k}", "csv", columns(x, np.roll(y, 1) if k == 3 else y))
    assert [f.rule for f in alarms(list(examine([tmp_path]).findings))] == ["D153"]


def test_empty_cells_and_constants(tmp_path: Path) -> None:
    lines = ["a,b,c"] + [f"{k % 5 if k % 3 else ''},1,{'nan' if k % 4 else k}" for k in range(300)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    assert not examine([tmp_path]).notes


def exams(folder: Path, slipped: bool) -> Path:
    """Schools of 300 answers each, right or wrong, and a grade; in one the grade slipped by a row in a stretch."""
    rng = np.random.default_rng(3)
    weights = rng.uniform(1, 4, 20)
    for school in range(6):
        right = (rng.random((300, 20)) < 0.6).astype(int)
        grade = right @ weights + rng.normal(size=300)
        if slipped and school == 4:
            grade[100:220] = grade[99:219]
        head = [*(f"q{k:02d}" for k in range(20)), "grade"]
        rows = [",".join([*map(str, r), f"{g:.2f}"]) for r, g in zip(right.tolist(), grade, strict=True)]
        (folder / f"school_{school}.csv").write_text("\n".join([",".join(head), *rows]) + "\n")
    return folder


def test_the_only_number_beside_many_answers(tmp_path: Path, seen_by: Seen) -> None:
    (found,) = seen_by(d153_shifted_field, exams(tmp_path, slipped=True))
    assert (found.measured["field"], found.measured["shard"]) == ("grade", "school_4.csv")
    rows = found.measured["rows"]
    assert isinstance(rows, tuple)
    assert rows[0] in range(96, 105)
    assert rows[1] in range(215, 224)


def test_answers_and_grades_that_belong_together(tmp_path: Path, seen_by: Seen) -> None:
    assert not seen_by(d153_shifted_field, exams(tmp_path, slipped=False))


def test_a_file_that_is_sorted_by_the_number(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(7)
    for site in range(3):
        marker, stage = rng.normal(size=(2, 600))
        event = (rng.random(600) < 0.7).astype(int)
        months = np.exp(3 - 0.8 * marker - 0.4 * stage + 0.6 * rng.normal(size=600))
        order = np.argsort(months) if site == 1 else rng.permutation(600)
        rows = [f"{marker[i]:.3f},{stage[i]:.3f},{months[i]:.2f},{event[i]}" for i in order]
        (tmp_path / f"site_{site}.csv").write_text("\n".join(["marker,stage,months,event", *rows]) + "\n")
    assert not seen_by(d153_shifted_field, tmp_path)

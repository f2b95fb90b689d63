"""Held-out rows that are training rows with the ends of a pair exchanged, where pairs are dense (D116)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d116_reversed_pairs as d116

Seen = Callable[[ModuleType, Path], list[Finding]]
Rows = dict[str, Any]
CELLS = ("A549", "MCF7", "HT29", "PC3", "U87", "K562")


def _combinations(rng: np.random.Generator, rows: int) -> Rows:
    """Each combination of two drugs and a cell line once, in either order of the drugs."""
    every = [(a, b, c) for a in range(45) for b in range(a) for c in CELLS]
    some = [every[i] for i in rng.permutation(len(every))[:rows]]
    turned = rng.random(rows) < 0.5
    a = [f"DB{(y if t else x):03d}" for (x, y, _), t in zip(some, turned, strict=True)]
    b = [f"DB{(x if t else y):03d}" for (x, y, _), t in zip(some, turned, strict=True)]
    return {"one": np.array(a), "two": np.array(b), "cell": np.array([c for *_, c in some]),
            "score": rng.normal(size=rows), "plate": rng.integers(0, 40, rows)}


def _split(rows: Rows, at: int) -> tuple[Rows, Rows]:
    return {k: v[:at] for k, v in rows.items()}, {k: v[at:] for k, v in rows.items()}


def _turned(rows: Rows, rng: np.random.Generator, count: int, noise: float = 0.02) -> Rows:
    """Rows read a second time, from the other place of the plate."""
    at = rng.permutation(len(rows["one"]))[:count]
    some = {k: v[at] for k, v in rows.items()}
    again = some["score"] + rng.normal(size=count) * noise
    return {**some, "one": some["two"], "two": some["one"], "score": again, "plate": rng.integers(0, 40, count)}


def _joined(one: Rows, two: Rows) -> Rows:
    return {k: np.concatenate([one[k], two[k]]) for k in one}


def _write(folder: Path, form: str, **splits: Rows) -> None:
    for name, rows in splits.items():
        if form == "parquet":
            pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pyarrow.table(rows), folder / f"{name}.parquet")
        else:
            lines = [",".join(map(str, row)) for row in zip(*rows.values(), strict=True)]
            (folder / f"{name}.csv").write_text("\n".join([",".join(rows), *lines]) + "\n")


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_mirrored_rows_under_a_third_field_are_named(seed: int, form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(seed)
    train, val = _split(_combinations(rng, 1200), 1000)
    _write(tmp_path, form, train=train, val=_joined(val, _turned(train, rng, 300)))
    (found,) = seen_by(d116, tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["third"], found.measured["kind"]) == ("cell", "reversed-pairs")
    assert abs(float(str(found.measured["share"])) - 0.6) < 0.01
    assert "with one and two exchanged and the same cell" in found.statement


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))])
def test_combinations_that_are_in_one_split_only_are_quiet(seed: int, tmp_path: Path, seen_by: Seen) -> None:
    train, val = _split(_combinations(np.random.default_rng(seed), 1500), 1000)
    _write(tmp_path, "csv", train=train, val=val)
    assert seen_by(d116, tmp_path) == []


def test_return_matches_of_a_season_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    """The second half of each season is held out: each match the other way round, with another result."""
    rng = np.random.default_rng(3)
    first = _combinations(rng, 1200)
    second = {**first, "one": first["two"], "two": first["one"], "score": rng.normal(size=1200)}
    _write(tmp_path, "csv", train=first, val={k: v[:400] for k, v in second.items()})
    assert seen_by(d116, tmp_path) == []


def test_a_relation_that_is_returned_within_training_as_well_is_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    some = _combinations(rng, 800)
    every = _joined(some, _turned(some, rng, 800))
    order = rng.permutation(1600)
    train, val = _split({k: v[order] for k, v in every.items()}, 1200)
    _write(tmp_path, "csv", train=train, val=val)
    assert seen_by(d116, tmp_path) == []


def test_scores_that_are_empty_and_fields_that_are_missing_are_read(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    train, val = _split(_combinations(rng, 1200), 1000)
    val = _joined(val, _turned(train, rng, 300))
    _write(tmp_path, "csv", train=train, val={**val, "score": np.full(500, "")})
    assert seen_by(d116, tmp_path) == []
    _write(tmp_path, "csv", train=train, val={k: v for k, v in val.items() if k != "cell"})
    assert seen_by(d116, tmp_path) == []

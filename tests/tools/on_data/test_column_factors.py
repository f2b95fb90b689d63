"""D229: catches of fish by net, and the same in shares times how rare a fish is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d229_column_factors as d229

Seen = Callable[[ModuleType, Path], list[Finding]]


def write(folder: Path, order: str, formula: str = "idf") -> None:
    rng = np.random.default_rng(7)
    shares = np.exp(rng.normal(0, 1.2, 90))
    counts = np.stack([rng.multinomial(50, shares / shares.sum()) for _ in range(400)])
    has = (counts > 0).sum(axis=0)
    factors = {"idf": np.log(400 / np.maximum(has, 1)), "smooth": np.log(401 / (1 + has)) + 1,
               "other": rng.uniform(0.5, 2, 90)}[formula]
    moved = {"own": factors, "other": factors[rng.permutation(90)], "sorted": np.sort(factors)}[order]
    made = counts / counts.sum(axis=1, keepdims=True) * moved
    np.savez(folder / "counts.npz", catch=counts.astype(np.int16), lake=np.arange(400) % 3)
    np.savez(folder / "weighted.npz", weighted=made.astype(np.float32), lake=np.arange(400) % 3)


@pytest.mark.parametrize(("order", "formula"), [("other", "idf"), ("sorted", "idf"), ("other", "smooth")])
def test_factors_of_other_columns(order: str, formula: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, order, formula)
    (found,) = seen_by(d229, tmp_path)
    assert (found.severity, found.measured["shard"], found.measured["source"]) == (
        Severity.HIGH, "weighted.npz", "counts.npz")
    assert "idf" in str(found.measured["factors"])


@pytest.mark.parametrize(("order", "formula"), [("own", "idf"), ("own", "smooth"), ("own", "other"),
                                                ("other", "other")])
def test_own_factors_and_those_of_no_formula(order: str, formula: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, order, formula)
    assert seen_by(d229, tmp_path) == []


def test_cells_that_are_no_numbers(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "other")
    np.savez(tmp_path / "weighted.npz", weighted=np.full((400, 90), np.nan, np.float32), lake=np.arange(400) % 3)
    assert seen_by(d229, tmp_path) == []

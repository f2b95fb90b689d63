"""A run of rows of a table that is at its initialisation although its moments are alive (W156), and what looks like it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")

ROWS, WIDTH = 600, 24
RUN = slice(200, 300)
Table = Any
Change = Callable[[Table, Table, np.random.Generator], None]


def _save(folder: Path, change: Change | None, seed: int = 0) -> Path:
    """A table of items as a training leaves it, with the state of Adam."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(ROWS, 4)) @ rng.normal(size=(4, WIDTH)) * 0.2 + rng.normal(size=(ROWS, WIDTH)) * 0.1
    table *= rng.lognormal(0, 0.2, (ROWS, 1))
    squares = rng.lognormal(-12, 1, (ROWS, 1)) * rng.lognormal(0, 0.3, (ROWS, WIDTH))
    if change is not None:
        change(table, squares, rng)
    weights = {"items.weight": torch.tensor(table, dtype=torch.float32), "head.weight": torch.randn(5, WIDTH)}
    states = {0: (torch.randn(ROWS, WIDTH) * 1e-4, torch.tensor(squares, dtype=torch.float32)),
              1: (torch.randn(5, WIDTH) * 1e-4, torch.rand(5, WIDTH) * 1e-6)}
    state = {k: {"step": torch.tensor(900.0), "exp_avg": m, "exp_avg_sq": v} for k, (m, v) in states.items()}
    group = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "params": [0, 1]}
    path = folder / "embedding.pt"
    weights = {f"emb_{k}" if k.startswith("items") else k: v for k, v in weights.items()}
    torch.save({"model": weights, "optimizer": {"state": state, "param_groups": [group]}}, path)
    return path


def _found(path: Path) -> list[Any]:
    seen = examine(path)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W156"]


def _drawn(table: Table, squares: Table, rng: np.random.Generator) -> None:
    table[RUN] = rng.normal(size=table[RUN].shape) * 0.05


def _uniform(table: Table, squares: Table, rng: np.random.Generator) -> None:
    table[RUN] = rng.uniform(-0.05, 0.05, table[RUN].shape)


def _at_the_beginning(table: Table, squares: Table, rng: np.random.Generator) -> None:
    table[:120] = rng.normal(size=(120, WIDTH)) * 0.05


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize(("change", "at", "rows"), [(_drawn, 200, 100), (_uniform, 200, 100),
                                                    (_at_the_beginning, 0, 120)])
def test_the_rows_are_named(change: Change, at: int, rows: int, seed: int, tmp_path: Path) -> None:
    (found,) = _found(_save(tmp_path, change, seed))
    assert found.severity is Severity.HIGH
    assert (found.measured["at"], found.measured["rows"], found.measured["of"]) == (at, rows, ROWS)
    assert f"rows {at}..{at + rows - 1} of emb_items.weight" in found.statement


def _scattered(table: Table, squares: Table, rng: np.random.Generator) -> None:
    some = rng.choice(ROWS, 100, replace=False)
    table[some] = rng.normal(size=(100, WIDTH)) * 0.05


def _without_gradient(table: Table, squares: Table, rng: np.random.Generator) -> None:
    _drawn(table, squares, rng)
    squares[RUN] = 0.0


def _seldom(table: Table, squares: Table, rng: np.random.Generator) -> None:
    """Rows of a script that hardly occurs."""
    _drawn(table, squares, rng)
    squares[RUN] *= 0.02


def _appended(table: Table, squares: Table, rng: np.random.Generator) -> None:
    table[500:] = rng.normal(size=(100, WIDTH)) * 0.05


def _all_drawn(table: Table, squares: Table, rng: np.random.Generator) -> None:
    """A table with larger draws in one part, trained for a step or two."""
    table[:] = rng.normal(size=table.shape)
    table[RUN] *= 0.05


def _smaller(table: Table, squares: Table, rng: np.random.Generator) -> None:
    """A group of items with smaller norms, trained as the others."""
    table[RUN] *= 0.2


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("change", [None, _scattered, _without_gradient, _seldom, _appended, _all_drawn, _smaller])
def test_what_looks_like_it_is_quiet(change: Change | None, seed: int, tmp_path: Path) -> None:
    assert _found(_save(tmp_path, change, seed)) == []


def _no_numbers(table: Table, squares: Table, rng: np.random.Generator) -> None:
    _drawn(table, squares, rng)
    squares[7] = np.nan


def _weights_are_none(table: Table, squares: Table, rng: np.random.Generator) -> None:
    _drawn(table, squares, rng)
    table[450, 3] = np.inf


@pytest.mark.parametrize("change", [_no_numbers, _weights_are_none])
def test_values_that_are_not_finite_are_read(change: Change, tmp_path: Path) -> None:
    assert _found(_save(tmp_path, change)) == []

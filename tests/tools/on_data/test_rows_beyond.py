"""D104 says which rows of a file have the other scale, and whether they are sums; D109 is a remark beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

Array = np.ndarray[Any, Any]


def written(folder: Path, change: Callable[[Array], Array], odd: int = 3) -> list[Finding]:
    """Six houses: heat by temperature, and whether somebody is at home, of which the heat tells."""
    rng = np.random.default_rng(0)
    for k in range(6):
        home, cold = rng.integers(0, 2, 400), rng.uniform(0, 15, 400)
        heat = 0.2 * cold + 2.0 * home + rng.normal(0, 0.2, 400) + 1.0
        heat = change(heat) if k == odd else heat
        lines = [f"{c:.3f},{h:.4f},{w}" for c, h, w in zip(cold, heat, home, strict=True)]
        (folder / f"house_{k}.csv").write_text("\n".join(["cold,heat,at_home", *lines]) + "\n")
    return [f for f in examine([folder]).findings if f.severity is not Severity.INFO]


def test_a_stretch(tmp_path: Path) -> None:
    def scaled(x: Array) -> Array:
        return np.where((np.arange(400) >= 120) & (np.arange(400) < 300), 1.8 * x + 32, x)

    told = next(f for f in written(tmp_path, scaled) if f.rule == "D104")
    assert told.measured["rows"] == (120, 299)
    assert "rows 120..299 alone" in told.statement


def test_running_sums(tmp_path: Path) -> None:
    (told,) = written(tmp_path, np.cumsum)
    assert told.rule == "D104"
    assert "running sums" in told.statement
    assert told.measured["rows"] == ()


@pytest.mark.parametrize("change", [lambda x: 100 * x, lambda x: np.sort(100 * x)])
def test_the_whole_file(change: Callable[[Array], Array], tmp_path: Path) -> None:
    told = next(f for f in written(tmp_path, change) if f.rule == "D104")
    assert "alone" not in told.statement
    assert "sums" not in told.statement


def test_houses_that_are_alike(tmp_path: Path) -> None:
    assert written(tmp_path, lambda x: x) == []

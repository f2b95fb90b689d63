"""Gradient norms of modules: a hundredfold difference, its healthy twin, dead modules and broken values."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves.l110_gradient_imbalance import check


def found(tmp_path: Path, encoder: float, head: float) -> list[Finding]:
    lines = [f"step {i} loss {2 - 0.02 * i:.3f} grad_norm/encoder {encoder * (1 + 0.1 * (i % 3)):.6g} "
             f"grad_norm/head {head * (1 + 0.1 * (i % 2)):.6g}" for i in range(1, 21)]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return list(check(read_run([tmp_path / "log.txt"])))


def test_a_hundredfold_difference_is_named_with_both_modules(tmp_path: Path) -> None:
    (one,) = found(tmp_path, 0.004, 3.6)
    assert (one.measured["large"], one.measured["small"]) == ("head", "encoder")
    assert one.severity is Severity.LOW
    assert 700 < float(str(one.measured["ratio"])) < 1100


@pytest.mark.parametrize(("encoder", "head"), [(0.2, 3.6), (0.0, 3.6), (1e-10, 3.6), (math.nan, 3.6), (math.inf, 0.1)])
def test_ordinary_dead_and_broken_modules_are_left_to_others(tmp_path: Path, encoder: float, head: float) -> None:
    assert found(tmp_path, encoder, head) == []

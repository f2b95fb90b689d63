"""Steps that count down: what is left of the run, or a table with its newest record first; nobody can tell which."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run


def rises(path: Path, rows: list[tuple[int, float]]) -> list[Finding]:
    path.write_text("step,loss\n" + "".join(f"{step},{loss:.4f}\n" for step, loss in rows))
    return [f for f in judge_run(read_run([path]), []) if f.rule == "L106"]


def loss(i: int) -> float:
    return 0.2 + 0.02 * i + 0.004 * (i * 7919 % 11 - 5)


def test_a_rise_along_steps_that_count_down_is_told_with_its_doubt(tmp_path: Path) -> None:
    (finding,) = rises(tmp_path / "down.csv", [(200 - i, loss(i)) for i in range(200)])
    assert finding.severity is Severity.LOW
    assert "the steps count down: if the file lists the newest record first, the loss falls" in finding.statement


@pytest.mark.parametrize("first", [1, 5000])
def test_a_rise_along_steps_that_count_up_is_told_without(tmp_path: Path, first: int) -> None:
    (finding,) = rises(tmp_path / "up.csv", [(first + i, loss(i)) for i in range(200)])
    assert finding.severity is Severity.HIGH
    assert "count down" not in finding.statement


def test_a_fall_along_steps_that_count_down_is_a_fall(tmp_path: Path) -> None:
    assert not rises(tmp_path / "down.csv", [(200 - i, loss(199 - i)) for i in range(200)])

"""Errors that are written with a unit of time are no times: they stay as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

import traindx_tools


@pytest.mark.parametrize(("line", "name", "value"), [
    ("epoch {i} loss 2.5 val rmse 3.25 min", "rmse", 3.25),
    ("epoch {i} loss 2.5 mae: 12.5 ms", "mae", 12.5),
    ("epoch {i} loss 2.5 step_time 12.5 ms", "step_time", 0.0125),
    ("epoch {i} loss 2.5 forward took 1.5 min", "time/forward_took", 90.0),
])
def test_errors_stay_and_times_are_seconds(line: str, name: str, value: float, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("\n".join(line.format(i=i) for i in range(6)))
    rows = [row for row in traindx_tools.extract_training_metrics(path).rows() if row.metric == name]
    assert [row.value for row in rows] == [pytest.approx(value)] * 6

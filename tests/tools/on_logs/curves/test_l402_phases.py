"""A step that the log breaks down into phases: the wait for data against their sum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves.l402_data_bound import check

NAMES = (("ms_fetch", "ms_fwd", "ms_bwd"), ("t_data_ms", "t_forward_ms", "t_backward_ms"),
         ("load_time_ms", "forward_time_ms", "opt_time_ms"))


def shares(tmp_path: Path, names: tuple[str, str, str], fetch: float, work: float) -> list[float]:
    rows = [{"step": 4 * i, "loss": 2.0 - 0.1 * i, names[0]: fetch + i, names[1]: work, names[2]: work}
            for i in range(1, 10)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return [float(str(f.measured["share"])) for f in check(read_run([tmp_path / "log.jsonl"]))]


@pytest.mark.parametrize("names", NAMES)
def test_a_fetch_that_takes_the_step_is_seen(tmp_path: Path, names: tuple[str, str, str]) -> None:
    (share,) = shares(tmp_path, names, 230.0, 0.8)
    assert share > 0.98


@pytest.mark.parametrize("names", NAMES)
def test_a_fetch_that_is_hidden_is_left_alone(tmp_path: Path, names: tuple[str, str, str]) -> None:
    assert shares(tmp_path, names, 5.0, 120.0) == []


def test_broken_phases_do_no_harm(tmp_path: Path) -> None:
    assert shares(tmp_path, NAMES[0], float("nan"), 1.0) == []
    assert shares(tmp_path, NAMES[0], -50.0, 1.0) == []

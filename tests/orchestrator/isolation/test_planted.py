"""Planted differences are found to the smallest by real runs in protected copies, and nothing of the user's changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from planted import PLANTED, Planted

from traindx.isolation import Request
from traindx.isolation.place import place_for, to_its_end
from traindx_tools.experiments.place import Prepared

SLACK = 24
"""Runs beyond the fewest: four controls, two repeats, a run alone and one without, for two levels and three causes."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", PLANTED, ids=lambda c: c.name)
def test_found_exactly(case: Planted, tmp_path: Path) -> None:
    if case.needs and importlib.util.find_spec(case.needs) is None:
        pytest.skip(f"needs {case.needs}")
    found = case.search(tmp_path, Request("", tmp_path, runs=300))
    assert sorted(found.named) == sorted(case.expected)
    if found.fewest and "85 %" not in case.name:
        assert found.runs <= 2 * found.fewest + SLACK


def test_there_are_at_least_twelve() -> None:
    assert len({c.name for c in PLANTED}) >= 12


def test_a_run_happens_in_a_copy_with_what_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("#!/bin/sh\necho loss $(cat value.txt) $PRECISION; echo 9 > value.txt\n")
    (tmp_path / "train.sh").chmod(0o755)
    (tmp_path / "value.txt").write_text("1\n")
    prepared = Prepared("./train.sh", {"PRECISION": "low"}, {"value.txt": b"2\n", "train.sh": (
        tmp_path / "train.sh").read_bytes() + b"exit 3\n"})
    with place_for(tmp_path) as place:
        trace = place.run(prepared, to_its_end, seconds=60)
        assert (trace.folder / "output.log").read_text() == "loss 2 low\n"
        assert (trace.exit_code, trace.ended, trace.stopped) == (3, True, "")
        scratch = place.scratch
    assert not scratch.exists()
    assert (tmp_path / "value.txt").read_text() == "1\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.sh", "value.txt"]


def test_a_run_over_its_time_is_ended(tmp_path: Path) -> None:
    with place_for(tmp_path) as place:
        trace = place.run(Prepared("exec sleep 60"), to_its_end, seconds=0.5)
    assert (trace.stopped, trace.ended, trace.exit_code) == ("time", False, None)

"""A cause that was found in the code stands before guesses, however little it is believed beside a log."""

from __future__ import annotations

import shutil
from pathlib import Path

from traindx_tools.examine import examine
from traindx_tools.triage import WEAK

CASE = Path(__file__).parents[1] / "evals" / "cases" / "bird-calls" / "input"


def test_it_comes_first_beside_a_log_that_is_unusual_for_it(tmp_path: Path) -> None:
    """What only accounts for more of the log stood before it, and hid it."""
    shutil.copytree(CASE, tmp_path / "run")
    first, second, *_ = examine([tmp_path / "run"]).verdict.hypotheses
    assert first.mode.id == "opt.wrong-parameters"
    assert first.confidence < WEAK
    assert second.explained >= first.explained


def test_without_the_code_nothing_of_it_is_said(tmp_path: Path) -> None:
    shutil.copy(CASE / "log.txt", tmp_path)
    assert "opt.wrong-parameters" not in [h.mode.id for h in examine([tmp_path]).verdict.hypotheses[:1]]

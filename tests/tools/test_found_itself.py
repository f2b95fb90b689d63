"""A cause that was found in the code stands before guesses, however little it is believed beside a log."""

from __future__ import annotations

import shutil
from pathlib import Path

from traindx_tools.examine import examine
from traindx_tools.ordering import WEAK

CASE = Path(__file__).parents[1] / "evals" / "cases" / "bird-calls" / "input"


def test_it_comes_first_beside_a_log_that_is_unusual_for_it(tmp_path: Path) -> None:
    """What only accounts for more of the log stood before it, and hid it."""
    shutil.copytree(CASE, tmp_path / "run")
    train = tmp_path / "run" / "train.py"
    train.write_text(f"import laboratory\n{train.read_text()}")  # there may be more to it: nothing is excluded
    first, second, *_ = examine([tmp_path / "run"]).verdict.hypotheses
    assert first.mode.id == "opt.wrong-parameters"
    assert first.confidence < WEAK
    assert second.confidence <= first.confidence


def test_what_rests_on_the_same_finding_as_a_hint_stands_behind_it(tmp_path: Path) -> None:
    shutil.copytree(CASE, tmp_path / "run")
    train = tmp_path / "run" / "train.py"
    train.write_text(f"import laboratory\n{train.read_text()}")
    found = examine([tmp_path / "run"]).verdict.hypotheses
    same = [h for h in found if any(w.finding.rule == "C108" for w in h.speaks_for)]
    assert same[0].mode.id == "opt.wrong-parameters"
    assert len(same) > 1
    assert all(h.confidence <= same[0].confidence for h in same)


def test_without_the_code_nothing_of_it_is_said(tmp_path: Path) -> None:
    shutil.copy(CASE / "log.txt", tmp_path)
    assert "opt.wrong-parameters" not in [h.mode.id for h in examine([tmp_path]).verdict.hypotheses[:1]]

"""Which diffs were tried in a workspace: known by content, over sessions, and said before one is offered again."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.hindrances import Change
from traindx.model import Verification
from traindx.tried_diffs import TriedDiff, TriedDiffs, fingerprint

BEFORE = "a = 1\nrate = 10\nb = 2\n"
AFTER = BEFORE.replace("rate = 10", "rate = 1")


def tried(mark: str = "x", key: str = "s1/1", **more: object) -> TriedDiff:
    return TriedDiff.model_validate({"key": key, "fingerprint": mark, "session": "s1", "summary": "Lower it",
                                     "result": "failed", "reasons": ("exit code 1",), **more})


def test_the_same_change_is_the_same_diff_after_the_file_moved_on() -> None:
    here = fingerprint([Change("train.py", BEFORE, AFTER)])
    moved = fingerprint([Change("train.py", "# new\n\n" + BEFORE, "# new\n\n" + AFTER)])
    assert here == moved
    assert here == fingerprint([Change("train.py", BEFORE, AFTER.replace("rate = 1", "rate = 1  "))])


@pytest.mark.parametrize("other", [
    Change("other.py", BEFORE, AFTER), Change("train.py", BEFORE, BEFORE.replace("rate = 10", "rate = 2")),
    Change("train.py", BEFORE, BEFORE.replace("rate = 10\n", "")), Change("train.py", AFTER, BEFORE)])
def test_another_change_is_another_diff(other: Change) -> None:
    assert fingerprint([other]) != fingerprint([Change("train.py", BEFORE, AFTER)])


def test_a_trial_is_noted_once_and_the_last_one_is_told(tmp_path: Path) -> None:
    ledger = TriedDiffs(tmp_path)
    assert ledger.last("x") is None
    for entry in (tried(), tried(), tried(key="s2/1", session="s2", result="no_effect"), tried("y", key="s3/1")):
        ledger.add(entry)
    assert [e.key for e in ledger.entries()] == ["s1/1", "s2/1", "s3/1"]
    last = ledger.last("x")
    assert last is not None
    assert last.said == f"this diff was tried on {last.at:%Y-%m-%d} in session s2: no effect (exit code 1)"


def test_a_damaged_line_hides_no_other(tmp_path: Path) -> None:
    ledger = TriedDiffs(tmp_path)
    ledger.add(tried())
    with ledger.path.open("ab") as file:
        file.write(b"{]\n" + b'{"kind": "tried-diff"')
    ledger.add(tried(key="s2/1"))
    assert [e.key for e in ledger.entries()] == ["s1/1", "s2/1"]


def test_what_a_failure_teaches_is_no_more_than_what_was_measured() -> None:
    def lesson(**more: object) -> str:
        return Verification.model_validate({"passed": False, "reasons": ("r",), "result": "failed", **more}).lesson

    assert lesson() == "the verification failed; whether the symptom stayed was not measured"
    assert lesson(result="no_effect").startswith("the symptom was measured and stayed")
    assert "says nothing of the cause" in lesson(own_error="ValueError: twice")

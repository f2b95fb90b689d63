"""The author of a fix writes within the approval, and the reviewer's objections count where they name a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_lead import ASKED, SHUFFLED, TRAIN, Answer, proves, run

from traindx.investigators.claude_code.fixing import ClaudeFixer
from traindx.model import Decision, Diagnosis
from traindx.session import resume_session_sync
from traindx.settings import Settings


def approve_b(diagnosis: Diagnosis) -> Decision:
    return Decision(verdict="approve", diagnosis_digest=diagnosis.digest(), option="B")


@pytest.fixture
def waiting(work: Path, replies: dict[str, Answer]) -> Any:
    """A session at the gate whose option A is told in words."""
    option = {"option": "A", "summary": "Return the labels", "edits": [], "change": "return the labels as they are",
              "metric": "accuracy rises", "verify": "python train.py", "otherwise": "look at the loader"}
    replies["lead"] = proves(options=[option])
    result = run(work)
    assert [i.text for i in result.diagnosis.options[0].instructions] == ["return the labels as they are"]
    return result


def author(line: int, **changes: Any) -> dict[str, Any]:
    edit = {"path": "train.py", "line": line, "end_line": line, "original": SHUFFLED,
            "replacement": "    return labels"}
    return {"diagnosis_holds": True, "options": [{
        "option": "A", "summary": "Return the labels in their own order", "edits": [edit], "instructions": [],
        "metric": "accuracy above 0.2 within 500 steps", "verify": "python train.py", "otherwise": "look at the loader",
        "fragile": "", **changes}]}


def fixed(work: Path, waiting: Any) -> Any:
    from traindx.session import decide

    decide(waiting.folder, Decision.approve(waiting.diagnosis))
    return resume_session_sync(waiting.folder, report=False, fixer=ClaudeFixer(work, Settings(backend="claude")))


def test_the_author_writes_within_the_approval_and_the_session_applies_it(work: Path, waiting: Any,
                                                                          replies: dict[str, Answer]):
    replies["fix-author"] = author(TRAIN.split("\n").index(SHUFFLED) + 1)
    replies["fix-reviewer"] = {"verdict": "accept"}
    result = fixed(work, waiting)
    assert result.status == "awaiting_verification", result.reason
    assert (work / "train.py").read_text() == TRAIN.replace(SHUFFLED, "    return labels")


def edit(**changes: Any) -> dict[str, Any]:
    return {"path": "train.py", "line": 9, "end_line": 9, "original": SHUFFLED, "replacement": "    return labels",
            **changes}


@pytest.mark.parametrize(("options", "why"), [
    ([], "gave no edit"),
    (author(9, option="B")["options"], "gave no edit"),
    (author(9, edits=[edit(line=13, end_line=13, original="    pass")])["options"], "outside the approval"),
    (author(9, edits=[edit(path="other.py")])["options"], "outside the approval"),
    (author(9, edits=[edit(path="../outside.py")])["options"], "outside the approval"),
    (author(9, edits=[edit(path="/etc/passwd")])["options"], "outside the approval"),
    (author(9, edits=[edit(), edit(line=1, end_line=1, original="import torch")])["options"], "outside the approval"),
    (author(9, edits=[edit(line=9, end_line=5)])["options"], "contradicts itself"),
])
def test_a_patch_outside_of_the_approval_is_refused(work: Path, waiting: Any, replies: dict[str, Answer],
                                                    options: list[Any], why: str):
    replies["fix-author"] = {"options": options}
    replies["fix-reviewer"] = {"verdict": "accept"}
    result = fixed(work, waiting)
    assert result.status == "interrupted"
    assert why in result.reason
    assert "traindx resume" in result.reason
    assert (work / "train.py").read_text() == TRAIN


def test_an_objection_that_stands_sends_the_patch_back_once(work: Path, waiting: Any, replies: dict[str, Answer]):
    objection = {"kind": "incomplete", "blocks": True, "strength": "direct", "claim": "this one stays",
                 "place": "train.py:8", "quote": 'labels = batch["label"]', "required_change": "change it too"}
    reviews = iter([{"verdict": "revise", "objections": [objection]}, {"verdict": "accept"}])
    replies["fix-author"] = author(9)
    replies["fix-reviewer"] = lambda question, asker: next(reviews)
    result = fixed(work, waiting)
    assert result.status == "awaiting_verification", result.reason
    again = [q for q in ASKED if q.who == "fix-author"][-1]
    assert "this one stays" in again.prompt


def test_an_objection_without_a_line_is_an_opinion_and_a_rejection_stops(work: Path, waiting: Any,
                                                                         replies: dict[str, Answer]):
    opinion = {"kind": "shotgun", "blocks": True, "strength": "direct", "claim": "ugly", "place": "train.py:8",
               "quote": "no such text"}
    replies["fix-author"] = author(9)
    replies["fix-reviewer"] = {"verdict": "reject", "chain": "the chain runs through", "objections": [opinion]}
    result = fixed(work, waiting)
    assert result.status == "interrupted"
    assert "the chain runs through" in result.reason
    assert (work / "train.py").read_text() == TRAIN

"""What a person's words approve as the plugin's hooks see it: lines that were shown, answers to the gate's question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gate_words import DIAGNOSIS


def test_approval_opens_the_lines_that_were_shown_and_nothing_else(talk, work: Path) -> None:
    talk.opens()
    assert talk.shows() == ""
    assert "option A of diagnosis" in talk.prompt("approve A")
    assert "outside the approved change" in talk.edit(old="1.0 - p + EPS", new="1.0 - p + 1e-6")
    assert "outside the approved change" in talk.edit("other.py", "", "x = 1\n")
    assert talk.edit() == ""
    assert "EPS = 1e-6" in (work / "train.py").read_text()


def test_several_edits_are_judged_together_by_the_lines_that_were_shown(talk, work: Path) -> None:
    talk.opens()
    talk.shows(DIAGNOSIS.replace(" with a finite logarithm. Verify: `python -m pytest tests`.\nchange", """:
```python
def loss(p):
    \"""The log loss, finite for p = 1.\"""
    p = float(p)
    return -math.log1p(-p)
```
Verify: `python -m pytest tests`.
change""").replace("(new)", "(new)\n```python\ndef test_loss():\n    assert True\n```"))
    talk.prompt("approve B")
    assert talk.edit(old="def loss(p):\n", new='def loss(p):\n    """The log loss, finite for p = 1."""\n') == ""
    assert talk.edit(old="-math.log(1.0 - p + EPS)", new="-math.log1p(-p)") == ""
    assert talk.edit(old="    return", new="    p = float(p)\n    return") == ""
    assert "the text that was shown" in talk.edit(old="    return", new="    import os\n    return")
    assert "outside the approved change" in talk.edit()
    assert "the text that was shown" in talk.edit("tests/test_loss.py", "", "import os\n")
    assert talk.edit("tests/test_loss.py", "", "def test_loss():\n    assert True\n") == ""


def test_where_a_change_was_described_in_words_each_edit_is_put_to_the_person(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    assert "train.py:6-7 (no new text was shown: each edit is put to the person)" in talk.prompt("approve B")
    many = "".join(f"    os.remove('{n}')\n" for n in range(54))
    said = talk.edit(old="    return", new=f"{many}    return")
    assert "was approved in words" in said
    assert "+    os.remove('53')" in said, "all of it is shown"
    assert "os.remove" not in (work / "train.py").read_text()
    assert talk.edit(old="-math.log(1.0 - p + EPS)", new="-math.log1p(-p)", agreed=True) == ""
    asked = talk.edit(old="def loss(p):\n", new='def loss(p):\n    """Log loss."""\n')
    assert "Log loss" in asked
    assert "log1p" not in asked, "what the person has agreed to is not asked again"
    assert "outside the approved change" in talk.edit(agreed=True), "another place is no question"
    assert "in words" in talk.edit("tests/test_loss.py", "", "def test_loss():\n    pass\n")


@pytest.mark.parametrize("mode", ["bypassPermissions", "dontAsk"])
def test_where_the_host_asks_nobody_an_edit_in_words_is_refused(talk, work: Path, mode: str) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve B")
    given = {"file_path": str(work / "train.py"), "old_string": "-math.log(1.0 - p + EPS)", "new_string": "0.0"}
    said = talk.event("PreToolUse", tool_name="Edit", tool_input=given, permission_mode=mode)
    assert said["permissionDecision"] == "deny"
    assert "show that text as a diff" in said["permissionDecisionReason"]
    assert talk.event("PreToolUse", tool_name="Edit", tool_input=given)["permissionDecision"] == "ask"


def test_several_changes_in_one_call_are_asked_about_where_one_was_not_shown(talk, work: Path) -> None:
    talk.opens()
    talk.shows(DIAGNOSIS.replace("change: tests", "change: train.py:3: EPS = 1e-6\nchange: tests"))
    talk.prompt("approve B")
    shown, described = {"old_string": "1e-12", "new_string": "1e-6"}, {"old_string": "1.0 - p + EPS", "new_string": "p"}
    for edits, decision in (([shown], None), ([shown, described], "ask"),
                            ([shown, described, {"old_string": "import math", "new_string": "import os"}], "deny")):
        said = talk.event("PreToolUse", tool_name="MultiEdit", tool_input={"file_path": str(work / "train.py"),
                                                                           "edits": edits})
        assert said.get("permissionDecision") == decision, edits


def test_a_task_given_before_the_diagnosis_approves_nothing(talk) -> None:
    talk.opens()
    assert "no complete diagnosis was shown" in talk.prompt("approve A")
    assert talk.edit() != ""


def test_an_incomplete_diagnosis_cannot_be_approved_and_the_person_hears_why(talk) -> None:
    talk.opens()
    assert "What This Fix Will NOT Fix" in talk.shows("## Root Cause\ntrain.py:3\n## Proposed Fix\nA: train.py:3\n")
    assert "not approved" in talk.prompt("approve A")


def test_an_incomplete_diagnosis_is_asked_for_again_once(talk) -> None:
    talk.opens()
    half = "## Root Cause\ntrain.py:3\n## Proposed Fix\nA: train.py:3\n"
    said = talk.event("Stop", last_assistant_message=half, stop_hook_active=False)
    assert said["decision"] == "block"
    assert "section 'Symptom' is missing" in said["reason"]
    assert "decision" not in talk.event("Stop", last_assistant_message=half, stop_hook_active=True)
    assert "decision" not in talk.event("Stop", last_assistant_message="I am still looking.", stop_hook_active=False)


def test_with_two_options_the_person_says_which(talk) -> None:
    talk.opens()
    talk.shows()
    assert "say which option" in talk.prompt("approved")
    assert talk.edit() != ""


def test_a_mood_is_no_approval_and_the_agent_is_told_what_to_ask(talk) -> None:
    talk.opens()
    talk.shows()
    assert "approves nothing" in talk.prompt("looks good, go ahead")
    assert talk.edit() != ""


def test_a_diagnosis_of_another_conversation_is_not_what_this_person_saw(talk) -> None:
    talk.opens()
    talk.shows()
    talk.store.write(talk.state._replace(shown=talk.state.shown._replace(conversation="c2")))
    assert "no complete diagnosis was shown in this conversation" in talk.prompt("approve A")


def test_the_question_tool_approves_with_the_persons_answer(talk) -> None:
    talk.opens()
    talk.shows()
    assert "option A of diagnosis" in talk.asks("approve A", "not yet", answer="approve A")
    assert talk.edit() == ""


def test_the_question_that_the_person_sees_is_the_gates_own(talk) -> None:
    talk.opens()
    talk.shows()
    given = {"questions": [{"question": "Shall I go on?", "options": [{"label": "Approve", "description": "nice"}]}]}
    said = talk.event("PreToolUse", tool_name="AskUserQuestion", tool_input=given)
    (question,) = said["updatedInput"]["questions"]
    assert talk.state.shown.digest in question["question"]
    assert [o["label"] for o in question["options"]] == ["approve A", "approve B", "not yet"]
    assert "train.py:3 (to EPS = 1e-6)" in question["options"][0]["description"]


def test_an_answer_to_another_question_approves_nothing(talk) -> None:
    talk.opens()
    talk.shows()
    question = "May I spend ten more minutes?"
    given = {"questions": [{"question": question, "options": [{"label": "Yes"}, {"label": "No"}]}]}
    assert "updatedInput" not in talk.event("PreToolUse", tool_name="AskUserQuestion", tool_input=given)
    for answer in ("approve A", "Approve", "Yes"):
        said = talk.event("PostToolUse", tool_name="AskUserQuestion", tool_input=given,
                          tool_response={"answers": {question: answer}})
        assert said == {}
    assert talk.edit() != ""


@pytest.mark.parametrize("answer", ["not yet", "approve", "approve A, but not yet", "yes"])
def test_only_a_whole_approval_answers_the_gates_question(talk, answer: str) -> None:
    talk.opens()
    talk.shows()
    assert talk.asks("approve A", answer=answer) == ""
    assert talk.edit() != ""


def test_the_question_of_an_earlier_diagnosis_is_answered_in_vain(talk) -> None:
    talk.opens()
    talk.shows()
    given = {"questions": [{"question": "?", "options": [{"label": "approve A"}]}]}
    old = talk.event("PreToolUse", tool_name="AskUserQuestion", tool_input=given)["updatedInput"]["questions"][0]
    talk.shows(DIAGNOSIS.replace("1e-6", "1e-5"))
    said = talk.event("PostToolUse", tool_name="AskUserQuestion", tool_input=given,
                      tool_response={"answers": {old["question"]: "approve A"}})
    assert said == {}


def test_without_a_diagnosis_no_approval_is_asked_for(talk) -> None:
    talk.opens()
    given = {"questions": [{"question": "Which?", "options": [{"label": "approve A"}]}]}
    assert "no complete diagnosis" in talk.call("AskUserQuestion", **given)


def test_the_diagnosis_before_a_question_is_read_from_the_conversation(talk, tmp_path: Path) -> None:
    from traindx.gate_hook.presented import looks_like_one

    talk.opens()
    text = "\n".join(f"## {h}\n{t}" for h, t in (
        ("Symptom", "The loss is NaN."), ("Root Cause", "train.py:7 takes the log of 0"),
        ("Why This Happens", "EPS vanishes in float32"), ("Proposed Fix", "A: train.py:3: EPS = 1e-6"),
        ("What This Fix Will Change", "values near 1"), ("What This Fix Will NOT Fix", "a high learning rate")))
    assert looks_like_one(text)
    record = tmp_path / "record.jsonl"
    entries = [{"type": "user", "message": {"content": "why NaN?"}},
               {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
               {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "AskUserQuestion"}]}}]
    record.write_text("\n".join(map(json.dumps, entries)) + "\n{torn")
    given = {"questions": [{"question": "ok?", "options": [{"label": "approve A"}]}]}
    asked = talk.event("PreToolUse", tool_name="AskUserQuestion", tool_input=given, transcript_path=str(record))
    question = asked["updatedInput"]["questions"][0]["question"]
    said = talk.event("PostToolUse", tool_name="AskUserQuestion", transcript_path=str(record),
                      tool_response={"answers": {question: "approve A"}})
    assert "option A of diagnosis" in said["additionalContext"]


def test_a_question_that_answers_itself_is_refused(talk) -> None:
    talk.opens()
    assert "asks nobody" in talk.call("AskUserQuestion", questions=[], answers={"Which?": "approve A"})
    assert talk.call("AskUserQuestion", questions=[]) == ""


def test_an_answer_in_a_subagent_approves_nothing(talk) -> None:
    talk.opens()
    talk.shows()
    talk.event("PostToolUse", tool_name="AskUserQuestion", agent_id="a1",
               tool_response={"answers": {"Which fix?": "approve A"}})
    assert talk.edit() != ""


def test_the_approval_binds_the_text_that_was_shown(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    many = "\n".join(f"os.remove('{n}')" for n in range(54))
    for new in (many, f"EPS = 1e-6\n{many}", "EPS = 1e-5", "", "EPS = 1e-6; import os", "EPS = 1e-60"):
        assert "the text that was shown and approved is" in talk.edit(new=new), new
    assert talk.edit() == ""


def test_a_shown_text_may_stand_within_the_old_line(talk, work: Path) -> None:
    (work / "train.py").write_text((work / "train.py").read_text().replace("EPS = 1e-12", "EPS = 1e-12  # tiny"))
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    assert talk.edit(old="EPS = 1e-12", new="EPS = 1e-6") == ""


def test_a_path_that_is_only_mentioned_is_not_approved(talk, work: Path) -> None:
    (work / "check.py").write_text("a = 1\nb = 2\n")
    talk.opens()
    talk.shows(DIAGNOSIS.replace("The loss stays finite.", "check.py:1-2 stays as it is."))
    assert "check.py" not in talk.prompt("approve A")
    assert "outside the approved change" in talk.edit("check.py", "a = 1", "a = 2")

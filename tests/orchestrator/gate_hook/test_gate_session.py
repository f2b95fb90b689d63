"""A debug session as the plugin's hooks see it: opened, approved, verified, struck out, decided by the person."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from closed_gate import RUNNER
from gate_words import DIAGNOSIS

from traindx.gate_hook.store import Store
from traindx.model import Approach, Attempt
from traindx.strikes import Ledger


def test_without_a_session_nothing_is_said(talk, work: Path) -> None:
    assert talk.edit() == ""
    assert talk.prompt("approve A") == ""
    assert talk.event("SubagentStart", agent_id="a", agent_type="x") == {}
    assert talk.event("SessionStart", source="startup") == {}
    assert not talk.store.workspaces()


@pytest.mark.parametrize("skill", ["ml-debug", "traindx:ml-debug", "traindx:pytorch-debugging", "jax-debugging",
                                   "traindx:research-debug", "traindx:distributed-debugging"])
def test_calling_the_skill_opens_a_session(talk, skill: str) -> None:
    assert talk.call("Skill", skill=skill) == ""
    assert "nothing is written before an approved Gate 4" in talk.edit()
    assert "approve A" in talk.event("PostToolUse", tool_name="Skill", tool_input={"skill": skill})["additionalContext"]


def test_another_skill_opens_none(talk) -> None:
    talk.call("Skill", skill="frontend-debugging")
    assert talk.edit() == ""


def test_a_skill_from_elsewhere_is_asked_about_while_the_gate_is_closed(talk) -> None:
    """It may have been written below scratch/debug, and bring commands of its own."""
    assert talk.event("PreToolUse", tool_name="Skill", tool_input={"skill": "evil"}) == {}
    talk.opens()
    assert talk.event("PreToolUse", tool_name="Skill", tool_input={"skill": "evil"})["permissionDecision"] == "ask"
    assert talk.event("PreToolUse", tool_name="Skill", tool_input={"skill": "traindx:jax-debugging"}) == {}


def test_a_subagent_opens_none(talk) -> None:
    talk.event("PreToolUse", tool_name="Skill", tool_input={"skill": "ml-debug"}, agent_id="a1")
    assert talk.edit() == ""


def test_a_person_opens_and_closes_one_with_a_phrase(talk) -> None:
    assert "a debug session is open" in talk.prompt("open a debug session")
    assert talk.edit() != ""
    assert "closed" in talk.prompt("close the debug session")
    assert talk.edit() == ""


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


def test_a_failed_verification_takes_the_fix_back_and_counts_a_strike(talk, work: Path) -> None:
    before = (work / "train.py").read_text()
    talk.opens()
    talk.shows()
    talk.prompt("approve B")
    talk.edit(old="1.0 - p + EPS", new="max(1.0 - p, EPS)", agreed=True)
    talk.edit("tests/test_loss.py", "", "def test_loss():\n    pass\n", agreed=True)
    said = talk.verifies("python -m pytest tests")
    assert "Strike 1: more evidence" in said
    assert (work / "train.py").read_text() == before
    assert not (work / "tests" / "test_loss.py").exists()
    assert talk.edit() != "", "the approval ended with the strike"
    assert talk.state.phase == "gather"


def test_what_somebody_else_changed_meanwhile_is_not_taken_back(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    (work / "train.py").write_text("# the person was here\n")
    assert "Not restored, because somebody else changed it since: train.py" in talk.verifies()
    assert (work / "train.py").read_text() == "# the person was here\n"


@pytest.fixture
def fixed(talk):
    """A conversation with an approved edit that waits for its verification."""
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    assert talk.edit() == ""
    return talk


@pytest.mark.parametrize("code", [75, 126, 127, 130, 137])
def test_a_verification_that_never_ran_is_a_question(fixed, code: int) -> None:
    said = fixed.verifies(code=code)
    assert "verifies nothing" in said
    assert '"the fix failed" or "the fix works"' in said
    assert fixed.state.strikes == ()
    assert not fixed.state.approval.passed


@pytest.mark.parametrize("code", [1, 2, 4, 5, 139])
def test_any_other_end_is_a_strike(fixed, code: int) -> None:
    assert "taken back" in fixed.verifies(code=code)
    assert len(fixed.state.strikes) == 1


ALIKE = [
    "python ./train.py --steps 1300", "python3 train.py --steps 1300", "/usr/bin/python3.11 train.py --steps 1300",
    "sh -c 'python train.py --steps 1300'", "X=1 python train.py --steps 1300", "python train.py --steps 1300 2>&1",
    "cd scratch && python ../train.py; python train.py --steps 1300", "python train.py --steps 1300 | cat",
    "python train.py --steps 1300 || true", "time python train.py --steps 1300 > out"]
OTHERS = [
    "python train.py --steps 13000", "true", "python train.py --steps 1300 --lr 1", "python other.py --steps 1300",
    "python train.py", "grep -n steps train.py", "python train.py --steps 1300 7"]


@pytest.mark.parametrize("command", [*ALIKE, *OTHERS])
@pytest.mark.parametrize("code", [0, 1])
def test_another_command_verifies_nothing_and_is_no_strike(fixed, command: str, code: int) -> None:
    """One that is spelled otherwise and failed is a question: it is neither a strike nor passed over."""
    said = fixed.verifies(command, code=code)
    assert ("run exactly `python train.py --steps 1300`" in said) == (code == 1 and command in ALIKE), said
    assert ('"the fix failed" or "the fix works"' in said) == (said != "")
    assert fixed.state.strikes == ()
    assert not fixed.state.approval.passed


@pytest.mark.parametrize("code", [126, 127, 130])
def test_another_spelling_that_never_ran_says_nothing(fixed, code: int) -> None:
    assert fixed.verifies("python3 ./train.py --steps 1300", code=code) == ""


def test_another_spelling_of_pytest_is_one_as_well() -> None:
    from traindx.gate_hook.state import State
    from traindx.gate_hook.verification import resembled

    state = State("/w", "s", "now")
    assert resembled("pytest tests -x; echo $?", ("python -m pytest tests -x",), state, "/p") is not None
    assert resembled("python3 -m pytest tests -x", ("pytest tests -x",), state, "/p") is not None
    assert resembled("pytest tests", ("pytest tests -x",), state, "/p") is None


def test_the_agreed_command_counts_as_it_is_written_and_in_a_copy(fixed) -> None:
    line = fixed.runs("python  train.py   --steps 1300")
    said = fixed.event("PostToolUse", tool_name="Bash", tool_input={"command": line}, tool_response={})
    assert "exit code 0" in said["additionalContext"]


def test_the_agreed_command_starts_with_nothing_that_earlier_commands_left(fixed) -> None:
    assert " --fresh --shell " in fixed.runs("python train.py --steps 1300")
    assert " --fresh --copy --shell " in fixed.runs(f"python3 {RUNNER} --copy -- python train.py --steps 1300")
    assert "--fresh" not in fixed.runs("python train.py --steps 1300 || true")


def test_in_another_folder_the_same_words_are_another_command(fixed, work: Path) -> None:
    (work / "scratch" / "debug").mkdir(parents=True, exist_ok=True)
    for command, cwd in (("python train.py --steps 1300", work / "scratch" / "debug"),
                         ("cd scratch/debug && python train.py --steps 1300", work)):
        said = fixed.event("PostToolUse", tool_name="Bash", cwd=str(cwd), tool_input={"command": fixed.runs(command)},
                           tool_response={})
        assert said == {}, command
    said = fixed.event("PostToolUse", tool_name="Bash", cwd=str(work / "scratch" / "debug"), tool_response={},
                       tool_input={"command": fixed.runs(f"cd {work} && python train.py --steps 1300")})
    assert "exit code 0" in said["additionalContext"]


def test_a_verification_in_the_background_has_no_end_yet(fixed) -> None:
    line = fixed.runs("python train.py --steps 1300")
    said = fixed.event("PostToolUse", tool_name="Bash", tool_response={"backgroundTaskId": "b1"},
                       tool_input={"command": line, "run_in_background": True})
    assert "in the foreground" in said["additionalContext"]
    assert not fixed.state.approval.passed


def test_a_turn_that_ends_without_the_verification_is_sent_back_once_then_the_person_hears_it(fixed) -> None:
    said = fixed.event("Stop", last_assistant_message="done", stop_hook_active=False)
    assert said["decision"] == "block"
    assert "exactly `python train.py --steps 1300`" in said["reason"]
    said = fixed.event("Stop", last_assistant_message="done", stop_hook_active=True)
    assert "decision" not in said
    assert "was not verified" in said["systemMessage"]


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


def test_the_gate_ends_with_its_conversation_and_says_so(talk) -> None:
    talk.opens()
    talk.event("SessionEnd", session_id="another", reason="other")
    assert talk.edit() != "", "another conversation's end is none of this one's"
    talk.event("SessionEnd", reason="prompt_input_exit")
    assert talk.edit() == ""
    assert "ended with its conversation" in talk.event("SessionStart", source="startup")["systemMessage"]
    assert talk.event("SessionStart", source="startup") == {}, "said once"


def silent(talk, hours: float) -> None:
    (mark,) = (talk.store.folder / "open").iterdir()
    then = time.time() - hours * 3600
    os.utime(mark, (then, then))


def test_a_gate_that_nobody_has_spoken_to_for_a_day_ends_and_says_so(talk) -> None:
    talk.opens()
    silent(talk, 23)
    assert talk.edit() != ""
    silent(talk, 25)
    said = talk.event("UserPromptSubmit", prompt="good morning")
    assert "ended by itself" in said["systemMessage"]
    assert "25 h" in said["additionalContext"]
    assert talk.edit() == ""


def test_another_conversation_ends_a_gate_that_has_been_silent_for_an_hour(talk) -> None:
    talk.opens()
    talk.event("SessionStart", source="startup", session_id="c2")
    assert talk.edit() != "", "two windows at once: the gate holds for both"
    silent(talk, 2)
    talk.event("SessionStart", source="compact", session_id="c1")
    assert talk.edit() != ""
    silent(talk, 2)
    assert "ended by itself" in talk.event("SessionStart", source="startup", session_id="c2")["systemMessage"]


def test_a_failure_before_the_fix_is_no_strike(talk) -> None:
    """The failing test comes first."""
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    assert talk.verifies() == ""
    assert talk.state.strikes == ()


def test_three_failed_fixes_close_the_gate_until_the_person_decides(talk) -> None:
    talk.opens()
    for attempt in range(3):
        talk.shows(DIAGNOSIS.replace("EPS = 1e-6", f"EPS = 1e-{6 - attempt}"))
        assert "is approved" in talk.prompt("approve A")
        assert talk.edit(new=f"EPS = 1e-{6 - attempt}") == ""
        said = talk.verifies()
    assert "3 fixes of this approach failed" in said
    talk.shows()
    assert "No further variation" in talk.prompt("approve A")
    assert "3 fixes failed their verification" in talk.edit()
    assert talk.state.phase == "halted"
    assert "different approach" in talk.prompt("try a different approach")
    talk.shows()
    assert "No further variation" in talk.prompt("approve A"), "the struck lines stay refused"
    talk.prompt("try a different approach")
    talk.shows()
    assert "is approved" in talk.prompt("approve B"), "other lines are another approach"
    assert talk.edit(old="1.0 - p + EPS", new="max(1.0 - p, EPS)", agreed=True) == ""


def test_strikes_outlive_the_session_and_are_reopened_with_a_reason(talk) -> None:
    talk.opens()
    for _ in range(3):
        talk.shows()
        talk.prompt("approve A")
        talk.edit()
        talk.prompt("the fix failed")
    talk.prompt("close the debug session")
    talk.opens()
    talk.shows()
    assert "No further variation" in talk.prompt("approve A")
    assert "say what is different now" in talk.prompt("reopen the approach")
    talk.prompt("reopen the approach because the wrong file was verified")
    talk.shows()
    assert "is approved" in talk.prompt("approve A")


def test_a_strike_is_in_the_ledger_that_the_orchestrator_counts(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    talk.verifies()
    attempt = Attempt(number=1, diagnosis_digest="d", option="A", summary="again", places=(("train.py", 3, 3),),
                      approach=Approach(failure_mode="another name", component="train.py"))
    counted = Ledger(work).strikes(attempt.approach, attempt)
    assert [s.places for s in counted] == [(("train.py", 3, 3),)]
    assert "exit code 1" in counted[0].learned[0]


def test_the_next_fix_waits_for_the_verification_of_the_last(talk) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    talk.shows()
    assert "was not verified" in talk.prompt("approve B")
    assert "exit code 0" in talk.verifies(code=0)
    assert "is approved" in talk.prompt("approve B")


def test_switched_off_by_phrase_it_is_silent(talk) -> None:
    talk.opens()
    talk.prompt("traindx: off")
    assert talk.edit() == ""
    talk.prompt("traindx: on")
    assert talk.edit(new="EPS = 1e-5", old="EPS = 1e-6") != ""


def test_subagents_and_restarted_conversations_are_told_where_it_stands(talk) -> None:
    talk.opens()
    said = talk.event("SubagentStart", agent_id="a", agent_type="x")["additionalContext"]
    assert "skip the workflow" in said
    assert "phase gather" in said
    assert "protected.py" in talk.event("SessionStart", source="compact")["additionalContext"]


def test_other_projects_of_the_machine_are_left_alone(talk, work: Path, elsewhere: Callable[[Path], object],
                                                      tmp_path: Path) -> None:
    talk.opens()
    (tmp_path / "other").mkdir()
    other = elsewhere(tmp_path / "other")
    assert other.edit("x.py", "", "x = 1\n") == ""
    assert other.runs("sed -i s/a/b/ x.py") == "sed -i s/a/b/ x.py"
    assert "Gate 4" in other.call("Edit", file_path=str(work / "train.py"), old_string="a", new_string="b")
    for command in (f"sed -i s/a/b/ {work}/train.py", f"sed -i s/a/b/ ../{work.name}/train.py"):
        assert f"--workspace '{work}' --shell" in other.runs(command)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_damaged_state_refuses_and_closing_repairs_it(talk, damage: str) -> None:
    talk.opens()
    next((talk.store.folder / "workspaces").iterdir()).write_text(damage)
    talk.call("Edit", file_path="train.py")
    assert talk.code == 2
    talk.prompt("close the debug session")
    assert talk.code == 0
    talk.call("Edit", file_path="train.py")
    assert talk.code == 0


def test_a_state_that_is_gone_refuses(talk) -> None:
    talk.opens()
    next((talk.store.folder / "workspaces").iterdir()).unlink()
    assert "has no state" in talk.edit()


@pytest.mark.parametrize("broken", [OSError("disk"), RuntimeError("defect"), RecursionError()])
def test_a_gate_that_fails_refuses(talk, broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Store) -> list[str]:
        raise broken

    talk.opens()
    monkeypatch.setattr(Store, "workspaces", fails)
    talk.event("PreToolUse", tool_name="Edit", tool_input={})
    assert talk.code == 2
    talk.event("UserPromptSubmit", prompt="approve A")
    assert talk.code == 1, "a person's prompt is never swallowed"


def test_an_event_that_is_no_json_refuses(talk) -> None:
    from traindx.gate_hook import program

    assert program.main("PreToolUse", "/", "no json", talk.environment) == 2

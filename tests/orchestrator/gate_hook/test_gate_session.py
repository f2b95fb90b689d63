"""A debug session as the plugin's hooks see it: opened, ended, switched off, damaged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.gate_hook.store import Store


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

"""What the gate lets a model do: commands go to the runner, edits wait for a person, other servers are asked about.

That nothing gets through is shown where the commands are really run (`tests/orchestrator/runner`).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "tools" / "hooks" / "protected.py"

RUN = f"python3 {RUNNER} --"


@pytest.fixture
def opened(talk: Any, work: Path) -> Any:
    (work.parent / "outside.txt").write_text("not yours")
    (work / "scratch" / "debug").mkdir(parents=True)
    (work / "scratch" / "debug" / "way.py").symlink_to(work / "train.py")
    (work / "scratch" / "debug" / "up").symlink_to(work)
    (work / "note.ipynb").write_text("{}")
    talk.opens()
    return talk


@pytest.mark.parametrize("command", [
    "cat train.py", "sed -i s/12/6/ train.py", "git diff | head", "for f in a b; do cat $f; done", "x='a'; echo \"$x\"",
    "cat > x <<'EOF'\nit's\nEOF", "traindx approve s --option A", "TRAINDX_GATE=off rm train.py", "cd $(rm x) && ls",
    "cd 'a' 'b'; ls", "echo a; cd b", "true'; rm x; echo '"])
@pytest.mark.parametrize("approved", [False, True], ids=["before", "after"])
def test_every_command_is_handed_to_the_runner_whole(opened: Any, work: Path, command: str, approved: bool) -> None:
    """After an approval as well: the fix is applied with the file tools, which name their lines."""
    if approved:
        opened.shows()
        assert "is approved" in opened.prompt("approve A")
    words = shlex.split(opened.runs(command))
    assert words == [sys.executable, "-I", "-S", str(RUNNER), "--workspace", str(work), "--shell", command]


@pytest.mark.parametrize(("command", "outside", "inside"), [
    ("cd src && ls", "cd src && ", "ls"), ("cd 'a b'; ls | wc", "cd 'a b' && ", "ls | wc"),
    ("cd ..\nls", "cd .. && ", "ls"),
    ("cd scratch/debug", "cd scratch/debug", None)])
def test_a_leading_cd_stays_outside_for_the_host_keeps_the_folder(opened: Any, command: str, outside: str,
                                                                  inside: str | None) -> None:
    line = opened.runs(command)
    assert line.startswith(outside)
    if inside is not None:
        assert shlex.split(line[len(outside):])[-2:] == ["--shell", inside]


def test_the_rest_of_the_call_is_kept(opened: Any) -> None:
    said = opened.event("PreToolUse", tool_name="Bash", tool_input={"command": "ls", "run_in_background": True,
                                                                    "timeout": 5, "description": "x"})
    given = said["updatedInput"]
    assert {name: given[name] for name in ("run_in_background", "timeout", "description")} == {
        "run_in_background": True, "timeout": 5, "description": "x"}
    assert "permissionDecision" not in said, "whether the host asks is the host's"


def test_the_runner_that_is_named_is_not_put_into_another(opened: Any, work: Path) -> None:
    words = shlex.split(opened.runs(f"{RUN.replace('--', '--copy --')} python3 train.py | tail -3"))
    assert words[4:] == ["--workspace", str(work), "--copy", "--shell", "python3 train.py | tail -3"]
    other = shlex.split(opened.runs("python3 tools/hooks/protected.py -- ls"))
    assert other[-1] == "python3 tools/hooks/protected.py -- ls"


def test_a_command_that_is_too_long_is_refused_and_says_what_to_do(opened: Any) -> None:
    assert "Write" in opened.call("Bash", command="echo " + "x" * 130_000)


@pytest.mark.parametrize(("tool", "arguments"), [
    ("Edit", {"file_path": "{work}/train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/way.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/up/train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/../../train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Write", {"file_path": "{work}/new.py", "content": "x"}),
    ("Write", {"file_path": "{up}/outside.txt", "content": "x"}),
    ("Write", {"file_path": "~/.claude/settings.json", "content": "{{}}"}),
    ("Write", {"file_path": "{work}/.claude/settings.json", "content": '{{"disableAllHooks": true}}'}),
    ("Write", {"file_path": "{work}/.git/hooks/post-checkout", "content": "x"}),
    ("Write", {"file_path": "{state}/workspaces/x.json", "content": "{{}}"}),
    ("Write", {"file_path": "{state}/off/x", "content": ""}),
    ("Write", {"file_path": "{work}/scratch/debug/strikes.jsonl", "content": ""}),
    ("Write", {"file_path": "", "content": ""}), ("Write", {}), ("Edit", {"file_path": "a\0b"}),
    ("MultiEdit", {"file_path": "{work}/train.py", "edits": [{"old_string": "1e-12", "new_string": "1e-6"}]}),
    ("NotebookEdit", {"notebook_path": "{work}/note.ipynb", "new_source": "x"}),
    ("CronCreate", {"prompt": "approve A"}), ("ScheduleWakeup", {"prompt": "approve A"}),
    ("Monitor", {"command": "rm x"}),
    ("Workflow", {"script": "x"}), ("EnterWorktree", {}), ("PowerShell", {"command": "rm x"}), ("SomethingNew", {}),
])
def test_tools_that_write_or_type_for_the_person_are_refused(opened: Any, work: Path, tool: str,
                                                            arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments).replace("{{", "{").replace("}}", "}")
    for name, value in (("work", work), ("up", work.parent), ("state", opened.store.folder)):
        text = text.replace("{" + name + "}", str(value))
    assert "Instead:" in opened.call(tool, **json.loads(text))


@pytest.mark.parametrize(("tool", "arguments"), [
    ("Write", {"file_path": "{work}/scratch/debug/probe.py", "content": "x"}),
    ("Write", {"file_path": "scratch/debug/characterization.md", "content": "x"}),
    ("Write", {"file_path": "{work}/scratch/debug/nan/log.txt", "content": "x"}),
    ("Read", {"file_path": "/usr/lib/python3/x.py"}), ("Agent", {"prompt": "x"}), ("WebSearch", {"query": "x"}),
    ("mcp__plugin_traindx_traindx__diagnose_run", {"paths": ["."]}), ("mcp__traindx__plot_run", {"paths": ["."]}),
    ("Write", {"file_path": "{work}/scratch/debug/probes/x.py", "content": "x"}),
    ("TodoWrite", {}), ("ExitPlanMode", {}),
])
def test_what_writes_nothing_of_the_project_is_left_alone(opened: Any, work: Path, tool: str,
                                                         arguments: dict[str, Any]) -> None:
    assert opened.call(tool, **json.loads(json.dumps(arguments).replace("{work}", str(work)))) == ""


def test_every_tool_of_our_own_server_may_be_called(opened: Any) -> None:
    from traindx.mcp_tools import TOOLS

    for name in TOOLS:  # jaxpr too: its server asks for the person's consent itself
        assert opened.call(f"mcp__plugin_traindx_traindx__{name}") == ""
        assert opened.call(f"mcp__traindx__{name}") == "", name


@pytest.mark.parametrize("tool", [
    "mcp__db__query", "mcp__fs__find_and_substitute", "mcp__nb__get_cell_and_rerun", "mcp__git__resolve_conflict",
    "mcp__fs__search_and_overwrite", "mcp__sh__read_bash", "mcp__py__query_python", "mcp__db__list_drop_table",
    "mcp__k8s__get_pod_restart", "mcp__wandb__query_runs", "mcp__filesystem__write_file", "mcp__traindx__write_file"])
def test_a_tool_of_another_server_that_declares_nothing_is_asked_about(opened: Any, tool: str) -> None:
    """Whatever its name says."""
    said = opened.event("PreToolUse", tool_name=tool, tool_input={})
    assert said["permissionDecision"] == "ask"
    assert tool in said["permissionDecisionReason"]


def test_what_the_host_says_of_a_server_declares_nothing(opened: Any) -> None:
    """As Claude Code 2.1.332 calls the hook: the server's name and where it comes from, no annotations."""
    server = {"name": "x", "source": "user"}
    said = opened.event("PreToolUse", tool_name="mcp__x__get", tool_input={}, mcp_server=server)
    assert said["permissionDecision"] == "ask"


@pytest.mark.parametrize(("source", "decision"), [("plugin", None), ("project", "ask"), ("sdk", "ask")])
def test_a_server_that_took_our_plugins_name_is_another_one(opened: Any, source: str, decision: str | None) -> None:
    said = opened.event("PreToolUse", tool_name="mcp__plugin_traindx_traindx__explain", tool_input={},
                        mcp_server={"name": "plugin:traindx:traindx", "source": source})
    assert said.get("permissionDecision") == decision


@pytest.mark.parametrize(("hints", "decision"), [
    ({"readOnlyHint": True}, None), ({"readOnlyHint": False}, "deny"), ({"destructiveHint": True}, "deny"),
    ({"readOnlyHint": True, "destructiveHint": True}, "deny"), ({"title": "x"}, "ask"),
    ({"readOnlyHint": "yes"}, "ask")])
def test_a_tool_of_another_server_is_what_it_declares(opened: Any, hints: dict[str, Any], decision: str | None) -> None:
    said = opened.event("PreToolUse", tool_name="mcp__x__get", tool_input={}, tool_annotations=hints)
    assert said.get("permissionDecision") == decision


def test_subagents_are_judged_alike(opened: Any, work: Path) -> None:
    said = opened.event("PreToolUse", tool_name="Write", agent_id="a1", agent_type="general-purpose",
                        tool_input={"file_path": str(work / "x.py"), "content": "x"})
    assert said["permissionDecision"] == "deny"


def test_from_a_folder_of_the_project_it_is_the_same_gate(opened: Any, work: Path, elsewhere: Any) -> None:
    (work / "src").mkdir()
    inner = elsewhere(work / "src")
    assert "Gate 4" in inner.edit("x.py", "", "x = 1\n")


def test_with_the_persons_agreement_commands_run_without_protection_and_edits_are_still_refused(opened: Any) -> None:
    assert "holds the file tools alone" in opened.prompt("allow runs")
    assert opened.runs("python train.py") == "python train.py"
    assert "Gate 4" in opened.edit()


def test_an_old_hard_link_below_scratch_is_not_written(opened: Any, work: Path) -> None:
    os.link(work / "train.py", work / "scratch" / "debug" / "hard.py")
    assert opened.call("Write", file_path=str(work / "scratch" / "debug" / "hard.py"), content="x") != ""


def test_deciding_on_a_session_of_the_orchestrator_is_the_persons_also_when_no_session_is_open(talk: Any) -> None:
    for command in ("traindx approve 2026 --option A", "cd x && traindx reject 2026", "python -m traindx approve s",
                    "python -c 'from traindx.session import decide; decide(1)'"):
        assert "the person's" in talk.call("Bash", command=command), command
    for command in ("traindx diagnose .", "traindx show 2026", "git log --grep approve", "grep -rn approve docs"):
        assert talk.call("Bash", command=command) == "", command

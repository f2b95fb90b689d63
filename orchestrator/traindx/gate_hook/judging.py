"""May this call of a coding agent happen? The question is put before every tool call while a debug session is open."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traindx.gate_hook.state import State
from traindx.policy import Scope, Verdict, allowed
from traindx.strike_levels import STRIKES_OUT

HARMLESS = frozenset({
    "Read", "NotebookRead", "Grep", "Glob", "LS", "LSP", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList",
    "Agent", "Task", "Skill", "AskUserQuestion", "WebFetch", "WebSearch", "ToolSearch", "EnterPlanMode", "ExitPlanMode",
    "BashOutput", "TaskOutput", "TaskStop", "KillShell", "KillBash", "ListMcpResourcesTool", "ReadMcpResourceTool",
    "StructuredOutput", "ReportFindings", "ListAgents", "SendMessage", "CronList", "CronDelete", "ExitWorktree"})
"""Tools that change no file of the project and type nothing in the person's name. What is not known is refused."""

_OURS = re.compile(r"mcp__plugin_traindx_traindx__\w+|mcp__traindx__(?:diagnose_run|plot_run|replay_batch|jaxpr)")
"""The plugin's own server writes pictures below scratch/debug at most, and imports a file only where the person started
it with that consent; other servers pass by their tools' names."""

_READS = frozenset({"get", "list", "read", "search", "query", "fetch", "describe", "show", "view", "find", "lookup",
                    "count", "explain", "extract", "analyze", "compare", "audit", "resolve", "check", "status",
                    "inspect", "browse"})
_WRITES = frozenset({"write", "edit", "create", "update", "delete", "remove", "move", "rename", "set", "put", "post",
                     "apply", "patch", "replace", "insert", "append", "execute", "exec", "run", "commit", "push",
                     "save", "add", "upload", "eval", "kill", "start", "stop", "submit", "merge"})

_TO_THE_PERSON = ('The person decides: "approve A" or "approve B" after a complete diagnosis was shown, "close the '
                  'debug session" to end it.')


def judge(tool: str, arguments: Mapping[str, Any], state: State, cwd: str, plugin: str) -> Verdict:
    """Whether the call may happen. What cannot be judged is refused."""
    if tool in HARMLESS:
        return _question(arguments) if tool == "AskUserQuestion" else Verdict(True, "changes nothing")
    if tool.startswith("mcp__"):
        return _mcp(tool)
    if tool == "Bash":
        from traindx.gate_hook.commands import judge_command

        return judge_command(arguments, cwd, plugin, runs=state.runs)
    if tool in _WRITERS:
        return _written(tool, arguments, state, cwd)
    return Verdict(False, f"the tool {tool!r} is not known to be harmless", "use Read, Grep, Glob or Bash that reads")


def _question(arguments: Mapping[str, Any]) -> Verdict:
    if arguments.get("answers"):
        return Verdict(False, "a question that brings its own answers asks nobody", "ask without `answers`")
    return Verdict(True, "asks the person")


def _mcp(tool: str) -> Verdict:
    """Our own server reads only; of others, tools whose name says that they read and nothing else."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.split("__")[-1]).lower()))
    if _OURS.fullmatch(tool) or (words & _READS and not words & _WRITES):
        return Verdict(True, "reads by its name")
    return Verdict(False, f"the MCP tool {tool!r} is not known to only read", "use Read, Grep, Glob or the traindx "
                                                                              "tools")


def scope_of(state: State) -> Scope:
    """What the policy needs: the workspace, and the approved option while its approval stands."""
    approval = state.approval
    if state.phase != "fix" or approval is None:
        return Scope(Path(state.workspace))
    return Scope(Path(state.workspace), fix=approval.option,
                 baseline={path: (text or "").replace("\r\n", "\n") for path, text in approval.baseline.items()})


def _written(tool: str, arguments: Mapping[str, Any], state: State, cwd: str) -> Verdict:
    as_tool, given = _WRITERS[tool](arguments, cwd)
    verdict = allowed(as_tool, given, "fix" if state.phase == "fix" else "gather", scope_of(state))
    if verdict.allow:
        return verdict
    return Verdict(False, _why(verdict.reason, state), f"{verdict.next_step}. {_TO_THE_PERSON}")


def _why(reason: str, state: State) -> str:
    if state.phase != "halted":
        return reason
    tried = "; ".join(f"{s.cause}: {s.learned}" for s in state.strikes[-STRIKES_OUT:])
    return (f"{len(state.strikes)} fixes failed their verification ({tried}): no further variation is tried before the "
            'person decided ("try a different approach", or "reopen the approach because ...")')


def _plain(arguments: Mapping[str, Any], cwd: str) -> Mapping[str, Any]:
    path = arguments.get("file_path") or arguments.get("notebook_path") or arguments.get("path") or ""
    return {**arguments, "file_path": os.path.join(cwd, os.path.expanduser(str(path)))} if path else arguments


def _edit(arguments: Mapping[str, Any], cwd: str) -> tuple[str, Mapping[str, Any]]:
    return "Edit", _plain(arguments, cwd)


def _write(arguments: Mapping[str, Any], cwd: str) -> tuple[str, Mapping[str, Any]]:
    return "Write", _plain(arguments, cwd)


def _multi_edit(arguments: Mapping[str, Any], cwd: str) -> tuple[str, Mapping[str, Any]]:
    """Several edits of one file are judged by what they leave."""
    given = _plain(arguments, cwd)
    text = ""
    if os.path.isfile(str(given.get("file_path"))):
        with open(str(given["file_path"]), encoding="utf-8", newline="") as file:
            text = file.read()
    for edit in arguments.get("edits") or ():
        old, new = str(edit["old_string"]), str(edit["new_string"])
        text = text.replace(old, new, -1 if edit.get("replace_all") else 1) if old else new + text
    return "Write", {"file_path": given.get("file_path"), "content": text}


def _notebook(arguments: Mapping[str, Any], cwd: str) -> tuple[str, Mapping[str, Any]]:
    """A notebook below scratch/debug is a diagnostic; any other has no lines that an approval could cover."""
    given = _plain(arguments, cwd)
    below_scratch = f"{os.sep}scratch{os.sep}debug{os.sep}" in str(given.get("file_path"))
    return "Write" if below_scratch else "NotebookEdit", given


_WRITERS: Mapping[str, Callable[[Mapping[str, Any], str], tuple[str, Mapping[str, Any]]]] = {
    "Edit": _edit, "Write": _write, "MultiEdit": _multi_edit, "NotebookEdit": _notebook}

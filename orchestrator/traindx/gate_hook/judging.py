"""May this call of a coding agent happen? The question is put before every tool call while a debug session is open."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from traindx.gate_hook.mcp_servers import OUR_TOOLS, declared, is_ours
from traindx.gate_hook.state import State
from traindx.gate_hook.verification import is_agreed
from traindx.gate_hook.wrapping import wrapped
from traindx.policy import Scope, allowed
from traindx.strike_levels import STRIKES_OUT

HARMLESS = frozenset({
    "Read", "NotebookRead", "Grep", "Glob", "LS", "LSP", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList",
    "Agent", "Task", "Skill", "AskUserQuestion", "WebFetch", "WebSearch", "ToolSearch", "EnterPlanMode", "ExitPlanMode",
    "BashOutput", "TaskOutput", "TaskStop", "KillShell", "KillBash", "ListMcpResourcesTool", "ReadMcpResourceTool",
    "StructuredOutput", "ReportFindings", "ListAgents", "SendMessage", "CronList", "CronDelete", "ExitWorktree"})
"""Tools that change no file of the project and type nothing in the person's name. What is not known is refused."""

ASKS_NOBODY = frozenset({"bypassPermissions", "dontAsk"})
"""Modes of the host in which no question of a hook is sure to reach a person."""

_TO_THE_PERSON = ('The person decides: "approve A" or "approve B" after a complete diagnosis was shown, "close the '
                  'debug session" to end it.')


class Ruling(NamedTuple):
    """What becomes of a call: allowed as it is, allowed with other arguments, refused, or asked of the person."""

    allow: bool
    reason: str = ""
    next_step: str = ""
    ask: bool = False
    arguments: Mapping[str, Any] | None = None


def judge(tool: str, event: Mapping[str, Any], state: State, cwd: str, plugin: str) -> Ruling:
    """Whether the call may happen. What cannot be judged is refused."""
    given = event.get("tool_input")
    arguments = given if isinstance(given, Mapping) else {}
    if tool in HARMLESS:
        return Ruling(True)
    if tool.startswith("mcp__"):
        return _mcp(tool, event)
    if tool == "Bash":
        return _command(arguments, state, cwd, plugin)
    if tool in _WRITERS:
        return _written(tool, arguments, state, cwd, str(event.get("permission_mode") or ""))
    return Ruling(False, f"the tool {tool!r} is not known to be harmless", "use Read, Grep, Glob or Bash")


def _command(arguments: Mapping[str, Any], state: State, cwd: str, plugin: str) -> Ruling:
    """No command is judged: each runs in the protected runner, unless the person agreed to runs without it.

    The agreed verification starts with nothing that an earlier command left.
    """
    command = str(arguments.get("command") or "")
    if state.runs or not command.strip():
        return Ruling(True)
    agreed = state.approval.option.verify if state.phase == "fix" and state.approval is not None else ()
    try:
        fresh = bool(agreed) and is_agreed(command, agreed, cwd, state, plugin)
        line = wrapped(command, plugin, state.workspace, fresh=fresh)
    except ValueError as error:
        return Ruling(False, str(error), "write less in one command")
    return Ruling(True, arguments={**arguments, "command": line})


def _mcp(tool: str, event: Mapping[str, Any]) -> Ruling:
    """Our own server is known; another one's tools are what they declare."""
    reads = True if is_ours(tool, OUR_TOOLS, event) else declared(event)
    if reads:
        return Ruling(True)
    if reads is None:
        return Ruling(False, f"the MCP tool {tool} does not declare that it only reads: it may change something while "
                      "no fix is approved", "the person decides", ask=True)
    return Ruling(False, f"the MCP tool {tool} declares that it changes things", "use Read, Grep, Glob or the traindx "
                  f"tools. {_TO_THE_PERSON}")


def scope_of(state: State) -> Scope:
    """What the policy needs: the workspace, and the approved option while its approval stands."""
    approval = state.approval
    if state.phase != "fix" or approval is None:
        return Scope(Path(state.workspace))
    return Scope(Path(state.workspace), fix=approval.option,
                 baseline={path: (text or "").replace("\r\n", "\n") for path, text in approval.baseline.items()})


def _written(tool: str, arguments: Mapping[str, Any], state: State, cwd: str, mode: str) -> Ruling:
    as_tool, given = _WRITERS[tool](arguments, cwd)
    verdict = allowed(as_tool, given, "fix" if state.phase == "fix" else "gather", scope_of(state))
    if verdict.allow:
        return Ruling(True)
    asks = verdict.ask and mode not in ASKS_NOBODY
    return Ruling(False, _why(verdict.reason, state), f"{verdict.next_step}. {_TO_THE_PERSON}", ask=asks)


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

"""What the gate does at each event of Claude Code. One function for each event: from event and state to an answer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from traindx.gate_hook.state import Shown, State
from traindx.gate_hook.store import Store

Event = Mapping[str, Any]


class Answer(NamedTuple):
    """What the host is told: a refusal of a tool call, or words for the agent and for the person."""

    deny: str = ""
    context: str = ""
    """Added to what the agent reads."""
    notice: str = ""
    """Shown to the person."""
    again: str = ""
    """The agent's turn is not over yet, and why."""


class Place(NamedTuple):
    """Where an event happened."""

    store: Store
    plugin: str
    workspace: str
    """The project of the conversation."""

    @property
    def open_here(self) -> str | None:
        """The workspace with an open session that the project is, or lies in."""
        return next((w for w in self.store.workspaces() if _within(self.workspace, w)), None)


SILENT = Answer()
_SKILLS = ("ml-debug", "traindx:ml-debug")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _about(event: Event, at: Place) -> str | None:
    """The workspace with an open session that this tool call concerns: its own, or the one that it reaches into."""
    here = at.open_here
    if here is not None:
        return here
    cwd = os.path.realpath(str(event.get("cwd") or at.workspace))
    given = event.get("tool_input")
    named = ("file_path", "notebook_path", "path", "command")
    paths = [str(given[n]) for n in named if isinstance(given.get(n), str)] if isinstance(given, Mapping) else []
    for workspace in at.store.workspaces():
        if _within(cwd, workspace) or any(_reaches(p, cwd, workspace) for p in paths):
            return workspace
    return None


def _reaches(text: str, cwd: str, workspace: str) -> bool:
    """True for a path into the workspace, and for a command with such a path among its words."""
    words = {text, *re.findall(r"[^\s'\";|&<>()=]+", text[:20_000])}
    return workspace in text or any(_within(os.path.realpath(os.path.join(cwd, os.path.expanduser(word))), workspace)
                                    for word in words if "\0" not in word and len(word) < 4096)


def before_tool(event: Event, at: Place) -> Answer:
    """May this call happen? Calling the skill opens a session."""
    tool, arguments = str(event.get("tool_name")), event.get("tool_input")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    if tool == "Skill":
        called = str(arguments.get("skill") or arguments.get("command") or "").lstrip("/")
        if called in _SKILLS and "agent_id" not in event:
            _open(at)
        return SILENT
    workspace = _about(event, at)
    if workspace is None:
        return _decides_elsewhere(tool, arguments)
    if at.store.is_off(workspace):
        return SILENT
    state = at.store.read(workspace)
    if state is None:
        return Answer(deny=f"the gate of {workspace} is open on paper and has no state: the person closes it with "
                           '"close the debug session"')
    from traindx.gate_hook.judging import judge

    verdict = judge(tool, arguments, state, str(event.get("cwd") or workspace), at.plugin)
    if verdict.allow:
        return SILENT
    return Answer(deny=f"traindx gate: {verdict.reason}. Instead: {verdict.next_step}")


def _decides_elsewhere(tool: str, arguments: Mapping[str, Any]) -> Answer:
    """Approving a session of `traindx debug` is the person's, whether a session is open here or not."""
    if tool == "Bash":
        from traindx.gate_hook.commands import decides

        if decides(str(arguments.get("command") or "")):
            return Answer(deny="traindx gate: decisions on a diagnosis and the gate's state are the person's. "
                               "Instead: show the diagnosis and wait; the person types the command (`! traindx "
                               "approve ...` in Claude Code)")
    return SILENT


def _open(at: Place) -> tuple[State, bool]:
    """The open state, and whether it was opened just now."""
    from traindx.gate_hook.deciding import new_state

    with at.store.locked():
        here = at.open_here
        known = at.store.read(here) if here is not None else None
        if known is not None:
            return known, False
        state = new_state(at.workspace, at.store.read(at.workspace))
        at.store.write(state)
        return state, True


def told(state: State, plugin: str) -> str:
    """The state in words for the agent."""
    from traindx.gate_hook.commands import how_to_run

    head = f"traindx gate: a debug session is open in {state.workspace}, phase {state.phase}. "
    if state.phase == "fix" and state.approval is not None:
        option = state.approval.option
        covered = ", ".join(f"{p}:{a}-{b}" if b >= a else f"{p} (new)" for p, a, b in option.places)
        run = how_to_run(plugin, option.verify[0] if option.verify else "COMMAND", copy=True)
        return f"{head}Option {option.option} is approved: only {covered} may be changed. Verify it: {run}"
    if state.phase == "halted":
        return head + "Three fixes of one approach failed: nothing is edited before the person decided."
    return head + (
        "Edits to the project are refused until the person approved a diagnosis that you showed in Gate 4 form (six "
        "sections; the cause and each option A, B with path:line; new files as `path (new)`; the command that verifies "
        "in backticks after the word Verify). Diagnostics go to scratch/debug/. Code runs write-protected: "
        f"{how_to_run(plugin)} (--copy before -- for a copy that may be written). The person approves with "
        '"approve A" or "approve B" and ends with "close the debug session".')


def after_tool(event: Event, at: Place) -> Answer:
    """A skill was loaded, an approved edit was made, a question was answered, a verification ended."""
    tool = str(event.get("tool_name"))
    here = at.open_here
    if here is None or at.store.is_off(here):
        return SILENT
    with at.store.locked():
        state = at.store.read(here)
        if state is None:
            return SILENT
        if tool == "Skill":
            return Answer(context=told(state, at.plugin)) if "agent_id" not in event else SILENT
        change = _AFTER.get(tool)
        outcome = change(event, state, at) if change is not None else None
        if outcome is None:
            return SILENT
        after, text = outcome
        at.store.write(after)
        return Answer(context=f"traindx gate: {text}", notice=f"traindx gate: {text}") if text else SILENT


def _after_edit(event: Event, state: State, at: Place) -> tuple[State, str] | None:
    from traindx.gate_hook.deciding import edited

    given = event.get("tool_input")
    path = str(given.get("file_path") or "") if isinstance(given, Mapping) else ""
    return edited(state, os.path.join(str(event.get("cwd") or state.workspace), path)), ""


def _after_question(event: Event, state: State, at: Place) -> tuple[State, str] | None:
    """An answer of the person to the question tool decides with the same words as a prompt."""
    from traindx.gate_hook import deciding
    from traindx.gate_hook.phrases import said

    response = event.get("tool_response")
    answers = response.get("answers") if isinstance(response, Mapping) else None
    if "agent_id" in event or not isinstance(answers, Mapping):
        return None
    for answer in answers.values():
        decision = said(str(answer))
        if decision is not None and decision.kind == "approve":
            shown = _shown(event, state, at)
            return deciding.approve(state, shown, decision.option, "the person's answer to a question")
        if decision is not None and decision.kind == "different":
            return deciding.different(state)
    return None


def _after_command(event: Event, state: State, at: Place) -> tuple[State, str] | None:
    """Did a verification of the approved fix end, and how?"""
    from traindx.gate_hook import deciding
    from traindx.gate_hook.commands import NEVER_RAN, exit_code, is_verification, protected

    approval = state.approval
    if state.phase != "fix" or approval is None or not approval.left:
        return None
    given = event.get("tool_input")
    command = str(given.get("command") or "") if isinstance(given, Mapping) else ""
    ran = protected(command, at.plugin) or (command if state.runs else None)
    if ran is None or not is_verification(ran, approval.option.verify):
        return None
    if event.get("hook_event_name") == "PostToolUse":
        return deciding.passed(state)
    code = exit_code(str(event.get("error") or ""))
    if code is None or code in NEVER_RAN or event.get("is_interrupt"):
        return None
    return deciding.strike(state, f"`{ran[:160]}` ended with exit code {code}")


_AFTER: Mapping[str, Callable[[Event, State, Place], tuple[State, str] | None]] = {
    "Edit": _after_edit, "Write": _after_edit, "MultiEdit": _after_edit, "AskUserQuestion": _after_question,
    "Bash": _after_command}


def _shown(event: Event, state: State, at: Place) -> Shown | None:
    """The complete diagnosis that stands in this conversation: the last that was shown."""
    from traindx.gate_hook.presented import looks_like_one, read_diagnosis
    from traindx.gate_hook.transcript import last_said

    conversation = str(event.get("session_id") or "")
    text = last_said(str(event.get("transcript_path") or ""))
    if looks_like_one(text):
        found = read_diagnosis(text, state.workspace, conversation)
        return found if isinstance(found, Shown) else None
    return state.shown if state.shown is not None and state.shown.conversation == conversation else None


def turn_ended(event: Event, at: Place) -> Answer:
    """The assistant's turn is over: a diagnosis in its last message is what the person now sees."""
    from traindx.gate_hook.presented import looks_like_one, read_diagnosis

    text, here = str(event.get("last_assistant_message") or ""), at.open_here
    if here is None or not looks_like_one(text):
        return SILENT
    with at.store.locked():
        state = at.store.read(here)
        if state is None:
            return SILENT
        found = read_diagnosis(text, here, str(event.get("session_id") or ""))
        if not isinstance(found, Shown):
            lacking = f"traindx gate: this diagnosis cannot be approved yet: {'; '.join(found)}"
            if event.get("stop_hook_active"):  # it was asked once: from here on it is the person's turn
                return Answer(notice=lacking)
            return Answer(notice=lacking, again=f"{lacking}. Show it again, complete, and wait for the person.")
        at.store.write(state._replace(shown=found))
    return SILENT


def prompt(event: Event, at: Place) -> Answer:
    """A person typed something: a decision, or not."""
    from traindx.gate_hook.phrases import almost, said

    text = str(event.get("prompt") or "")
    decision, here = said(text), at.open_here
    if decision is not None and decision.kind in ("off", "on"):
        at.store.switch(here or at.workspace, off=decision.kind == "off")
        return _both(f"the gate is {decision.kind} in {here or at.workspace}")
    if decision is not None and decision.kind == "open":
        state, _ = _open(at)
        return Answer(context=told(state, at.plugin))
    if here is None or at.store.is_off(here):
        return SILENT
    if decision is not None and decision.kind == "close":
        return _close(here, at)
    if decision is None:
        return _hint(here, at) if almost(text) else SILENT
    with at.store.locked():
        state_now = at.store.read(here)
        if state_now is None:
            return SILENT
        after, words = _decided(decision.kind, decision.option, decision.reason, event, state_now, at)
        at.store.write(after)
        return _both(words)


def _hint(here: str, at: Place) -> Answer:
    state = at.store.read(here)
    if state is None or state.phase == "fix":
        return SILENT
    return Answer(context='traindx gate: this prompt approves nothing. If a diagnosis was shown, ask the person to '
                          'type "approve A" or "approve B".')


def _decided(kind: str, option: str, reason: str, event: Event, state: State, at: Place) -> tuple[State, str]:
    from traindx.gate_hook import deciding

    if kind == "approve":
        return deciding.approve(state, _shown(event, state, at), option, "the person's prompt")
    if kind == "strike":
        return deciding.strike(state, "the person says that the fix failed")
    if kind == "verified":
        return deciding.passed(state)
    if kind == "different":
        return deciding.different(state)
    if kind == "reopen":
        return deciding.reopen(state, reason)
    return state._replace(runs=True), "the person agreed that code is run without write protection in this session"


def _close(here: str, at: Place) -> Answer:
    from traindx.gate_hook.deciding import new_state
    from traindx.gate_hook.state import StateDamaged

    with at.store.locked():
        try:
            state = new_state(here, at.store.read(here))
        except StateDamaged:  # closing is how a person gets out of a damaged state
            state = new_state(here, None)
        at.store.write(state, opened=False)
    return _both(f"the debug session in {here} is closed; edits are free again")


def _both(words: str) -> Answer:
    return Answer(context=f"traindx gate: {words}", notice=f"traindx gate: {words}")


def subagent_begins(event: Event, at: Place) -> Answer:
    """A subagent has one task: it skips the workflow, and the gate holds for it as well."""
    here = at.open_here
    if here is None or at.store.is_off(here):
        return SILENT
    state = at.store.read(here)
    phase = state.phase if state is not None else "unknown"
    return Answer(context=f"traindx: a debug session is open in {here}, phase {phase}. You were started for one task: "
                          f"skip "
                          "the workflow of the ml-debug skills, do that task read-only, and return evidence with "
                          "values and places. Edits to the project are refused; diagnostics go to scratch/debug/.")


def conversation_begins(event: Event, at: Place) -> Answer:
    """After a restart or a compaction the agent is told where the gate stands."""
    here = at.open_here
    if here is None or at.store.is_off(here):
        return SILENT
    state = at.store.read(here)
    return SILENT if state is None else Answer(context=told(state, at.plugin))


EVENTS: Mapping[str, Callable[[Event, Place], Answer]] = {
    "PreToolUse": before_tool, "PostToolUse": after_tool, "PostToolUseFailure": after_tool, "UserPromptSubmit": prompt,
    "Stop": turn_ended, "SubagentStart": subagent_begins, "SessionStart": conversation_begins}

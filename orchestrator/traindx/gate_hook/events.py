"""What the gate does at each event of Claude Code. One function for each event: from event and state to an answer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from traindx.gate_hook.answers import SILENT, Answer, Event, Place, is_within
from traindx.gate_hook.state import Shown, State

ABANDONED, ANOTHER_BEGINS = 86_400.0, 3_600.0
"""Seconds of silence after which a gate ends: by itself, and where another conversation begins in its workspace."""

_SKILLS = ("ml-debug", "pytorch-debugging", "jax-debugging", "distributed-debugging", "research-debug")
"""Whichever of the pack is called: each leads to a fix."""


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
        if is_within(cwd, workspace) or any(_reaches(p, cwd, workspace) for p in paths):
            return workspace
    return None


def _reaches(text: str, cwd: str, workspace: str) -> bool:
    """True for a path into the workspace, and for a command with such a path among its words."""
    words = {text, *re.findall(r"[^\s'\";|&<>()=]+", text[:20_000])}
    return workspace in text or any(is_within(os.path.realpath(os.path.join(cwd, os.path.expanduser(word))), workspace)
                                    for word in words if "\0" not in word and len(word) < 4096)


def before_tool(event: Event, at: Place) -> Answer:
    """May this call happen? Calling the skill opens a session."""
    tool, arguments = str(event.get("tool_name")), event.get("tool_input")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    if tool == "Skill":
        return _skill(str(arguments.get("skill") or arguments.get("command") or ""), event, at)
    workspace = _about(event, at)
    if workspace is None:
        return _decides_elsewhere(tool, arguments)
    if at.store.is_off(workspace):
        return SILENT
    state = at.store.read(workspace)
    if state is None:
        return Answer(deny=f"the gate of {workspace} is open on paper and has no state: the person closes it with "
                           '"close the debug session"')
    if tool == "AskUserQuestion":
        from traindx.gate_hook.questions import before_question

        return before_question(event, state, at)
    from traindx.gate_hook.judging import judge

    ruling = judge(tool, event, state, str(event.get("cwd") or workspace), at.plugin)
    if ruling.allow:
        return SILENT if ruling.arguments is None else Answer(arguments=ruling.arguments)
    if ruling.ask:
        return Answer(ask=f"traindx gate: {ruling.reason}")
    return Answer(deny=f"traindx gate: {ruling.reason}. Instead: {ruling.next_step}")


def _skill(name: str, event: Event, at: Place) -> Answer:
    """A skill of the pack opens a session; any other may bring commands of its own, which no hook sees."""
    called = name.lstrip("/").removeprefix("traindx:")
    if called in _SKILLS:
        if "agent_id" not in event:
            _open(at, str(event.get("session_id") or ""))
        return SILENT
    here = at.open_here
    if here is None or at.store.is_off(here) or name.startswith("traindx:"):
        return SILENT
    return Answer(ask=f"traindx gate: the skill {name!r} may run commands of its own, outside of the protected runner, "
                      "while no fix is approved")


_DECIDES = re.compile(
    r"(?:^|[;&|(\s'\"])(?:\S*/)?(?:traindx|python[\d.]*\s+(?:-\w+\s+)*-m\s+traindx)\s+(?:approve|reject|revise)\b"
    r"|traindx\.session\b.*\b(?:decide|direct|reopen_approach|confirm_fix)\b|\btraindx/gate/|\bTRAINDX_GATE", re.DOTALL)
"""A reminder for a conversation without a closed gate, where commands run as they are; behind a closed one, the runner
holds them."""


def _decides_elsewhere(tool: str, arguments: Mapping[str, object]) -> Answer:
    """Approving a session of `traindx debug` is the person's, whether a session is open here or not."""
    if tool == "Bash" and _DECIDES.search(str(arguments.get("command") or "")):
        return Answer(deny="traindx gate: decisions on a diagnosis and the gate's state are the person's. "
                               "Instead: show the diagnosis and wait; the person types the command (`! traindx "
                               "approve ...` in Claude Code)")
    return SILENT


def _open(at: Place, conversation: str) -> tuple[State, bool]:
    """The open state, and whether it was opened just now."""
    from traindx.gate_hook.deciding import new_state

    with at.store.locked():
        here = at.open_here
        known = at.store.read(here) if here is not None else None
        if known is not None:
            return known, False
        state = new_state(at.workspace, at.store.read(at.workspace))._replace(conversation=conversation)
        at.store.write(state)
        return state, True


_HOW_IT_WORKS = (
    "Shell commands need no approval of the gate: each is run so that it cannot change the project. Experiment freely; "
    "write below scratch/debug/ (from the shell below scratch/debug/probes/ where the rest is refused), or in a copy: "
    "{copy}. A command's background jobs end with it. Edits to the project are refused until the person approved a "
    "diagnosis that you showed in Gate 4 form: six sections; the cause with path:line; each option A, B begins with "
    "its place and new text (`A: train.py:3: EPS = 1e-6`) and states each further place on a line `change: path:line: "
    "text` or `change: path (new)`, or shows a diff (a place without its new text: each edit there is put to the "
    "person); the command that verifies in backticks after the word Verify. The "
    'person types "approve A" or "approve B" and nothing else, and "close the debug session" to end.')


def told(state: State, plugin: str) -> str:
    """The state in words for the agent."""
    from traindx.gate_hook.deciding import named
    from traindx.gate_hook.wrapping import how_to_run

    head = f"traindx gate: a debug session is open in {state.workspace}, phase {state.phase}. "
    if state.phase == "fix" and state.approval is not None:
        option = state.approval.option
        how = (f"Verify it with exactly `{option.verify[0]}`, in {state.workspace}; in a copy that may be written: "
               f"{how_to_run(plugin, option.verify[0], copy=True)}" if option.verify else
               "It names no command that verifies it: show what changed and ask the person")
        return f"{head}Option {option.option} is approved: only {named(option)} may be changed. {how}"
    if state.phase == "halted":
        return head + "Three fixes of one approach failed: nothing is edited before the person decided."
    return head + _HOW_IT_WORKS.format(copy=how_to_run(plugin, copy=True))


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
    from traindx.gate_hook.questions import after_question

    return after_question(event, state)


def _after_command(event: Event, state: State, at: Place) -> tuple[State, str] | None:
    """Did the verification of the approved fix end, and how? Any other end than 0 is a strike or a question."""
    from traindx.gate_hook import deciding
    from traindx.gate_hook.verification import NEVER_RAN, exit_code, in_background, is_agreed

    approval = state.approval
    if state.phase != "fix" or approval is None or not approval.left:
        return None
    given = event.get("tool_input")
    arguments = given if isinstance(given, Mapping) else {}
    cwd = str(event.get("cwd") or state.workspace)
    command = str(arguments.get("command") or "")
    if not is_agreed(command, approval.option.verify, cwd, state, at.plugin):
        return _after_another(event, command, state, at)
    ran = approval.option.verify[0]
    if event.get("hook_event_name") == "PostToolUse":
        if in_background(arguments, event.get("tool_response")):
            return state, f"`{ran[:160]}` runs in the background: its end is not seen here. Run it in the foreground"
        return deciding.passed(state)
    code = exit_code(str(event.get("error") or ""))
    if code is None or code in NEVER_RAN or event.get("is_interrupt"):
        how = "was interrupted" if code is None else f"ended with exit code {code}"
        return state, (f"`{ran[:160]}` {how}: that verifies nothing. Make it run, or show the output and ask the "
                       'person, who decides: "the fix failed" or "the fix works"')
    return deciding.strike(state, f"`{ran[:160]}` ended with exit code {code}")


def _after_another(event: Event, command: str, state: State, at: Place) -> tuple[State, str] | None:
    """Another spelling of the agreed command failed: no strike, and nothing to pass over either. It is a question."""
    from traindx.gate_hook.verification import NEVER_RAN, exit_code, resembled

    code = exit_code(str(event.get("error") or ""))
    if event.get("hook_event_name") == "PostToolUse" or code is None or code in NEVER_RAN or state.approval is None:
        return None
    agreed = resembled(command, state.approval.option.verify, state, at.plugin)
    if agreed is None:
        return None
    return state, (f"a command like the agreed one ended with exit code {code}. It verifies nothing, and counts no "
                   f"strike: run exactly `{agreed[:160]}` in the workspace. Where that is impossible, the person "
                   'decides: "the fix failed" or "the fix works"')


_AFTER: Mapping[str, Callable[[Event, State, Place], tuple[State, str] | None]] = {
    "Edit": _after_edit, "Write": _after_edit, "MultiEdit": _after_edit, "AskUserQuestion": _after_question,
    "Bash": _after_command}


def turn_ended(event: Event, at: Place) -> Answer:
    """The assistant's turn is over: a diagnosis in its last message is what the person now sees."""
    from traindx.gate_hook.presented import looks_like_one, read_diagnosis

    text, here = str(event.get("last_assistant_message") or ""), at.open_here
    if here is None or at.store.is_off(here):
        return SILENT
    if not looks_like_one(text):
        return _unverified(event, at.store.read(here))
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


def _unverified(event: Event, state: State | None) -> Answer:
    """A fix that was applied is verified before the turn ends, or the person is told that it was not."""
    approval = state.approval if state is not None else None
    if approval is None or not approval.left or approval.passed:
        return SILENT
    verify = approval.option.verify
    lacking = f"traindx gate: the approved fix ({', '.join(approval.left)}) was not verified"
    if verify and not event.get("stop_hook_active"):
        return Answer(again=f"{lacking}. Run exactly `{verify[0]}` in the workspace, or say why that is impossible.")
    return Answer(notice=f'{lacking}. "the fix works" or "the fix failed" is yours to say.')


def prompt(event: Event, at: Place) -> Answer:
    """A person typed something: a decision, or not."""
    from traindx.gate_hook.phrases import almost, said

    text = str(event.get("prompt") or "")
    decision, here = said(text), at.open_here
    if decision is not None and decision.kind in ("off", "on"):
        at.store.switch(here or at.workspace, off=decision.kind == "off")
        return _both(f"the gate is {decision.kind} in {here or at.workspace}")
    if decision is not None and decision.kind == "open":
        state, _ = _open(at, str(event.get("session_id") or ""))
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
                          'type "approve A" or "approve B", alone.')


def _decided(kind: str, option: str, reason: str, event: Event, state: State, at: Place) -> tuple[State, str]:
    from traindx.gate_hook import deciding

    if kind == "approve":
        from traindx.gate_hook.questions import shown_now

        return deciding.approve(state, shown_now(event, state), option, "the person's prompt")
    if kind == "strike":
        return deciding.strike(state, "the person says that the fix failed")
    if kind == "verified":
        return deciding.passed(state)
    if kind == "different":
        return deciding.different(state)
    if kind == "reopen":
        return deciding.reopen(state, reason)
    return state._replace(runs=True), ("the person agreed that commands run without write protection in this session: "
                                       "from here on the gate holds the file tools alone")


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


def conversation_ends(event: Event, at: Place) -> Answer:
    """The gate ends with the conversation that opened it."""
    here = at.open_here
    state = at.store.read(here) if here is not None else None
    if here is None or state is None or state.conversation != str(event.get("session_id") or ""):
        return SILENT
    _close(here, at)
    at.store.ended(here, there=True)
    return SILENT


def expire(event: Event, at: Place) -> str:
    """Ends a gate that nobody has spoken to for a day, or for an hour where another conversation begins. What is said
    about it, or nothing."""
    here = at.open_here
    if here is None:
        return ""
    silent = at.store.silent_for(here)
    begins = event.get("hook_event_name") == "SessionStart" and event.get("source") in ("startup", "clear", "resume")
    state = None
    if begins and ANOTHER_BEGINS < silent <= ABANDONED:
        state = at.store.read(here)
    another = state is not None and state.conversation != str(event.get("session_id") or "")
    if silent > ABANDONED or another:
        _close(here, at)
        return (f"traindx gate: the debug session in {here} has ended by itself, for its conversation has been silent "
                f"for {silent / 3600:.0f} h; edits are free. The skill ml-debug opens a new one.")
    at.store.heard(here)
    return ""


def conversation_begins(event: Event, at: Place) -> Answer:
    """After a restart or a compaction the agent is told where the gate stands."""
    here = at.open_here
    if here is None:
        return _ended_before(at)
    if at.store.is_off(here):
        return SILENT
    state = at.store.read(here)
    return SILENT if state is None else Answer(context=told(state, at.plugin))


def _ended_before(at: Place) -> Answer:
    """Said once: the debug session of the last conversation is over."""
    if not at.store.ended(at.workspace, there=False):
        return SILENT
    return _both(f"the debug session in {at.workspace} ended with its conversation; edits are free. The skill ml-debug "
                 "opens a new one")


EVENTS: Mapping[str, Callable[[Event, Place], Answer]] = {
    "PreToolUse": before_tool, "PostToolUse": after_tool, "PostToolUseFailure": after_tool, "UserPromptSubmit": prompt,
    "Stop": turn_ended, "SubagentStart": subagent_begins, "SessionStart": conversation_begins,
    "SessionEnd": conversation_ends}

"""The program of every hook: reads one event, decides, answers. Where it fails itself, the gate stays closed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from traindx.gate_hook.answers import Answer, Place
from traindx.gate_hook.events import EVENTS, expire
from traindx.gate_hook.state import StateDamaged
from traindx.gate_hook.store import Store, state_folder

SECONDS = 10
"""After so long the gate answers no by itself; the host's own limit (30 s) would let the call pass."""

REFUSED = 2
"""The exit code that stops a tool call, whatever was printed."""


def main(name: str, plugin: str, text: str, environment: Mapping[str, str]) -> int:
    """Decides on one event; returns the exit code. Never raises: a failure refuses the tool call."""
    try:
        event = json.loads(text)
        workspace = os.path.realpath(environment.get("CLAUDE_PROJECT_DIR") or str(event.get("cwd") or os.getcwd()))
        at = Place(Store(state_folder(environment)), plugin, workspace)
        ended = expire(event, at)
        answer = EVENTS[name](event, at)
        if ended:
            answer = answer._replace(context=f"{ended} {answer.context}".strip(), notice=ended)
    except StateDamaged as error:
        return _closed(name, f'its state is damaged ({error}). The person repairs it with "close the debug session"')
    except Exception as error:  # noqa: BLE001 - whatever it is, the gate stays closed
        return _closed(name, f"{type(error).__name__}: {error}")
    said = shape(name, answer)
    if said is not None:
        sys.stdout.write(json.dumps(said))
        sys.stdout.flush()
    return 0


def shape(name: str, answer: Answer) -> dict[str, Any] | None:
    """The answer as the host expects it for this event; None for nothing to say."""
    if answer == Answer():
        return None
    specific: dict[str, Any] = {"hookEventName": name}
    if answer.deny:
        specific |= {"permissionDecision": "deny", "permissionDecisionReason": answer.deny}
    if answer.ask:
        specific |= {"permissionDecision": "ask", "permissionDecisionReason": answer.ask}
    if answer.arguments is not None:
        specific["updatedInput"] = dict(answer.arguments)
    if answer.context and name != "SessionEnd":
        specific["additionalContext"] = answer.context
    said: dict[str, Any] = {"hookSpecificOutput": specific} if len(specific) > 1 else {}
    if answer.again:
        said |= {"decision": "block", "reason": answer.again}
    return {**said, "systemMessage": answer.notice} if answer.notice else said


def _closed(name: str, why: str) -> int:
    """A failure of the gate itself: tool calls are refused, a person's prompt is never swallowed."""
    print(f"traindx gate: the gate could not decide and stays closed: {why}. A person can switch it off: "
          f"TRAINDX_GATE=off.",
          file=sys.stderr)
    return REFUSED if name == "PreToolUse" else 1


def limit(name: str) -> None:
    """From now on this process ends by itself with a refusal, unless it answers in time."""
    if not hasattr(signal, "SIGALRM"):
        return  # Windows: the launcher's own limit has to do

    def late(*_: object) -> None:
        os._exit(_closed(name, f"no decision within {SECONDS} s"))

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)

"""What can be typed next of a session."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Protocol

from traindx.model import Budget, Decision, Diagnosis, NeedsData
from traindx.offered import can_be_typed
from traindx.places import Places
from traindx.recorded import recorded_command
from traindx.typed_commands import from_here, more_than, workspace_option


class Result(Protocol):
    """What of a session's result tells what can be typed next."""

    @property
    def session(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def phase(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def standing(self) -> tuple[str, ...]: ...

    @property
    def workspace(self) -> str: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def diagnosis(self) -> Diagnosis | None: ...

    @property
    def decision(self) -> Decision | None: ...

    @property
    def needs(self) -> NeedsData | None: ...

    @property
    def tests(self) -> tuple[str, ...]: ...

    @property
    def has_verify(self) -> bool: ...


UNDONE_BY = "--undo takes it out"
"""In the reason of a halt: a fix that no attempt tells of may stand in a file."""

COMMANDS = {
    "awaiting_approval": ("show {s}", "approve {s} --option {o}", "reject {s} --reason '...'",
                          "revise {s} --comment '...'", "review {s}"),
    "awaiting_edit": ("resume {s}", "approve {s} --option {o}", "revise {s} --comment '...'"),
    "awaiting_verification": ("resume {s} --passed", "resume {s} --failed", "resume {s} --undo"),
    "effect_not_shown": ("resume {s} --verify 'CMD'", "resume {s} --passed", "resume {s} --failed",
                         "resume {s} --undo"),
    "not_executed": ("resume {s} --verify 'CMD'", "resume {s} --passed", "resume {s} --failed", "resume {s} --undo"),
    "needs_more_data": ("resume {s} --give FILE",),
    "fixed": ("resume {s} --remember",),
    "three_strikes": ("resume {s} --different", "resume {s} --stop"),
    "rejected": ("resume {s}",),
    "halted": ("resume {s} --accept-changes",),
    "answered": ("resume {s}",),
    "interrupted": ("resume {s}",),
    "running": ("resume {s}",),
    "stopped": ("show {s}",),
}
"""What a person types next, by status, with the session and the preferred option (of one that is approved
and waits for an edit: another one); after "healthy" nothing is left to do."""


def next_commands(result: Result, *, anywhere: bool = False) -> tuple[str, ...]:
    """What can be typed next, as it works from the current directory, or from any."""
    folder = str(Path(result.workspace).resolve())
    where = f" --workspace {shlex.quote(folder)}" if anywhere else workspace_option(folder)
    here = shlex.quote(folder if anywhere else from_here(folder))
    options = [f.option for f in result.diagnosis.options] if result.diagnosis is not None else []
    taken = result.decision.option if result.status == "awaiting_edit" and result.decision is not None else None
    first = next((o for o in options if o != taken), "" if options else "A")
    own = [f"traindx {c.format(s=result.session, o=first)}{where}" for c in COMMANDS.get(result.status, ())
           if first or "{o}" not in c]
    if result.status == "needs_more_data" and result.needs is not None and not result.needs.artifacts:
        own = []  # nothing that could be handed over was asked for
    if result.status == "interrupted":
        own[0] = f"traindx resume {result.session}{more_than(result.reason, result.budget)}{where}"
    if (result.status == "interrupted" and result.phase == "verify") or (
            result.status == "halted" and (result.standing or UNDONE_BY in result.reason)):
        own.append(f"traindx resume {result.session} --undo{where}")
    if result.status == "awaiting_verification":
        return (*(f"traindx resume {result.session}{option}{where}" for option in _checked(result)), *own)
    asked = result.needs.next_checks if result.status == "needs_more_data" and result.needs is not None else ()
    tests = (t.replace(f" {shlex.quote(result.workspace)} ", f" {here} ", 1) for t in result.tests)
    return tuple(dict.fromkeys((*tests, *(c for c in asked if can_be_typed(c)), *own)))


def _checked(result: Result) -> tuple[str, ...]:
    """How a fix can be verified by running: with the session's command, else with what starts the training."""
    if result.has_verify:
        return (" --run",)
    folder = Path(result.workspace)
    training = Places(folder, tuple(sorted(folder.glob("*.py"))), recorded=recorded_command(folder)).training_command
    return (f" --verify {shlex.quote(training)}",) if training else ()

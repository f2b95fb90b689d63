"""Where a session stands, why, and what a person does next: a status, a sentence, the next step in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from traindx import events
from traindx.changed_files import MEANWHILE, changed_files
from traindx.hindrances import COULD_NOT
from traindx.journal import Record
from traindx.machine import Session
from traindx.model import Budget, NeedsData, Verification
from traindx.notices import PHASE_WORDS
from traindx.session_folder import Opening, SessionFolder, events_of
from traindx.strike_levels import level
from traindx.turn import CALLBACK_FAILED
from traindx.typed_commands import more_than

Status = Literal["fixed", "healthy", "needs_more_data", "awaiting_approval", "awaiting_edit", "awaiting_verification",
                 "effect_not_shown", "not_executed", "three_strikes", "rejected", "halted", "stopped", "answered",
                 "interrupted", "running"]

NOTHING_APPLIED = "nothing was applied"
"""Begins the reason where a diagnosis waits again, as files changed since the one that was approved."""
WAITS = "a diagnosis waits for your decision"

Standing = tuple[Status, str, str]


def standing_of(s: Session, folder: SessionFolder, opening: Opening, records: Sequence[Record]) -> Standing:
    """Where a session stands, as its state, its journal and whether a process holds it say together."""
    if s.interrupted is not None and s.interrupted.startswith(COULD_NOT):
        return _hindered(s, s.interrupted)
    if s.interrupted is not None:
        return "interrupted", _with_what_stands(s, s.interrupted), _after_interruption(s, opening.budget)
    if s.phase == "verify" and not (verifies_by_itself(opening) and s.attempts[-1].verification is None):
        return _verify(s, opening.verify is not None)
    standing = _STANDINGS.get(s.phase, _running)(s)
    if standing[0] != "running" or folder.is_driven:
        return standing
    return _answered(s, records) or _left_alone(s, standing)


def verifies_by_itself(opening: Opening) -> bool:
    """Whether an applied fix is verified without anybody doing more: a command, and the consent to run it."""
    return opening.allow_run and opening.verify is not None and opening.verify.command is not None


def _answered(s: Session, records: Sequence[Record]) -> Standing | None:
    """A person's answer is the last that was written down: nobody went on with it yet, and nothing was cut short."""
    since = list(records)
    while since and since[-1].kind == "note" and "tests" in since[-1].body:
        since.pop()
    last = next(iter(events_of(since[-1:])), None)
    if isinstance(last, events.Decided):
        d = last.decision
        said = f"{d.by} approved option {d.option}; nothing is changed yet" if d.verdict == "approve" else (
            f"{d.by} asked for a revision; nobody has looked again yet")
    elif isinstance(last, events.DataGiven):
        said = "what the session asked for was handed over; nobody has looked at it yet"
    elif isinstance(last, events.Directed):
        said = "another approach was asked for; nobody has looked for one yet"
    else:
        return None
    return "answered", said, f"resume session {s.id}"


def _left_alone(s: Session, standing: Standing) -> Standing:
    """The journal does not end, and no live process holds the session: it was killed, or nobody resumed it yet."""
    _, reason, _ = standing
    return ("interrupted", _with_what_stands(s, f"{reason}, and no process drives the session any more: it was killed, "
                                                "or nobody has gone on with it yet"), _after_interruption(s))


def _with_what_stands(s: Session, reason: str) -> str:
    """The reason, with what of the workspace stands changed."""
    stands = changed_files(s)
    return f"{reason.rstrip('.')}; {stands_changed(stands)}" if stands else reason


def stands_changed(places: tuple[str, ...]) -> str:
    """In words, for a person whose session stopped meanwhile."""
    return f"the fix stands in {', '.join(places)} and is not verified"


def _hindered(s: Session, said: str) -> Standing:
    """The machine kept the verification from being made; the fix stays in place and waits for it."""
    todo = said[len(COULD_NOT):].rpartition(": ")[2].rstrip(".")
    return ("awaiting_verification", f"{said}. The fix stays in place",
            f"{todo}, then traindx resume {s.id}: it verifies again")


def _after_interruption(s: Session, budget: Budget | None = None) -> str:
    """What to do first, where the reason is the caller's own code; its error is named."""
    if s.interrupted is not None and s.interrupted.startswith(CALLBACK_FAILED):
        error = s.interrupted[len(CALLBACK_FAILED):].strip(": ")
        return (f"repair the approval callback ({error}) and resume session {s.id}, or decide without it: "
                f"traindx approve {s.id} --option A (or reject, revise)")
    more = more_than(s.interrupted or "", budget) if budget is not None else ""
    if more:
        return f"give the next turn more: traindx resume {s.id}{more}"
    undo = s.phase == "verify" and changed_files(s)
    back = f"; traindx resume {s.id} --undo takes the change back, which is no strike" if undo else ""
    return f"resume session {s.id}{back}"


def _running(s: Session) -> Standing:
    return "running", PHASE_WORDS[s.phase], f"resume session {s.id} if no process drives it"


def _gate(s: Session) -> Standing:
    first = s.diagnosis.options[0].option if s.diagnosis is not None and s.diagnosis.options else "A"
    stale = next((f"{NOTHING_APPLIED}: {first_line(why)}. It was looked at again; " for why in s.stale), "")
    return ("awaiting_approval", f"{stale}{WAITS}{_cause(s)}",
            f"read and decide on a page: traindx review {s.id}; or read the diagnosis here: traindx show {s.id}, "
            f"then: traindx approve {s.id} --option {first} (or reject, revise)")


def _cause(s: Session) -> str:
    """The cause that waits, for one who was sent the reason alone."""
    d = s.diagnosis
    if d is None:
        return ""
    where = f"{d.location}, " if d.location else ""
    return f": {(d.claim or d.root_cause).rstrip('.')} ({where}{100 * d.confidence:.0f} % sure)"


def first_line(text: str) -> str:
    """What a reason says before it shows lines."""
    return text.split("\n", 1)[0].rstrip(".: ")


def _fix(s: Session) -> Standing:
    fix = s.diagnosis.option(s.decision.option) if s.diagnosis and s.decision and s.decision.option else None
    if fix is None or not fix.instructions:
        return "running", "the approved fix is not applied yet", f"resume session {s.id}"
    told = [f"{i.where}: {i.text}" for i in fix.instructions]
    book = next((i.path for i in fix.instructions if i.path.endswith(".ipynb")), None)
    save = (f"edit that cell of {book}, save the notebook, then traindx resume {s.id}: it goes on from your change"
            if book else f"edit it, save, then traindx resume {s.id}: it goes on from your change")
    return ("awaiting_edit", f"option {fix.option} is approved and waits for you: it is a change that a person makes, "
            "and none was made when the session last looked",
            "\n".join([*told, save]))


def _undecided(s: Session, seen: Verification) -> Standing:
    """The command passed and shows nothing of the fix: a person says what it means, or gives a command that does."""
    status: Status = "not_executed" if seen.result == "not_executed" else "effect_not_shown"
    kept = "The fix stays in place; it is neither verified nor a strike"
    return (status, f"{'; '.join(seen.reasons).rstrip('.')}. {kept}",
            f"give a command that trains with the change and prints what should move (traindx resume {s.id} --verify "
            "CMD), or look yourself and say whether it helped (--passed, --failed: --failed takes it back and "
            "counts a strike; --undo takes it back and counts none)")


def _verify(s: Session, has_verify: bool) -> Standing:
    seen = s.attempts[-1].verification if s.attempts else None
    if seen is not None:
        return _undecided(s, seen)
    todo = ("agree that it is run (--run, allow_run=True)" if has_verify else "give a verification command")
    return ("awaiting_verification", "the fix is applied and not verified yet",
            f"{todo} and resume session {s.id}, or run it yourself and confirm the fix")


def _halted(s: Session) -> Standing:
    halt = s.halt
    assert halt is not None, "the phase is halted because of a halt"
    if halt.halt == "three-strikes":
        return ("three_strikes", f"{halt.reason}. {level(3).rule}",
                "decide: try a fundamentally different approach, or stop (strike_report.md says what was learned)")
    if halt.halt == "rejected":
        return "rejected", halt.reason, f"resume session {s.id} to look for another cause"
    solved = ("; where that fix is all that was wanted, nothing is left to do here" if MEANWHILE in halt.reason else "")
    todo = (f"put these files back, or resume with the changes accepted as yours{solved}"
            if halt.halt == "workspace-changed"
            else "put the old lines back by hand, then resume with the changes accepted")
    back = f"; traindx resume {s.id} --undo takes the fix out" if changed_files(s) else ""
    return "halted", _with_what_stands(s, halt.reason), f"{todo}{back}"


def _done(s: Session) -> Standing:
    last = s.attempts[-1] if s.attempts else None
    if last is not None and last.verification is not None and last.verification.passed:
        return ("fixed", f"{last.summary.rstrip('.')}: verified ({'; '.join(last.verification.reasons)})",
                "nothing is left to do; to keep what was learned for the next session here: "
                f"traindx resume {s.id} --remember")
    return ("stopped", "stopped after three strikes",
            f"traindx show {s.id} says what the failed fixes taught; traindx debug begins anew")


def _needs_data(s: Session) -> Standing:
    needs = s.needs or NeedsData(reason="more data is needed")
    return "needs_more_data", needs.reason, "\n".join((*needs.next_checks, *needs.artifacts, *needs.questions))


def _healthy(s: Session) -> Standing:
    return "healthy", s.healthy.reason if s.healthy is not None else "nothing is wrong", ""


_STANDINGS: dict[str, Callable[[Session], Standing]] = {
    "gate": _gate, "fix": _fix, "halted": _halted, "done": _done, "needs_data": _needs_data, "healthy": _healthy,
}

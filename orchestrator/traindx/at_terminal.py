"""A session at a terminal: show the gate, ask the person, show what came of it, ask what only they can decide.

Nothing is decided here: a person's answer becomes a `Decision`, a `Direction` or a confirmation, and the session does
the rest. Where there is no terminal nobody is asked, and the session waits on disk.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from traindx.investigators.choose import going_on
from traindx.journal import read_journal
from traindx.leaving import left_words
from traindx.live_view import Watch, watching
from traindx.model import Attempt, Decision, Diagnosis, Direction, MetricChange, VerificationResult
from traindx.page import coloured, columns
from traindx.revised import revised
from traindx.safe_text import block, line
from traindx.session import confirm_fix, direct, record_knowledge, resume_session_sync
from traindx.session_folder import SessionFolder, events_of
from traindx.session_result import SessionResult
from traindx.stopping import ctrl_c_ends_a_prompt
from traindx.terminal import render_gate
from traindx.typed_commands import from_here, workspace_option
from traindx.typed_next import next_commands
from traindx_tools.errors import TraindxError

EXIT_CODES = {"healthy": 0, "fixed": 0, "needs_more_data": 3, "effect_not_shown": 3, "not_executed": 3}
"""Exit code of a session by status; every other status means: a problem was diagnosed and is not settled, 1."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, at a prompt too: 128 + SIGINT."""


_CHOICES = "[A] apply the targeted fix, [B] the broader one, [r]eject, re[v]ise, [l]ater"
_OBJECTIONS: dict[str, Literal["reject", "revise"]] = {"r": "reject", "reject": "reject", "v": "revise",
                                                       "revise": "revise"}
"""What stands behind one of them on the same line is the comment."""


def interactive() -> bool:
    """True where a person can be asked: both input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def say(text: str = "") -> None:
    """A question, or what goes on meanwhile: on standard error, so that it is seen where the result is redirected."""
    click.echo(text, err=True)


def tell(text: str) -> None:
    """What a command comes to, its result: on standard output, so that `traindx approve ... > FILE` holds it."""
    click.echo(text)


def asked_within(watch: Watch) -> Callable[[Diagnosis], Decision | None]:
    """Asks the person, with the live view out of the way."""

    def ask(diagnosis: Diagnosis) -> Decision | None:
        with watch.paused():
            return ask_approval(diagnosis, watch.session)

    return ask


@contextlib.contextmanager
def with_a_way_back(watch: Watch) -> Iterator[None]:
    """Ctrl-C says which session it leaves, and how to go on with it."""
    try:
        yield
    except KeyboardInterrupt:
        if not watch.session:
            raise
        raise KeyboardInterrupt(left_words(SessionFolder(Path(watch.session)))) from None


def _typed(command: str, session: str) -> str:
    """A command of `COMMANDS` for a session's folder, as it works from the current directory."""
    folder = SessionFolder(Path(session))
    return f"traindx {command.format(s=folder.path.name)}{workspace_option(str(folder.workspace))}"


class _CtrlC:
    """Whether the last prompt was ended by Ctrl-C: where the session stands is told, and the exit code tells it too."""

    pressed = False

    @classmethod
    def code(cls, otherwise: int) -> int:
        """130 once after Ctrl-C."""
        pressed, cls.pressed = cls.pressed, False
        return INTERRUPTED if pressed else otherwise


def prompted(text: str, default: str = "") -> str | None:
    """What a person types; None where they press Ctrl-C, or where the input ends: that decides nothing."""
    try:
        with ctrl_c_ends_a_prompt():
            return str(click.prompt(text, err=True, default=default, show_default=bool(default and len(default) > 1)))
    except (click.Abort, KeyboardInterrupt) as ended:  # click makes the one of the other, and of the input's end
        _CtrlC.pressed = isinstance(ended, KeyboardInterrupt) or isinstance(ended.__context__, KeyboardInterrupt)
        say()
        return None


def resumed(folder: str | Path, *, ask: bool, **terms: Any) -> SessionResult:
    """The session, gone on with whom it was begun, and watched. `ask`: whether a person is asked at the gate."""
    goes_on_offline = not going_on(folder)
    with watching(say, phases=not goes_on_offline) as watch, with_a_way_back(watch):
        return resume_session_sync(folder, approve=asked_within(watch) if ask and interactive() else None,
                                   hear=watch.hear, **terms, **going_on(folder, watch.hear))


def ask_approval(diagnosis: Diagnosis, session: str = "") -> Decision | None:
    """Shows Gate 4 and asks; None for "later". `session`: its folder, so that a person can also decide elsewhere."""
    show_gate(diagnosis)
    if session:
        folder = SessionFolder(Path(session))
        _say_what_the_comment_did(folder)
        say(f"Session {folder.path.name} waits. From another shell: traindx approve {folder.path.name} --option A "
            f"--workspace {shlex.quote(str(folder.workspace.resolve()))}")
    offered = {f.option for f in diagnosis.options}
    while True:
        answer = (prompted(f"Your decision: {_CHOICES}", "l") or "l").strip()
        choice, _, said = answer.partition(" ")
        if answer.lower() in ("l", "later"):
            return None
        if answer.upper() in offered:
            return Decision(verdict="approve", diagnosis_digest=diagnosis.digest(), option=answer.upper())
        if verdict := _OBJECTIONS.get(choice.lower().rstrip(":,")):
            comment = said.strip() or prompted("What do you know that speaks against it?")
            return None if comment is None else Decision(verdict=verdict, diagnosis_digest=diagnosis.digest(),
                                                         comment=comment)
        say(f"'{line(answer)}' is none of the choices: one of them first, as in: v {line(answer, 60)}" if said else
            f"'{line(answer)}' is none of the choices")


def _say_what_the_comment_did(folder: SessionFolder) -> None:
    """After a revision, in front of the next question: whether it is another diagnosis now."""
    with contextlib.suppress(OSError, TraindxError):
        if told := revised(events_of(read_journal(folder.journal))):
            say(line(told))


def show_gate(diagnosis: Diagnosis, asks: bool = True) -> None:
    """Gate 4 as wide as the terminal: before a question on standard error with it, else as the result."""
    stream = sys.stderr if asks else sys.stdout
    (say if asks else tell)(render_gate(diagnosis, colour=coloured(stream), width=columns(stream)))


def describe(result: SessionResult) -> Iterator[str]:
    """Where a session stands, in lines: why, what was tried, what to type next, where it is written down."""
    yield f"Session {result.session}: {status_words(result.status)}"
    yield from (f"  degraded: {line(lack)}" for lack in result.degraded)
    yield f"  {line(result.reason)}"
    if result.revised:
        yield f"  {line(result.revised)}"
    if result.status == "awaiting_approval" and result.diagnosis is not None:
        d = result.diagnosis
        yield f"  cause: {line(d.claim or d.root_cause)}"
        yield f"  {100 * d.confidence:.0f} % confident, {d.severity}{f', {line(d.location)}' if d.location else ''}"
    yield from (f"  experiment: {line(e.statement)}" for e in result.experiments)
    for attempt in result.attempts:
        yield from _attempt(attempt)
    for note in result.notes:
        yield f"  note: {line(note)}"
    if result.changed:
        yield f"  files: {', '.join(line(f) for f in result.changed)}"
    commands = next_commands(result)
    if result.tests:
        yield "  what you named can be tested by itself, in copies: one change, one control (the first command below)"
    steps = [s for s in result.next_step.splitlines() if s not in commands]
    if result.status in _TOLD_BY_COMMANDS:
        steps = []
    yield from (f"  next: {line(s)}" for s in steps[:1] if len(steps) == 1)
    yield from ("  next:", *(f"    - {line(s)}" for s in steps)) if len(steps) > 1 else ()
    if len(commands) == 1:
        yield f"  {_ASIDE.get(result.status, 'then')}: {commands[0]}"
    elif commands:
        yield from ("  then one of:", *(f"    {command}" for command in commands))
    yield from (f"  {name}: {from_here(path)}" for name, path in result.documents.items()
                if name.endswith((".md", ".html")))


_TOLD_BY_COMMANDS = frozenset({"awaiting_approval", "rejected", "answered", "interrupted", "fixed", "effect_not_shown",
                               "not_executed"})
"""Statuses whose next step is one of the commands, or (a fixed one's) a question that is asked at a terminal."""


_ASIDE = {"fixed": "nothing is left to do; to keep what was learned for the next session here"}
"""What stands before the one command of a status that needs nothing more."""


RESULT_WORDS: dict[VerificationResult, str] = {
    "fixed": "verified", "passed_effect_not_shown": "passed, effect not shown", "no_effect": "no effect",
    "not_executed": "not verified, the change was not executed", "failed": "failed"}
"""A result of a verification as a person reads it."""


def status_words(status: str) -> str:
    """A status as a person reads it."""
    return status.replace("_", " ")


def _attempt(attempt: Attempt) -> Iterator[str]:
    seen = attempt.verification
    state = "not verified yet" if seen is None else RESULT_WORDS[seen.result]
    kept = ", undone" if attempt.undone else ", taken back" if attempt.reverted else ""
    yield f"  fix {attempt.number}, option {attempt.option}: {line(attempt.summary).rstrip('.')}: {state}{kept}"
    if seen is None:
        return
    told = [c for c in seen.compared if not any(c in r for r in seen.reasons)]
    yield from (f"    {line(r)}" for r in (*seen.reasons, *told, *seen.notes))
    yield from _table(seen.table)


def _table(rows: Sequence[MetricChange]) -> Iterator[str]:
    """Before and after, a blank line between what the symptom is about and the rest."""
    if not rows:
        return
    cells = [("mean of the last fifth", "before", "after", ""),
             *((block(r.name), *_with_unit(r), r.change) for r in rows)]
    wide = [max(len(row[i]) for row in cells) for i in range(3)]
    for number, (name, before, after, change) in enumerate(cells):
        if number > 1 and rows[number - 2].asked and not rows[number - 1].asked:
            yield ""
        yield f"    {name:{wide[0]}}  {before:>{wide[1]}}  {after:>{wide[2]}}  {change}".rstrip()


def _with_unit(row: MetricChange) -> tuple[str, str]:
    """Both values as they are shown; what was not measured has no unit."""
    before, after = (f"{v} {row.unit}" if row.unit and v != "-" else v for v in (row.before, row.after))
    return before, after


@dataclass(frozen=True)
class Terminal:
    """Goes on with a session for as long as the person at the terminal can settle what it waits for."""

    resume: Callable[[SessionResult], SessionResult]

    def settle(self, result: SessionResult) -> SessionResult:
        """Asks what the session waits for until it waits for nothing that a terminal can settle."""
        while True:
            if result.status == "awaiting_approval" and result.diagnosis is not None and not interactive():
                show_gate(result.diagnosis, asks=False)  # nobody was asked, so it was not shown
            for text in describe(result):
                tell(text)
            after = self._step(result)
            if after is None:
                return result
            result = after

    def _step(self, result: SessionResult) -> SessionResult | None:
        if not interactive():
            return None
        steps: dict[str, Callable[[SessionResult], SessionResult | None]] = {
            "awaiting_edit": self._edited, "awaiting_verification": self._checked, "three_strikes": self._directed,
            "fixed": self._remember, "effect_not_shown": self._checked, "not_executed": self._checked,
        }
        step = steps.get(result.status)
        return step(result) if step is not None else None

    def _edited(self, result: SessionResult) -> SessionResult | None:
        return self.resume(result) if agreed("Have you made this change?", default="n") else None

    def _checked(self, result: SessionResult) -> SessionResult | None:
        answer = (prompted("Did the fix help? [y]es, [n]o, [l]ater", "l") or "l").lower()[:1]
        comment = prompted("What did you see?", "checked by hand") if answer in ("y", "n") else None
        if comment is None:
            return None
        confirm_fix(result.folder, passed=answer == "y", comment=comment)
        return self.resume(result)

    def _directed(self, result: SessionResult) -> SessionResult | None:
        answer = (prompted("Try a fundamentally different approach? [d]ifferent, [s]top, [l]ater", "l") or "l")
        if answer.lower()[:1] not in ("d", "s"):
            return None
        different = answer.lower().startswith("d")
        after = direct(result.folder, Direction(choice="different" if different else "stop"))
        return self.resume(after) if different else after

    def _remember(self, result: SessionResult) -> SessionResult | None:
        if not result.offer:
            return None
        say("What solved it can be kept for the next session here: one entry in .agents/knowledge and MEMORY.md, which "
            "the next diagnosis reads.")
        if agreed("Add what was learned to .agents/knowledge and MEMORY.md?", default="n"):
            for path in record_knowledge(result.folder, consent=True):
                say(f"  written: {path}")
        return None


def agreed(question: str, default: str = "n") -> bool:
    """Whether a person says yes; Ctrl-C is none."""
    answer = prompted(f"{question} [y/N]", default)
    return answer is not None and answer.strip().lower() in ("y", "yes")


def exit_code(result: SessionResult) -> int:
    """0 for healthy or fixed, 3 where data is missing, else 1."""
    return EXIT_CODES.get(result.status, 1)


def finish(result: SessionResult, *, approve: bool) -> int:
    """Settles what can be settled here and returns the exit code."""
    terminal = Terminal(lambda r: resumed(r.folder, ask=approve))
    return _CtrlC.code(exit_code(terminal.settle(result)))

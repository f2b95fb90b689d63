"""What the agreed command shows when it is run: in a copy, with the live instruments attached, once a state of the
code.

Text suspects, the run convicts: a session whose person agreed that a command is run need not stop at a suspicion. What
the run showed is kept in the session's folder, so that a later look, or a process that takes over, reads it and runs
nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traindx.diagnose import Report
from traindx.fruitless import fruitless
from traindx.investigators.base import Case
from traindx.joining import joined
from traindx.model import Verify
from traindx.offered import seen_from_here, typed
from traindx.proving import SPENT
from traindx.rerun import DEFAULT_TIMEOUT, NOT_ENDED, with_rerun
from traindx.verify import shown
from traindx_tools import unlinked
from traindx_tools.errors import TraindxError
from traindx_tools.experiments.budget import MOST_SECONDS
from traindx_tools.finding import Finding

SHARE_OF_TIME = 0.4
"""Of the time that is left the run may take this much: the fix and its verification need the rest."""
SHARE_FOR_EXPERIMENTS = 0.2
KEPT = "seen.json"
OF = "of.txt"
"""The digest of the files that were run."""


def at_most(seconds_left: float, verify: Verify) -> float:
    """Seconds that the run and the experiments after it may take together."""
    run = min(verify.timeout or DEFAULT_TIMEOUT, max(seconds_left * SHARE_OF_TIME, 1.0))
    return run + min(seconds_left * SHARE_FOR_EXPERIMENTS, MOST_SECONDS)


def with_observed_run(report: Report, case: Case, *, may_run: bool) -> Report:
    """The report together with what the agreed command showed; as it is where none was run.

    `may_run`: whether it may be run now, where it was not yet: never before the suspicion was written down.
    """
    if case.verify is None or not case.verify.command or not case.allow_run or report.status != "needs_more_data":
        return report
    folder = _folder(case)
    if may_run and not (folder / KEPT).is_file():
        _keep(folder, *_observed(report, case, _marked(case, folder)))
    seen, note, rest, _ = _kept(folder)
    return replace(joined(report, seen, 0), remarks=(*report.remarks, note),
                   extra_checks=(*report.extra_checks, *rest)) if note else report


def lacked(case: Case) -> str:
    """What the run and its experiments had no time for, with the command that gives it, or why the command showed no
    training; "" where nothing was lacking."""
    return _kept(_folder(case))[3]


def _folder(case: Case) -> Path:
    """Where the run of these files is kept: one of other files, with as many fixes tried, is another run."""
    first = case.scratch / "evidence" / f"run-{len(case.attempts)}"
    try:
        other = (first / OF).read_text(encoding="utf-8") != case.files
    except (OSError, ValueError):
        other = False
    return first.with_name(f"{first.name}-{case.files[:8]}") if other else first


def _marked(case: Case, folder: Path) -> Path:
    """The folder, which says of which files its run is."""
    unlinked.made(folder)
    if not (folder / OF).exists():
        unlinked.write(folder / OF, case.files)
    return folder


def _observed(report: Report, case: Case, folder: Path) -> tuple[Sequence[Finding], str, Sequence[str], str]:
    """What the run adds, what is said of it, commands for what it had no time for, and that in a sentence."""
    assert case.verify is not None
    assert case.verify.command is not None
    command = shown(case.verify.command)
    timeout = min(case.verify.timeout or DEFAULT_TIMEOUT, max(case.seconds_left * SHARE_OF_TIME, 1.0))
    known = {(f.rule, str(f.where), f.statement) for f in report.seen.findings}
    minutes = max(1, round(at_most(case.seconds_left, case.verify) / 60))
    case.say(f"reading leaves the cause open: `{command}` is run with instruments, then with one change at a time, in "
             f"copies, until the cause shows: {minutes} min at most")
    try:
        share = case.seconds_left * SHARE_FOR_EXPERIMENTS
        after = with_rerun(report, command, case.workspace, folder, timeout, min(share, MOST_SECONDS),
                           case.say, screens=share <= MOST_SECONDS)
    except (TraindxError, OSError) as error:
        note = f"`{command}` was not run under the instruments: {error}"
        return (), note, (), note
    new = [f for f in after.seen.findings if (f.rule, str(f.where), f.statement) not in known]
    told = after.remarks[len(report.remarks):]
    note = " ".join(told) if told else f"`{command}` was run again in a copy"
    rest = after.extra_checks[len(report.extra_checks):]
    _, spent, left_out = note.partition(SPENT)
    if not rest and NOT_ENDED in note and timeout < (case.verify.timeout or DEFAULT_TIMEOUT):
        rest = (_with_more_time(case, command, timeout),)
        return new, note, rest, (f"`{command}` was stopped after {timeout:.0f} s, {100 * SHARE_OF_TIME:.0f} % of what "
                                 f"the session may take, and no experiment was made. More time for it: {rest[0]}")
    trained = report.seen.records and not report.seen.run.errors  # else its failing may be the fault itself
    if trained and not new and (vain := fruitless(told)):
        return new, note, (), f"{vain.rstrip('.')}. A fix cannot be verified with this command as it is."
    return new, note, rest, f"{spent}{left_out}" if rest else ""


def _with_more_time(case: Case, command: str, timeout: float) -> str:
    """A session of the same kind in which the command may take four times as long."""
    where = typed([seen_from_here(case.workspace)])
    return f"traindx debug {where} --verify {typed([command])} --run --budget {4 * timeout / SHARE_OF_TIME:.0f}"


def _keep(folder: Path, seen: Sequence[Finding], note: str, rest: Sequence[str], lacking: str) -> None:
    unlinked.made(folder)
    text = json.dumps({"note": note, "findings": [f.to_json() for f in seen], "rest": list(rest), "lacked": lacking},
                      allow_nan=False)
    half = folder / f"{KEPT}.part"
    unlinked.write(half, text)
    half.replace(folder / KEPT)


def _kept(folder: Path) -> tuple[tuple[Finding, ...], str, tuple[str, ...], str]:
    """What an earlier look kept; nothing where there is none, or where it cannot be read."""
    try:
        data = json.loads((folder / KEPT).read_text(encoding="utf-8"))
        return (tuple(Finding.from_json(f) for f in data["findings"]), str(data["note"]),
                tuple(map(str, data.get("rest", ()))), str(data.get("lacked", "")))
    except (OSError, ValueError, KeyError, TypeError):
        return (), "", (), ""

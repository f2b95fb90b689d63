"""What fixes that failed in earlier sessions of this folder say of a cause, and the decision that three ask for.

A strike of the session itself takes its cause out of the running. One of an earlier session is weaker: the files, the
command or the run may be others by now. It lowers the cause, and the person reads what was tried.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from traindx.session_folder import SessionFolder, read_session
from traindx.strikes import Ledger, LedgerDamaged, Reopening, Strike
from traindx.tried_diffs import TriedDiffs
from traindx.workspace import SCRATCH
from traindx_tools.errors import TraindxError

FAILED_FIX = -math.log(3.0)
"""Log-odds that a failed fix takes from its cause: that of a wrong cause always fails, and that of a right one, which
is put in the wrong place, is too small or is judged by an unfit command, about one time in three. Reasoned, not
measured."""


def strikes_before(workspace: Path, session: str) -> tuple[Strike, ...]:
    """The failed fixes of other sessions of this folder that count, without those that brought an error of their own.

    Empty where the ledger is damaged: any fix is refused with that error anyway.
    """
    of_the_diff = {d.key for d in TriedDiffs(workspace).entries() if d.own_error}
    return tuple(s for s in _counting(workspace) if s.key.partition("/")[0] != session and s.key not in of_the_diff)


def _counting(workspace: Path) -> tuple[Strike, ...]:
    """All strikes since their approach was last reopened."""
    counting: list[Strike] = []
    with contextlib.suppress(LedgerDamaged):
        for entry in Ledger(workspace).entries():
            if isinstance(entry, Reopening):
                counting = [s for s in counting if s.approach != entry.approach]
            else:
                counting.append(entry)
    return tuple(counting)


def shifts(strikes: Iterable[Strike]) -> Mapping[str, float]:
    """Log-odds by failure mode, of the fixes under which the symptom was measured and stayed.

    A command that failed without showing the symptom counts as a strike and says nothing of the cause.
    """
    out: dict[str, float] = {}
    for s in (s for s in strikes if s.symptom_stayed):
        out[s.approach.failure_mode] = out.get(s.approach.failure_mode, 0.0) + FAILED_FIX
    return out


def told(strikes: Iterable[Strike], mode: str) -> str:
    """What was tried of a cause before, in one sentence; "" where nothing was."""
    own = [s for s in strikes if s.approach.failure_mode == mode]
    if not own:
        return ""
    times = "once" if len(own) == 1 else f"{len(own)} times"
    each = "; ".join(f'"{s.summary.rstrip(".")}" in session {s.key.partition("/")[0]} '
                     f'({", ".join(s.learned) or "failed"})' for s in own[-3:])
    return f"A fix of this cause was tried {times} before in this folder and failed: {each}."


def open_decision(workspace: Path, refused: Iterable[str]) -> str:
    """The decision that approaches with three strikes wait for, with the command that makes it; "" where none does."""
    asked = set(refused)
    for strike in reversed(_counting(workspace)):
        if str(strike.approach) not in asked:
            continue
        name = strike.key.partition("/")[0]
        own = [s for s in _counting(workspace) if s.approach == strike.approach]
        said = (f"{len(own)} fixes of {strike.approach} failed in this folder (sessions "
                f"{', '.join(dict.fromkeys(s.key.partition('/')[0] for s in own))}): no further one is tried")
        with contextlib.suppress(TraindxError, OSError):
            waits = read_session(SessionFolder(workspace / SCRATCH / name))
            if waits.phase == "halted" and waits.halt is not None and waits.halt.halt == "three-strikes":
                return (f"{said}. The decision after three strikes is open in session {name}: traindx resume {name} "
                        "--different or --stop (strike_report.md there says what each try showed)")
        return f"{said} until a person reopens that approach and says what is different now"
    return ""

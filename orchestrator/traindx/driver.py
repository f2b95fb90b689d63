"""Drives a session: one step for each phase, until it ends or waits for a person."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from traindx import events
from traindx.changed_files import UNKNOWN
from traindx.machine import Phase
from traindx.session_report import write_report
from traindx.steps import fixing, gating, looking, settling, verifying
from traindx.steps.old_run import artifact_files
from traindx.turn import HaltRecorded, Interruption, Turn, in_thread
from traindx_tools.errors import TraindxError

Step = Callable[[Turn], Awaitable[bool]]
"""Acts on the world and records what came of it. False: the session waits for a person."""

STEPS: dict[Phase, Step] = {
    "characterize": looking.characterize,
    "hypothesize": looking.hypothesize,
    "gather": looking.gather,
    "diagnose": looking.diagnose,
    "gate": gating.present,
    "fix": fixing.fix,
    "verify": verifying.verify,
    "strike": settling.strike,
    "retrospective": settling.retrospective,
}
"""Phases without a step are ends, or wait for a person."""


async def drive(turn: Turn) -> None:
    """Go on as far as possible. What fails is recorded and resumable; cancelling is recorded and goes on upwards."""
    try:
        await in_thread(_check_since_last_turn, turn)
        waits = False
        while not waits and (step := STEPS.get(turn.session.phase)) is not None:
            waits = not await step(turn)
        if turn.report and (not waits or turn.session.attempts):  # a gate has written its own before it asked
            await in_thread(write_report, turn.folder, artifact_files(turn))
    except HaltRecorded:
        return
    except asyncio.CancelledError:
        _interrupt(turn, "cancelled")
        raise
    except Interruption as reason:
        _interrupt(turn, str(reason))
    finally:
        turn.journal.close()


def _check_since_last_turn(turn: Turn) -> None:
    """After a restart inside a read-only phase, nothing may differ from when the phase began."""
    if turn.folder.saved_fingerprint() is None:
        if turn.session.phase in ("fix", "verify", "strike"):
            turn.journal.append("note", {UNKNOWN: turn.session.phase})
        turn.watch()
    elif turn.session.phase in ("characterize", "hypothesize", "gather", "diagnose"):
        turn.halt_if_changed()


def _interrupt(turn: Turn, reason: str) -> None:
    # A full disk must not hide the reason: what was recorded before still stands and can be resumed.
    with contextlib.suppress(TraindxError):
        turn.record(events.Interrupted(reason=reason))

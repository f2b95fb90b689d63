"""After the verification: a strike and the way back, or the root-cause analysis."""

from __future__ import annotations

from datetime import datetime

from traindx import documents, events
from traindx.steps.fixing import revert
from traindx.strikes import Strike
from traindx.turn import Turn, in_thread


async def strike(turn: Turn) -> bool:
    """Revert the fix, count the strike (once), and go on or stop as the level says."""
    await in_thread(revert, turn)
    attempt = turn.session.attempts[-1]
    assert attempt.verification is not None, "a strike follows a verification"
    turn.ledger.count(Strike(
        key=f"{turn.session.id}/{attempt.number}", approach=attempt.approach, summary=attempt.summary,
        places=attempt.places, originals=attempt.originals, learned=attempt.verification.reasons))
    against = turn.ledger.strikes(attempt.approach, attempt)
    turn.record(events.Struck(level=max(len(against), 1)))
    if turn.session.phase == "halted":
        learned = tuple(f"{s.summary}: {', '.join(s.learned)}" for s in against)
        documents.write_strike_report(turn.session, turn.folder.path, learned)
    return True


async def retrospective(turn: Turn) -> bool:
    """Write down what was wrong, what helped and how long it took."""
    records = turn.journal.records
    decided = next((r.at for r in records if r.body.get("kind") == "decided"), records[-1].at)
    facts = documents.retrospective(turn.session, seconds=_between(records[0].at, records[-1].at),
                                    seconds_to_cause=_between(records[0].at, decided))
    files = documents.write_analysis(turn.session, turn.folder.path, facts)
    turn.record(events.Recorded(files=files))
    return True


def _between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()

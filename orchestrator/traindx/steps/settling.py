"""After the verification: a strike and the way back, or the root-cause analysis."""

from __future__ import annotations

from datetime import datetime

from traindx import documents, events
from traindx.steps.fixing import changes_of, revert
from traindx.strikes import Strike
from traindx.tried_diffs import TriedDiff, fingerprint
from traindx.turn import Turn, in_thread


async def strike(turn: Turn) -> bool:
    """Revert the fix, count the strike (once), and go on or stop as the level says."""
    await in_thread(revert, turn)
    attempt = turn.session.attempts[-1]
    assert attempt.verification is not None, "a strike follows a verification"
    _remember_the_diff(turn)
    turn.ledger.count(Strike(
        key=f"{turn.session.id}/{attempt.number}", approach=attempt.approach, summary=attempt.summary,
        places=attempt.places, originals=attempt.originals, learned=attempt.verification.reasons,
        symptom_stayed=attempt.verification.result == "no_effect"))
    against = turn.ledger.strikes(attempt.approach, attempt)
    turn.record(events.Struck(level=max(len(against), 1)))
    if turn.session.phase == "halted":
        earlier = tuple(s for s in against if s.key.partition("/")[0] != turn.session.id)
        documents.write_strike_report(turn.session, turn.folder.path, earlier)
    return True


async def retrospective(turn: Turn) -> bool:
    """Write down what was wrong, what helped and how long it took."""
    _remember_the_diff(turn)
    records = turn.journal.records
    decided = next((r.at for r in records if r.body.get("kind") == "decided"), records[-1].at)
    facts = documents.retrospective(turn.session, seconds=_between(records[0].at, records[-1].at),
                                    seconds_to_cause=_between(records[0].at, decided))
    files = documents.write_analysis(turn.session, turn.folder.path, facts)
    turn.record(events.Recorded(files=files))
    return True


def _remember_the_diff(turn: Turn) -> None:
    """The workspace's ledger of diffs: this one was tried, with what came of it. Noted once."""
    attempt = turn.session.attempts[-1]
    seen = attempt.verification
    assert seen is not None, "what is settled was verified"
    changes = changes_of(turn, attempt.number)
    if changes:
        turn.tried.add(TriedDiff(key=f"{turn.session.id}/{attempt.number}", fingerprint=fingerprint(changes),
                                 session=turn.session.id, summary=attempt.summary, result=seen.result,
                                 reasons=seen.reasons, own_error=seen.own_error))


def _between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()

"""Gate 4: present the diagnosis, and wait for a person, in this process or on disk."""

from __future__ import annotations

from traindx import documents, events, gate
from traindx.claimed import tests_of
from traindx.model import Decision
from traindx.session_report import write_report
from traindx.steps.old_run import artifact_files
from traindx.strikes import StrikeRefused
from traindx.turn import NO_MORE, Interruption, Turn, in_thread


async def present(turn: Turn) -> bool:
    """Write the diagnosis down and ask. False: the session waits on disk for `decide`."""
    diagnosis = turn.session.diagnosis
    assert diagnosis is not None, "the gate is only reached with a diagnosis"
    documents.write_diagnosis(turn.session, turn.folder.path)
    if turn.report:
        await in_thread(write_report, turn.folder, artifact_files(turn))
    tried = sum(not a.undone for a in turn.session.attempts)
    if tried >= turn.budget.attempts:
        raise Interruption(f"{tried} fixes were tried and {NO_MORE}")
    digest = diagnosis.digest()
    if turn.approve is None or digest in turn.asked:
        return False
    turn.asked.add(digest)
    decision = await turn.ask(turn.approve, diagnosis)
    if turn.session.phase != "gate" or turn.session.diagnosis != diagnosis:
        return True  # somebody decided from elsewhere meanwhile: what is on disk counts
    if decision is None:
        return False
    if not isinstance(decision, Decision):
        raise Interruption(f"the approval callback returned a {type(decision).__name__}; return a Decision, or None to "
                           "leave the session waiting")
    try:
        gate.check_decision(decision, diagnosis)
        chosen = diagnosis.option(decision.option) if decision.verdict == "approve" and decision.option else None
        turn.ledger.allow(diagnosis, chosen)
    except (gate.ApprovalRefused, StrikeRefused) as error:
        raise Interruption(str(error)) from error
    turn.record(events.Decided(decision=decision))
    if decision.verdict != "approve":
        tests = await in_thread(tests_of, decision.comment, turn.workspace, turn.opening)
        turn.journal.append("note", {"tests": list(tests)})
    return True

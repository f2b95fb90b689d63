"""Characterize, hypothesize, gather, diagnose: the phases in which nothing is written but the session's own files."""

from __future__ import annotations

import contextlib

from traindx import events, gate, patching
from traindx.characterize import change_evidence, recent_changes
from traindx.model import Diagnosis, Healthy, NeedsData
from traindx.patching import PatchRefused, ReadOnlyFile
from traindx.steps.made_of import remember
from traindx.strike_levels import STRIKES_OUT
from traindx.turn import Interruption, Turn, in_thread
from traindx.workspace import PathRefused, editable

QUICK_SECONDS = 15 * 60.0
"""A quick path that takes longer gives way to the full protocol (requirement B2)."""


async def characterize(turn: Turn) -> bool:
    """The symptom's form, with what changed in the code since the last good commit."""
    changes = await in_thread(recent_changes, turn.workspace, turn.session.symptom, turn.opening.good_commit)
    symptom = await turn.look(turn.investigator.characterize)
    turn.note(events.Characterized(symptom=symptom, evidence=change_evidence(changes)))
    return True


async def hypothesize(turn: Turn) -> bool:
    """Ranked hypotheses."""
    found = await turn.look(turn.investigator.hypothesize)
    turn.note(events.Hypothesized(hypotheses=found.ranked, evidence=found.evidence, quick=found.quick))
    return True


async def gather(turn: Turn) -> bool:
    """New evidence, and the hypotheses as they stand with it."""
    found = await turn.look(turn.investigator.gather)
    turn.note(events.GatheredEvidence(evidence=found.evidence, hypotheses=found.hypotheses))
    return True


async def diagnose(turn: Turn) -> bool:
    """A diagnosis that is fit for the gate, or the honest "needs more data" or "healthy"."""
    if turn.session.quick and turn.clock() - turn.started > QUICK_SECONDS:
        turn.record(events.QuickPathEnded(reason=f"the quick path took more than {QUICK_SECONDS / 60:g} minutes"))
        return True
    conclusion = await turn.look(turn.investigator.diagnose)
    if isinstance(conclusion, NeedsData):
        turn.note(events.DataNeeded(needs=conclusion))
    elif isinstance(conclusion, Healthy):
        turn.note(events.FoundHealthy(healthy=conclusion))
    elif isinstance(conclusion, Diagnosis):
        reasons = await in_thread(unfit, turn, conclusion)
        if not reasons:
            await in_thread(remember, turn, conclusion)
        turn.note(events.SentBack(reasons=reasons) if reasons else events.Diagnosed(diagnosis=conclusion))
    else:
        raise Interruption(f"the investigator {turn.investigator.name!r} concluded with a "
                           f"{type(conclusion).__name__}, which is no diagnosis")
    return True


def unfit(turn: Turn, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Why the diagnosis may not be presented: incomplete, struck out, or not made for the files as they are."""
    reasons = list(gate.problems(diagnosis, turn.session.evidence))
    refusals = [turn.ledger.refusal(diagnosis, fix) for fix in diagnosis.options]
    if refusals and all(refusals):  # a single refused option is refused when it is chosen
        reasons += [r for r in refusals if r is not None]
    for fix in diagnosis.options:
        try:
            with contextlib.suppress(ReadOnlyFile):  # said when it is to be written: a diagnosis writes nothing
                patching.plan(turn.workspace, fix.edits)
            for path, _, _ in fix.places:
                editable(turn.workspace, path)
        except (PatchRefused, PathRefused) as error:
            reasons.append(f"option {fix.option}: {error}")
    if diagnosis.approach in turn.session.struck_out:
        reasons.append(f"{diagnosis.approach} has {STRIKES_OUT} strikes: try a fundamentally different approach")
    return tuple(dict.fromkeys(reasons))

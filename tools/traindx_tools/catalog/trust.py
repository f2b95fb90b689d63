"""How far a first lead can be trusted: what was measured for others of its kind, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.catalog.precision import load_precision
from traindx_tools.weighing import Hypothesis

_NAMED = {"cause": "a cause", "sign": "a sign", "companion": "a companion", "hint": "a hint"}


def how_often_right(hypotheses: Sequence[Hypothesis]) -> str:
    """How often what speaks for the first hypothesis was right elsewhere, by its role; the figures are measured.

    See `precision.py`: the judgements are on programs and runs that the author of the check had not seen.
    """
    first = next(iter(hypotheses), None)
    if first is None or not first.speaks_for:
        return "No evidence speaks for any of these: they are what is usual with this symptom."
    role = max(first.speaks_for, key=lambda w: w.weight).role
    found = load_precision().roles.get(role)
    if found is None or not found.judged:
        return "How often leads like the first one are right was not measured."
    return (f"A lead, not knowledge: evidence of the kind that the first one rests on ({_NAMED[role]}) was right in "
            f"{found.right} of {found.judged} judgements on material that its author had not seen.")

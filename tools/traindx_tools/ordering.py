"""The order of hypotheses: the surest first, and of those between which the evidence does not decide the usual one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from traindx_tools.catalog.precision import ROLES
from traindx_tools.catalog.usual import NOT_USUAL, usual_first
from traindx_tools.competition import share
from traindx_tools.finding import Bearing, Strength
from traindx_tools.weighing import Hypothesis

WEAK = 0.20
"""Below, what speaks for a mode tells little: the mode that accounts for more of what was seen comes first."""
TOLD_APART = 1.25
"""Times as sure: weights are measured on some hundred findings, and tell less apart than that."""
_Place = tuple[float, int, int, float, tuple[int, ...], int, int, tuple[int, ...], float, str]
JUST_ABOVE = WEAK + 1e-6
"""Where a cause that was found itself stands, however little it is believed."""

PROVEN = 0.95
"""From here on a cause counts as proven: of several, the one that explains the worst that was seen comes first."""


def _found_itself(one: Hypothesis) -> bool:
    """Whether a cause was found and not only what it may lead to: a surprising one is no guess among guesses."""
    return any(w.bearing is Bearing.CAUSE and w.role == "cause" and w.strength is not Strength.GUESSED
               for w in one.speaks_for)


def _is_weak(one: Hypothesis) -> bool:
    return one.confidence < WEAK and not _found_itself(one)


def levelled(ordered: Iterable[Hypothesis]) -> Iterable[Hypothesis]:
    """Equals of which the usual one comes first: none of the weak ones claims more than a weak one before it."""
    most = WEAK
    for h in ordered:
        told = replace(h, confidence=most) if _is_weak(h) and h.confidence > most else h
        most = told.confidence if _is_weak(h) else most
        yield told


def place_in_order(one: Hypothesis) -> _Place:
    """The order of hypotheses: the surest first; of proven ones the one that explains the worst that was seen.

    Of equals the one first of which the findings are nearer signs, and then the one that asked for more to be so. Weak
    ones that the weights do not tell apart are equals too: of them the usual one comes before the others.
    """
    sure = share(one.score, one.rivals) if one.rivals else one.confidence
    nearest = tuple(sorted(ROLES.index(w.role) if w.role in ROLES else len(ROLES) for w in one.speaks_for))
    weak = _is_weak(one)
    level = WEAK if weak else min(max(one.confidence, JUST_ABOVE), PROVEN)
    near = float(round(math.log(max(sure, 1e-6), TOLD_APART))) if weak else round(sure, 3)
    asked = sum(w.conditions for w in one.speaks_for)
    usual = usual_first().get(one.mode.id, NOT_USUAL) if weak else 0
    return (-level, -one.seen if one.confidence >= PROVEN else 0,
            -one.explained if weak else 0, -near, nearest[:1] if weak else nearest, -asked, usual, nearest, -one.score,
            one.mode.id)

"""The order of causes and effects among hypotheses: people ask why, not what."""

from __future__ import annotations

from collections.abc import Sequence

from traindx_tools.finding import Bearing
from traindx_tools.weighing import Hypothesis, explains_error, of_one_rank

LIKELY_CAUSE = 0.10
"""From here on a cause stands before its effect, however sure the effect is: twice what a mode has before evidence."""


def _may_bring_about(cause: Hypothesis, effect: Hypothesis) -> bool:
    """Whether a cause stands before an effect: the catalog says that it brings it about, or it was itself seen in the
    run and would show as the effect does. What is seen of values (dead, saturated, vanishing) has a cause of its own.
    """
    if any(of_one_rank(w.finding) for w in effect.speaks_for) and not explains_error(cause.speaks_for):
        return False
    if cause.confidence < LIKELY_CAUSE or cause.mode.effect:
        return effect.mode.id in cause.mode.causes and cause.confidence >= LIKELY_CAUSE
    seen = any(w.in_run and w.bearing is Bearing.CAUSE and w.role == "cause" for w in cause.speaks_for)
    return effect.mode.id in cause.mode.causes or (seen and bool(set(cause.mode.symptoms) & set(effect.mode.symptoms)))


def causes_first(ordered: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses with each effect behind a cause of it that has evidence of its own: people ask why, not what.

    Where one rank failed first its error is the event to explain: what its message speaks for takes the place of it.
    """
    out: list[Hypothesis] = []
    waiting: list[Hypothesis] = []
    for h in ordered:
        if h in out:
            continue
        if any(of_one_rank(w.finding) and w.role == "cause" for w in h.speaks_for):
            out += [c for c in ordered if c not in out and c is not h and _may_bring_about(c, h)][:1]
            out.append(h)
            continue
        if h.mode.effect and any(c not in out and _may_bring_about(c, h) for c in ordered if c is not h):
            waiting.append(h)
            continue
        out.append(h)
        out += [w for w in waiting if _may_bring_about(h, w)]
        waiting = [w for w in waiting if w not in out]
    return [*out, *waiting]

"""The gradient norm is exactly zero.

A gradient that is exactly 0 is no small gradient: there is no path from the loss to the parameters (detached, frozen,
all units dead), the loss is constant, or every sample's weight is 0 (all advantages 0 in reinforcement learning). A log
that prints four decimals writes 0.0000 for a small one, though: where the values before come down to the last printed
place by themselves, and the loss has fallen, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import improved, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, printed_unit, track
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

MOSTLY = 0.9
ENOUGH = 3
RISING, RISEN = 4, 0.1
"""Records in which an accuracy never falls, and by how much it rises over them."""

RULE = Rule(
    id="L104",
    name="gradient-zero",
    title="The gradient is exactly zero",
    severity=Severity.HIGH,
    sees="Gradient norms, of the whole model or of a module, that are exactly 0 in all records or from one on.",
    matters="Parameters without a gradient do not move; the run costs time and changes nothing.",
    alike=("A norm printed with few decimals that shrinks to 0.0000 as the loss converges.",
           "A module that is frozen on purpose.",
           "Single zero records in reinforcement learning: a batch in which all advantages happened to be 0."),
    confirm=("After one backward pass list the parameters whose .grad is None (no path) or all zero (a dead path).",
             "Reinforcement learning: print the advantages of one batch before they enter the loss."),
    thresholds={
        "mostly": Threshold(MOSTLY, "share of the records that are 0", "single zeros happen in healthy runs"),
        "enough": Threshold(ENOUGH, "records", "fewer say nothing"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """One finding for the whole norm; else one for the modules whose norm is 0 beside others that are alive."""
    whole = track(run.first("grad_norm", group="train"))
    if whole is not None and (start := _zero_from(whole)) is not None:
        if not _explained(run, whole, start) and not _learns(run, start):
            yield _report(run, whole, start)
        return
    yield from _modules(run)


def _zero_from(t: Track) -> int | None:
    """Index from which the norm is zero until the end, 0 where it mostly is throughout; None where it is alive."""
    zero = t.y == 0
    if int(zero.sum()) < ENOUGH:
        return None
    if float(zero.mean()) >= MOSTLY:
        return 0
    alive = int(np.flatnonzero(~zero)[-1]) + 1
    return alive if len(t) - alive >= max(5, len(t) // 5) else None


def _learns(run: Run, start: int) -> bool:
    """Whether the held-out accuracy rises from record to record all along: then the zeros are of something else, such
    as a part that is frozen. Parameters without a gradient give the same answers each time."""
    score = track(run.first("accuracy"))
    if start or score is None or len(score) < RISING:
        return False
    return bool((np.diff(score.y) >= 0).all()) and float(score.y[-1] - score.y[0]) >= RISEN


def _explained(run: Run, t: Track, start: int) -> bool:
    """Whether the zeros can be small numbers that were rounded away in a run that has learned."""
    loss = track(main_loss(run))
    if improved(loss) < 0.3:
        return False
    if start == 0:
        return (printed_unit(t.y) or 0) >= 0.1 if (t.y > 0).any() else True
    before = t.y[max(0, start - 5): start]
    return float(np.median(before)) <= 20 * (printed_unit(t.y) or 0.0) or bool(loss and abs(loss.y[-1]) < 1e-6)


def _report(run: Run, t: Track, start: int) -> Finding:
    loss = track(main_loss(run))
    since = "in every record" if start == 0 else f"from {t.place(start)} on"
    before = f", after {number(t.y[start - 1])} at {t.place(start - 1)}" if start else ""
    stays = f"; the {loss.series} ends at {number(loss.y[-1])}" if loss is not None else ""
    return RULE.finding(
        f"grad_norm is exactly 0 {since} ({len(t) - start} records){before}{stays}", t.at(start, -1), t.series.source,
        bearing=Bearing.SIGN,
        measured={"metric": "grad_norm", "scope": "whole", "onset": "from-start" if start == 0 else "later",
                  "position": float(t.series.position[t.index[start]]), "records": len(t) - start,
                  "reinforcement": is_reinforcement(run), "loss_zero": bool(loss is not None and not loss.y.any())})


def _modules(run: Run) -> Iterator[Finding]:
    names = dict.fromkeys(s.name for s in run.series if s.name.startswith("grad_norm/"))
    tracks = [t for name in names if (t := track(run.first(name))) is not None and len(t) >= ENOUGH]
    silent = [t for t in tracks if not t.y.any()]
    if not silent or len(silent) == len(tracks):
        return
    t = silent[0]
    parts = ", ".join(s.series.name.partition("/")[2] for s in silent[:4])
    yield RULE.finding(
        f"the gradient norm of {parts} is exactly 0 in all {len(t)} records while {len(tracks) - len(silent)} other "
        "modules have gradients", t.at(0, -1), t.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM,
        measured={"metric": t.series.name, "scope": "module", "module": parts, "onset": "from-start",
                  "modules": len(silent)})

"""The loss blows up in the first steps, at a learning rate that starts at its full height.

Adaptive optimizers have no estimate of the gradient's second moment in their first steps, and fresh networks have their
steepest curvature there; a short warm-up avoids both. The finding needs the coincidence: full rate from the first
record *and* a loss that rises well above its start within the first part of the run and has not come back when the run
ends. A rise that comes back is only remarked on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import is_adversarial, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.schedules import learning_rates
from traindx_tools.on_logs.curves.shapes import Track, number, ratio, tail_level, track
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

EARLY, RISE, FULL = 0.15, 2.0, 0.95

RULE = Rule(
    id="L305",
    name="lr-no-warmup",
    title="The loss blows up early at full learning rate",
    severity=Severity.MEDIUM,
    sees="A learning rate that never warms up, and a loss that doubles in the first part of the run.",
    matters="The first steps can destroy a pretrained model or leave a fresh one where it does not recover.",
    alike=("A learning rate that is too high throughout: the loss does not come back at all (L106, L307).",
           "An early spike that is gone soon: a remark at most."),
    confirm=("Add a linear warm-up over the first 2 to 5 % of the steps: the early rise must go away.",),
    thresholds={
        "early": Threshold(EARLY, "of the records", "later rises have other causes"),
        "rise": Threshold(RISE, "times the start", "beyond the scatter of batches"),
        "full": Threshold(FULL, "of the peak at the first record", "a schedule without warm-up starts at its peak"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    loss = track(main_loss(run))
    rates = learning_rates(run)
    if loss is None or not rates or len(loss) < 20 or not bool((loss.y > 0).all()):
        return
    rate = rates[0]
    if not rate.y.any():
        return
    if is_reinforcement(run) or is_adversarial(run) or rate.y[0] < FULL * rate.y.max():
        return
    early = loss.y[: max(4, int(EARLY * len(loss)))]
    i = int(np.argmax(early))
    height = float(early[i])
    if i == 0 or height < RISE * loss.y[0] or height - loss.y[0] < 8 * loss.noise or not loss.series.finite[-1]:
        return
    end = tail_level(loss.y)
    if end < 0.9 * loss.y[0] and float(np.median(loss.y[len(loss) // 2:])) < float(loss.y[0]):
        return  # it came back and learned: L107 remarks on it
    yield _report(loss, rate, i, end)


def _report(loss: Track, rate: Track, i: int, end: float) -> Finding:
    return RULE.finding(
        f"{loss.series} rises from {number(loss.y[0])} to {number(loss.y[i])} by {loss.place(i)} at the full learning "
        f"rate of {number(rate.y[0])} (no warm-up), and ends at {number(end)}", loss.at(0, i), loss.series.source,
        bearing=Bearing.COMPANION,
        measured={"first": float(loss.y[0]), "peak": float(loss.y[i]), "last": end, "lr": float(rate.y[0]),
                  "ratio": ratio(float(loss.y[i]), float(loss.y[0])),
                  "position": float(loss.series.position[loss.index[i]])})

"""The norm of the weights falls to a fraction of its start while nothing is learned.

A weight decay that is not small against the gradients pulls every weight to zero: the model forgets what it had and
gives the same output for all inputs. Regularised runs lose some norm, networks with normalisation layers lose a lot
of it and go on learning; this rule asks for nine tenths of the norm and a loss that ends no better than it began.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import improved, main_loss
from traindx_tools.on_logs.curves.shapes import end_words, head_level, number, ratio, start_words, tail_level, track
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

LEFT, LEARNED, ENOUGH = 0.1, 0.05, 5

RULE = Rule(
    id="L219",
    name="weights-shrink",
    title="The weights shrink towards zero",
    severity=Severity.HIGH,
    sees="The norm of the weights at its start and its end, and whether the loss improved.",
    matters="A model without weights gives a constant; training longer makes it smaller still.",
    alike=("Networks with normalisation layers: their scale does not matter, and the loss falls.",
           "Pruning that is meant."),
    confirm=("Train 200 steps with weight_decay=0: the norm stays and the loss falls.",
             "Compare lr * weight_decay * |w| with lr * |gradient| of one layer."),
    thresholds={
        "left": Threshold(LEFT, "of the norm at the start", "decay over a whole run leaves more than half, usually"),
        "learned": Threshold(LEARNED, "relative fall of the loss", "more is learning"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    norm, loss = track(run.first("weight_norm", group="train")), track(main_loss(run))
    if norm is None or loss is None or len(norm) < ENOUGH or len(loss) < ENOUGH:
        return
    first, last = head_level(norm.y), tail_level(norm.y)
    if first <= 0 or last > LEFT * first or improved(loss) > LEARNED:
        return
    yield RULE.finding(
        f"{norm.series.original} shrinks from {start_words(norm)} to {end_words(norm)} "
        f"({number(ratio(first, last))} times) up to {norm.place(-1)}, while {loss.series} goes from "
        f"{start_words(loss)} to {end_words(loss)}", norm.at(0, -1), norm.series.source, bearing=Bearing.SIGN,
        measured={"first": first, "last": last, "loss_first": head_level(loss.y), "loss_last": tail_level(loss.y)})

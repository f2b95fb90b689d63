"""The loss turns at a change that the log announces, and keeps rising.

Curriculum stages, a longer context, new data or an unfrozen part change the gradient's scale at once, while learning
rate and optimizer moments are still those of the easier stage. Harder data alone raise the loss by a step and then it
falls again; a loss that goes on rising record by record after the announced change is being driven up by its updates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import is_adversarial, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, rank_correlation, track, value_near
from traindx_tools.on_logs.run import Note, Run
from traindx_tools.rules import Rule, Threshold

BEFORE, AFTER = 3, 4
STEP, CLIMB, TREND = 1.15, 1.3, 0.7

RULE = Rule(
    id="L218",
    name="rise-after-change",
    title="The loss keeps rising after an announced change of data or stage",
    severity=Severity.HIGH,
    sees="The loss before and after a line that announces a curriculum stage, other data or an unfrozen part.",
    matters="Everything learned before the change is being lost, while the log looks like a planned transition.",
    alike=("Harder data: one step up, then a falling loss.", "A learning rate that jumps at the same place: L302.",
           "A loss that had turned before the change: L106 alone."),
    confirm=("Evaluate the old data after the change: a loss that rises there too is damage, not difficulty.",
             "Repeat the change with a third of the learning rate and a short warm-up."),
    thresholds={
        "step": Threshold(STEP, "times the level before, at the latest by the last record", "beyond usual scatter"),
        "climb": Threshold(CLIMB, "times from the first record after the change to the end", "more than a plateau"),
        "trend": Threshold(TREND, "rank correlation of loss and position after the change", "0.7 is a clear trend"),
        "records": Threshold(AFTER, "records after the change, at least", "fewer show no trend"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the first announced change after which the loss keeps rising."""
    t = track(main_loss(run))
    if t is None or is_reinforcement(run) or is_adversarial(run):
        return
    for note in run.notes:
        if note.kind == "change" and note.source == t.series.source:
            found = _turned(run, t, note)
            if found is not None:
                yield found
                return


def _turned(run: Run, t: Track, note: Note) -> Finding | None:
    cut = int(np.searchsorted(t.series.line[t.index], note.line))
    before, after = t.y[:cut], t.y[cut:]
    if len(before) < BEFORE or len(after) < AFTER or not (before > 0).all() or not (after > 0).all():
        return None
    level, first, last = float(np.median(before[-BEFORE:])), float(after[0]), float(np.median(after[-2:]))
    climbs = last >= CLIMB * first and rank_correlation(t.x[cut:], after) >= TREND
    fell_before = float(before[-1]) <= float(before[0])
    if not (climbs and fell_before and last >= STEP * level):
        return None
    lr = value_near(run.first("learning_rate"), t.series, int(t.index[cut]))
    rate = f"; the learning rate there is {number(lr)}" if lr is not None else ""
    return RULE.finding(
        f"{t.series} had fallen to {number(float(before[-1]))} at {t.place(cut - 1)} and rises to {number(last)} at "
        f"{t.place(len(t) - 1)} after the log announces a change (\"{note.text.strip()[:80]}\"){rate}",
        t.at(cut, len(t) - 1), t.series.source, bearing=Bearing.SIGN,
        measured={"before": float(before[-1]), "after": last, "ratio": last / level,
                  "announced": note.text.strip()[:80],
                  "position": float(t.series.position[t.index[cut]]), "lr": lr})

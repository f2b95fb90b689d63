"""A counter of the run (tokens seen, samples, a global step) is lower than it was before, and nothing was resumed.

A counter is told by its values: whole, never lower than before but at a few places, and in even strides where its name
is not known to count. It goes on behind the fall as it did before. A counter that starts over (a batch of its epoch, a
patience, records since the best) lands where it began, and is left alone; so is one that goes back together with the
step, or beside a line that says that an earlier state was resumed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import place
from traindx_tools.on_logs.run import Floats, Ints, Run, Series
from traindx_tools.rules import Rule, Threshold

RECORDS, FALLS, EVEN, LANDS, MOST = 30, 2, 0.8, 0.05, 3
BESIDE = 10
"""Records around a fall of which the pace is taken, half of them on each side."""
NEAR = 20
"""Lines within which a resume is said."""
_COUNT = ("consumed_tokens", "consumed_samples", "count")

RULE = Rule(
    id="L114",
    name="counter-goes-back",
    title="A counter goes back",
    severity=Severity.LOW,
    sees="series of whole numbers that only grow but at one or two places, whatever their name",
    matters="What is scheduled by that count happens again or too late, and what is reported by it is wrong.",
    alike=("A counter that starts over at each epoch or event: it lands where it began.",
           "A resume: the step goes back as well, or a line says so.",
           "A size that grows and is cut (a buffer): its strides are not even."),
    confirm=("Compare the count with step times batch size before and behind that place.",
             "Look for what sets the counter: a state that is loaded, a value that ranks sum up."),
    thresholds={
        "falls": Threshold(FALLS, "falls", "more often, it is a level and no count"),
        "even": Threshold(EVEN, "of the strides are equal", "of a count under an unknown name"),
        "lands": Threshold(LANDS, "of its way", "below, it starts over"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most three counters, each at its largest fall."""
    found = [f for s in run.series if (f := _back(run, s)) is not None]
    yield from found[:MOST]


def _back(run: Run, s: Series) -> Finding | None:
    y = s.values
    if len(s) < RECORDS or s.thinned or not s.finite.all() or (y < 0).any() or (y != np.round(y)).any():
        return None
    strides = np.diff(y)
    falls = np.flatnonzero(strides < 0) + 1
    if not 0 < len(falls) <= FALLS or not _counts(s, strides):
        return None
    told = [int(i) for i in falls if _goes_on(y, int(i)) and not _resumed(run, s, int(i))]
    if len(told) < len(falls):
        return None
    i = max(told, key=lambda k: float(y[k - 1] - y[k]))
    lost = float(y[i - 1] - y[i])
    return RULE.finding(
        f"{s} ({s.original}) goes back by {lost:,.10g} at {place(s, i)}, from {y[i - 1]:,.10g} to {y[i]:,.10g}, and "
        "counts on from there; nothing says that an earlier state was resumed", s.at(i - 1, i), s.source,
        bearing=Bearing.COMPANION,
        measured={"kind": "goes-back", "metric": s.name, "lost": lost, "before": float(y[i - 1]), "after": float(y[i]),
                  "falls": len(falls), "position": float(s.position[i])})


def _counts(s: Series, strides: Floats) -> bool:
    """Whether it is a count: it grows nearly always, and evenly where its name does not say so."""
    usual = float(np.median(strides))
    if usual <= 0 or np.count_nonzero(strides > 0) < EVEN * len(strides):
        return False
    return s.name.split("/")[0] in _COUNT or float((strides == usual).mean()) >= EVEN


def _goes_on(y: Floats, i: int) -> bool:
    """Whether it lands above where it began, and counts on at its pace."""
    if i < BESIDE // 2 or len(y) - i < BESIDE // 2 or y[i] - y[0] <= LANDS * (y[i - 1] - y[0]):
        return False
    before, after = np.diff(y[max(0, i - BESIDE): i]), np.diff(y[i: i + BESIDE])
    pace, then = float(np.median(before)), float(np.median(after))
    return pace > 0 and 0.25 <= then / pace <= 4.0


def _resumed(run: Run, s: Series, i: int) -> bool:
    """Whether the step, the epoch or the clock goes back as well, or a line says that something was resumed."""
    if any(bool(np.isfinite(p[i - 1: i + 1]).all()) and p[i] < p[i - 1] for p in (s.step, s.epoch, s.time)):
        return True
    lines: Ints = np.array([n.line for n in run.notes if n.kind == "resume" and n.source == s.source], dtype=np.int64)
    return bool(((lines >= s.line[i - 1] - NEAR) & (lines <= s.line[i] + NEAR)).any())

"""The loss has a size that makes no sense: a million and more, or exactly zero.

A loss of 1e6 that began small is numerical trouble; one that begins there and falls is a target that nobody scaled. A
loss of exactly 0.0 that did not come down to it is a dead path: all labels ignored, an empty mask, a term multiplied by
0, a loss of something detached. Zero as the rounded end of a loss that fell is over-fitting or success, not this; nor
is the loss of 0 that policy-gradient methods report when advantages average out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import Track, head_level, number, printed_unit, ratio, tail_level, track
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

HUGE, GROWN = 1e6, 1e3
ENOUGH = 3

RULE = Rule(
    id="L108",
    name="loss-magnitude",
    title="The loss has a size that makes no sense",
    severity=Severity.HIGH,
    sees="Losses of 1e6 and more, and losses that are exactly 0.0 without having come down to it.",
    matters="Gradients of such a loss are useless: all noise in one case, none in the other.",
    alike=("A regression on raw targets (prices, counts): large from the start and falling.",
           "A memorised training set printed with few decimals: 0.0000 at the end of a descent.",
           "Policy-gradient losses: 0 on average by construction."),
    confirm=("Print each term of the loss for one batch, with the number of elements that enter it.",),
    thresholds={
        "huge": Threshold(HUGE, "loss", "published debugging guides: 1e6 is numerical"),
        "grown": Threshold(GROWN, "times its start", "AUTOTRAINER counts a loss of 1e3 as exploded"),
        "zero": Threshold(ENOUGH, "records that are exactly 0", "one or two can be an empty batch"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding for the training and one for the validation loss."""
    for series in (main_loss(run), run.val_loss):
        t = track(series)
        if t is None or series is None:
            continue
        found = _huge(t) or (None if is_reinforcement(run) else _zero(run, t, series))
        if found is not None:
            yield found


def _huge(t: Track) -> Finding | None:
    y = np.abs(t.y)
    head, tail, peak = head_level(y), tail_level(y), float(y.max())
    if float(np.median(y)) < HUGE and not (tail >= HUGE or not t.series.finite[-1]):
        return None
    if peak < HUGE or len(t) < 2:
        return None
    i = int(np.argmax(y >= HUGE))
    grown = ratio(peak, head) >= GROWN
    if not grown and tail < 0.9 * head and t.series.finite[-1]:
        return None  # large targets, and it learns
    how = f"it began at {number(t.y[0])}" if grown else "it has that size from the start and does not fall"
    return RULE.finding(
        f"{t.series} is {number(float(t.y[i]))} at {t.place(i)} ({number(peak)} at its largest); {how}", t.at(i),
        t.series.source, bearing=Bearing.SIGN, severity=Severity.HIGH if grown else Severity.MEDIUM,
        measured={"metric": t.series.name, "kind": "huge", "first": float(t.y[0]), "peak": peak,
                  "onset": "grown" if grown else "from-start", "position": float(t.series.position[t.index[i]])})


def _zero(run: Run, t: Track, series: Series) -> Finding | None:
    zero = t.y == 0
    if int(zero.sum()) < ENOUGH:
        return None
    i = int(np.argmax(zero))
    if float(zero[i:].mean()) < 0.9 or _came_down(t, i):
        return None
    norm = run.first("grad_norm", group="train")
    broken = norm is not None and not bool(norm.finite[-1])
    before = f"after {number(t.y[i - 1])} at {t.place(i - 1)}" if i else "from its first record on"
    also = "; the gradient norm is not finite" if broken else ""
    return RULE.finding(
        f"{t.series} is exactly 0 in {int(zero.sum())} records, {before}{also}", t.at(i, -1), series.source,
        bearing=Bearing.SIGN,
        measured={"metric": series.name, "kind": "zero", "onset": "from-start" if i == 0 else "later",
                  "records": int(zero.sum()), "position": float(series.position[t.index[i]]),
                  "gradient_nonfinite": broken})


def _came_down(t: Track, i: int) -> bool:
    """Whether the values before approach zero: the last of them is small against the start or the printed place."""
    if i == 0:
        return False
    last, unit = abs(float(t.y[i - 1])), printed_unit(t.y) or 0.0
    return last <= 0.05 * max(abs(float(v)) for v in t.y[:i]) or last <= 3 * unit

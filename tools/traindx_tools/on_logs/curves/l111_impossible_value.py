"""A metric has a value that its definition does not allow, or one that nothing computed.

An accuracy below 0 or above 100 per cent, an IoU of 24 among fractions (`above_one.py`), a negative cross entropy or
squared error, a clip fraction below 0: the value is miscounted, its inputs are outside what the formula is for (targets
above 1 in a binary cross entropy, probabilities where log probabilities are expected), or it is another quantity than
its name says. A loss that is the same negative whole number in every record was never computed: programs print -1 where
a rank or a stage has no loss of its own. An error rate of words that is exactly 100 % at every evaluation says that
nothing was recognised at all, or compared.

The table of ranges (`metric_ranges.py`) holds what follows from definitions and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.above_one import upper_bound
from traindx_tools.on_logs.curves.metric_ranges import Range, range_of
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, track
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

ROUNDING, REPEATED, EVALUATIONS, MOST = 1e-3, 5, 5, 3

RULE = Rule(
    id="L111",
    name="impossible-value",
    title="A metric has a value that it cannot have",
    severity=Severity.HIGH,
    sees="every metric whose range follows from its definition; losses that never change by a digit",
    matters="A number that cannot be is no measure of the model: decisions by it are wrong.",
    alike=("A metric that is logged negated, or as a difference: its name says so, and it is left alone.",
           "A log likelihood of a density, a KL estimate: both may be negative, and are not in the table.",
           "Per cent beside fractions: told as a remark."),
    confirm=("Compute the metric by hand for one batch, from the same predictions and targets.",
             "Print the smallest and the largest target and prediction that enter it."),
    thresholds={
        "rounding": Threshold(ROUNDING, "of the bound or of the values", "printed digits and float32 sums"),
        "repeated": Threshold(REPEATED, "records", "no mean over batches repeats to the last digit"),
        "evaluations": Threshold(EVALUATIONS, "evaluations", "an untrained recogniser may begin at 100 %"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most three metrics outside their range, then a loss that is a placeholder, then an error rate at its bound."""
    outside = [f for s in run.series if (f := _outside(s)) is not None]
    yield from outside[:MOST]
    if (f := _placeholder(run)) is not None:
        yield f
    for s in run.find("wer", "cer"):
        if (f := _nothing_right(s)) is not None:
            yield f
            return


def _outside(s: Series) -> Finding | None:
    bound, t = range_of(s), track(s)
    if bound is None or t is None:
        return None
    high = upper_bound(bound, t.y)
    size = min(1.0, float(np.abs(t.y).max()))
    off = (t.y < bound.low - _slack(bound.low, size)) | (t.y > high + _slack(high, size))
    if not off.any():
        return None
    i = int(np.argmax(off))
    allowed = _allowed(bound, high)
    return RULE.finding(
        f"{s} ({s.original}) is {number(float(t.y[i]))} at {t.place(i)}, and in {int(off.sum())} of {len(t)} records "
        f"outside of {allowed}: it is {bound.why}", t.at(i), s.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if off.mean() >= 0.1 else Severity.MEDIUM,
        measured={"kind": "outside", "metric": s.name, "role": "score" if bound.share else "distance", "low": bound.low,
                  "high": high, "value": float(t.y[i]), "records": int(off.sum()),
                  "position": float(s.position[t.index[i]])})


def _slack(bound: float, size: float) -> float:
    """What printed digits and sums may stray by; `size` is the size of the values, 1 at most."""
    return 0.0 if not np.isfinite(bound) else ROUNDING * max(size, abs(bound))


def _allowed(bound: Range, high: float) -> str:
    if bound.share:
        return "0 to 1, where its other values lie" if high == 1.0 else "0 to 1 (or 0 to 100 per cent)"
    if np.isfinite(bound.low):
        return f"{bound.low:g} and more" if not np.isfinite(bound.high) else f"{bound.low:g} to {bound.high:g}"
    return f"at most {bound.high:g}"


def _placeholder(run: Run) -> Finding | None:
    """A loss that is one and the same negative whole number: not zero, which L108 judges."""
    t = track(main_loss(run))
    if t is None or len(t) < REPEATED or not _one_value(t.y) or not (t.y[0] < 0 and float(t.y[0]).is_integer()):
        return None
    who = "" if t.series.rank is None else f" of rank {t.series.rank}"
    return RULE.finding(
        f"{t.series}{who} is exactly {number(float(t.y[0]))} in all {len(t)} records: no computed loss repeats to the "
        "last digit, so this is a placeholder, printed where no loss was computed", t.at(0, -1), t.series.source,
        bearing=Bearing.SIGN,
        measured={"kind": "placeholder", "metric": t.series.name, "value": float(t.y[0]), "records": len(t),
                  "world_size": run.world_size, "position": _first(t)})


def _nothing_right(s: Series) -> Finding | None:
    t = track(s)
    if t is None or len(t) < EVALUATIONS or not _one_value(t.y) or float(t.y[0]) not in (1.0, 100.0):
        return None
    return RULE.finding(
        f"{s} is exactly {number(float(t.y[0]))} in all {len(t)} records: every one is wrong, at every evaluation",
        t.at(0, -1), s.source, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
        measured={"kind": "all-wrong", "metric": s.name, "value": float(t.y[0]), "records": len(t),
                  "position": _first(t)})


def _one_value(y: Floats) -> bool:
    return bool((y == y[0]).all())


def _first(t: Track) -> float:
    return float(t.series.position[t.index[0]])

"""A value sits at the bound that was set for it: the bound works at every step instead of now and then.

A clamp or a clip is a fence. A norm that stays within 5 % of its bound over most of the last half of the log is
pushed against it all the time: what is trained wants to go on growing, and the bound alone decides the result. An
adapter's or a steering vector's norm at its clamp is an early sign of collapse; a clip fraction near 1 means that
nearly no sample passes its gradient on.

The bound comes from the configuration (a key with max, clip, clamp or bound that names the same thing), or, for norms
of adapters and vectors, from the curve itself: it rose and then stays at one value to the last digit. A gradient norm
that equals its clip value is logged after clipping; that is usual, and only a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median
from traindx_tools.on_logs.curves.learning import key_of, number, percent, span
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

AT_BOUND = 0.95
SHARE = 0.8
CLIP_FRACTION = 0.8
RECORDS = 5

RULE = Rule(
    id="L608",
    name="clip-or-norm-at-bound",
    title="A value sits at its bound",
    severity=Severity.MEDIUM,
    sees="norms, scales and clip fractions beside the bounds that the configuration sets",
    matters="The bound hides a growth that has not stopped; with clipped gradients, samples go to waste.",
    alike=(
        "A gradient norm that is logged after clipping equals its bound by design.",
        "A temperature or logit scale that is meant to run into its bound (CLIP: 100).",
    ),
    confirm=(
        "Log the value before and after the bound is applied.",
        "Halve the learning rate: a norm that then stays inside was driven by the step size.",
    ),
    thresholds={
        "at_bound": Threshold(AT_BOUND, "of the bound", ">= 0.95: research-debug skill"),
        "share": Threshold(SHARE, "of the records", "of the last half"),
        "clip_fraction": Threshold(CLIP_FRACTION, "of the samples", "usual: 0.05 to 0.3"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
    },
)

_BOUNDED = re.compile(r"norm|scale|magnitude|length")
_VECTOR = re.compile(r"lora|adapter|vector|steer|prompt|delta|embed")
_BOUND_WORDS = re.compile(r"max|clip|clamp|bound|limit|cap")


def check(run: Run) -> Iterator[Finding]:
    """A finding for each value at its bound, four at most."""
    found = 0
    for series in run.series:
        c = curve(series)
        if len(c) < RECORDS or found >= 4:
            continue
        finding = _clip_fraction(c) or _at_configured_bound(run, c) or _saturated(c)
        if finding is not None:
            found += 1
            yield finding


def _clip_fraction(c: Curve) -> Finding | None:
    if c.series.name != "clip_fraction" or c.values.min() < 0.0 or c.values.max() > 1.0:
        return None
    last = last_part(c.values, 0.5)
    if median(last) < CLIP_FRACTION or float(np.quantile(last, 0.2)) < CLIP_FRACTION:
        return None
    return _finding(c, "clip-fraction", 1.0, f"{c.series.original} stays at {number(median(last))}: nearly "
                                             f"every sample "
                                             "is clipped", Severity.MEDIUM)


def _at_configured_bound(run: Run, c: Curve) -> Finding | None:
    name = key_of(c.series.name.replace("/", "")) if _BOUNDED.search(c.series.name) else ""
    if not name:
        return None
    for key, value in run.config.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
            continue
        if _bounds(key_of(str(key)), name) and _sits_at(c, float(value)):
            usual = "grad" in name
            words = (f"{c.series.original} stays within {percent(1 - AT_BOUND)} of {key} = {value:g} at "
                     f"{percent(_share(c, float(value)))} of the records")
            return _finding(c, "gradient-clip" if usual else "configured", float(value), words,
                            Severity.INFO if usual else Severity.MEDIUM)
    return None


def _bounds(key: str, name: str) -> bool:
    """Whether a configuration key bounds this metric: "max_grad_norm" and "grad_norm", "lora_norm_clamp"."""
    if not _BOUND_WORDS.search(key):
        return False
    rest = _BOUND_WORDS.sub("", key)
    return (rest in name or name in rest) if len(rest) >= 4 else rest == "" and "grad" in name


def _share(c: Curve, bound: float) -> float:
    last = last_part(c.values, 0.5)
    return float(np.mean((last >= AT_BOUND * bound) & (last <= 1.005 * bound)))


def _sits_at(c: Curve, bound: float) -> bool:
    """At the bound most of the time and never clearly beyond it."""
    return _share(c, bound) >= SHARE and float(c.values.max()) <= 1.005 * bound


def _saturated(c: Curve) -> Finding | None:
    if not (_BOUNDED.search(c.series.name) and _VECTOR.search(c.series.name)) or "grad" in c.series.name:
        return None
    top = float(c.values.max())
    last = last_part(c.values, 0.3)
    if len(c) < 2 * RECORDS or top <= 0 or float(last.min()) != top or float(c.values[0]) >= AT_BOUND * top:
        return None
    return _finding(c, "saturated", top, f"{c.series.original} rose from {number(float(c.values[0]))} and stays at "
                                         f"{number(top)} to the last digit", Severity.MEDIUM)


def _finding(c: Curve, kind: str, bound: float, words: str, severity: Severity) -> Finding:
    start, end = c.where(len(c) // 2, len(c) - 1)
    return RULE.finding(f"{words} {span(c.series, start, end)}", c.series.at(start, end), c.series.source,
                        bearing=Bearing.COMPANION, severity=severity,
                        measured={"kind": kind, "metric": c.series.name, "level": median(last_part(c.values, 0.5)),
                                  "bound": bound})

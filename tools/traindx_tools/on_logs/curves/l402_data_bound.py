"""Most of each step is spent waiting for data.

The log splits a step into the wait for a batch and the rest. When the wait is most of it, a faster model or device
changes nothing. It costs time and changes no number: a remark (LOW), and a cause only where a person says that the run
is slow. The first record is left out: loader workers start there, caches are cold. Whether the step time includes the
wait differs between frameworks; when the wait is larger than the step, it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import Track, number, ratio, track
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

HALF = 0.5
NOTICEABLE = 0.005
ENOUGH = 3

RULE = Rule(
    id="L402",
    name="data-bound",
    title="Training waits for data",
    severity=Severity.LOW,
    sees="The logged wait for data against the step time, first record left out.",
    matters="What computes is paid for and waits.",
    alike=("A long wait at the first record, or at the first of every epoch: workers start.",
           "A slow device transfer that is counted as loading.", "Steps of a few milliseconds: nothing to gain."),
    confirm=("Iterate the loader alone, without the model, and time it: is it as slow?",
             "Train on one cached batch: is it much faster?",
             "Raise num_workers (0 means: in the main process, between steps) and compare."),
    thresholds={
        "half": Threshold(HALF, "of the step", "arithmetic: hiding the wait would at least double the throughput"),
        "noticeable": Threshold(NOTICEABLE, "seconds of wait a step", "below it Python's own overhead is the same"),
    },
)


@dataclass(frozen=True)
class Waits:
    """Seconds a record: waiting for data, and the whole step."""

    track: Track
    wait: Floats
    step: Floats
    included: bool


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    found = _waits(run)
    if found is None:
        return
    wait, step = found.wait[1:], found.step[1:]
    typical = float(np.median(wait / step))
    whole = ratio(float(wait.sum()), float(step.sum()))
    bursts = typical < HALF <= whole
    if max(typical, whole) < HALF or float(wait.mean()) < NOTICEABLE or (bursts and _few(wait)):
        return
    t = found.track
    share = whole if bursts else typical
    how = "in bursts" if bursts else "in the median record"
    yield RULE.finding(
        f"{100 * share:.0f} % of the step is spent waiting for data {how}: {number(float(wait.mean()))} s of "
        f"{number(float(step.mean()))} s on average over {len(wait)} records", t.at(1, -1), t.series.source,
        bearing=Bearing.SIGN,
        measured={"share": share, "data_time": float(wait.mean()), "step_time": float(step.mean()), "bursts": bursts,
                  "records": len(wait), "included": found.included,
                  "possible_speedup": ratio(1.0, max(1 - min(share, 0.999), 1e-3)),
                  "position": float(t.series.position[t.index[1]])})


_WAITS = re.compile(r"(^|_)(data|fetch|load(er|ing)?|input|io|wait|dequeue)(_|$)", re.IGNORECASE)
_WORKS = re.compile(r"(^|_)(fwd|forward|bwd|backward|opt|optim(izer)?|compute|model|update|gpu)(_|$)", re.IGNORECASE)
_UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "time": 1.0, "t": 1.0}
"""Words of a name that say that it is a duration, and how many seconds its unit is."""


def _waits(run: Run) -> Waits | None:
    """The wait and the whole step as the log gives them, else as the sum of its phases."""
    return _against_the_step(run) or _against_the_phases(run)


def _seconds(series: Series) -> float | None:
    """Seconds that one unit of the series is; None for what is no duration by its name."""
    if series.name in ("data_time", "step_time"):
        return 1.0  # the reader has turned it into seconds
    found = [_UNITS[w] for w in re.split(r"[^a-z]+", series.original.lower()) if w in _UNITS]
    return min(found) if found else None


def _against_the_phases(run: Run) -> Waits | None:
    """A log that breaks the step down (ms_fetch, ms_fwd, ms_bwd, ...): the phases of one record add up to the step."""
    timed = [(s, unit) for s in run.series if len(s) > ENOUGH for unit in [_seconds(s)] if unit is not None]
    waits = [(s, u) for s, u in timed if _WAITS.search(s.original)]
    if not waits:
        return None
    data, unit = waits[0]
    works = [(s, u) for s, u in timed
             if _WORKS.search(s.original) and s is not data and np.array_equal(s.line, data.line)]
    t = track(data)
    if len(works) < 2 or t is None or len(t) != len(data) or not all(bool(s.finite.all()) for s, _ in works):
        return None
    wait = t.y * unit
    step = wait + sum((s.values * u for s, u in works), np.zeros(len(data)))
    if not bool((wait >= 0).all()) or not bool((step > 0).all()):
        return None
    return Waits(t, wait, step, included=True)


def _against_the_step(run: Run) -> Waits | None:
    data, whole = run.first("data_time"), run.first("step_time")
    a, b = track(data), track(whole)
    if a is None or b is None or len(a) < ENOUGH + 1:
        return None
    lines_a, lines_b = a.series.line[a.index], b.series.line[b.index]
    both = np.intersect1d(lines_a, lines_b) if a.series.source == b.series.source else np.empty(0)
    if len(both) < ENOUGH + 1:
        return None
    keep_a = np.flatnonzero(np.isin(lines_a, both))
    wait = a.y[keep_a]
    step = b.y[np.isin(lines_b, both)]
    if len(wait) != len(step) or not bool((wait >= 0).all()) or not bool((step > 0).all()):
        return None
    included = float((wait <= step * 1.02).mean()) >= 0.9
    kept = Track(a.series, a.index[keep_a], a.x[keep_a], wait, a.unit, a.wrapped)
    return Waits(kept, wait, step if included else step + wait, included)


def _few(wait: Floats) -> bool:
    """Whether the wait lies in a few records: starts of epochs, a checkpoint, one hiccup."""
    order = np.sort(wait)[::-1]
    return float(order[: max(3, len(wait) // 20)].sum()) > 0.9 * float(wait.sum())

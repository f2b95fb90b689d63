"""The loss steps up at a boundary: where the run was resumed, or at one epoch start; or it falls back towards its
beginning wherever that is, whatever the log calls it.

A step that falls on a resume says that something of the state did not come back: optimizer moments, the learning rate
schedule, the data order, the running statistics, the averaged weights, or that an older checkpoint was loaded than the
log claims. A step at an epoch start that stays says that something changes there by plan: the learning rate, a stage of
a curriculum, an augmentation, a layer that is unfrozen.

The rule compares up to three records on both sides. A step counts when it exceeds 20 % of the level and four standard
deviations of the record-to-record scatter. At an epoch start it must also be the only one, and last to the end of the
log (a regular saw is L206, a lone outlier L107). Steps down (a lower learning rate, a second pass over the data) are
healthy.

A log that announces no resume may hold one all the same. `kind` "elsewhere": the loss breaks upwards at one place as
it does nowhere else (`anomalies/breaks.py`), stays there for more than a record, and gives back a quarter and more of
what it had gained. Back at the level of the untrained model it is what a run is that began anew; part of the way it
may as well be other data or another task, which the log would mostly announce (below a third it is low). A rise of
the learning rate at that record (a warm restart), a stage or a setting that changes there explain it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.anomalies.breaks import Break, breaks
from traindx_tools.on_logs.curves.baselines import Curve, curve, median, noise, ratio, tail
from traindx_tools.on_logs.curves.learning import (
    epoch_numbers,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    place,
)
from traindx_tools.on_logs.curves.outcomes import changes
from traindx_tools.on_logs.curves.shapes import Track, head_level, tail_level, track
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

STEP = 0.2
LASTING_STEP = 0.3
SIGMAS = 4.0
SIDE = 3
RECOVERED = 0.1
LOST, MUCH, ANEW, HELD, RAISED = 0.25, 1 / 3, 0.8, 0.4, 1.2

RULE = Rule(
    id="L207",
    name="step-at-boundary",
    title="The loss steps up at a resume or an epoch start, or falls back towards its beginning",
    severity=Severity.HIGH,
    sees="training loss just before and just after a resume, an epoch start or a jump, learning rate beside it",
    matters="State was lost, or a planned change broke the training: the steps since then work against those before.",
    alike=(
        "A spike that would have come anyway: it falls on the boundary by chance, elsewhere there are others.",
        "Another part of the data after a resume: the level changes, the learning rate does not.",
        "A stage of a curriculum or a warm restart: the log announces it, or the learning rate rises there.",
    ),
    confirm=(
        "Evaluate the loaded checkpoint before the first step: the loss must equal the one at saving.",
        "Print learning rate, step counter and the optimizer's state size right after loading.",
    ),
    thresholds={
        "step": Threshold(STEP, "relative to the level before", "at a resume"),
        "lasting_step": Threshold(LASTING_STEP, "relative to the level before", "at an epoch start, to the end"),
        "lost": Threshold(LOST, "of what was gained", "elsewhere: harder data seldom cost more at once"),
        "much": Threshold(MUCH, "of what was gained", "arithmetic: a third of the work; less is a remark"),
        "anew": Threshold(ANEW, "of what was gained", "the level of an untrained model"),
        "held": Threshold(HELD, "of the jump, one record later", "a batch that spikes is over by then (L107)"),
        "raised": Threshold(RAISED, "times the learning rate before", "a schedule that restarts raises the loss"),
        "sigmas": Threshold(SIGMAS, "standard deviations", "of record-to-record scatter: 1 in 16,000 by chance"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """Findings at resumes; where there is none, at the one epoch start with a lasting step."""
    series = main_loss(run)
    if series is None or is_adversarial(run) or is_reinforcement(run):
        return
    c = curve(series)
    if len(c) < 4:
        return
    found = False
    for cut in _resumes(run, c):
        finding = _step(run, c, cut, "resume", STEP)
        found = found or finding is not None
        if finding is not None:
            yield finding
    if not found:
        at_epoch = list(_epoch_step(run, c))
        yield from at_epoch or _elsewhere(run)


def _resumes(run: Run, c: Curve) -> list[int]:
    """Numbers of the first records after each resume that the log announces."""
    lines = c.series.line[c.index]
    cuts = {int(np.searchsorted(lines, n.line, side="right"))
            for n in run.notes if n.kind == "resume" and n.source == c.series.source}
    return sorted(cut for cut in cuts if 1 <= cut < len(c))[:20]


def _epoch_step(run: Run, c: Curve) -> Iterator[Finding]:
    epochs = epoch_numbers(run, c.series)
    if epochs is None:
        return
    cuts = np.flatnonzero(np.diff(epochs[c.index]) != 0) + 1
    if len(cuts) < 2 or len(c) < SIDE * (len(cuts) + 1):
        return
    steps = [(int(cut), f) for cut in cuts[:2000] if (f := _step(run, c, int(cut), "epoch", LASTING_STEP)) is not None]
    if len(steps) != 1:
        return
    cut, finding = steps[0]
    before = _side(c.values, cut)[0]
    if 2 * SIDE <= cut <= len(c) - 2 * SIDE and float(np.quantile(c.values[cut:], 0.1)) > before * (1.0 + STEP):
        yield finding


def _elsewhere(run: Run) -> Iterator[Finding]:
    """The one place at which the loss falls back towards its beginning, where nothing in the log explains it."""
    t = track(main_loss(run))
    if t is None or t.unit == "record" or t.wrapped or not bool((t.y > 0).all()):
        return
    back = [b for b in breaks(t.y) if b.up]
    if len(back) != 1 or back[0].end > back[0].start + 1 or _explained(run, t, back[0]):
        return
    b, first = back[0], head_level(t.y)
    reached = float(t.y[b.start: b.end + 2].max())
    lost = ratio(reached - b.before, first - b.before)
    held = float(t.y[b.end + 1]) - b.before >= HELD * (reached - b.before)
    if first <= b.before * (1.0 + STEP) or lost < LOST or not held:
        return
    anew = lost >= ANEW
    much = lost >= MUCH
    told = ("back where it began" if anew else f"{100 * lost:.0f} % of the way back to where it began")
    last = tail_level(t.y)
    after = "then it falls again" if last < b.before + 0.5 * (reached - b.before) else "and it does not come down again"
    yield RULE.finding(
        f"{t.series} jumps from {number(float(t.y[b.start - 1]))} at {t.place(b.start - 1)} to "
        f"{number(float(t.y[b.start]))} at {t.place(b.start)}, {told} ({number(float(t.y[0]))} at {t.place(0)}), "
        f"{b.size:.0f} times its scatter; {after}. Nothing in the log says why: a restart that did not load what "
        f"was learned, or from here on another task",
        t.at(b.start - 1, b.start), t.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if much else Severity.LOW,
        measured={"kind": "elsewhere", "before": b.before, "after": reached, "ratio": ratio(reached, b.before),
                  "recovered": last <= b.before * (1.0 + RECOVERED), "of_start": ratio(reached, first), "lost": lost,
                  "at": float(t.series.position[t.index[b.start]]), "unit": t.unit, "steps_back": False,
                  **_rates(run, t.series, int(t.index[b.start - 1]), int(t.index[b.start]))})


def _rate_words(rate: tuple[float, float] | None) -> str:
    if rate is None:
        return ""
    before, after = number(rate[0]), number(rate[1])
    return f"; the learning rate stays at {after}" if before == after else (
        f"; the learning rate goes from {before} to {after}")


def _rates(run: Run, series: Series, start: int, end: int) -> dict[str, float | None]:
    rate = _rate(run, series, start, end)
    return {"lr_before": rate[0] if rate else None, "lr_after": rate[1] if rate else None,
            "lr_ratio": ratio(rate[1], rate[0]) if rate and rate[0] > 0 else None}


def _explained(run: Run, t: Track, b: Break) -> bool:
    """Whether the log says why the loss is another one: a change of the task, or a learning rate that rises there."""
    before, after = int(t.index[b.start - 1]), int(t.index[b.end])
    rate = _rate(run, t.series, before, after)
    if rate is not None and rate[1] > RAISED * rate[0]:
        return True
    return any(b.start - 2 <= cut <= b.end + 2 for cut in changes(run, t))


def _side(values: Floats, cut: int) -> tuple[float, float]:
    return median(values[max(0, cut - SIDE):cut]), float(values[cut])


def _at_its_checkpoint(c: Curve, cut: int, before: float) -> bool:
    """Whether a run that went back to an earlier step has the loss that it had there, short of its beginning.

    A run that died at step 700 and went on from the checkpoint of step 500 does again what it had done since.
    """
    position, v = c.series.position[c.index], c.values
    there = int(np.searchsorted(np.maximum.accumulate(position[:cut]), position[cut]))
    if position[cut] > position[cut - 1] or there < SIDE:
        return False
    near = v[max(0, there - 2 * SIDE):min(cut, there + SIDE)]
    gained = float(v[0]) - before
    return v[cut] <= median(near) + SIGMAS * noise(near) and median(near) - before < ANEW * gained


def _step(run: Run, c: Curve, cut: int, kind: str, limit: float) -> Finding | None:
    v = c.values
    before, after = _side(v, cut)
    if kind == "epoch":
        after = median(v[cut:cut + SIDE])
    elif _at_its_checkpoint(c, cut, before):
        return None
    scatter = noise(v[max(0, cut - 8):cut])
    trending = abs(float(v[cut - 1]) - float(v[max(0, cut - SIDE)]))
    if before <= 0.0 or after - before < max(limit * before, SIGMAS * scatter, trending):
        return None
    start, end = c.where(cut - 1, cut)
    end_level = tail(v) if len(v) - cut > 3 else float(v[-1])
    recovered = end_level <= before * (1.0 + RECOVERED)
    rate, rates = _rate(run, c.series, start, end), _rates(run, c.series, start, end)
    lost = ratio(after - before, float(v[0]) - before) if float(v[0]) > before * (1.0 + STEP) else None
    anew = kind == "resume" and lost is not None and lost >= ANEW
    said = (f", back where it began ({number(float(v[0]))})" if anew else "") + _rate_words(rate)
    what = "where the run was resumed" if kind == "resume" else "at an epoch start, and stays up"
    position = c.series.position
    return RULE.finding(
        f"{c.series} steps up from {number(before)} to {number(after)} ({number(ratio(after, before))} times) "
        f"{place(c.series, end)}, {what}{said}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if recovered else Severity.HIGH,
        measured={"kind": kind, "before": before, "after": after, "ratio": ratio(after, before), "recovered": recovered,
                  "of_start": ratio(after, float(v[0])) if v[0] > 0 else None, "lost": lost,
                  "at": float(position[end]), "unit": c.series.unit,
                  "steps_back": bool(position[end] <= position[start]),
                  **rates},
    )


def _rate(run: Run, series: Series, start: int, end: int) -> tuple[float, float] | None:
    """The learning rate beside two records of the loss, where it stands in the same source."""
    for lr in run.find("learning_rate"):
        if lr.source == series.source and len(lr) >= 2:
            at = [int(np.argmin(np.abs(lr.line - series.line[i]))) for i in (start, end)]
            before, after = float(lr.values[at[0]]), float(lr.values[at[1]])
            if np.isfinite(before) and np.isfinite(after):
                return before, after
    return None

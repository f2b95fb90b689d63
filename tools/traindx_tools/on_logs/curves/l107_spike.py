"""The training loss jumps at one place; whether it came back is what matters.

A value that stands out of its neighbourhood and is back a few records later is a hard batch or a brief instability;
runs of every size have them, and this rule only remarks on them (INFO). Where the loss was ten times worse than that of
an untrained model, no batch explains it: some step or value was wrong, also if training recovered (MEDIUM). A jump to a
level that the run never leaves again lost something: optimizer state, data, learning rate; where the evaluation goes on
as before it did not, and only what is trained on became harder (LOW: augmentation, a curriculum). A jump in the very
last record cannot be judged and is a remark too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.changing_objective import added
from traindx_tools.on_logs.curves.evaluation import evaluation_goes_on
from traindx_tools.on_logs.curves.outcomes import (
    RAMP,
    TOWERING,
    goes_on_after_change,
    is_adversarial,
    is_beyond_untrained,
    is_reinforcement,
    main_loss,
)
from traindx_tools.on_logs.curves.shapes import Track, neighbourhood, number, ratio, runs_of, track, value_near
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

OUTLIER, TALL = 8.0, 1.5

RULE = Rule(
    id="L107",
    name="spike",
    title="The training loss jumps",
    severity=Severity.MEDIUM,
    sees="Values far above their neighbourhood, and levels that jump up and stay.",
    matters="A jump that stays is a loss of progress with a definite place to look at.",
    alike=("Batch noise: many values of that size.", "A jump at each epoch: L206.", "A slow rise: L106."),
    confirm=("Look at the batch, the learning rate and the log lines of that very step.",),
    thresholds={
        "outlier": Threshold(OUTLIER, "robust standard deviations above the neighbourhood", "beyond chance"),
        "tall": Threshold(TALL, "times the neighbourhood", "smaller ones do no harm"),
        "untrained": Threshold(RAMP, "times the largest loss of the first tenth", "no batch is so much worse"),
        "towering": Threshold(TOWERING, "times the neighbourhood, as well", "a run that began low spikes higher"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """The jump that stays, else the tallest spike as a remark."""
    t = track(main_loss(run))
    if t is None or len(t) < 10 or is_reinforcement(run) or is_adversarial(run) or not bool((t.y > 0).all()):
        return
    if goes_on_after_change(run, t):
        return
    i, new = _jump(t), added(run, t)
    if i is not None and new is not None and i in new.starts and new.explains:
        return
    if i is not None and bool(t.series.finite[-1]):
        yield _report(run, t, i, i, float(np.median(t.y[max(0, i - 5): i])), recovered=False, jump=True)
    elif spikes := _spikes(t):
        tallest = max(spikes, key=lambda s: t.y[s[0]: s[1] + 1].max())
        base = float(neighbourhood(t.y)[tallest[0]])
        yield _report(run, t, *tallest, base, recovered=_is_back(t, tallest[1], base), count=len(spikes))


def _is_back(t: Track, end: int, base: float) -> bool:
    """Whether the value after a spike is near the level before it: 162 after 756 is not back where 2 was before."""
    return end < len(t) - 1 and float(t.y[end + 1]) <= TALL * base * 2


def _spikes(t: Track) -> list[tuple[int, int]]:
    base = neighbourhood(t.y)
    rest = t.y - base
    scatter = 1.4826 * float(np.median(np.abs(rest)))
    mask = (rest > OUTLIER * scatter) & (t.y > TALL * base)
    mask[: min(5, len(t) // 10)] = False  # the first steep descent is no spike
    return list(runs_of(mask))


def _jump(t: Track) -> int | None:
    """Index of the first value of a level that is reached within two records and never left again."""
    n = len(t)
    candidates = np.argsort(-np.diff(t.y))[:5] + 1
    for i in sorted(int(c) for c in candidates):
        after, before = t.y[i:], t.y[max(0, i - 5): i]
        if i < 3 or len(after) < max(4, n // 20):
            continue
        level = float(np.median(before))
        spread = max(t.noise, float(np.ptp(before)) / 2)
        if float(np.quantile(after, 0.1)) > max(TALL * level, level + OUTLIER * spread) and after[-1] > TALL * level:
            return i if after[0] > level else i + 1
    return None


def _report(run: Run, t: Track, start: int, end: int, base: float, *, recovered: bool, count: int = 1,
            jump: bool = False) -> Finding:
    peak, at = float(t.y[start: end + 1].max()), start + int(np.argmax(t.y[start: end + 1]))
    before = f"{number(float(t.y[start - 1]))} at {t.place(start - 1)}" if start else number(base)
    last = end == len(t) - 1
    if not recovered and not last and not jump:
        text = (f"{t.series} jumps from {before} to {number(peak)} at {t.place(at)} and is still at "
                f"{number(t.y[end + 1])} at {t.place(end + 1)}")
    elif not recovered and not last:
        text = (f"{t.series} jumps from {before} to {number(peak)} at {t.place(at)} and never comes back "
                f"(it ends at {number(t.y[-1])})")
    elif last:
        after = "where the log ends" if t.series.finite[-1] else "its last finite value"
        text = f"{t.series} jumps from {before} to {number(peak)} at {t.place(at)}, {after}"
    else:
        text = (f"{t.series} spikes from {before} to {number(peak)} at {t.place(at)} and is back at "
                f"{number(t.y[end + 1])} at {t.place(end + 1)}" + (f"; {count} spikes in all" if count > 1 else ""))
    stays = not recovered and not last
    kept = stays and jump and evaluation_goes_on(run, t, start)
    text += "; the evaluation goes on as before: what is trained on became harder" if kept else ""
    beyond = not last and is_beyond_untrained(t, peak, base)
    if beyond and recovered:
        text += "; the peak is more than ten times the largest loss of the first tenth of the log"
    return RULE.finding(
        text, t.at(start, end), t.series.source, bearing=Bearing.SIGN if stays else Bearing.COMPANION,
        severity=Severity.LOW if kept and not beyond else Severity.MEDIUM if stays or beyond else Severity.INFO,
        measured={"metric": t.series.name, "recovered": None if last else recovered, "base": base, "peak": peak,
                  "beyond_untrained": beyond, "ratio": ratio(peak, base), "spikes": count,
                  "position": float(t.series.position[t.index[start]]),
                  "lr": value_near(run.first("learning_rate"), t.series, int(t.index[start]))})

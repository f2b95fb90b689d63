"""Training stands still: a long gap between records, or a step that takes far longer than all others.

Gaps are judged against the usual distance of records, in seconds where the log has time stamps. Gaps that come
regularly are evaluations and checkpoints; a gap with a resume in it is a pre-emption. Where the log simply ends before
the plan does, without an error, this is remarked on (INFO): it may be running still.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.schedules import plan
from traindx_tools.on_logs.curves.shapes import number, place, ratio, track
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

LONG, CERTAIN = 300.0, 1800.0
TIMES = 50.0
EARLY = 0.95

RULE = Rule(
    id="L403",
    name="stalled",
    title="Training stands still",
    severity=Severity.HIGH,
    sees="The longest gap between time stamps, the longest step, and whether the log ends before the plan.",
    matters="A hang costs the whole job; a stall shows which resource was waited for.",
    alike=("Evaluation and checkpoint pauses: regular.", "A pre-emption: a resume follows.",
           "The first step: compilation.", "A log that is read while the run goes on."),
    confirm=("py-spy dump --pid PID on every rank while it stands still: who waits where?",
             "TORCH_NCCL_TRACE_BUFFER_SIZE=2000: the flight recorder's dumps tell which collective was left out."),
    thresholds={
        "certain": Threshold(CERTAIN, "seconds", "sagemaker-debugger calls 1,800 s without progress stalled"),
        "long": Threshold(LONG, "seconds", "shorter pauses are recompilations and file systems"),
        "times": Threshold(TIMES, "times the usual distance", "beyond evaluation pauses"),
        "early": Threshold(EARLY, "of the plan", "announced and last numbers differ by rounding"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """The longest gap, else the longest step; and the early end of the log as a remark."""
    gap = next((f for s in _timed(run) if (f := _gap(run, s)) is not None), None)
    found = gap or _slow_step(run)
    if found is not None:
        yield found
    if (ends := _ends_early(run)) is not None:
        yield ends


def _timed(run: Run) -> list[Series]:
    timed = [s for s in run.series if len(s) >= 5 and np.isfinite(s.time).all() and s.group == "train"]
    return sorted(timed, key=len, reverse=True)[:3]


def _gap(run: Run, s: Series) -> Finding | None:
    gaps = np.diff(np.clip(s.time, -1e15, 1e15))
    usual = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0
    i = int(np.argmax(gaps))
    longest = float(gaps[i])
    if usual <= 0 or i == 0 or longest < max(LONG, TIMES * usual) or int((gaps > 0.5 * longest).sum()) > 2:
        return None
    if any(n.kind == "resume" and n.source == s.source and s.line[i] <= n.line <= s.line[i + 1] for n in run.notes):
        return None
    severe = longest >= CERTAIN
    return RULE.finding(
        f"nothing is logged for {number(longest)} s between {place(s, i)} and {place(s, i + 1)}; records are usually "
        f"{number(usual)} s apart", s.at(i, i + 1), s.source,
        bearing=Bearing.SIGN if severe else Bearing.COMPANION,
        severity=Severity.HIGH if severe else Severity.MEDIUM,
        measured={"kind": "gap", "seconds": longest, "usual": usual, "times": ratio(longest, usual),
                  "position": float(s.position[i])})


def _slow_step(run: Run) -> Finding | None:
    t = track(run.first("step_time", group="train") or run.first("step_time"))
    if t is None or len(t) < 8:
        return None
    usual, i = float(np.median(t.y)), int(np.argmax(t.y))
    longest = float(t.y[i])
    many = int((t.y > 0.5 * longest).sum())
    if usual <= 0 or i < 2 or longest < max(LONG, TIMES * usual) or many > 2:
        return None
    return RULE.finding(
        f"the step at {t.place(i)} took {number(longest)} s; the median is {number(usual)} s", t.at(i), t.series.source,
        bearing=Bearing.COMPANION, severity=Severity.MEDIUM,
        measured={"kind": "step", "seconds": longest, "usual": usual, "times": ratio(longest, usual),
                  "position": float(t.series.position[t.index[i]])})


def _ends_early(run: Run) -> Finding | None:
    t = track(main_loss(run))
    if t is None or run.errors or len(t) < 3:
        return None
    where = plan(run, t)
    if where is None or not where.known:
        return None
    interval = float(np.median(np.diff(t.x)))
    if where.done >= EARLY or where.last + 1.5 * interval >= where.end:
        return None
    return RULE.finding(
        f"the log ends at {t.place(-1)} of {where.end:.10g} ({100 * where.done:.0f} %) without an error", t.at(-1),
        t.series.source, bearing=Bearing.COMPANION, severity=Severity.INFO,
        measured={"kind": "log-ends", "position": where.last, "planned": where.end, "done": where.done})

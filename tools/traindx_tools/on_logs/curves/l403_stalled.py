"""Training stands still: a long gap between records, or a step that takes far longer than all others.

Gaps are judged against the usual distance of records, in seconds where the log has time stamps. Gaps that come
regularly are evaluations and checkpoints; a gap with a resume in it is a pre-emption. Where the log simply ends before
the plan does, without an error, this is remarked on (INFO): it may be running still.

A job that the scheduler ended ("CANCELLED AT 2026-03-02T21:14:02 DUE TO TIME LIMIT") hours after its last record hung:
the gap then ends there. Clocks of different zones differ by whole half hours, so such a difference tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.schedules import plan
from traindx_tools.on_logs.curves.shapes import number, place, ratio, track
from traindx_tools.on_logs.readers.prefixes import stamp
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

LONG, CERTAIN = 300.0, 1800.0
TIMES = 50.0
EARLY = 0.95
ZONES, DRIFT = 1800.0, 60.0
_ENDED_AT = re.compile(r"\bCANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")

RULE = Rule(
    id="L403",
    name="stalled",
    title="Training stands still",
    severity=Severity.HIGH,
    sees="The longest gap between time stamps, or from the last one to the scheduler's end of the job, the longest "
         "step, and whether the log ends before the plan.",
    matters="A hang costs the whole job; a stall shows which resource was waited for.",
    alike=("Evaluation and checkpoint pauses: regular.", "A pre-emption: a resume follows.",
           "The first step: compilation.", "A log that is read while the run goes on."),
    confirm=("py-spy dump --pid PID on every rank while it stands still: who waits where?",
             "TORCH_NCCL_TRACE_BUFFER_SIZE=2000: the flight recorder's dumps tell which collective was left out."),
    thresholds={
        "certain": Threshold(CERTAIN, "seconds", "sagemaker-debugger calls 1,800 s without progress stalled"),
        "long": Threshold(LONG, "seconds", "shorter pauses are recompilations and file systems"),
        "times": Threshold(TIMES, "times the usual distance", "beyond evaluation pauses"),
        "zones": Threshold(ZONES, "seconds", "time zones differ by whole multiples of it"),
        "drift": Threshold(DRIFT, "seconds", "clocks of two machines and the grace between a signal and its record"),
        "early": Threshold(EARLY, "of the plan", "announced and last numbers differ by rounding"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """The longest gap, else the longest step; and the early end of the log as a remark."""
    gap = next((f for s in _timed(run) if (f := _gap(run, s)) is not None), None)
    gap = gap or next((f for s in _timed(run) if (f := _silent_end(run, s)) is not None), None)
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


def _silent_end(run: Run, s: Series) -> Finding | None:
    """No value from the last record to the moment at which the scheduler ended the job."""
    told = next(((e, m[1]) for e in run.errors if (m := _ENDED_AT.search(e.message)) is not None), None)
    ended = stamp(told[1]) if told is not None else None
    gaps = np.diff(s.time)
    if told is None or ended is None or not np.isfinite(s.since) or not (gaps > 0).any():
        return None
    usual = float(np.median(gaps[gaps > 0]))
    last = max(float(t.time[-1]) for t in run.series if t.source == s.source and len(t) and np.isfinite(t.time[-1]))
    silent = ended - s.since - last
    if silent < max(CERTAIN, TIMES * usual) or (silent + DRIFT) % ZONES < 2 * DRIFT + 2 * usual:
        return None
    return RULE.finding(
        f"no value is logged for {number(silent)} s from {place(s, -1)} to the end of the job ({told[1]}); records are "
        f"usually {number(usual)} s apart", s.at(-1), s.source, bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured={"kind": "silent-end", "seconds": silent, "usual": usual, "times": ratio(silent, usual),
                  "position": float(s.position[-1])})


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

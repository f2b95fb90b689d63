"""The schedule and the run have different lengths, as the schedule and the optimizer's own count say.

Only a run that came to its own end is judged, and one with one schedule. The schedule is asked at the counts that the
optimizer made and beyond them. `kind`: "warmup" where the rate was still on its way up when the run ended; "seldom"
where it was made for as many steps as the program made calls, and was counted much more seldom (accumulation counts
once in k calls); "early" where it was at its low end in the first third of the run; "longer" where the run ended long
before the schedule: a short trial of a long program looks the same, so that is a remark. The twin of T211.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.measures.schedule import Course
from traindx_tools.rules import Rule, Threshold

STEPS, NEAR, MUCH, LOW, THIRD, FAR = 20, 0.1, 0.5, 0.2, 1 / 3, 15

RULE = Rule(
    id="J710",
    name="jax-schedule-and-run",
    title="The learning-rate schedule does not fit the run",
    severity=Severity.HIGH,
    sees="the function that scales the updates, the count of it in the optimizer's state, and calls of the step",
    matters="the rate never reaches its height, never decays, or is over early: most steps have a rate nobody chose",
    alike=("a short trial of a program whose schedule is for the long run",
           "a rate that falls to 0 early: J706", "a rate that decays without an end",),
    confirm=("print(schedule(0), schedule(count // 2), schedule(count)) with the count of the optimizer's state",),
    thresholds={"steps": Threshold(STEPS, "updates", "fewer are a trial"),
                "near": Threshold(NEAR, "relative distance of two lengths that are taken as one", "the last batch"),
                "much": Threshold(MUCH, "of the height, or of the length", "half of it is more than rounding"),
                "low": Threshold(LOW, "of the height", "a rate that is meant for the end")},
)


@dataclass(frozen=True)
class Followed:
    """One schedule. `made`: the count at the end; `calls`: of the function that carries it."""

    course: Course
    made: int
    calls: int
    place: tuple[str, int] | None


def check(seen: Followed | None) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.made < STEPS or seen.course.peak <= 0:
        return
    told = _said(seen.course, seen.made, seen.calls)
    if told is None:
        return
    kind, text, bearing, severity = told
    file, line = seen.place or (None, None)
    c = seen.course
    yield RULE.finding(
        f"the schedule of the updates {text}", Location(file=file, line=line, step=float(seen.made)),
        "the running process", bearing=bearing, severity=severity,
        measured={"kind": kind, "steps": seen.made, "calls": seen.calls, "horizon": c.end, "peak_at": c.peak_at,
                  "last": c.last, "peak": c.peak})


def _said(c: Course, made: int, calls: int) -> tuple[str, str, Bearing, Severity] | None:
    if c.rising and c.peak_at > made and c.last <= MUCH * c.peak:
        return "warmup", (f"is still on its way up: {c.last:.3g} at count {made}, where the run ended, and "
                          f"{c.peak:.3g} at about {c.peak_at}"), Bearing.CAUSE, Severity.HIGH
    if c.end is None:
        return None
    if abs(c.end - calls) <= NEAR * calls and made <= MUCH * calls and c.rest <= LOW * c.peak:
        return "seldom", (f"was made for {c.end} steps, as many as the program made calls ({calls}), and was counted "
                          f"to {made}: it ended at {c.last:.3g} of {c.peak:.3g}"), Bearing.CAUSE, Severity.HIGH
    if c.end <= THIRD * made and 0 < c.rest <= LOW * c.peak:
        return "early", (f"is at its end, {c.rest:.3g} of {c.peak:.3g}, from count {c.end} of {made} on"), \
            Bearing.SIGN, Severity.MEDIUM
    if made / MUCH <= c.end <= FAR * made and c.rest <= LOW * c.peak and c.last >= MUCH * c.peak:
        return "longer", f"ends at count {c.end} and the run at {made}", Bearing.SIGN, Severity.LOW
    return None

"""The learning rate jumps back up although it had been decaying.

After a resume it means that the scheduler's state was not restored, or that a scheduler built after the optimizer was
loaded overwrote the restored rate with its initial one: one record at the old peak is enough to throw a nearly finished
model out. A schedule with a warm-up does not jump: at the resume it falls to nothing and climbs its first steps
again. Without a resume in sight it is a second scheduler, a rebuilt optimizer or a schedule that wrapped around.

Warm restarts are meant: they come after the rate has run down, at even or growing distances, and begin no higher than
the cycles before. Those are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.schedules import Jump, jumps_up, learning_rates
from traindx_tools.on_logs.curves.shapes import Track, number, ratio, track, value_near
from traindx_tools.on_logs.run import Note, Run
from traindx_tools.rules import Rule, Threshold

RUN_DOWN = 0.05
ENOUGH = 8
INITIAL = 0.9
ABOVE = 1.5
LOSS_JUMP = 1.1
MOST_JUMPS = 200
"""Jumps that are judged one by one: no schedule restarts more often, and each is looked for in the whole loss."""

RULE = Rule(
    id="L302",
    name="lr-restart",
    title="The learning rate jumps back up",
    severity=Severity.HIGH,
    sees="Jumps of a learning rate that had been decaying, resume notes near them, the loss on both sides.",
    matters="A large step late in training undoes what the small ones did.",
    alike=("Warm restarts (SGDR, cyclic): periodic, after the rate has run down.",
           "A second training stage with its own schedule.", "ReduceLROnPlateau never raises the rate."),
    confirm=("After loading the checkpoint print scheduler.last_epoch and optimizer.param_groups[0]['lr'] before the "
             "first step.",
             "Check that scheduler.state_dict() is in the checkpoint and loaded after the scheduler is built."),
    thresholds={
        "initial": Threshold(INITIAL, "of the peak", "a jump back to the initial rate, allowing a step of decay"),
        "run_down": Threshold(RUN_DOWN, "of the peak", "a warm restart comes after the rate has run down"),
        "enough": Threshold(ENOUGH, "records of decay before", "fewer do not show its shape"),
        "above": Threshold(ABOVE, "of every rate before", "no cycle of a schedule begins higher (SGDR: as high)"),
        "loss_jump": Threshold(LOSS_JUMP, "times the loss before", "together with the scatter of the loss"),
    },
)

_STAGES = ("stage", "phase", "curriculum", "unfreez", "finetun", "fine-tun", "warm restart", "cycle")


@dataclass(frozen=True)
class Context:
    """What stands around a jump."""

    resume: Note | None
    stage: bool
    loss_before: float | None
    loss_after: float | None
    loss_jumps: bool
    recovers: bool
    """The loss falls below where it was before the jump."""
    glitch: bool
    """The rate is back on its old curve in the next record."""


def check(run: Run) -> Iterator[Finding]:
    """One finding: the jump with most speaking for a fault."""
    for t in learning_rates(run):
        jumps = jumps_up(t) or _second_warmup(run, t)
        if not jumps:
            continue
        loss = track(main_loss(run))
        judged = [(j, _context(run, t, j, loss)) for j in _looked_at(run, t, jumps)]
        at_resume = [p for p in judged if p[1].resume is not None]
        if not at_resume and (_periodic(t, jumps) or all(_meant(t, j, c) for j, c in judged)):
            continue
        j, c = (at_resume or [p for p in judged if not _meant(t, *p)] or judged)[0]
        yield _report(t, j, c, len(jumps))
        return


def _looked_at(run: Run, t: Track, jumps: list[Jump]) -> list[Jump]:
    """The first jumps, and those at a resume: a rate that jumps more often follows no schedule."""
    if len(jumps) <= MOST_JUMPS:
        return jumps
    lines = t.series.line[t.index]
    resumed = np.array([n.line for n in run.notes if n.kind == "resume" and n.source == t.series.source], np.int64)
    after = np.searchsorted(lines, resumed)
    near = {int(i) for at in after for i in (at - 1, at, at + 1)}
    return jumps[:MOST_JUMPS] + [j for j in jumps[MOST_JUMPS:] if j.i in near][:MOST_JUMPS]


def _second_warmup(run: Run, t: Track) -> list[Jump]:
    """The climb that follows a resume in the midst of a decay, to the height of the first one; at most one."""
    lines = t.series.line[t.index]
    for note in run.notes:
        i = int(np.searchsorted(lines, note.line))
        if note.kind != "resume" or note.source != t.series.source or not ENOUGH <= i <= len(t) - 3:
            continue
        peak, before = float(t.y[:i].max()), float(t.y[i - 1])
        top = i + int(np.argmax(t.y[i:]))
        climbs = t.y[i] < t.y[top] and bool((np.diff(t.y[i: top + 1]) > 0).all())
        decayed = RUN_DOWN * peak < before < 0.8 * peak
        if decayed and climbs and t.y[top] >= max(1.3 * before, INITIAL * peak) and t.y[0] < INITIAL * peak:
            return [Jump(i, before, float(t.y[top]), top)]
    return []


def _periodic(t: Track, jumps: list[Jump]) -> bool:
    """Whether jumps come at even distances, or each distance is the same multiple of the one before."""
    if len(jumps) < 2:
        return False
    distances = np.diff([float(t.x[0]), *(float(t.x[j.i]) for j in jumps)])
    after = distances[1:] if len(distances) > 2 else distances
    if (after <= 0).any():
        return False
    slack = 1.5 * float(np.median(np.diff(t.x)))
    even = float(np.ptp(after)) <= max(slack, 0.15 * float(after.max()))
    factors = after[1:] / after[:-1]
    growing = bool((factors >= 1.2).all()) and float(np.ptp(factors)) <= 0.3 * float(factors.max())
    return even or growing


def _meant(t: Track, j: Jump, c: Context) -> bool:
    """Whether one jump looks like a warm restart or a new stage: after the rate has run down, decaying again."""
    if c.stage:
        return True
    peak = float(t.y[: j.i].max())
    if _begins_late(t):
        peak = max(peak, j.after)  # what the rate was before the log begins is not known
        if j.before <= RUN_DOWN * peak and c.recovers and not c.glitch:
            return True
    if j.after > ABOVE * peak:
        return False  # a restart begins at the height of the cycles before, or below
    if j.after < 0.5 * peak and not c.loss_jumps:
        return True  # a slope of a cyclic schedule between two records, or a mild re-warming
    if j.i < ENOUGH and not c.glitch and not c.loss_jumps:
        return True  # too few records to tell a decay that was cut off from one that had run down
    return (j.before <= RUN_DOWN * peak or _levelled_out(t, j.i)) and not c.glitch and not c.loss_jumps


def _begins_late(t: Track) -> bool:
    """Whether the log is of a run that went on from an earlier one: its first record is no first epoch or step."""
    steps = np.diff(t.x)
    return t.unit in ("step", "epoch") and len(steps) > 0 and float(t.x[0]) > 2 * float(np.median(steps))


def _levelled_out(t: Track, i: int) -> bool:
    """Whether the decay had become flat before the jump, as a cosine does at its minimum rate."""
    drops = -np.diff(t.y[: i])
    drops = drops[int(np.argmax(t.y[: i])):]
    return len(drops) >= 4 and float(drops[-1]) < 0.3 * float(drops.max())


def _context(run: Run, t: Track, j: Jump, loss: Track | None) -> Context:
    s = t.series
    a, b = int(t.index[j.i - 1]), int(t.index[j.i])
    near = [n for n in run.notes if n.source == s.source and s.line[a] - 3 <= n.line <= s.line[b] + 3]
    between = [n for n in near if n.kind == "resume" and not _went_on(t, n, j.i)]
    stage = any(word in n.text.lower() for n in near if n.kind not in ("resume", "epoch") for word in _STAGES)
    elsewhere = [n for n in run.notes if n.kind == "resume" and n.source != s.source and _same_place(n, t, j.i)]
    before, after, jumps = _loss_around(loss, t, j)
    glitch = j.i + 1 < len(t) and float(t.y[j.i + 1]) <= j.before * 1.05
    later = loss.y[loss.x > t.x[j.i]] if loss is not None and loss.unit == t.unit else np.zeros(0)
    recovers = before is not None and len(later) > 0 and float(later.min()) < before
    return Context(next(iter([*between, *elsewhere]), None), stage, before, after, jumps, recovers, glitch)


def _went_on(t: Track, note: Note, i: int) -> bool:
    """Whether the rate went on as before at first: records lie between the resume and the jump, and it fell there."""
    since = int(np.searchsorted(t.series.line[t.index], note.line))
    return i - since >= 2 and bool((np.diff(t.y[since:i]) <= 0).all())


def _same_place(note: Note, t: Track, i: int) -> bool:
    """Whether a note of another file names the step or epoch of the jump."""
    told = note.values.get(t.unit)
    return isinstance(told, (int, float)) and float(t.x[i - 1]) <= float(told) <= float(t.x[i])


def _loss_around(loss: Track | None, t: Track, j: Jump) -> tuple[float | None, float | None, bool]:
    if loss is None:
        return None, None, False
    before = value_near(loss.series, t.series, int(t.index[j.i - 1]))
    after = value_near(loss.series, t.series, int(t.index[j.i]))
    if before is None or after is None:
        return before, after, False
    return before, after, after - before > max(3 * loss.noise, (LOSS_JUMP - 1) * abs(before))


def _report(t: Track, j: Jump, c: Context, count: int) -> Finding:
    s = t.series
    first, peak = float(t.y[0]), float(t.y[: j.i].max())
    initial = abs(j.after - first) <= (1 - INITIAL) * max(first, j.after)
    to_peak = j.after >= INITIAL * peak
    above = j.after > ABOVE * peak
    back = (f", {number(j.after / peak)} times the highest rate before" if above
            else ", the initial one" if initial else ", its former peak" if to_peak else "")
    resume = f' at the resume ("{c.resume.text.strip()[:80]}")' if c.resume is not None else ""
    loss = (f"; the loss goes from {number(c.loss_before)} to {number(c.loss_after)}"
            if c.loss_before is not None and c.loss_after is not None else "")
    then = f"; the next record is back at {number(float(t.y[j.i + 1]))}" if c.glitch else ""
    certain = c.resume is not None or c.glitch or (above and c.loss_jumps)
    top = j.i if j.top is None else j.top
    moves = "jumps" if j.top is None else "starts over"
    return RULE.finding(
        f"the learning rate {moves} from {number(j.before)} at {t.place(j.i - 1)} "
        f"{'' if j.top is None else f'with {number(float(t.y[j.i]))} '}{'' if above else 'back '}up to "
        f"{number(j.after)} at {t.place(top)}{back}{resume}{loss}{then}", t.at(j.i), s.source,
        bearing=Bearing.CAUSE if certain and (initial or to_peak) else Bearing.SIGN,
        severity=Severity.HIGH if c.resume is not None or c.loss_jumps else Severity.MEDIUM,
        measured={"position": float(s.position[t.index[j.i]]), "before": j.before, "after": j.after, "initial": initial,
                  "to_peak": to_peak, "ratio": ratio(j.after, j.before), "at_resume": c.resume is not None,
                  "loss_jump": c.loss_jumps, "loss_before": c.loss_before, "loss_after": c.loss_after,
                  "one_record": c.glitch, "jumps": count})

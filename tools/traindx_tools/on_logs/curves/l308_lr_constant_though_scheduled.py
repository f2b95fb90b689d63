"""The configuration asks for a schedule, the learning rate does not move.

`scheduler.step()` is never called, the scheduler holds another optimizer than the one that trains, or the setting is
not read. Only a schedule that must have moved by now is judged: a cosine, linear, exponential or one-cycle schedule
over a good part of the run, or a warm-up that was to begin at a small rate. A rate printed with so few decimals that
its movement would not show is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import config_number, learning_rates, plan
from traindx_tools.on_logs.curves.shapes import Track, number, printed_unit
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

MOVING = ("cosine", "linear", "exponential", "polynomial", "onecycle", "one_cycle", "inverse_sqrt", "noam", "cyclic")
SETTINGS = ("lr_scheduler_type", "lr_scheduler", "scheduler", "schedule", "lr_schedule", "lr_decay_style", "lr_policy",
            "scheduler_type", "decay_lr")
WARM_UP = ("warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_steps", "lr_warmup_iters")
FAR, ENOUGH = 0.5, 5

RULE = Rule(
    id="L308",
    name="lr-constant-though-scheduled",
    title="The learning rate is constant although a schedule is configured",
    severity=Severity.MEDIUM,
    sees="The schedule named in the configuration against the spread of the logged learning rate.",
    matters="The run trains at full rate to its end: it neither warms up nor settles.",
    alike=("A stable phase of a warm-up-stable-decay schedule.", "ReduceLROnPlateau that saw no plateau.",
           "A rate printed with one or two digits."),
    confirm=("Print scheduler.get_last_lr() and optimizer.param_groups[0]['lr'] every hundred steps.",
             "Check that scheduler.step() is called and that scheduler.optimizer is the optimizer that steps."),
    thresholds={
        "far": Threshold(FAR, "of the planned run", "a cosine or linear decay has lost half of its rate there"),
        "enough": Threshold(ENOUGH, "records", "fewer say nothing"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    for t in learning_rates(run)[:1]:
        where = plan(run, t)
        if where is None or len(t) < ENOUGH or float(t.y.max()) <= 0 or np.ptp(t.y) > 1e-6 * float(t.y.max()):
            return
        asked = _schedule(run) if where.done >= FAR and not _too_coarse(t, where.done) else None
        asked = asked or _warm_up(run, t)
        if asked is None:
            return
        yield RULE.finding(
            f"the configuration asks for {asked[0]} = {asked[1]}, but the learning rate is {number(float(t.y[0]))} in "
            f"all {len(t)} records from {t.place(0)} to {t.place(-1)}", t.at(0, -1), t.series.source,
            bearing=Bearing.SIGN,
            measured={"setting": asked[0], "schedule": asked[1], "lr": float(t.y[0]), "records": len(t),
                      "position": float(t.series.position[t.index[0]]), "done": where.done})


def _warm_up(run: Run, t: Track) -> tuple[str, str] | None:
    """The warm-up that is configured in steps, where three records of its first three quarters were logged."""
    for key in WARM_UP:
        steps = config_number(run.config, (key,))
        if steps is not None and t.unit == "step" and int((t.x < 0.75 * steps).sum()) >= 3:
            return key, f"{steps:g}"
    return None


def _schedule(run: Run) -> tuple[str, str] | None:
    for key, value in run.config.items():
        last = [part.replace("-", "_") for part in str(key).lower().split(".")[-2:]]
        if not any(part in SETTINGS for part in last) or last[-1] in ("interval", "frequency", "monitor"):
            continue
        text = str(value).lower()
        if any(word in text for word in MOVING) and "constant" not in text and "restart" not in text:
            return str(key), str(value)[:60]
        if last[-1] == "decay_lr" and text == "true":
            return str(key), "true"
    return None


def _too_coarse(t: Track, done: float) -> bool:
    """Whether a decay would not show in the printed digits: only one of them, and not far enough to print as 0."""
    unit = printed_unit(t.y)
    return unit is not None and float(t.y.max()) < 1.5 * unit and done < 0.7

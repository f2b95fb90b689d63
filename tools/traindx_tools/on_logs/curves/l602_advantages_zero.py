"""Every advantage is zero: the policy gets no gradient, whatever the rewards are.

Group-normalised advantages are (r - mean of the group) / std of the group. They vanish in two ways, and the rewards
tell which. Rewards that differ ("variance-present": a reward_std above zero, or a mean reward that varies from step
to step between its bounds) cannot give zero advantages unless each group holds a single sample, or the advantage is
masked, detached or overwritten. Rewards that are all equal ("no-variance") leave nothing to learn from: the task is
too hard, too easy, or the reward function is broken.

Where advantages are not logged, a policy loss and a gradient norm that are exactly 0 say the same
("loss-and-gradient"). Rewards at their upper bound with no spread are a solved task and give a remark only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, median, spread, tail
from traindx_tools.on_logs.curves.learning import is_reinforcement, listed, number, percent, span
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

ZERO = 1e-7
SHARE = 0.8
RECORDS = 3

RULE = Rule(
    id="L602",
    name="advantages-zero",
    title="All advantages are zero",
    severity=Severity.CRITICAL,
    sees="extreme advantages, policy loss and gradient norm beside the rewards",
    matters="No step changes the policy: the run costs compute and learns nothing.",
    alike=(
        "A policy loss of 0 with a gradient norm above 0 is usual: normalised advantages sum to zero.",
        "All rewards equal: nothing to learn from, but the advantages are computed rightly.",
        "A solved task: every reward is at its maximum.",
    ),
    confirm=(
        "Print the group ids of one batch with their counts: every group must have as many members as samples "
        "were drawn.",
        "Print the rewards of one group beside its mean, its standard deviation and its advantages.",
    ),
    thresholds={
        "zero": Threshold(ZERO, "absolute", "float32 rounding of a difference of numbers near 1"),
        "share": Threshold(SHARE, "of the records", "all but a few"),
        "records": Threshold(RECORDS, "records", "fewer may be the first steps"),
    },
)

_POLICY = re.compile(r"pg_?loss|policy_?loss|loss_?policy|policy_gradient|surrogate|actor_?loss|"
                     r"loss/(?:pg|policy|actor)")


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    if not is_reinforcement(run):
        return
    advantages = [c for s in run.find("advantage_max", "advantage_min", group="train") if len(c := curve(s)) >= RECORDS]
    if advantages:
        if all(_zero(c) for c in advantages):
            yield from _finding(run, advantages, "advantages")
        return
    policy = next((c for s in run.series if _POLICY.search(s.name) or _POLICY.search(s.original.lower())
                   if len(c := curve(s)) >= RECORDS), None) or _curve_of(run.first("loss", group="train"))
    norm = _curve_of(run.first("grad_norm", group="train"))
    if policy is not None and norm is not None and _zero(policy) and _zero(norm):
        yield from _finding(run, [policy, norm], "loss-and-gradient")


def _curve_of(series: Series | None) -> Curve | None:
    c = curve(series) if series is not None else None
    return c if c is not None and len(c) >= RECORDS else None


def _zero(c: Curve) -> bool:
    """Zero at nearly all records, and at the last ones."""
    zero = np.abs(c.values) <= ZERO
    return float(zero.mean()) >= SHARE and bool(zero[-RECORDS:].all())


def _finding(run: Run, zeros: list[Curve], evidence: str) -> Iterator[Finding]:
    c = zeros[0]
    start, end = c.where(0, len(c) - 1)
    reward, deviation = run.first("reward", group="train") or run.first("reward"), run.first("reward_std")
    level = _tail(reward)
    scatter = _tail(deviation)
    varies = level is not None and reward is not None and spread(curve(reward).values) > 1e-6 * max(1.0, abs(level))
    if scatter is not None:
        kind = "variance-present" if scatter > 1e-6 else "no-variance"
    else:
        kind = "variance-present" if varies else "no-variance" if level is not None else "unknown"
    norm = _curve_of(run.first("grad_norm", group="train"))
    gradient_zero = norm is not None and _zero(norm)
    if norm is not None and not gradient_zero and float(np.median(np.abs(norm.values))) > 1e-3 and not varies:
        return
    solved = kind == "no-variance" and level is not None and 0.95 <= level <= 1.0
    names = listed(dict.fromkeys(z.series.original for z in zeros))
    beside = [f"{reward.original} is {number(level)}" + (f" (between {number(float(curve(reward).values.min()))} and "
              f"{number(float(curve(reward).values.max()))})" if varies else "")
              if reward is not None and level is not None else "",
              f"its standard deviation {number(scatter)}" if scatter is not None else "",
              "grad_norm is 0" if gradient_zero and evidence == "advantages" else ""]
    said = listed(b for b in beside if b)
    yield RULE.finding(
        f"{names} {'are' if len(zeros) > 1 else 'is'} 0 at {percent(float((np.abs(c.values) <= ZERO).mean()))} of the "
        f"{len(c)} records {span(c.series, start, end)}{f', while {said}' if said else ''}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.INFO if solved else Severity.CRITICAL if kind == "variance-present" else Severity.HIGH,
        measured={"kind": kind, "evidence": evidence, "reward": level, "reward_std": scatter, "reward_varies": varies,
                  "gradient_zero": gradient_zero, "records": len(c)},
    )


def _tail(series: Series | None) -> float | None:
    c = curve(series) if series is not None else None
    if c is None or not len(c):
        return None
    return tail(c.values) if len(c) >= 3 else median(c.values)

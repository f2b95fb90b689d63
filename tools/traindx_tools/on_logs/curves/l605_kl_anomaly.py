"""The divergence from the reference policy is exactly zero while training goes on, or it explodes.

KL to a frozen reference is zero before the first update and grows with every one after it. Exactly zero at record
after record means that the two policies are the same network: parameters that are never updated, a reference that
shares or follows the policy's weights, or a stale autocast cache that serves old casts after the weights were
swapped. The gradient norm tells little, since gradients exist in all three cases; the reward separates them
(`measured.reward_course`): "flat" where the policy does not change, "rising" where it changes and the reference goes
along.

"exploding": KL ends ten times above its usual level and above 10 nats, or a hundredfold, without coming back.

A KL between the policy and its own last version (approx_kl, ppo_kl) is small by design and rounds to zero in print;
it counts only where the reward does not rise. KL terms of variational models are judged by L607.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, last_part, median, ratio, tail, trend
from traindx_tools.on_logs.curves.learning import is_reinforcement, number, percent, setting, span
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

SHARE = 0.9
RECORDS = 5
EXPLODES = 10.0
NATS = 10.0

RULE = Rule(
    id="L605",
    name="kl-anomaly",
    title="KL to the reference policy is exactly zero or explodes",
    severity=Severity.HIGH,
    sees="KL beside reward, gradient norm and learning rate",
    matters="Zero: the policy does not move, or nothing holds it to the reference. Exploding: it left the reference.",
    alike=(
        "The first records, before an update has been made.",
        "A weight of zero: some trainers then log 0 without computing KL.",
        "KL between successive policies, which is small and rounds to zero.",
    ),
    confirm=(
        "Print (p - p_ref).abs().max() over the parameters after ten updates.",
        "Compute KL with autocast off, or after torch.clear_autocast_cache().",
    ),
    thresholds={
        "share": Threshold(SHARE, "of the records", "about 0 while active: ff-debug skill"),
        "records": Threshold(RECORDS, "records", "beyond the first, which is zero by right"),
        "explodes": Threshold(EXPLODES, "times the usual level", "one order of magnitude"),
        "nats": Threshold(NATS, "nats", "e^-10: the reference gives the policy's answers no chance"),
    },
)

_SUCCESSIVE = re.compile(r"approx|ppo|old|prev")


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    if not is_reinforcement(run):
        return
    for series in run.find("kl", group="train"):
        c = curve(series)
        if len(c) < RECORDS:
            continue
        finding = _zero(run, c) or _exploding(c)
        if finding is not None:
            yield finding
            return


def _zero(run: Run, c: Curve) -> Finding | None:
    later = c.values[1:]
    if float(np.mean(later == 0.0)) < SHARE or bool(last_part(c.values, 0.3).any()):
        return None
    norm, rate = _level(run.first("grad_norm", group="train")), _level(run.first("learning_rate"))
    weight = setting(run.config, "beta", "klcoef", "klweight", "klcoeff", "initklcoef", "klpenalty", "kllosscoef")
    reward = run.first("reward", group="train") or run.first("reward")
    course = _course(curve(reward)) if reward is not None else "unknown"
    successive = _is_successive(c.series)
    off = weight is not None and weight[1] == 0.0
    start, end = c.where(0, len(c) - 1)
    beside = [f"grad_norm is {number(norm)}" if norm is not None else "",
              f"the learning rate is {number(rate)}" if rate is not None else "",
              f"the reward is {course}" if course != "unknown" else ""]
    said = ", ".join(b for b in beside if b)
    severity = Severity.INFO if off or (successive and course == "rising") else (
        Severity.MEDIUM if course == "rising" or norm == 0.0 else Severity.HIGH)
    return RULE.finding(
        f"{c.series.original} is exactly 0 at {percent(float(np.mean(c.values == 0.0)))} of the {len(c)} records "
        f"{span(c.series, start, end)}{f' although {said}' if said else ''}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN, severity=severity,
        measured={"kind": "zero", "records": len(c), "grad_norm": norm, "learning_rate": rate, "reward_course": course,
                  "weight": weight[1] if weight else None, "successive": successive,
                  "gradient_nonzero": norm is not None and norm > 0.0},
    )


def _is_successive(series: Series) -> bool:
    """Whether a KL is that between the policy and its own last version, by its name."""
    return bool(_SUCCESSIVE.search(series.original.lower()))


def _course(reward: Curve) -> str:
    z = trend(reward.values) if len(reward) >= 4 else None
    return "unknown" if z is None else "rising" if z > 2.0 else "falling" if z < -2.0 else "flat"


def _exploding(c: Curve) -> Finding | None:
    v = np.abs(c.values)
    if len(v) < 8:
        return None
    usual, end = median(v[: 2 * len(v) // 3]), float(np.min(v[-3:]))
    certain = end >= EXPLODES * usual and (end >= NATS or end >= EXPLODES**2 * max(usual, 1e-3))
    if not certain or tail(v) < usual:
        return None
    start, last = c.where(2 * len(v) // 3, len(v) - 1)
    return RULE.finding(
        f"{c.series.original} rises from {number(usual)} to {number(float(c.values[-1]))} "
        f"{span(c.series, start, last)}",
        c.series.at(start, last), c.series.source, bearing=Bearing.SIGN,
        measured={"kind": "exploding", "usual": usual, "end": float(c.values[-1]), "growth": ratio(end, usual),
                  "successive": _is_successive(c.series)},
    )


def _level(series: Series | None) -> float | None:
    c = curve(series) if series is not None else None
    return median(c.values) if c is not None and len(c) else None

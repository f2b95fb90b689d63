"""The policy's entropy has run out, or stays near that of a uniform guess.

"collapsed": entropy fell to a twentieth of what it was, or below 0.02 nats, and stays there. The policy gives one
answer to everything; nothing is explored and the advantages of a group vanish. Beside a reward that has risen and
stays up this is only a policy that is sure of itself (a remark); beside a reward that is flat or falling it is
collapse.

"near-max": entropy stays above 0.9 ln(V) to the end, with V the vocabulary or the number of actions as the
configuration states it, and the reward does not rise: the policy has learned nothing, or was driven to gibberish by
an entropy bonus that outweighs the reward (then entropy rose: "rising").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, beginning, curve, head, last_part, median, ratio, tail, trend
from traindx_tools.on_logs.curves.learning import (
    ClassCount,
    class_counts,
    is_reinforcement,
    number,
    percent,
    setting,
    span,
)
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

NEARLY = 0.1
SHARE = 0.05
ABSOLUTE = 0.02
NEAR_MAX = 0.9
RECORDS = 5

RULE = Rule(
    id="L603",
    name="entropy-collapse",
    title="The policy's entropy has run out or stays near its maximum",
    severity=Severity.HIGH,
    sees="policy entropy beside reward, vocabulary or number of actions",
    matters="Without entropy nothing is explored; at its maximum nothing has been learned.",
    alike=(
        "A solved task: entropy is low because the policy is right.",
        "Entropy near ln(actions) at the first steps of a policy that starts from nothing.",
    ),
    confirm=(
        "Print five samples for each of three prompts (or states): all equal, or all noise?",
        "Compare the weight of the entropy bonus times entropy with the policy loss.",
    ),
    thresholds={
        "share": Threshold(SHARE, "of the entropy at the start", "near 0 is mode collapse: research-debug skill"),
        "nearly": Threshold(NEARLY, "nats, and of the start", "one action with a probability of about 0.98"),
        "absolute": Threshold(ABSOLUTE, "nats", "one answer with a probability above 0.997 (arithmetic, two answers)"),
        "near_max": Threshold(NEAR_MAX, "of ln(vocabulary)", "gibberish: research-debug skill"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    series = run.first("entropy", group="train") or _negated(run)
    if series is None or not is_reinforcement(run):
        return
    c = curve(series)
    if len(c) < RECORDS or c.values.min() < -1e-6:
        return
    reward = run.first("reward", group="train") or run.first("reward")
    course = _course(curve(reward)) if reward is not None else "unknown"
    last = last_part(c.values, 0.3)
    level = median(last)
    if _ran_out(c, last, level):
        yield _collapsed(c, level, course, (reward is not None and tail(curve(reward).values)) or None)
        return
    known = _maximum(run, c)
    if known is not None and float(last.min()) >= NEAR_MAX * math.log(known.count) and course != "rising":
        yield _near_max(c, level, known, course)


def _negated(run: Run) -> Series | None:
    """The entropy out of an "entropy loss" that is never positive: its negative, as Stable-Baselines3 prints it."""
    loss = run.first("loss/entropy", group="train")
    if loss is None or not loss.finite.all() or (loss.values > 0).any() or not (loss.values < 0).any():
        return None
    return replace(loss, values=-loss.values, name="entropy", original=f"-{loss.original}")


def _ran_out(c: Curve, last: Floats, level: float) -> bool:
    """Whether the end is next to nothing of the start, or of an entropy that is small in nats already."""
    first = head(c.values)
    if float(last.max()) <= max(ABSOLUTE, SHARE * first) and level <= SHARE * max(first, ABSOLUTE):
        return True
    return level <= min(NEARLY, NEARLY * first) and float(last.max()) <= 2.0 * NEARLY


def _course(reward: Curve) -> str:
    if len(reward) < 4:
        return "unknown"
    z = trend(reward.values)
    return "rising" if z > 2.0 else "falling" if z < -2.0 else "flat"


def _collapsed(c: Curve, level: float, course: str, reward: float | None) -> Finding:
    start, end = c.where(0, len(c) - 1)
    said = f" while the reward is {course}" if course != "unknown" else ""
    harmless = course == "rising" or (reward is not None and 0.95 <= reward <= 1.0 and course != "falling")
    return RULE.finding(
        f"{c.series.original} fell from {beginning(c)} to {number(level)} {span(c.series, start, end)}{said}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.INFO if harmless else Severity.HIGH if course == "falling" else Severity.MEDIUM,
        measured={"kind": "collapsed", "entropy": level, "entropy_start": head(c.values),
                  "share": ratio(level, head(c.values)), "reward_course": course, "reward": reward},
    )


def _maximum(run: Run, c: Curve) -> ClassCount | None:
    """The stated vocabulary or action count whose logarithm the entropy does not exceed and comes nearest to."""
    actions = setting(run.config, "nactions", "numactions", "actiondim", "actions")
    stated = class_counts(run)
    if actions is not None and actions[1] == int(actions[1]) and 2 <= actions[1] <= 1e7:
        stated = [*stated, ClassCount(int(actions[1]), f"{actions[0]} = {actions[1]:g} in the configuration")]
    possible = [k for k in stated if math.log(k.count) >= 0.98 * float(c.values.max())]
    return min(possible, key=lambda k: k.count) if possible else None


def _near_max(c: Curve, level: float, known: ClassCount, course: str) -> Finding:
    start, end = c.where(0, len(c) - 1)
    limit = math.log(known.count)
    rose = level > 1.1 * head(c.values) + 1e-9
    return RULE.finding(
        f"{c.series.original} {'rose to' if rose else 'stays at'} {number(level)}, {percent(level / limit)} of ln("
        f"{known.count}) = {number(limit)} ({known.why}), {span(c.series, start, end)} while the reward is {course}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if rose else Severity.MEDIUM,
        measured={"kind": "rising" if rose else "near-max", "entropy": level, "entropy_start": head(c.values),
                  "share": level / limit, "classes": known.count, "reward_course": course},
    )

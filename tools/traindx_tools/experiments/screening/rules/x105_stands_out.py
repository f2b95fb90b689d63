"""Of many changes that were made one at a time, this one takes the symptom away or weakens it, and the others do not.

A screen runs the program once as it is and once with each change: a setting with another value, one of many like files
left out, a stage of the training without what it adds. Most of them do nothing to the symptom, so that they are each
other's controls. What stands out is tried again with other seeds by an experiment of its own (X101, X102), as long as
there is time; this finding says what the single runs showed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.experiments.level import FLOOR
from traindx_tools.experiments.screening.judging import TIMES_SCATTER
from traindx_tools.experiments.screening.screen import Screened, Tried
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X105",
    name="screen-stands-out",
    title="One of many changes stands out",
    severity=Severity.MEDIUM,
    sees="One run as it is, and one run with each change.",
    matters="Where nothing names a cause, it says where to look: in this setting, this file or this stage.",
    alike=("a value that trains faster, whatever is wrong", "a change that hides the symptom",
           "less data or another seed, where it scatters widely: confirmed by other seeds"),
    confirm=("the experiment on it with other seeds (X101, X102)", "a value between the two"),
    thresholds={
        "scatter": Threshold(TIMES_SCATTER, "times the scatter of the arms", "1.4826 times the median deviation"),
        "floor": Threshold(FLOOR, "share of the level", "below, two runs are not told apart"),
    },
)
MOST = 3
"""Of one screen: where more stand out, the symptom answers to much."""


def check(screened: Screened) -> Iterator[Finding]:
    """One finding for each of the best arms that stand out."""
    found = screened.standing_out
    for one in found[:MOST]:
        arm = one.arm
        measured: dict[str, Value] = {
            "experiment": screened.id, "change": str(arm.change), "outcome": str(screened.outcome), "kind": arm.kind,
            "decides": ",".join(sorted(arm.modes)), "arms": len(screened.tried), "standing": len(found),
            "better": True, "specific": arm.specific, "setting": arm.what, "now": arm.now, "to": arm.to}
        yield RULE.finding(statement(screened, one), _where(one), f"screen {screened.id}", bearing=Bearing.SIGN,
                           measured=measured)


def statement(screened: Screened, one: Tried) -> str:
    """What the single runs showed, in one sentence."""
    outcome = screened.outcome
    if outcome.is_event:
        told = f"without it {outcome.said} does not come"
    else:
        told = f"{outcome.said} is {one.judged.value:.4g} instead of {_told(screened.value)}"
    others = [t for t in screened.tried if t is not one and t.judged.word not in ("failed", "unread")]
    values = [t.judged.value for t in others if t not in screened.standing_out and math.isfinite(t.judged.value)]
    same = sum(t.judged.word == "same" for t in others)
    rest = f"; {len(others)} others" if others else ""
    if rest and values and not outcome.is_event:
        rest += f" lie between {min(values):.4g} and {max(values):.4g}"
    elif rest:
        rest += " still show it" if not [t for t in others if t in screened.standing_out] else " were tried"
    rest += f" ({same} change nothing, bit for bit)" if same and others else ""
    return f"{screened.id}: of {len(screened.tried)} changes, one at a time, {one.arm.said} stands out: {told}{rest}"


def _told(value: float | None) -> str:
    return "no finite number" if value is None else f"{value:.4g}"


def _where(one: Tried) -> Location:
    if one.arm.file:
        return Location(file=one.arm.file, line=one.arm.line)
    return Location(module=one.arm.said)

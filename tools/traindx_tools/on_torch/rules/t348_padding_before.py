"""Rows are padded before their content, and the model does not answer as it does without that padding.

Padding in front moves every position of a row. A model whose positions, attention or state do not take it out answers
something else. `kind`: "evaluation": no training call had rows padded in front, calls without gradients have, so the
model meets positions and neighbours that it was not trained with; "both": training pads in front as well, and what a
row gives depends on the longest one of its batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.padding_before import Before

SOURCE = "torch probe: padding side"
CHANGE, TRAINED = 0.05, 3

RULE = Rule(
    id="T348",
    name="padding-before",
    title="Padding before a row moves its positions",
    severity=Severity.HIGH,
    sees="which side rows of ids are filled up on in training and without gradients, and the output of a copy for one "
         "row with its padding and without",
    matters="what is generated or evaluated is computed at other positions than what was trained",
    alike=("a mask and positions that count from the first real element: the output stays the same, nothing is said",
           "bags of words, relative positions: the same",
           "windows of one width that are padded in front throughout: their ends stand at one position"),
    confirm=("model(ids[:1]) against model(ids[:1, padded:])", "print(position_ids[:2]): they begin at the content"),
    thresholds={"change": Threshold(CHANGE, "standard deviations of the output", "rounding is below 0.001"),
                "trained": Threshold(TRAINED, "training calls with rows of ids", "fewer say nothing of a side")},
)


@dataclass(frozen=True)
class Sides:
    """One model: its training calls with rows of ids, those of them whose rows are padded in front or behind, and what
    a call without gradients (or, where `both`, one of training) gave."""

    model: str
    calls: int
    before: int
    behind: int
    answer: Before
    both: bool
    step: int
    rank: int = 0


def check(seen: Sides | None) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.answer.largest < CHANGE or seen.calls < TRAINED:
        return
    a = seen.answer
    how = "rows of training are padded in front too" if seen.both else (
        f"in {seen.calls} training calls that were looked at no rows are padded in front"
        f"{f' ({seen.behind} have rows padded behind)' if seen.behind else ''}, and here they are")
    none = "" if a.told else "; no mask or positions of their form are among the arguments"
    yield RULE.finding(
        f"the output of {seen.model} for a row of {a.length} elements changes by up to {a.largest:.3g} standard "
        f"deviations when the {a.padded} elements in front of it (`{a.argument}` = {a.token}) are cut off; {how}{none}",
        Location(module=seen.model, step=float(seen.step), rank=seen.rank), SOURCE,
        bearing=Bearing.SIGN if seen.both else Bearing.CAUSE, severity=Severity.MEDIUM if seen.both else None,
        measured={"kind": "both" if seen.both else "evaluation", "argument": a.argument, "token": a.token,
                  "largest": round(a.largest, 4), "told": a.told, "behind": seen.behind, "calls": seen.calls})

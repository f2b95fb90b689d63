"""Weights that fill the whole model begin with a loss above that of guessing.

A model that learned anything is below ln(classes) on what it was trained for. One whose every parameter came from a
file, and whose first losses, before any update, lie clearly above, is confidently wrong: the ids that it is given, or
the classes that it is asked for, are not those of its training: another vocabulary, the same one in another order,
labels numbered anew; or its inputs are of another form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: loaded-start"
ABOVE, ANSWERS = 0.4, 100
"""Nats above ln(classes), and answers that were looked at."""
TIMES_CHANCE, HITS = 1.5, 0.2
"""Times of the chance to be right, or share that is right where that is more, which are no knowledge: ends of sequences
and padding are right in any order."""

RULE = Rule(
    id="T344",
    name="loaded-worse-than-guessing",
    title="Loaded weights begin worse than guessing",
    severity=Severity.HIGH,
    sees="the cross entropy and the hits of the first losses, before any update, of a model that a file filled whole",
    matters="what the weights learned is lost: they are asked in another language",
    alike=("a new head on loaded weights: it begins at ln(classes)", "harder data: below ln(classes) all the same",
           "a loss with label smoothing or class weights: not looked at"),
    confirm=("Decode a batch with the vocabulary that the weights came with and read it.",
             "Compare the order of the ids (vocabulary file, label map) with that of the weights' own release."),
    thresholds={"above": Threshold(ABOVE, "nats above ln(classes)", "a domain that says nothing ends at ln(classes)")},
)


@dataclass(frozen=True)
class LoadedStart:
    """Of one model. `loss`: mean cross entropy over `answers` answers; `ids`: its inputs are whole numbers."""

    model: str
    tensors: int
    loss: float
    hits: float
    answers: int
    classes: int
    ids: bool
    rank: int = 0


def check(seen: LoadedStart) -> Iterator[Finding]:
    """At most one finding."""
    chance = math.log(seen.classes) if seen.classes > 1 else 0.0
    if not chance or seen.answers < ANSWERS or not math.isfinite(seen.loss):
        return
    if seen.loss < chance + ABOVE or seen.hits > max(TIMES_CHANCE / seen.classes, HITS):
        return
    what = ("its token ids or vocabulary order differ from those that the embedding rows were trained with"
            if seen.ids else "its labels or inputs differ from those that the weights were trained with")
    yield RULE.finding(
        f"a file fills all {seen.tensors} tensors of {seen.model}, and before any update its loss is {seen.loss:.3g} "
        f"over {seen.answers} answers, above ln({seen.classes}) = {chance:.3g} of guessing, {seen.hits:.1%} right; "
        f"what this run gives the loaded weights is not what they learned: {what}",
        Location(module=seen.model, step=0.0, rank=seen.rank), SOURCE,
        bearing=Bearing.CAUSE if seen.ids else Bearing.SIGN,
        measured={"kind": "ids" if seen.ids else "other", "loss": round(seen.loss, 4), "classes": seen.classes,
                  "answers": seen.answers, "hits": round(seen.hits, 4), "module": seen.model})

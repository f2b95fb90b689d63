"""Evaluated pairs (u, v) were trained on as (v, u).

Looked at are pairs that jitted functions are given: an integer array of two columns or two rows, or two arrays of one
shape. The list of an undirected relation often holds both orders of each pair, and a split by row puts one into
training and the other into evaluation. Nothing is said where fewer than four of five trained pairs are there both ways,
where exchanged partners meet as often, or of pairs that were trained on in the order in which they are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.reversed_pairs import BOTH_WAYS, RETURNED, SHARE, TIMES, Reversed
from traindx_tools.rows.reversed_words import measured, statement
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J804",
    name="jax-reversed-pairs-evaluated",
    title="Evaluated pairs were trained on in the other order",
    severity=Severity.HIGH,
    sees="pairs among the arguments of the step that is differentiated, and of functions that evaluate its state",
    matters="the model is asked what it was told: the metric is too good to be true",
    alike=("directed relations that are often returned: follows, replies",
           "message passing over both directions of the training edges"),
    confirm=("Print the named pairs and look for their reverse in the training part.",
             "Split by unordered pair and train again: the metric falls to an honest value."),
    thresholds={"share": Threshold(SHARE, "of the evaluated pairs", "a call may hold several negatives a positive"),
                "times": Threshold(TIMES, "times chance", "partners exchanged at random, and the density of pairs"),
                "returned": Threshold(RETURNED, "of the trained pairs", "in training: directed relations stay below"),
                "both_ways": Threshold(BOTH_WAYS, "of the trained pairs", "in all that was seen: no direction")},
)


def check(seen: Reversed, function: str, place: tuple[str, int] | None, ids: bool) -> Iterator[Finding]:
    """One finding, at the evaluated call of `function`."""
    file, line = place or (None, None)
    yield RULE.finding(statement(seen, "", ids), Location(file=file, line=line, module=function), "the running process",
                       bearing=Bearing.CAUSE, measured=measured(seen, ids) | {"function": function})

"""Evaluated pairs (u, v) were trained on as (v, u).

Edges of an undirected graph, questions that mean the same, interactions: the list often holds both orders of each
pair, and a split by row puts one into training and the other into evaluation. Looked at are pairs that a model is given
(an index of two columns or two rows, two inputs of one shape by hashes of their rows) and pairs of indices into one
tensor: those of training in the graph of the loss, those of evaluation where gradients are off. Nothing is said where
fewer than four of five trained pairs are there both ways, where the two sides share no values, where exchanged
partners meet as often, or of pairs that were trained on in the order in which they are evaluated. Look-ups in compiled
code, without a gradient in training or by kernels of graph libraries are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.reversed_pairs import BOTH_WAYS, RETURNED, SHARE, TIMES, Reversed
from traindx_tools.rows.reversed_words import measured, statement
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T719",
    name="reversed-pairs-evaluated",
    title="Evaluated pairs were trained on in the other order",
    severity=Severity.HIGH,
    sees="pairs of rows or of indices that are trained on and evaluated, in both orders",
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


def check(seen: Reversed, where: Location, caller: str, ids: bool) -> Iterator[Finding]:
    """One finding. `caller`: the line that led to `where`, "" where it is known; `ids`: the pairs can be named."""
    yield RULE.finding(statement(seen, caller, ids), where, "torch probe: pairs", bearing=Bearing.CAUSE,
                       measured=measured(seen, ids))

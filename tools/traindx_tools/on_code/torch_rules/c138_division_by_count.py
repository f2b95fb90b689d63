"""A loss is divided by a count that can be 0.

`(loss * mask).sum() / mask.sum()` is 0 / 0 = NaN for the first batch without a valid element: no labelled pixel, every
target ignored, an empty expert. The NaN reaches every weight in the same step. A clamp of the count at 1, or a
condition around the division, silences the rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import divisors
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C138",
    name="division-by-count",
    title="A loss is divided by a count that can be 0",
    severity=Severity.MEDIUM,
    sees="A value with a graph divided by the sum of a mask (a comparison, 0 or 1 everywhere) without a lower bound.",
    matters="NaN in the loss and then in every weight, at the first batch whose mask is empty.",
    alike=("a logarithm of 0", "labels that are all ignored in cross entropy"),
    confirm=("print the smallest mask.sum() of an epoch",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at divisions of arrays."""
    sent = {id(p.event) for loop in project.training_loops for p in loop.places if p.event.kind == "operation"}
    for event in project.events:
        if event.kind != "operation" or event.name != "/" or len(event.args) < 2:
            continue
        top, count = event.args
        if not isinstance(count, Tensor) or not {"count"} & count.tags or count.low != 0:
            continue
        attached = isinstance(top, Tensor) and (top.grad is True or (top.grad is None and id(event) in sent))
        if event.grad is not False and (attached or event.differentiated):
            yield _finding(event)


def _finding(event: Event) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} divides by the number of True elements of "
        "a mask, which is 0 where a batch has none: 0 / 0 is NaN",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "count"},
        patch=divisors.at_least_one(event),
    )

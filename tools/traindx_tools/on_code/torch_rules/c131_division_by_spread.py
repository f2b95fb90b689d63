"""A division by a standard deviation or variance that can be 0.

Normalising by the standard deviation of a batch, a group or a row needs an epsilon: where all values are equal (a group
of rewards that are all the same, a constant feature, a silent frame) it is 0 and the quotient is 0 / 0. With one value
only, torch's unbiased std is NaN from the start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import divisors
from traindx_tools.on_code.syntax import names_in, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C131",
    name="division-by-spread",
    title="Division by a standard deviation without an epsilon",
    severity=Severity.MEDIUM,
    sees="x / std or x / var where the arithmetic lets the divisor be exactly 0, inside a training loop or a graph.",
    matters="NaN as soon as one group, row or batch has no spread.",
    alike=("log of 0", "groups of one"),
    confirm=("print the smallest standard deviation at the failing step",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at divisions of arrays."""
    in_training = {id(p.event) for loop in project.training_loops for p in loop.places if p.event.kind == "operation"}
    for event in project.events:
        if event.kind != "operation" or event.name != "/" or len(event.args) < 2:
            continue
        divisor = event.args[1]
        if event.grad is False:
            continue
        if isinstance(divisor, Tensor) and "spread" in divisor.tags and divisor.low == 0 and divisor.high is None:
            attached = divisor.grad is True or event.differentiated
            if (attached or id(event) in in_training) and not _asked(event):
                yield _finding(event, attached)


def _asked(event: Event) -> bool:
    """Whether it stands under a condition on what it divides by: `nan if var == 0 else x / var`."""
    node = event.node
    names = names_in(node.right) if isinstance(node, ast.BinOp) else set()
    conditions = (up.test for up in syntax(event.file).above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(names & names_in(test) for test in conditions)


def _finding(event: Event, attached: bool) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} divides by a spread that is exactly "
        f"0 where "
        "all values are equal: 0 / 0 is NaN",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "spread", "in_graph": attached},
        patch=divisors.with_epsilon(event),
    )

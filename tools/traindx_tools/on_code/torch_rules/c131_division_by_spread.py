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
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import last_name, names_in, syntax
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
            if (attached or id(event) in in_training) and not _asked(event) and not _only_told(event):
                yield _finding(event, attached)


def _asked(event: Event) -> bool:
    """Whether it stands under a condition on what it divides by: `nan if var == 0 else x / var`."""
    node = event.node
    names = names_in(node.right) if isinstance(node, ast.BinOp) else set()
    code = syntax(event.file)
    conditions = (up.test for up in code.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    tried = [up for up in code.above(node) if isinstance(up, ast.Try) and up.handlers]
    if any(n is node for up in tried for s in up.body for n in below(s)):
        return True
    replaced = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Name) and node.right.id in code.item_stores
    return replaced or any(names & names_in(test) for test in conditions)


def _only_told(event: Event) -> bool:
    """Whether the quotient is a number that is printed, logged or kept, as the share of variance explained is."""
    code = syntax(event.file)
    statement = code.statement(event.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    reads = code.reads(code.scope(event.node), target.id)
    return bool(reads) and all(any(_tells(up) for up in code.above(read)) for read in reads)


def _tells(node: ast.AST) -> bool:
    return isinstance(node, (ast.JoinedStr, ast.Dict)) or (
        isinstance(node, ast.Call) and last_name(node.func) in _TELLING)  # fmt: skip


_TELLING = frozenset({"print", "info", "debug", "log", "add_scalar", "append", "write", "writerow", "update"})


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

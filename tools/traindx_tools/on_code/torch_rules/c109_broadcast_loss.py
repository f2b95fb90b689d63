"""A loss between (N, 1) and (N,): every prediction is compared with every target.

A layer with one output gives shape (N, 1), a target of single numbers has shape (N,). Subtracting them broadcasts to
N x N; the mean of it is smallest where every prediction is the mean target, so the model learns a constant. torch warns
once for `mse_loss`, and not at all for a subtraction written by hand. Shapes are followed through layers, data sets and
loaders; an `unsqueeze` or `[:, None]` that somebody wrote is taken as intended.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.arrays import COLUMNS
from traindx_tools.on_code.columns_rows import COLUMN, form
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.sized_networks import SizedNetworks
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C109",
    name="broadcast-loss",
    title="Predictions (N, 1) are broadcast against targets (N,)",
    severity=Severity.HIGH,
    sees="The shapes of the two sides of a regression loss or of a subtraction.",
    matters="The loss compares all pairs; its minimum is the mean of the targets, so nothing is learned.",
    alike=("a model that underfits", "a learning rate that is too small"),
    confirm=("print(pred.shape, target.shape) in the loss", "the loss stays at the targets' variance, R2 at 0"),
)
_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "squared_error", "l2_loss")


def check(project: Project) -> Iterator[Finding]:
    """Look at regression losses and at subtractions of two arrays."""
    made: dict[int, Event] | None = None
    for event in project.calls(*_LOSSES):
        if len(event.args) < 2:
            continue
        found = list(_judged(event, event.args[0], event.args[1]))
        if not found and isinstance(event.node, ast.Call) and len(event.node.args) >= 2:
            made = {id(e.node): e for e in project.calls("__call__")} if made is None else made
            found = list(_written(event, event.node, made)) or list(_sized(project, event, event.node.args[:2]))
        yield from found
    for event in project.events:
        if event.kind == "operation" and event.name == "-":
            found = list(_judged(event, event.args[0], event.args[1]))
            sides = [event.node.left, event.node.right] if isinstance(event.node, ast.BinOp) else []
            yield from found or _sized(project, event, sides)


def _judged(event: Event, left: object, right: object) -> Iterator[Finding]:
    for pred, target, first in ((left, right, True), (right, left, False)):
        if isinstance(pred, Tensor) and isinstance(target, Tensor) and _column(pred) and _row(target):
            yield _finding(event, pred, target, first)
            return


def _written(event: Event, call: ast.Call, made: dict[int, Event]) -> Iterator[Finding]:
    """By how the two sides are written: a gather by a column against what was squeezed or taken by a maximum."""
    code = syntax(event.file)
    left, right = (form(code, side, made) for side in call.args[:2])
    if left is None or right is None or left[0] == right[0]:
        return
    first = left[0] == COLUMN
    column, row = (call.args[0], call.args[1]) if first else (call.args[1], call.args[0])
    yield RULE.finding(
        f"{event.file.segment(call)} at {event.file.path}:{event.line} broadcasts {written(column)} of shape (N, 1) "
        f"against {written(row)} of shape (N,) to N x N",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "broadcast", "prediction_shape": "(N, 1)" if first else "(N,)",
                  "target_shape": "(N,)" if first else "(N, 1)"},
        patch=_patch(event, first),
    )  # fmt: skip


def _sized(project: Project, event: Event, sides: list[ast.expr]) -> Iterator[Finding]:
    """The output of a network that is written by hand over a list of sizes that ends in 1."""
    if len(sides) != 2 or not any(w in event.file.text for w in ("zip(", "+ 1]")):
        return
    rows = [isinstance(a, Tensor) and _row(a) for a in event.args[:2]]
    if rows.count(True) != 1:
        return
    first = rows[1]
    code, networks = syntax(event.file), SizedNetworks(lookup(project))
    pred = sides[0 if first else 1]
    if not networks.column(code, pred):
        return
    yield RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} broadcasts {written(pred)} of shape "
        "(N, 1), whose last layer has one output, against targets of shape (N,) to N x N",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "broadcast", "prediction_shape": "(N, 1)", "target_shape": "(N,)"},
        patch=_patch(event, first),
    )


def _column(t: Tensor) -> bool:
    """(..., 1) as a layer left it, or as a model's output known to have two dimensions."""
    shape = t.shape
    if shape is None or not shape.dims or shape.dims[-1] != 1 or "batch" in t.tags:
        return False
    if shape.exact and len(shape.dims) != 2:
        return False
    return bool(t.tags & COLUMNS) and (not shape.exact or shape.dims[0] != 1)


def _row(t: Tensor) -> bool:
    return t.shape is not None and t.shape.exact and len(t.shape.dims) == 1 and t.shape.dims[0] != 1 and not t.models


def _finding(event: Event, pred: Tensor, target: Tensor, first: bool) -> Finding:
    name = (
        event.receiver.short
        if isinstance(event.receiver, Thing)
        else event.method
        if event.kind == "call"
        else "subtraction"
    )
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} ({name}) broadcasts predictions of "
        "shape (N, 1) "
        "against targets of shape (N,) to N x N",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={
            "kind": "broadcast",
            "prediction_shape": "(N, 1)",
            "target_shape": "(N,)",
            "prediction_made_at": str(pred.kind_site or pred.site),
            "target_made_at": str(target.site),
        },
        patch=_patch(event, first),
    )


def _patch(event: Event, first: bool) -> tuple[Patch, ...]:
    node = event.node
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        wrong = node.args[0 if first else 1]
    elif isinstance(node, ast.BinOp):
        wrong = node.left if first else node.right
    else:
        return ()
    text = ast.unparse(wrong)
    if not isinstance(wrong, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        text = f"({text})"
    made = patching.replace_text(
        event.file, wrong, f"{text}.squeeze(-1)", "give predictions the shape of the targets, (N,)"
    )
    return (made,) if made is not None else ()

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
from traindx_tools.on_code.project import Project, location
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
    for event in project.calls(*_LOSSES):
        if len(event.args) >= 2:
            yield from _judged(event, event.args[0], event.args[1])
    for event in project.events:
        if event.kind == "operation" and event.name == "-":
            yield from _judged(event, event.args[0], event.args[1])


def _judged(event: Event, left: object, right: object) -> Iterator[Finding]:
    for pred, target, first in ((left, right, True), (right, left, False)):
        if isinstance(pred, Tensor) and isinstance(target, Tensor) and _column(pred) and _row(target):
            yield _finding(event, pred, target, first)
            return


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

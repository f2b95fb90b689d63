"""The predicted class is taken over the batch.

With outputs of shape (batch, classes), `argmax(0)` or `max(0)` gives for every class the sample that has the largest
score, not for every sample its class. Where batch and classes have one size nothing complains, and the accuracy is
noise around chance.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.trace import Event, Place, walk
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C173",
    name="prediction-over-batch",
    title="The predicted class is taken over the batch",
    severity=Severity.HIGH,
    sees="argmax or max over dim 0 of an output of shape (batch, classes).",
    matters="The metric says nothing about the model, or its shapes do not fit the labels.",
    alike=("a model at chance",),
    confirm=("print(prediction.shape, labels.shape)",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every argmax and max of a model's output."""
    seen: set[int] = set()
    for root in project.roots:
        for place in walk(root, frozenset({"argmax", "max"})):
            event = place.event
            own = isinstance(event.receiver, Tensor)
            x = event.receiver if own else event.args[0] if event.args else None
            if id(event) in seen or not isinstance(x, Tensor) or literal(event.argument(0 if own else 1, "dim")) != 0:
                continue
            if _scores(x) or (_of_layer(x) and _batches(place) and (x.shape is None or not x.shape.exact)):
                seen.add(id(event))
                yield _finding(event)


def _scores(x: Tensor) -> bool:
    """Whether it is known to be of shape (batch, classes)."""
    shape = x.shape
    if shape is None or not shape.exact or len(shape.dims) != 2 or not _of_layer(x):
        return False
    return shape.dims[0] != 1 and shape.dims[1] is not None and shape.dims[1] > 1


def _of_layer(x: Tensor) -> bool:
    return bool(x.models) and ("layer" in x.tags or x.kind in ("softmax", "log_softmax", "linear"))


def _batches(place: Place) -> bool:
    """Whether the loop around it goes over the batches of a loader."""
    subject = place.loops[-1].subject if place.loops else None
    return isinstance(subject, Thing) and subject.short == "DataLoader" and "batch_size" in subject.kwargs


def _finding(event: Event) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} takes the largest entry over dim 0, the "
        "batch, of an output of shape (batch, classes)",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "argmax"},
        patch=_patch(event),
    )


def _patch(event: Event) -> tuple[Patch, ...]:
    node = event.node
    if not isinstance(node, ast.Call):
        return ()
    for value in [k.value for k in node.keywords if k.arg == "dim"] or node.args[-1:]:
        if isinstance(value, ast.Constant) and value.value == 0:
            made = patching.replace_text(event.file, value, "-1", "over the classes")
            return (made,) if made is not None else ()
    return ()

"""A softmax runs over the batch instead of the classes.

With logits of shape (batch, classes), `dim=0` normalises each class over the samples of the batch: the probabilities
of one sample do not sum to 1, and the loss couples samples that have nothing to do with each other. It depends on the
batch size and looks like a model that does not learn.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C134",
    name="softmax-over-batch",
    title="A softmax runs over the batch axis",
    severity=Severity.HIGH,
    sees="softmax or log_softmax with dim=0 over a layer's output of shape (batch, classes).",
    matters="Probabilities of a sample do not sum to 1; predictions depend on the other samples of the batch.",
    alike=("a learning rate that is too small", "softmax before cross entropy"),
    confirm=("print probabilities.sum(-1): it is not 1",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every softmax."""
    for event in project.calls("softmax", "log_softmax", "__call__"):
        layer = event.receiver
        if event.method == "__call__":
            if not isinstance(layer, Thing) or layer.short not in ("Softmax", "LogSoftmax"):
                continue
            x, dim = (event.args[0] if event.args else None), layer.argument(0, "dim")
        else:
            own = isinstance(layer, Tensor)
            x = layer if own else event.args[0] if event.args else None
            dim = event.argument(0 if own else 1, "dim") or event.kwargs.get("axis")
        if isinstance(x, Tensor) and literal(dim) == 0 and _batch_by_classes(x):
            yield _finding(event)


def _batch_by_classes(x: Tensor) -> bool:
    """Straight out of a linear layer whose input came from a loader or is known to have a batch of unknown size."""
    shape = x.shape
    if shape is None or "layer" not in x.tags or not shape.exact or len(shape.dims) != 2:
        return False
    return shape.dims[0] != 1 and shape.dims[1] is not None and shape.dims[1] > 1


def _finding(event: Event) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} normalises over dim 0, the batch, "
        f"of an output "
        "of shape (batch, classes)",
        location(event),
        event.file.path,
        strength=Strength.DIRECT,
        measured={"kind": "softmax"},
        patch=_patch(event),
    )


def _patch(event: Event) -> tuple[Patch, ...]:
    import ast

    node = event.node
    if not isinstance(node, ast.Call) or event.method == "__call__":
        return ()
    for value in [k.value for k in node.keywords if k.arg in ("dim", "axis")] or node.args[-1:]:
        if isinstance(value, ast.Constant) and value.value == 0:
            made = patching.replace_text(event.file, value, "-1", "normalise over the classes")
            return (made,) if made is not None else ()
    return ()

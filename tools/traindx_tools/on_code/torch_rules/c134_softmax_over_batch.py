"""An operation runs over the batch instead of classes or time.

With logits of shape (batch, classes), a softmax over `dim=0` normalises each class over the samples of the batch. A
mean or sum over dim 0 in the middle of a forward pass, fed to a layer, gives every row the same mixture of all
samples. Both couple samples that have nothing to do with each other; where the sizes agree no shape is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, at, location
from traindx_tools.on_code.repairs import axes
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C134",
    name="softmax-over-batch",
    title="An operation runs over the batch axis",
    severity=Severity.HIGH,
    sees="softmax over dim 0 of (batch, classes); a mean over dim 0 fed to a layer.",
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
    yield from _pooled(project)


def _pooled(project: Project) -> Iterator[Finding]:
    """A sum or mean over the batch inside a forward pass that a linear layer reads."""
    for event in project.calls("__call__"):
        layer, x = event.receiver, event.args[0] if event.args else None
        if not isinstance(layer, Thing) or layer.type != "torch.nn.Linear" or not isinstance(x, Tensor):
            continue
        info = event.function
        inside = info is not None and info.owner is not None and info.owner.is_module
        if inside and "batch_reduced" in x.tags and x.grad is not False:
            yield RULE.finding(
                f"The input of {layer.short} at {event.file.path}:{event.line} was summed or averaged over dim 0 "
                f"(at {x.site}), the batch: samples are mixed",
                location(event) if x.site is None else at(x.site, project),
                event.file.path if x.site is None else x.site.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "pooled", "layer_line": event.line},
                patch=axes.pooled_over_time(project.file(x.site.path), x.site.line) if x.site is not None else (),
            )


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
        bearing=Bearing.CAUSE,
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

"""The scores that a loss takes have passed an activation.

Cross entropy and its relatives take raw scores of any size and sign. A ReLU in front of them cuts every negative score
to 0: a class cannot be made less likely than any other one that is cut, a binary probability cannot fall below 0.5, and
a score that is cut gets no gradient, so a class can be lost for good. A tanh keeps scores within -1 and 1: with C
classes no probability rises above e / (e + (C - 1) / e), and the loss has a floor well above zero.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import losses
from traindx_tools.on_code.repairs.written import operand
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C242",
    name="activation-on-scores",
    title="The scores have passed an activation before the loss",
    severity=Severity.HIGH,
    sees="The input of a loss on raw scores that comes straight out of a ReLU or a tanh.",
    matters="Scores are cut or bounded: the loss has a floor, and classes whose score is cut are never trained again.",
    alike=("scores that are a tanh times a factor, which bounds them on purpose",
           "a pooling between the last activation and the scores", "softmax or sigmoid before the loss"),
    confirm=("print(logits.min(), logits.max()): exactly 0, or within -1 and 1",),
)
_LOSSES = (
    "cross_entropy", "binary_cross_entropy_with_logits", "sigmoid_binary_cross_entropy", "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
)  # fmt: skip
_BINARY = ("binary_cross_entropy_with_logits", "sigmoid_binary_cross_entropy")
_LAYERS = {"relu": ("ReLU", "ReLU6"), "tanh": ("Tanh",)}
_CALLS = {"relu": ("relu", "relu6", "relu_"), "tanh": ("tanh", "tanh_")}


def check(project: Project) -> Iterator[Finding]:
    """Look at every loss on raw scores."""
    seen: set[object] = set()
    for event in sorted(project.calls(*_LOSSES), key=lambda e: e.grad is False):
        given = event.args[0] if event.args else event.kwargs.get("input", event.kwargs.get("logits"))
        if isinstance(given, Tensor) and given.kind in _LAYERS:
            if given.kind_site in seen:
                continue  # evaluated by the same loss
            seen.add(given.kind_site)
            yield _finding(event, given, project)


def _finding(event: Event, scores: Tensor, project: Project) -> Finding:
    kind = scores.kind
    if kind == "tanh":
        effect = "no score leaves -1 to 1"
    elif event.method in _BINARY:
        effect = "no score falls below 0, so no probability below 0.5"
    else:
        effect = "negative scores are cut to 0 and get no gradient"
    name = event.receiver.short if isinstance(event.receiver, Thing) else event.method
    made = f", made at {scores.kind_site}," if scores.kind_site else ""
    return RULE.finding(
        f"The output of a {kind}{made} is fed to {name} at {event.file.path}:{event.line} as raw scores: {effect}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": f"{kind} into {event.method}", "activation": kind, "loss": name},
        patch=_patch(scores, project),
    )


def _patch(scores: Tensor, project: Project) -> tuple[Patch, ...]:
    """The activation taken out: a call around the scores, or the last layer of a Sequential."""
    kind = scores.kind
    for event in project.calls(*_CALLS[kind]):
        node = event.node
        if event.site == scores.kind_site and isinstance(node, ast.Call) and not losses.chained(event.file, node):
            inner = operand(syntax(event.file), node)
            if inner is not None:
                return Change(event.file, "hand the raw scores to the loss").unwrap(node, inner).patches()
    for event in project.calls("__call__"):
        node, layer = event.node, event.receiver
        named = isinstance(layer, Thing) and layer.short in _LAYERS[kind] and event.site == scores.kind_site
        if named and isinstance(node, ast.Call) and _is_the_layer(event, node) and len(node.args) == 1:
            return Change(event.file, "hand the raw scores to the loss").unwrap(node, node.args[0]).patches()
    called = {id(e.receiver) for e in project.calls("__call__") if e.site == scores.kind_site}
    for short in _LAYERS[kind]:
        made = {id(e.result): e for e in project.calls(short)
                if isinstance(e.result, Thing) and e.result.type == f"torch.nn.{short}"
                and id(e.result) in called}  # fmt: skip
        last = [e for e in made.values() if isinstance(e.result, Thing) and losses.layer_left_out(e.file, e.result)]
        if len(last) == 1 and isinstance(last[0].result, Thing):
            return losses.layer_left_out(last[0].file, last[0].result)
    return ()


def _is_the_layer(event: Event, node: ast.Call) -> bool:
    """Whether a call is that of the layer itself and not of a Sequential around it."""
    layer = event.receiver
    code = syntax(event.file)
    return isinstance(layer, Thing) and code.origin(node.func) is layer.node

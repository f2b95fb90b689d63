"""A loss that normalises by itself is fed normalised values, or the other way round.

`CrossEntropyLoss` applies log-softmax, `BCEWithLogitsLoss` a sigmoid. Fed with probabilities they squash twice: the
loss cannot fall below -ln(e / (e + C - 1)) for C classes (0.744 for 4) and gradients are small. `NLLLoss` and
`KLDivLoss` are the reverse: they want log-probabilities, and raw scores or probabilities make the loss negative and
meaningless. The values are followed through models, methods such as `predict_proba`, reshapes and clamps. A log-
softmax in front of CrossEntropyLoss changes nothing (log-softmax of a log-softmax is itself) and is only remarked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import losses
from traindx_tools.on_code.repairs.written import operand
from traindx_tools.on_code.syntax import last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Site, Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C102",
    name="softmax-before-cross-entropy",
    title="A loss is fed values of the wrong kind",
    severity=Severity.HIGH,
    sees="The input of a loss that comes from softmax, sigmoid, log_softmax or straight from a linear layer.",
    matters="The loss has a floor well above zero or no floor at all, and its gradients are wrong in size.",
    alike=("a model that cannot separate the classes", "label smoothing, which has a floor of its own"),
    confirm=(
        "compare the loss of a perfect prediction with the floor -ln(e / (e + C - 1))",
        "look at the range of the loss's input: probabilities lie in [0, 1] and sum to 1",
    ),
)
_SEVERE = Severity.HIGH
_JUDGED: dict[tuple[str, str], tuple[Severity, str]] = {
    ("cross_entropy", "softmax"): (_SEVERE, "applies log-softmax itself, so probabilities are soft-maxed twice"),
    ("cross_entropy", "sigmoid"): (_SEVERE, "applies log-softmax itself, so its input is squashed twice"),
    ("cross_entropy", "log_softmax"): (
        Severity.LOW,
        "applies log-softmax again, which changes nothing: redundant, not the cause of a fault",
    ),
    ("binary_cross_entropy_with_logits", "sigmoid"): (
        _SEVERE,
        "applies a sigmoid itself, so its input is squashed twice",
    ),
    ("binary_cross_entropy_with_logits", "softmax"): (
        _SEVERE,
        "applies a sigmoid itself, so its input is squashed twice",
    ),
    ("sigmoid_binary_cross_entropy", "sigmoid"): (_SEVERE, "applies a sigmoid itself, so its input is squashed twice"),
    ("softmax_cross_entropy", "softmax"): (
        _SEVERE,
        "applies log-softmax itself, so probabilities are soft-maxed twice",
    ),
    ("softmax_cross_entropy_with_integer_labels", "softmax"): (
        _SEVERE,
        "applies log-softmax itself, so probabilities are soft-maxed twice",
    ),
    ("nll_loss", "softmax"): (_SEVERE, "wants log-probabilities and gets probabilities: the loss is -p, not -log p"),
    ("nll_loss", "sigmoid"): (_SEVERE, "wants log-probabilities and gets values in [0, 1]"),
    ("nll_loss", "linear"): (_SEVERE, "wants log-probabilities and gets raw scores: the loss falls without bound"),
    ("kl_div", "softmax"): (_SEVERE, "wants log-probabilities as its input and gets probabilities"),
    ("binary_cross_entropy", "linear"): (_SEVERE, "wants probabilities in [0, 1] and gets raw scores"),
}
_WRITTEN = {
    "softmax": "softmax output",
    "sigmoid": "sigmoid output",
    "log_softmax": "log_softmax output",
    "linear": "the raw output of a linear layer",
}
_INPUT_NAMES = ("input", "logits")
_SQUASHES = {"softmax": "Softmax", "sigmoid": "Sigmoid", "log_softmax": "LogSoftmax"}
"""Kinds of values and the layer that makes each."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every loss that is computed."""
    made = _Made(project)
    for method in {m for m, _ in _JUDGED}:
        for event in project.calls(method):
            found = _judged(event, made)
            if found is not None:
                yield found


@dataclass(frozen=True, eq=False)
class _Made:
    """What squashes in a project, found once for all losses."""

    project: Project

    @cached_property
    def squashed(self) -> dict[tuple[str, Site], Event]:
        """The first call that squashes, by its kind and its place."""
        found: dict[tuple[str, Site], Event] = {}
        for kind in _SQUASHES:
            for event in self.project.calls(kind, "__call__"):
                if _squashes(event, kind):
                    found.setdefault((kind, event.site), event)
        return found

    @cached_property
    def layers(self) -> dict[str, dict[int, Event]]:
        """The layers that squash, by their kind."""
        found: dict[str, dict[int, Event]] = {}
        for kind, name in _SQUASHES.items():
            made = [e for e in self.project.calls(name)
                    if isinstance(e.result, Thing) and e.result.type == f"torch.nn.{name}"]  # fmt: skip
            found[kind] = {id(e.result): e for e in made}
        return found


def _judged(event: Event, made: _Made) -> Finding | None:
    value = event.args[0] if event.args else next((event.kwargs[n] for n in _INPUT_NAMES if n in event.kwargs), None)
    if not isinstance(value, Tensor) or (event.method, value.kind) not in _JUDGED:
        return None
    severity, why = _JUDGED[event.method, value.kind]
    if value.kind == "linear" and _poisson_like(event):
        return None
    name = event.receiver.short if isinstance(event.receiver, Thing) else event.method
    where = f", made at {value.kind_site}" if value.kind_site else ""
    squash = made.squashed.get((value.kind, value.kind_site)) if value.kind_site else None
    change = _change(event, squash, value, made)
    here = squash is None or (bool(change) and change[0].file == event.file.path and _within(change[0], event))
    return RULE.finding(
        f"{_WRITTEN[value.kind]}{where} is fed to {name} at {event.file.path}:{event.line}, which {why}",
        location(event) if here or squash is None else location(squash),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={
            "kind": f"{value.kind} into {event.method}",
            "loss": name,
            "input": value.kind,
            "made_at": str(value.kind_site) if value.kind_site else None,
            "training": event.grad is not False and event.framework != "validation_step",
            "loss_line": event.line,
        },
        patch=change,
    )


def _within(patch: Patch, event: Event) -> bool:
    """Whether a patch changes the function that computes the loss."""
    node = event.function.node if event.function else None
    return node is not None and node.lineno <= patch.line <= (node.end_lineno or node.lineno)


def _change(loss: Event, squash: Event | None, value: Tensor, made: _Made) -> tuple[Patch, ...]:
    """The raw scores handed to the loss: where a helper squashes them, at its call, so that others keep the helper."""
    if squash is not None and loss.method in ("kl_div", "nll_loss") and value.kind == "softmax":
        return _logarithm(squash)
    helper = squash.function if squash is not None else None
    apart = helper is not None and helper is not loss.function and helper.name not in ("forward", "__call__")
    if squash is not None and helper is not None and loss.function is not None and apart:
        return losses.helper_left_out(loss.file, loss.function.node, helper.node, squash.file, squash.node)
    return (_patch(squash) if squash is not None else ()) or _layer_out(value, made)


def _layer_out(value: Tensor, made: _Made) -> tuple[Patch, ...]:
    """The squashing layer at the end of the Sequential that made the value."""
    layers = made.layers.get(value.kind, {})
    if len(layers) != 1:
        return ()
    event = next(iter(layers.values()))
    return losses.layer_left_out(event.file, event.result) if isinstance(event.result, Thing) else ()


def _squashes(event: Event, kind: str) -> bool:
    layer = event.receiver
    if event.method == "__call__":
        return isinstance(layer, Thing) and layer.short == _SQUASHES[kind] and isinstance(event.node, ast.Call)
    return event.method == kind


def _patch(event: Event) -> tuple[Patch, ...]:
    """The input of the squashing in place of its output, where the call stands on one line."""
    node = event.node
    if not isinstance(node, ast.Call) or (event.function is None and not _for_the_loss_alone(event, node)):
        return ()
    layer = event.method == "__call__"
    inner = operand(syntax(event.file), node) if not layer else node.args[0] if node.args else None
    if inner is None or (layer and _in_sequential(node, event)) or losses.chained(event.file, node):
        return ()
    return Change(event.file, "hand the raw scores to the loss").unwrap(node, inner).patches()


def _for_the_loss_alone(event: Event, node: ast.Call) -> bool:
    """Whether a value of a script is handed on at once, or read a second time only for its largest entry."""
    code = syntax(event.file)
    up = code.parent(node)
    if isinstance(up, ast.Call):
        return True
    name = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(name, ast.Name):
        return False
    if len(code.bindings(name)) != 1:
        return False
    reads = code.reads(code.file.tree, name.id)
    largest = [n for n in reads if isinstance(code.parent(n), ast.Attribute) and last_name(code.parent(n)) == "argmax"]
    return len(reads) - len(largest) == 1


def _logarithm(squash: Event) -> tuple[Patch, ...]:
    """log_softmax in place of softmax, for a loss that wants log-probabilities."""
    node = squash.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "softmax":
        return ()
    written_as = f"{source_of(squash.file, node.func.value)}.log_softmax"
    return Change(squash.file, "hand log-probabilities to the loss").replace(node.func, written_as).patches()


def _in_sequential(node: ast.Call, event: Event) -> bool:
    """Whether the call is that of a whole Sequential, in which the layer is one of several."""
    name, assigned = written(node.func), syntax(event.file).of(ast.Assign)
    made = [a.value for a in assigned if any(written(t) == name for t in a.targets)]
    return len(made) != 1 or "Sequential" in written(made[0])


def _poisson_like(event: Event) -> bool:
    log_target = event.kwargs.get("log_input")
    return isinstance(log_target, Const) and log_target.value is True

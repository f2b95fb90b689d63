"""A loss gets the target first and the model's output second.

torch's losses take (input, target): the model's output, then the truth. Cross entropy between probabilities is not
symmetric: with the two exchanged, binary cross entropy weighs the logarithms of 0 and 1 (clamped to -100) with the
predictions, a number that is large and has the wrong minimum; cross entropy of soft labels takes a softmax of the
labels. Where shapes or dtypes differ it raises, which is the lucky case. Losses that are symmetric (mse, l1, huber) are
left alone. scikit-learn and Keras take the truth first, which is where the habit comes from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C236",
    name="loss-arguments-swapped",
    title="A loss gets the target first and the output second",
    severity=Severity.HIGH,
    sees="A loss of torch or optax whose first argument comes from the batch and whose second comes from a model.",
    matters="Another quantity is minimised: it stays large, or falls while predictions get worse.",
    alike=("mse, l1 and huber, which are symmetric", "kl_div of a student and its teacher, both outputs",
           "a loss of one's own that takes the truth first"),
    confirm=("print(loss_fn(perfect_prediction, target)): far from 0 the way it is called",),
)
_LOSSES = {
    "cross_entropy": "input", "nll_loss": "input", "binary_cross_entropy": "input", "kl_div": "input",
    "binary_cross_entropy_with_logits": "input", "poisson_nll_loss": "input", "multi_margin_loss": "input",
    "multilabel_margin_loss": "input", "soft_margin_loss": "input", "multilabel_soft_margin_loss": "input",
    "softmax_cross_entropy": "logits", "softmax_cross_entropy_with_integer_labels": "logits",
    "sigmoid_binary_cross_entropy": "logits",
}  # fmt: skip
"""Losses that are not symmetric, and the name of their first argument."""
_MODEL = re.compile(
    r"(^|_)(model|net|network|classifier|generator|discriminator|critic|decoder|encoder|backbone|head|student|module|"
    r"apply_fn|forward|unet|vae|autoencoder|mlp|cnn|detector|segmenter)s?(_|\d*$)", re.IGNORECASE)  # fmt: skip
_TARGET = re.compile(
    r"(^|_)(y|ys|labels?|targets?|truths?|gt|answers?|classes|tgt|lbl|lab|masks?)\d*($|_)", re.IGNORECASE
)
_OUTPUT = re.compile(r"logit|pred|prob|score|output|(^|_)out($|_)|teacher|(^|_)yh|hat|soft|sim", re.IGNORECASE)
_KEEPS = frozenset({
    "to", "cuda", "cpu", "long", "float", "double", "int", "view", "reshape", "squeeze", "unsqueeze", "flatten",
    "view_as", "type", "clone", "contiguous", "type_as", "astype", "bool", "half", "detach", "permute", "transpose",
})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every loss with a side of its own for the target."""
    seen: set[int] = set()
    for event in project.calls(*_LOSSES):
        name = _LOSSES[event.method]
        first, second = event.argument(0, name), event.argument(1, "labels" if name == "logits" else "target")
        if first is None or second is None or id(event.node) in seen or not _of_library(event):
            continue
        if _is_output(second) and _is_target(first, _written(event, 0, name)):
            seen.add(id(event.node))
            yield _finding(event)


def _of_library(event: Event) -> bool:
    if isinstance(event.receiver, Thing):
        return event.receiver.type.startswith("torch.nn.")
    return event.name.startswith(("torch.nn.functional.", "optax."))


def _written(event: Event, position: int, name: str) -> ast.expr | None:
    node = event.node
    if not isinstance(node, ast.Call):
        return None
    named = next((k.value for k in node.keywords if k.arg == name), None)
    return named if named is not None else node.args[position] if position < len(node.args) else None


def _is_output(value: Value) -> bool:
    """What a model gave: a tensor with a graph through one, or what a call of something named as one returned."""
    if isinstance(value, Tensor):
        return bool(value.models) and value.grad is True
    one: Value | None = value
    for _ in range(8):
        if not isinstance(one, Symbol):
            return False
        if one.role == "call" and "@" not in one.name and isinstance(one.parent, Symbol):
            return bool(_MODEL.search(one.parent.name))
        if one.role == "call" and one.name.partition("@")[0] not in {*_KEEPS, "sigmoid", "softmax", "log_softmax"}:
            return False
        one = one.parent
    return False


def _is_target(value: Value, node: ast.expr | None) -> bool:
    """What a batch holds, or labels that were made: nothing that a model had a part in."""
    text = ast.unparse(node) if node is not None else ""
    if _OUTPUT.search(text):
        return False
    if isinstance(value, Tensor):
        if value.grad is True or value.models or value.kind:
            return False
        return "batch" in value.tags or (value.grad is False and bool(_TARGET.search(_plain(node))))
    one: Value | None = value
    named = bool(_TARGET.search(_plain(node)))
    for _ in range(8):
        if not isinstance(one, Symbol):
            return False
        if one.role == "iteration":
            return True
        if one.role == "call" and ("@" not in one.name or one.name.partition("@")[0] not in _KEEPS):
            return False
        if one.role == "item" and (_OUTPUT.search(one.name) or isinstance(one.parent, Thing)):
            return False
        if one.role == "parameter":
            return named or (one is not value and one.name in ("batch", "data", "sample"))
        one = one.parent
    return False


def _plain(node: ast.expr | None) -> str:
    """The name that a side is written with: of `y`, `batch["label"]`, `self.labels`, `y.float()`."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call):
            node = node.func.value if isinstance(node.func, ast.Attribute) else None
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return node.slice.value
            node = node.value
        else:
            return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _finding(event: Event) -> Finding:
    loss = event.receiver.short if isinstance(event.receiver, Thing) else event.method
    name = _LOSSES[event.method]
    first, second = _written(event, 0, name), _written(event, 1, "labels" if name == "logits" else "target")
    patch: tuple[Patch, ...] = ()
    if first is not None and second is not None:
        change = Change(event.file, "the model's output first, the target second")
        change.replace(first, source_of(event.file, second)).replace(second, source_of(event.file, first))
        patch = change.patches()
    shown = [ast.unparse(n) if n is not None else "?" for n in (first, second)]
    return RULE.finding(
        f"{loss} at {event.file.path}:{event.line} is called with the target {shown[0]} first and the model's output "
        f"{shown[1]} second: it takes (output, target)",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.MEDIUM if event.method == "kl_div" else Severity.HIGH,
        measured={"kind": "swapped", "loss": loss, "given_as_input": shown[0], "given_as_target": shown[1]},
        patch=patch,
    )

"""What a loss is given instead of squashed values (C102, C180, C236, C242): raw scores, or their log-softmax."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs import forms, losses
from traindx_tools.on_code.repairs.forms import operand
from traindx_tools.on_code.syntax import argument, last_name, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Thing


def raw_scores(remedy: Remedy) -> tuple[Patch, ...]:
    """The raw scores handed to the loss: where a helper squashes them, at its call, so that others keep the helper."""
    loss, squash = remedy.act.origin, remedy.target.origin if remedy.target is not None else None
    if not isinstance(loss, Event) or not isinstance(squash, Event):
        return ()
    if remedy.text == "softmax" and loss.method in ("kl_div", "nll_loss"):
        return _logarithm(squash)
    helper = squash.function
    apart = helper is not None and helper is not loss.function and helper.name not in ("forward", "__call__")
    if helper is not None and loss.function is not None and apart:
        return losses.helper_left_out(loss.file, loss.function.node, helper.node, squash.file, squash.node)
    return _unwrapped(squash) or _layer_out(squash)


def _unwrapped(squash: Event) -> tuple[Patch, ...]:
    """The input of the squashing in place of its output."""
    node = squash.node
    if not isinstance(node, ast.Call) or (squash.function is None and not _for_the_loss_alone(squash, node)):
        return ()
    layer = squash.receiver if squash.method == "__call__" else None
    inner = operand(syntax(squash.file), node) if layer is None else node.args[0] if len(node.args) == 1 else None
    if inner is None or losses.chained(squash.file, node):
        return ()
    if isinstance(layer, Thing) and syntax(squash.file).origin(node.func) is not layer.node:
        return ()  # the call of a Sequential in which the layer is one of several
    return Change(squash.file, "hand the raw scores to the loss").unwrap(node, inner).patches()


def _layer_out(squash: Event) -> tuple[Patch, ...]:
    """The squashing layer at the end of the Sequential that made the value."""
    layer = squash.receiver
    here = isinstance(layer, Thing) and layer.site.path == squash.file.path
    return losses.layer_left_out(squash.file, layer) if here and isinstance(layer, Thing) else ()


def _for_the_loss_alone(event: Event, node: ast.Call) -> bool:
    """Whether a value of a script is handed on at once, or read a second time only for its largest entry."""
    code = syntax(event.file)
    up = code.parent(node)
    if isinstance(up, ast.Call):
        return True
    name = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(name, ast.Name) or len(code.bindings(name)) != 1:
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


def log_target(remedy: Remedy) -> tuple[Patch, ...]:
    """log_target=True in the call of kl_div, or where the layer is made."""
    event = remedy.act.origin
    if not isinstance(event, Event):
        return ()
    layer = event.receiver if isinstance(event.receiver, Thing) else None
    if layer is not None and layer.site.path != event.file.path:
        return ()
    node = layer.node if layer is not None else event.node
    return forms.keyword_given(event.file, node, "log_target", "True", "the target is in logarithms")


def exchanged(remedy: Remedy) -> tuple[Patch, ...]:
    """The two arguments of a loss, each in the other's place."""
    event = remedy.act.origin
    if not isinstance(event, Event) or not isinstance(event.node, ast.Call):
        return ()
    both = [argument(event.node, at, name) for at, name in enumerate(remedy.text.split())]
    first, second = both if len(both) == 2 else (None, None)
    if first is None or second is None:
        return ()
    change = Change(event.file, "the model's output first, the target second")
    change.replace(first, source_of(event.file, second)).replace(second, source_of(event.file, first))
    return change.patches()

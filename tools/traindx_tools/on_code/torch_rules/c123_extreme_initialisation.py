"""Layers are initialised so that they cannot learn.

A bias of -3 on every hidden layer keeps ReLU units below 0 for practically every input: their output and their
gradient are 0 for good. All weights set to one constant keep the units of a layer equal; all zeros stop the gradient.
Weights drawn with a standard deviation of 1 make the signal of each layer larger by the root of the number of its
inputs: eight times with 64.
The rule asks that the value is set for layers in general (through `apply`, or a loop over modules), not for one named
layer: a negative bias on the last layer of a detector, or a zero last layer of a residual branch, is a usual choice.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.initialised import Every, every
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import numbers
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Thing, Value, number
from traindx_tools.rules import Rule, Threshold

_GROWTH = 5.0

RULE = Rule(
    id="C123",
    name="extreme-initialisation",
    title="Layers are initialised so that they cannot learn",
    severity=Severity.HIGH,
    sees="Constants written into the weights or biases of all layers by an initialiser.",
    matters="Dead ReLU units, or units that stay equal: the loss stays where it started.",
    alike=("a learning rate that is too small", "vanishing gradients by depth"),
    confirm=("the share of zeros after each ReLU", "the gradient norm of each layer is exactly 0"),
    thresholds={
        "bias": Threshold(-1.0, "below", "unit-variance pre-activations are below 1 for 84 % of inputs"),
        "growth": Threshold(_GROWTH, "times", "He et al. 2015: the factor of a layer is raised to the depth"),
    },
)

_NORMALISED = re.compile(r"spectral_norm|weight_norm|parametri[sz]|LayerNorm|BatchNorm|GroupNorm|InstanceNorm|RMSNorm")
"""Where outputs or weights are normalised, the scale of the weights does not matter."""
_DEAD = -2.0
"""A bias below it keeps units of unit-variance inputs at 0 for 98 % of them."""


def check(project: Project) -> Iterator[Finding]:
    """Look at constants that initialisers write."""
    relu = any(True for _ in project.calls("relu", "relu_")) or any(
        e.name == "torch.nn.ReLU.__call__" or e.name == "torch.nn.ReLU" for e in project.events
    )
    groups: dict[tuple[str, int], list[tuple[Event, str, float]]] = {}
    for event in project.calls("constant_", "fill_", "zeros_", "ones_", "zero_"):
        if _chosen(event):
            continue
        over = _every(event)
        if over is not None and over.part == "weight" and (value := _constant(event)) is not None:
            yield _constant_weights(event, value)
            continue
        part, value = _written(event)
        if part is not None and value is not None:
            groups.setdefault((event.file.path, event.line), []).append((event, part, value))
    for found in groups.values():
        layers = {id(_layer(e)) for e, _, _ in found}
        event, part, value = found[0]
        if part == "bias" and value <= _DEAD and _before_relu(event):
            why = f"the bias of a layer in front of a ReLU to {value:g}: its units output 0 for practically every input"
            yield _finding(event, why, "dead units", value)
            continue
        general = _for_any_layer(event) and (len(layers) > 1 or _is_argument(event) or _over_modules(event))
        if general and part == "bias" and value <= -1.0 and relu:
            yield _finding(
                event,
                f"every bias to {value:g}, so that ReLU units output 0 and have no gradient for practically "
                "every input",
                "dead units",
                value,
            )
        elif general and part == "weight" and all(_is_dense(_layer(e)) for e, _, _ in found):
            yield _constant_weights(event, value)
    yield from _wide(project)


def _chosen(event: Event) -> bool:
    """Whether the other arm of a condition draws the same weights: zeros are a setting, as of residual branches."""
    arms = [up for up in syntax(event.file).above(event.node) if isinstance(up, ast.If) and up.orelse]
    return any(isinstance(n, ast.Call) and last_name(n.func).endswith("_") for up in arms for s in up.orelse
               for n in below(s))  # fmt: skip


def _every(event: Event) -> Every | None:
    target = _target(event)
    return every(syntax(event.file), target) if target is not None else None


def _target(event: Event) -> ast.expr | None:
    """The written parameter: the argument of an initialiser, the owner of a method."""
    node = event.node
    if not isinstance(node, ast.Call):
        return None
    if event.name.startswith("torch.nn.init."):
        return node.args[0] if node.args else None
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _constant(event: Event) -> float | None:
    """The number that is written."""
    if event.method in ("zeros_", "zero_", "ones_"):
        return 1.0 if event.method == "ones_" else 0.0
    is_init = event.name.startswith("torch.nn.init.")
    return number(event.argument(1, "val") if is_init else event.args[0] if event.args else None)


def _constant_weights(event: Event, value: float) -> Finding:
    why = "no gradient passes through them" if value == 0 else "all units of a layer stay equal"
    return _finding(event, f"every weight to {value:g}: {why}", "constant weights", value)


def _wide(project: Project) -> Iterator[Finding]:
    """Weights of all layers drawn so wide that the signal grows from layer to layer."""
    for event in project.calls("normal_"):
        over = _every(event)
        if over is None or over.part != "weight" or event.file.mentions(_NORMALISED):
            continue
        first = 1 if event.name.startswith("torch.nn.init.") else 0
        given = event.argument(first + 1, "std")
        deviation = 1.0 if given is None else number(given)
        inputs = _inputs(lookup(project))
        if deviation is None or inputs is None or not deviation * math.sqrt(max(inputs, 0.0)) >= _GROWTH:
            continue
        growth = deviation * math.sqrt(inputs)
        yield RULE.finding(
            f"{event.file.segment(event.node)} at {event.file.path}:{event.line} draws every weight with a standard "
            f"deviation of {deviation:g}: a layer with {inputs:g} inputs makes its signal {growth:.3g} times as large",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "wide weights", "value": deviation, "inputs": inputs, "growth": growth},
            patch=numbers.random_weights(event),
        )


def _inputs(look: Lookup) -> float | None:
    """The largest number of inputs of a linear layer whose output goes into another layer; None where none is known."""
    found: list[float] = []
    for code in look.codes:
        for call in code.calls("Linear", "LazyLinear"):
            given = argument(call, 0, "in_features")
            size = look.number(code, given) if given is not None else None
            if size is not None:
                found.append(size)
    return max(found) if len(found) > 1 else None


def _before_relu(event: Event) -> bool:
    """Whether the layer is named, and the file runs its output straight through a ReLU."""
    node = event.node
    target: ast.expr | None = None
    if isinstance(node, ast.Call):
        target = node.args[0] if event.name.startswith("torch.nn.init.") and node.args else node.func
    text = ast.unparse(target) if target is not None else ""
    name = text.partition(".bias")[0]
    if ".bias" not in text or not name.startswith("self."):
        return False
    plain = re.escape(name)
    pattern = rf"relu\(\s*{plain}\(|{plain}\([\w.\[\], ]*\)\.relu\("
    return re.search(pattern, event.file.text) is not None


def _written(event: Event) -> tuple[str | None, float | None]:
    if event.name.startswith("torch.nn.init."):
        target = event.args[0] if event.args else None
        value = {"zeros_": 0.0, "ones_": 1.0}.get(event.method, number(event.argument(1, "val")))
    else:
        target = event.receiver
        value = number(event.args[0]) if event.args else None
    name = (
        target.name
        if isinstance(target, Symbol) and target.name != "data"
        else (target.parent.name if isinstance(target, Symbol) and isinstance(target.parent, Symbol) else None)
    )
    return (name if name in ("bias", "weight") else None), value


def _layer(event: Event) -> Value | None:
    target = event.args[0] if event.name.startswith("torch.nn.init.") and event.args else event.receiver
    while isinstance(target, Symbol) and target.parent is not None:
        target = target.parent
    return target


def _is_dense(layer: Value | None) -> bool:
    return isinstance(layer, Thing) and layer.short.startswith(("Linear", "Conv"))


def _for_any_layer(event: Event) -> bool:
    """Whether the layer is written as an argument or a loop's variable: code for layers in general."""
    node = event.node
    written: ast.expr | None = None
    if isinstance(node, ast.Call):
        is_init = event.name.startswith("torch.nn.init.")
        written = node.args[0] if is_init and node.args else node.func
    while isinstance(written, (ast.Attribute, ast.Call)):
        written = written.value if isinstance(written, ast.Attribute) else written.func
    if not isinstance(written, ast.Name) or event.function is None:
        return False
    if _of_a_norm(written.id, event):
        return False
    spec = event.function.node.args
    names = {a.arg for a in (*spec.posonlyargs, *spec.args)} - {"self"}
    for inner in below(event.function.node):
        if isinstance(inner, ast.For):
            names |= {n.id for n in below(inner.target) if isinstance(n, ast.Name)}
    return written.id in names


def _of_a_norm(name: str, event: Event) -> bool:
    """Whether the statement stands under a test that the layer is a normalisation, whose weight starts at 1."""
    line = event.line
    tests = [n for n in below(event.function.node) if isinstance(n, ast.If)] if event.function else []
    return any(
        n.body[0].lineno <= line <= (n.body[-1].end_lineno or line)
        and name in ast.unparse(n.test)
        and "Norm" in ast.unparse(n.test)
        and "Linear" not in ast.unparse(n.test)
        for n in tests
    )


def _over_modules(event: Event) -> bool:
    """Whether the function runs over the modules of a model."""
    if event.function is None:
        return False
    loops = [n for n in below(event.function.node) if isinstance(n, ast.For)]
    return any(
        isinstance(n, ast.Call) and ast.unparse(n.func).endswith(("modules", "children"))
        for loop in loops
        for n in below(loop.iter)
    )


def _is_argument(event: Event) -> bool:
    """Whether the layer is an argument of the initialiser: a function for layers in general."""
    layer = _layer(event)
    return (
        isinstance(layer, Symbol)
        and layer.role in ("parameter", "iteration")
        and event.function is not None
        and (event.function.name.lstrip("_").startswith(("init", "reset", "weights", "weight")))
    )


def _finding(event: Event, why: str, kind: str, value: float) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} sets {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "value": value},
        patch=numbers.harmless_bias(event) if kind == "dead units" else numbers.random_weights(event),
    )

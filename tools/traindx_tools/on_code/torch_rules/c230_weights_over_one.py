"""A softmax runs over an axis of length one.

A layer that scores each element with one number gives (batch, elements, 1). The softmax belongs over the elements; over
the last axis, which has one entry, every weight is exactly 1 whatever the scores are. The weighted mean becomes a plain
sum that grows with the number of elements, padding included, and the scoring layer gets no gradient at all. The same
happens to a classifier with one output followed by a softmax: its probability is always 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C230",
    name="softmax-over-one",
    title="A softmax runs over an axis of length one",
    severity=Severity.HIGH,
    sees="softmax over the last axis of what a layer with one output feature gives.",
    matters="Every weight is exactly 1, and the layer that makes the scores is never trained.",
    alike=("scores whose last axis was squeezed or moved away before",
           "a sigmoid over one output, which is right for two classes"),
    confirm=("print(weights.min(), weights.max()): both are 1",),
)
_SOFTMAX = frozenset({"softmax", "log_softmax"})
_LAYERS = {"Linear": 1, "LazyLinear": 0, "Dense": 0}
_KEEPS = frozenset({
    "masked_fill", "masked_fill_", "float", "half", "double", "div", "mul", "add", "sub", "clamp", "clip", "dropout",
    "to", "type_as", "contiguous", "astype", "where", "tanh", "relu", "leaky_relu",
})  # fmt: skip
_ACTIVATIONS = frozenset({"Tanh", "ReLU", "GELU", "LeakyReLU", "SiLU", "ELU", "Dropout", "Identity", "Softplus"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every softmax, as a function, a method, a layer, and behind a layer in a Sequential."""
    for file in project.files:
        if "oftmax" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls(*_SOFTMAX):
            scores, axis = _scored(code, call)
            if scores is not None and axis in (-1, 2):
                layer = _one_output(code, scores)
                better = _better_axis(code, call)
                if layer is not None and (axis == -1 or better == "1"):
                    yield _finding(code, call, layer, better)
        for call in code.calls("Sequential"):
            yield from _in_sequential(code, call)


def _scored(code: Syntax, call: ast.Call) -> tuple[ast.expr | None, float | None]:
    """What is normalised, and over which axis. JAX normalises over the last one where none is given."""
    name = code.qualified(call.func)
    if name.startswith(("torch.", "jax.", "flax.")):
        given = argument(call, 1, "dim", "axis")
        default = None if name.startswith("torch.") else -1.0
        return argument(call, 0, "input", "x"), default if given is None else code.number(given)
    if isinstance(call.func, ast.Attribute) and not name:
        return call.func.value, code.number(argument(call, 0, "dim", "axis"))
    return None, None


def _one_output(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The layer with one output feature whose result a value is, through what keeps its shape."""
    for _ in range(10):
        node = code.origin(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            node = node.left if not isinstance(node.left, ast.Constant) else node.right
        elif isinstance(node, ast.Call) and last_name(node.func) in _KEEPS:
            inner = _kept(code, node)
            if inner is None:
                return None
            node = inner
        elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            return _last_layer(code, code.origin(node.func))
        else:
            return None
    return None


def _kept(code: Syntax, call: ast.Call) -> ast.expr | None:
    """The value whose shape a call keeps: a method's tensor, the first argument, the branch that is no constant."""
    if not code.qualified(call.func):
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    if last_name(call.func) == "where":
        return next((a for a in call.args[1:] if code.number(a) is None), None)
    return call.args[0] if call.args else None


def _last_layer(code: Syntax, maker: ast.expr) -> ast.Call | None:
    if not isinstance(maker, ast.Call):
        return None
    name = last_name(maker.func)
    if name == "Sequential":
        layers = [a for a in maker.args if not (isinstance(a, ast.Call) and last_name(a.func) in _ACTIVATIONS)]
        return _last_layer(code, layers[-1]) if layers else None
    if name not in _LAYERS or not (code.qualified(maker.func) or name == "Dense"):
        return None
    features = argument(maker, _LAYERS[name], "out_features", "features", "units")
    return maker if code.number(features) == 1 else None


def _better_axis(code: Syntax, call: ast.Call) -> str | None:
    """The axis over which the weighted values are summed in the same function, which is that of the elements."""
    statement = code.statement(call)
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)} if isinstance(statement, ast.Assign) else set()
    for node in code.calls_in(code.scope(call), "sum"):
        plain = bool(code.qualified(node.func))
        summed = node.args[0] if plain and node.args else getattr(node.func, "value", None)
        if isinstance(summed, ast.Name):
            summed = code.assigned(summed)
        axis = argument(node, 1 if plain else 0, "dim", "axis")
        if not isinstance(summed, ast.BinOp) or not isinstance(summed.op, ast.Mult) or code.number(axis) is None:
            continue
        if any(n is call or (isinstance(n, ast.Name) and n.id in names) for n in below(summed)):
            return written(axis)
    return None


def _in_sequential(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    for before, layer in zip(call.args, call.args[1:], strict=False):
        if isinstance(layer, ast.Call) and last_name(layer.func) in ("Softmax", "LogSoftmax"):
            one = _last_layer(code, before)
            axis = code.number(argument(layer, 0, "dim"))
            if one is not None and axis == -1:
                yield _finding(code, layer, one, None)


def _finding(code: Syntax, call: ast.Call, layer: ast.Call, axis: str | None) -> Finding:
    patch: tuple[Patch, ...] = ()
    if axis is not None and axis not in ("-1", "2"):
        own = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
        given = argument(call, 0 if own else 1, "dim", "axis")
        change = Change(code.file, "normalise over the elements")
        change = change.replace(given, axis) if given is not None else change.pass_argument(call, "axis", axis)
        patch = change.patches()
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} normalises over the last axis, which has one entry: the scores "
        f"come from {code.file.segment(layer)} (line {layer.lineno}), so every weight is exactly 1",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "one", "axis": axis or ""},
        patch=patch,
    )

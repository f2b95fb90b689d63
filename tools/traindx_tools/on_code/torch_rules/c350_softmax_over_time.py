"""Scores of every step of a sequence are normalised over time, or over the batch, instead of over the classes.

A linear layer puts the classes on the last axis: its output for a sequence is (batch, time, classes). A `log_softmax`
over axis 1 of it makes the steps of one sequence compete for each class; the probabilities of a step do not sum to 1.
No shape is wrong. The loss starts above the logarithm of the number of classes, and falls to a level that has nothing
to do with how often the prediction is right. The rule follows the output of the layer back to what gives it three axes
(a recurrent or attention layer, a `view` with three sizes, an unpacked shape), and asks that something in the project
reads the classes on the last axis: a loss of the flattened or transposed scores, an argmax over the last axis.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.sequences import axis_count, last_layer
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C350",
    name="softmax-over-time",
    title="Scores of a sequence are normalised over time instead of over the classes",
    severity=Severity.HIGH,
    sees="softmax or log_softmax over an axis other than the last of a linear layer's output of three axes, in a "
         "project whose loss or argmax reads the classes on the last axis.",
    matters="The probabilities of a step do not sum to 1: the loss has no floor that means anything, steps of one "
            "sequence compete with each other.",
    alike=("attention weights over the steps, from a layer with one output", "start and end scores of a span",
           "scores that were transposed to (batch, classes, time)"),
    confirm=("print(log_probabilities.exp().sum(-1)[0]): it is not 1",),
)  # fmt: skip
_MIXES = re.compile(r"att(n|ention)?|pool|weight|align|gate|pointer|slot|assign", re.IGNORECASE)
"""Names of what uses a softmax over the steps by intent."""
_LOSSES = re.compile(r"nll|ctc|cross_?entropy|criterion|loss_?f|loss_?fn|lossf|crit|ce$|loss_func|objective", re.I)


def check(project: Project) -> Iterator[Finding]:
    """Look at every softmax over a named axis of a linear layer's output."""
    if not any("oftmax" in f.text and "torch" in f.text for f in project.files):
        return
    look = lookup(project)
    reader = ""
    for code in look.codes:
        for call, scores, axis in _normalised(code):
            place = code.number(axis)
            if place not in (0, 1, -2) or _answers(code, scores) == 1:
                continue
            if axis_count(code, scores) not in (3, 4):
                continue
            if _pools(code, call) or _weights(code, call):
                continue
            reader = reader or next(_readers(look), "")
            if reader:
                yield _finding(code, call, scores, axis, reader)


def _normalised(code: Syntax) -> Iterator[tuple[ast.Call, ast.expr, ast.expr]]:
    """(call, scores, axis) of every softmax: a function, a method, a layer that is called, the last of a Sequential."""
    for call in code.calls("softmax", "log_softmax"):
        plain = bool(code.qualified(call.func))
        scores = argument(call, 0, "input") if plain else getattr(call.func, "value", None)
        axis = argument(call, 1 if plain else 0, "dim", "axis")
        if not isinstance(scores, ast.expr) or axis is None or (not plain and _is_self(scores)):
            continue
        if last_layer(code, scores) is not None:
            yield call, scores, axis
    for call in code.of(ast.Call) if "Softmax" in code.file.text else ():
        if len(call.args) != 1:
            continue
        made = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
        if not isinstance(made, ast.Call):
            continue
        if last_name(made.func) in ("LogSoftmax", "Softmax"):
            axis = argument(made, 0, "dim")
            if axis is not None and last_layer(code, call.args[0]) is not None:
                yield call, call.args[0], axis
        elif last_name(made.func) == "Sequential" and len(made.args) >= 2:
            last, before = made.args[-1], made.args[-2]
            axis = argument(last, 0, "dim") if isinstance(last, ast.Call) else None
            soft = isinstance(last, ast.Call) and last_name(last.func) in ("LogSoftmax", "Softmax")
            if soft and axis is not None and isinstance(before, ast.Call) and last_name(before.func) == "Linear":
                yield call, call.args[0], axis


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _answers(code: Syntax, scores: ast.expr) -> float | None:
    """How many outputs the layer has: one output is a weight of each step."""
    layer = last_layer(code, scores)
    return None if layer is None else code.number(argument(layer, 1, "out_features"))


def _pools(code: Syntax, call: ast.Call) -> bool:
    """Whether it says that it weighs steps: the name of the class, the function, or what it is assigned to."""
    up = code.parent(call)
    target = written(up.targets[0]) if isinstance(up, ast.Assign) else ""
    around = (code.owner(call), code.function(call))
    return any(_MIXES.search(n) for n in (target, *(getattr(a, "name", "") for a in around)))


def _weights(code: Syntax, call: ast.Call) -> bool:
    """Whether the result is multiplied with something, or is no log and returned beside something: weights."""
    up = code.parent(call)
    if isinstance(up, ast.Attribute) and up.attr in ("transpose", "unsqueeze", "mT", "permute", "matmul", "bmm"):
        return True
    if isinstance(up, ast.BinOp):
        return True
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        name = up.targets[0].id
        for read in code.reads(code.scope(call), name):
            holder = code.parent(read)
            if isinstance(holder, ast.BinOp) and isinstance(holder.op, (ast.Mult, ast.MatMult)):
                return True
            if isinstance(holder, ast.Call) and last_name(holder.func) in ("bmm", "einsum", "matmul"):
                return True
            if isinstance(holder, ast.Attribute) and holder.attr in ("transpose", "unsqueeze", "permute", "mT"):
                return True
    return isinstance(up, ast.Call) and last_name(up.func) in ("bmm", "einsum", "matmul")


def _readers(look: Lookup) -> Iterator[str]:
    """What in the project reads the classes on the last axis."""
    for code in look.codes:
        for call in code.of(ast.Call):
            name = last_name(call.func)
            if _LOSSES.search(name) and len(call.args) >= 2 and _spread(code, call.args[0]):
                yield f"{written(call)[:70]} at {code.at(call)} reads the classes on the last axis"
            if name in ("argmax", "max") and "argmax" in name:
                axis = argument(call, 1 if code.qualified(call.func) else 0, "dim", "axis")
                if code.number(axis) in (-1, 2):
                    yield f"{written(call)[:70]} at {code.at(call)} takes the class from the last axis"


def _spread(code: Syntax, node: ast.expr) -> bool:
    """`logp.view(-1, C)`, `logp.flatten(0, 1)`, `logp.transpose(1, 2)`, `logp[mask]`: rows of classes."""
    node = code.origin(node)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Slice)):
        return bool(re.search(r"mask|valid|keep|!=", written(node.slice)))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    numbers = [code.number(a) for a in node.args]
    if node.func.attr in ("view", "reshape"):
        return len(numbers) == 2 and (numbers[0] == -1 or numbers[1] not in (None, -1))
    forms = {"flatten": [0, 1], "transpose": [1, 2], "swapaxes": [1, 2], "permute": [0, 2, 1], "movedim": [2, 1]}
    known = forms.get(node.func.attr)
    return known is not None and (numbers == known or (node.func.attr != "flatten" and numbers in ([2, 1], [-1, 1])))


def _finding(code: Syntax, call: ast.Call, scores: ast.expr, axis: ast.expr, reader: str) -> Finding:
    patch: tuple[Patch, ...] = ()
    if isinstance(code.parent(axis), (ast.Call, ast.keyword)):
        patch = Change(code.file, "normalise over the classes").replace(axis, "-1").patches()
    return RULE.finding(
        f"{written(call)[:80]} at {code.at(call)} normalises over axis {int(code.number(axis) or 0)}, time or batch, "
        f"of {written(scores)[:50]}, an output of a linear layer for every step of a sequence (the classes are its "
        f"last axis); {reader}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "softmax over time"},
        patch=patch,
    )

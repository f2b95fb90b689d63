"""A metric takes the predicted class over the wrong axis.

Scores have the shape (batch, classes). `argmax(scores, axis=0)` gives for every class the sample that scores highest,
`argmax(scores)` without an axis one number for the whole batch. The comparison with the labels runs all the same, by
broadcasting, or where the sizes agree, and its mean says nothing about the model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C335",
    name="class-by-wrong-axis",
    title="A metric takes the predicted class over the wrong axis",
    severity=Severity.HIGH,
    sees="argmax over axis 0, or over everything, of scores that a loss reads as (batch, classes), or that a Trainer "
         "hands to compute_metrics.",
    matters="The metric says nothing about the model: it stays near chance, and the best checkpoint is a random one.",
    alike=("one sample under vmap", "scores of shape (classes, batch)"),
    confirm=("print(prediction.shape, labels.shape)",),
)  # fmt: skip
_LOSSES = frozenset({"cross_entropy", "softmax_cross_entropy_with_integer_labels", "softmax_cross_entropy"})
_MODELS = re.compile(r"(self\.)?(model|net|network|forward|apply|apply_fn|predict|classifier|module)|state\.apply_fn|"
                     r"self|\w+\.apply(_fn)?|(\w+_)?(model|net|apply|forward|predict)")  # fmt: skip
_HANDS = re.compile(r"compute_metrics|preprocess_logits")
_COUNTS = frozenset({"mean", "sum", "average", "count_nonzero", "accuracy", "log"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every comparison of a predicted class with labels."""
    whole = any("jax" in f.text and syntax(f).calls(*_LOSSES) for f in project.files if "ross_entropy" in f.text)
    for file in project.files:
        if "argmax" not in file.text or "vmap" in file.text:
            continue
        code = syntax(file)
        for call in code.calls("argmax"):
            scores, axis = _of(code, call)
            if scores is None or not (axis is None or code.number(axis) == 0) or not _counted(code, call):
                continue
            why = _evidence(code, call, scores, whole)
            if why:
                yield _finding(code, call, scores, axis, why)


def _of(code: Syntax, call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    """What argmax is taken of, and over which axis."""
    if code.qualified(call.func).startswith(("jax.numpy.", "numpy.", "torch.")):
        return argument(call, 0, "a", "input"), argument(call, 1, "axis", "dim")
    if isinstance(call.func, ast.Attribute) and not code.qualified(call.func):
        return call.func.value, argument(call, 0, "axis", "dim")
    return None, None


def _counted(code: Syntax, call: ast.Call) -> bool:
    """Whether the class is compared with something, and that is averaged or summed."""
    node: ast.AST = call
    up = code.parent(node)
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        name, body = up.targets[0].id, code.scope(call)
        compares = [c for c in code.inside(body, ast.Compare) if any(
            isinstance(s, ast.Name) and s.id == name for s in (c.left, *c.comparators))]  # fmt: skip
        return any(_summed(code, c) for c in compares)
    while up is not None and not isinstance(up, (ast.stmt, ast.Compare)):
        node, up = up, code.parent(up)
    return isinstance(up, ast.Compare) and _summed(code, up)


def _summed(code: Syntax, compare: ast.Compare) -> bool:
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Eq):
        return False
    for up in code.above(compare):
        if isinstance(up, ast.Call) and last_name(up.func) in _COUNTS:
            return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _evidence(code: Syntax, call: ast.Call, scores: ast.expr, whole: bool) -> str:
    """Why the scores are of shape (batch, classes); empty where nothing says so."""
    body = code.function(call)
    text = written(scores)
    if body is not None and _HANDS.search(body.name) and isinstance(scores, (ast.Name, ast.Attribute)):
        made = code.origin(scores)
        if made is scores or isinstance(made, (ast.Name, ast.Attribute, ast.Subscript)):
            return "which a Trainer hands over as (samples, classes)"
    read = [c for c in code.calls(*_LOSSES) if code.function(c) is body and body is not None
            and c.args and written(c.args[0]) == text]  # fmt: skip
    if read:
        return f"which {last_name(read[0].func)} reads as (batch, classes) at line {read[0].lineno}"
    made = code.origin(scores)
    if whole and isinstance(made, ast.Call) and _MODELS.fullmatch(written(made.func)) and len(made.args) >= 1:
        return "which the loss of this model reads as (batch, classes)"
    return ""


def _finding(code: Syntax, call: ast.Call, scores: ast.expr, axis: ast.expr | None, why: str) -> Finding:
    over = "over axis 0, the batch," if axis is not None else "over all entries"
    patch: tuple[Patch, ...] = ()
    if axis is not None:
        patch = Change(code.file, "over the classes").replace(axis, "-1").patches()
    else:
        name = "dim" if "torch" in code.file.text and "jax" not in code.file.text and "numpy" not in code.qualified(
            call.func) else "axis"  # fmt: skip
        patch = Change(code.file, "over the classes").pass_argument(call, name, "-1").patches()
    return RULE.finding(
        f"{written(call)[:80]} at {code.at(call)} takes the largest entry {over} of {written(scores)[:50]}, {why}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "argmax"},
        patch=patch,
    )

"""Correct answers are divided by the number of batches.

`correct += (prediction == y).sum()` counts samples; `correct / len(loader)` divides by batches. The "accuracy" is too
large by the batch size (and above 1). It has to be divided by the number of samples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Finding, Patch, Severity, Strength
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C179",
    name="hits-over-batches",
    title="Correct answers are divided by the number of batches",
    severity=Severity.MEDIUM,
    sees="A count of equal answers that is divided by len() of a loader.",
    matters="The reported accuracy is wrong by the batch size; early stopping and comparisons use it.",
    alike=("a mean over batches of accuracies, which is divided by the number of batches rightly",),
    confirm=("the printed accuracy exceeds 1 (or 100 %)",),
)
_LOADER = re.compile(r"(\w*_)?(data_?)?loader\w*|\w*_dl|dl_\w*|dl")


def check(project: Project) -> Iterator[Finding]:
    """Look at every division by the length of a loader."""
    for file in project.files:
        if "len(" not in file.text or "==" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            if isinstance(node.op, ast.Div) and _is_length(code, node.right):
                counter = _counted(code, node.left)
                if counter is not None:
                    yield _finding(code, node, counter)


def _is_length(code: Syntax, node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and last_name(node.func) == "len" and len(node.args) == 1):
        return False
    over = node.args[0]
    if not isinstance(over, (ast.Name, ast.Attribute)) or last_name(over) == "dataset":
        return False
    made = code.origin(over)
    if isinstance(made, ast.Call):
        return last_name(made.func) == "DataLoader" and code.number(argument(made, 1, "batch_size")) != 1
    return _LOADER.fullmatch(last_name(over)) is not None


def _counted(code: Syntax, node: ast.expr) -> ast.AugAssign | None:
    """The statement that adds up equal answers into this name, where it is not averaged."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        node = node.right if isinstance(node.left, ast.Constant) else node.left
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    scope = code.scope(node)
    added = [a for a in code.of(ast.AugAssign) if isinstance(a.op, ast.Add) and code.scope(a) is scope
             and written(a.target) == written(node)]  # fmt: skip
    counts = [a for a in added if _is_sum_of_equal(code, a.value)]
    return counts[0] if counts and len(counts) == len(added) else None


def _is_sum_of_equal(code: Syntax, value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and last_name(value.func) in ("item", "float", "int", "cpu", "detach", "numpy"):
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.args[0] if value.args else value
    if isinstance(value, ast.Name):
        value = code.origin(value)
    if not (isinstance(value, ast.Call) and last_name(value.func) == "sum"):
        return False
    inner = value.func.value if isinstance(value.func, ast.Attribute) and not code.qualified(value.func) else None
    inner = inner if inner is not None else value.args[0] if value.args else None
    if isinstance(inner, ast.Call) and last_name(inner.func) in ("float", "int", "long", "type", "to"):
        inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner
    equal = isinstance(inner, ast.Call) and last_name(inner.func) in ("eq", "equal")
    return equal or (isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq))


def _finding(code: Syntax, node: ast.BinOp, counter: ast.AugAssign) -> Finding:
    length = node.right
    patch: tuple[Patch, ...] = ()
    if isinstance(length, ast.Call) and isinstance(length.args[0], (ast.Name, ast.Attribute)):
        text = f"len({written(length.args[0])}.dataset)"
        made = patching.replace_text(code.file, length, text, "divide by the number of samples")
        patch = (made,) if made is not None else ()
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} divides a count of samples (added up at line {counter.lineno}) "
        "by the number of batches: the accuracy is too large by the batch size",
        code.place(node),
        code.file.path,
        strength=Strength.DIRECT,
        measured={"kind": "batches"},
        patch=patch,
    )

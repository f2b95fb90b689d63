"""Correct answers are divided by the number of batches.

`correct += (prediction == y).sum()` counts samples; `correct / len(loader)` divides by batches. The "accuracy" is too
large by the batch size (and above 1). It has to be divided by the number of samples. The other way round,
`correct += (prediction == y).float().mean()` adds up one share a batch: divided by the number of samples, it is too
small by the batch size.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C179",
    name="hits-over-batches",
    title="Correct answers are divided by another number than they were counted by",
    severity=Severity.MEDIUM,
    sees="A count of equal answers divided by len() of a loader, or a sum of batch accuracies divided by the samples.",
    matters="The reported accuracy is wrong by the batch size; early stopping and comparisons use it.",
    alike=("a mean over batches of accuracies, which is divided by the number of batches rightly",),
    confirm=("the printed accuracy exceeds 1 (or 100 %)",),
)
_LOADER = re.compile(r"(\w*_)?(data_?)?loader\w*|\w*_dl|dl_\w*|dl")


def check(project: Project) -> Iterator[Finding]:
    """Look at every division by the length of a loader."""
    for file in project.files:
        if "==" not in file.text and ".eq(" not in file.text:
            continue
        code = syntax(file)
        yield from _shares(code)
        if "len(" not in file.text:
            continue
        for node in code.of(ast.BinOp):
            if isinstance(node.op, ast.Div) and _is_length(code, node.right):
                counter = _counted(code, node.left)
                if counter is not None:
                    yield _finding(code, node, counter)


def _shares(code: Syntax) -> Iterator[Finding]:
    """Sums of one share of hits a batch that are divided by a number of samples."""
    sizes = [argument(made, 1, "batch_size") for made in code.calls("DataLoader")]
    if any(size is None or code.number(size) == 1 for size in sizes):
        return  # a batch may be one sample
    for node in code.of(ast.BinOp):
        if not isinstance(node.op, ast.Div) or not isinstance(node.left, (ast.Name, ast.Attribute)):
            continue
        shares = _added(code, node.left)
        if not shares or not all(code.loops(a) and _is_mean_of_equal(code, a.value) for a in shares):
            continue
        if code.loops(shares[0])[0] not in code.loops(node) and _is_samples(code, node.right):
            yield _of_shares(code, node, shares[0])


def _added(code: Syntax, node: ast.expr) -> list[ast.AugAssign]:
    scope = code.scope(node)
    return [a for a in code.of(ast.AugAssign) if isinstance(a.op, ast.Add) and code.scope(a) is scope
            and written(a.target) == written(node)]  # fmt: skip


def _is_samples(code: Syntax, node: ast.expr) -> bool:
    """Whether it is `len(loader.dataset)`, or what the sizes of the batches were added up to."""
    if isinstance(node, ast.Call) and last_name(node.func) == "len" and len(node.args) == 1:
        return isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "dataset"
    sizes = _added(code, node) if isinstance(node, (ast.Name, ast.Attribute)) else []
    return bool(sizes) and all(code.loops(a) and _is_size(a.value) for a in sizes)


def _is_size(node: ast.expr) -> bool:
    """`len(y)`, `y.size(0)`, `y.shape[0]`, `y.numel()`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Call) and (
        (last_name(node.func) == "len" and len(node.args) == 1 and isinstance(node.args[0], ast.Name))
        or (last_name(node.func) == "size" and len(node.args) == 1)
        or last_name(node.func) == "numel"
    )


def _of_shares(code: Syntax, node: ast.BinOp, counter: ast.AugAssign) -> Finding:
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} divides a sum of one accuracy a batch (added up at line "
        f"{counter.lineno}) by the number of samples: the accuracy is too small by the batch size",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "samples"},
    )


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
    added = _added(code, node)
    counts = [a for a in added if _is_sum_of_equal(code, a.value)]
    return counts[0] if counts and len(counts) == len(added) else None


def _is_sum_of_equal(code: Syntax, value: ast.expr) -> bool:
    return _reduced_equal(code, value, "sum")


def _is_mean_of_equal(code: Syntax, value: ast.expr) -> bool:
    return _reduced_equal(code, value, "mean")


def _reduced_equal(code: Syntax, value: ast.expr, by: str) -> bool:
    while isinstance(value, ast.Call) and last_name(value.func) in ("item", "float", "int", "cpu", "detach", "numpy"):
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.args[0] if value.args else value
    if isinstance(value, ast.Name):
        value = code.origin(value)
    if not (isinstance(value, ast.Call) and last_name(value.func) == by):
        return False
    inner = value.func.value if isinstance(value.func, ast.Attribute) and not code.qualified(value.func) else None
    inner = inner if inner is not None else value.args[0] if value.args else None
    if isinstance(inner, ast.Call) and last_name(inner.func) in ("float", "int", "long", "type", "to"):
        inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner
    inner = code.origin(inner) if isinstance(inner, ast.Name) else inner
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
        bearing=Bearing.CAUSE,
        measured={"kind": "batches"},
        patch=patch,
    )

"""Tied weights are untied again.

`head.weight = embedding.weight` makes one parameter of two. A layer that is made anew afterwards, or a clone instead of
the parameter itself, breaks the tie silently: the model has more parameters than meant, and a checkpoint of the tied
model loads into one of them only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C211",
    name="tie-broken",
    title="Tied weights are untied again",
    severity=Severity.INFO,
    sees="a.weight = b.weight, and a new layer under one of the two names afterwards; or a tie by a copy.",
    matters="Two parameters where one was meant: more memory, worse perplexity, checkpoints that do not fit.",
    alike=("an untied head on purpose",),
    confirm=("print(model.head.weight is model.embedding.weight)",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every tie."""
    for file in project.files:
        if ".weight = " not in file.text or "torch" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.Assign):
            target = node.targets[0]
            if not (isinstance(target, ast.Attribute) and target.attr == "weight"):
                continue
            if isinstance(node.value, ast.Attribute) and node.value.attr == "weight":
                yield from _remade(code, node, target, node.value)
            elif _copies(node.value, target):
                yield _finding(code, node, node, "ties by a copy: the two are different parameters", "copy")


def _remade(code: Syntax, tie: ast.Assign, one: ast.Attribute, other: ast.Attribute) -> Iterator[Finding]:
    """A new layer under the name of one side, later in the same function."""
    for side in (one.value, other.value):
        for statement, value in code.bindings(side):
            new = isinstance(value, ast.Call) and last_name(value.func) in ("Linear", "Embedding")
            if new and statement.lineno > tie.lineno and code.scope(statement) is code.scope(tie):
                yield _finding(code, statement, tie, f"makes {written(side)} anew and breaks the tie", "remade")
                return


def _copies(value: ast.expr, target: ast.Attribute) -> bool:
    """`head.weight = nn.Parameter(embedding.weight.clone())`."""
    if not (isinstance(value, ast.Call) and last_name(value.func) == "Parameter" and value.args):
        return False
    text = written(value.args[0])
    copied = text.endswith((".weight.clone()", ".weight.detach().clone()", ".weight.data.clone()", ".weight.data"))
    return copied and not text.startswith(written(target.value) + ".") and "emb" in text.lower()


def _finding(code: Syntax, node: ast.AST, tie: ast.Assign, why: str, kind: str) -> Finding:
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} {why} (tied at line {tie.lineno})",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=order.tied_again(code.file, node, tie) if kind == "remade" else (),
    )

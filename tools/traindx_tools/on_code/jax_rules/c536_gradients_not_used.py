"""Gradients are computed and nothing reads them.

`loss, grads = value_and_grad(f)(params)` and then only the loss is used: no update is made from the gradients, the
compiler even removes their computation, and every step returns the loss of the parameters that went in. What is bound
to `_` is thrown away on purpose and left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C536",
    name="gradients-not-used",
    title="Gradients are computed and never used",
    severity=Severity.CRITICAL,
    sees="The second result of value_and_grad, bound to a name that nothing reads.",
    matters="No parameter is updated from this loss; it scatters around its first value.",
    alike=("a function that only reports the loss, which binds the gradients to _",),
    confirm=("compare a leaf of params before and after a step",),
)
_MAKERS = ("value_and_grad", "filter_value_and_grad")


def check(project: Project) -> Iterator[Finding]:
    """Look at every pair of a value and its gradients."""
    for file in project.files:
        if "value_and_grad" not in file.text:
            continue
        code = syntax(file)
        for statement in code.of(ast.Assign):
            name = _gradients(code, statement)
            if name is not None and not _read(code, statement, name):
                yield RULE.finding(
                    f"the gradients that are bound to {name} at {code.at(statement)} are read nowhere: no update is "
                    "made from them, so no parameter changes",
                    code.place(statement), file.path, bearing=Bearing.CAUSE, measured={"kind": "not used"})


def _gradients(code: Syntax, statement: ast.Assign) -> str | None:
    """The name that the gradients of `loss, grads = value_and_grad(f)(x)` are bound to."""
    target, call = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(call, ast.Call):
        return None
    maker = call.func if isinstance(call.func, ast.Call) else code.origin(call.func)
    made = isinstance(maker, ast.Call) and last_name(maker.func) in _MAKERS
    second = target.elts[1]
    return second.id if made and isinstance(second, ast.Name) and not second.id.startswith("_") else None


def _read(code: Syntax, statement: ast.Assign, name: str) -> bool:
    """Whether the name is read in the function, or in one around it that it is handed to by nonlocal or global."""
    body = code.function(statement)
    within: ast.AST = body if isinstance(body, FunctionNode) else code.file.tree
    return any((isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, (ast.Load, ast.Del)))
               or (isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names)
               or (isinstance(n, ast.Call) and last_name(n.func) in ("locals", "globals", "vars", "exec", "eval"))
               for n in below(within))

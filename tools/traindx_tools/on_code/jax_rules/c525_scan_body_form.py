"""The body of a scan does not return what scan needs.

`lax.scan` calls its body with (carry, x) and needs (carry, y) back, with a carry of the same shape. A body that returns
one value or three fails; one that appends to its carry (`jnp.concatenate([carry, x])`) changes its shape in every
iteration. What grows belongs into y, which scan stacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, parameters, syntax
from traindx_tools.on_code.tracing import function_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C525",
    name="scan-body-form",
    title="The body of a scan does not return what scan needs",
    severity=Severity.HIGH,
    sees="What the body of lax.scan returns: a pair, and a carry that is not appended to.",
    matters="Tracing fails: the body must return a pair, or the carry changes its type.",
    alike=("a carry that changes its dtype",),
    confirm=("jax.eval_shape(body, carry, x)",),
)
_GROWING = frozenset({"concatenate", "append", "hstack", "vstack", "stack", "pad"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every scan whose body is known."""
    for file in project.files:
        if "scan" not in file.text or "jax" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("scan"):
            if code.qualified(call.func) != "jax.lax.scan":
                continue
            body = function_of(code, argument(call, 0, "f"))
            if body is not None and not body.decorator_list:
                yield from _judged(code, body)


def _judged(code: Syntax, body: ast.FunctionDef) -> Iterator[Finding]:
    carry = next(iter(parameters(body)), "")
    for node in (n for n in below(body) if isinstance(n, ast.Return) and code.function(n) is body):
        value = node.value
        if isinstance(value, ast.Tuple) and len(value.elts) != 2:
            yield _finding(code, node, f"returns {len(value.elts)} values; scan needs (carry, y)", body, "pair")
        elif isinstance(value, (ast.BinOp, ast.Constant, ast.Dict, ast.List)) or value is None:
            yield _finding(code, node, "returns one value; scan needs (carry, y)", body, "pair")
        elif isinstance(value, ast.Tuple):
            made = code.origin(value.elts[0])
            grows = isinstance(made, ast.Call) and last_name(made.func) in _GROWING and carry in names_in(made)
            cut = any(isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice) for n in below(made))
            library = isinstance(made, ast.Call) and code.qualified(made.func).startswith("jax.")
            if grows and library and not cut:
                why = f"appends to its carry ({ast.unparse(made)[:60]}): its shape changes"
                yield _finding(code, node, why, body, "grows")


def _finding(code: Syntax, node: ast.AST, why: str, body: ast.FunctionDef, kind: str) -> Finding:
    return RULE.finding(
        f"{body.name}, the body of a scan, at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "function": body.name},
    )

"""The gradient is taken with respect to the wrong argument, or its result unpacked wrongly.

`jax.grad(f)` differentiates the first argument. Where that is the batch and the parameters come second, the
"gradients" have the batch's shape. A loss that returns (value, extras) needs `has_aux=True`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, parameters, syntax
from traindx_tools.on_code.tracing import GRADIENTS, differentiated, function_of
from traindx_tools.rules import Rule

RULE = Rule(
    id="C523",
    name="gradient-of-wrong-argument",
    title="The gradient is taken of the wrong argument or result",
    severity=Severity.HIGH,
    sees="The first argument of a differentiated function beside one of parameters; what it returns, and has_aux.",
    matters="A shape error, a TypeError, or an update by something that is no gradient of the parameters.",
    alike=("a gradient with respect to the input on purpose (a penalty, an attack)",),
    confirm=("jax.tree.map(jnp.shape, grads) has to equal that of params",),
)
_PARAMETERS = re.compile(r"params|parameters|weights|theta|variables|model|ws?", re.IGNORECASE)
_DATA = re.compile(r"x|xs|x_batch|batch|inputs?|data|images?|features|obs|y|targets?|labels?|key|rng", re.IGNORECASE)
_INPUTS = re.compile(
    r"penalty|jacobian|attack|saliency|score|energy|force|hessian|potential|velocity|pde|residual", re.I
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every differentiated function."""
    for file in project.files:
        if "jax" not in file.text or "grad" not in file.text:
            continue
        code = syntax(file)
        for call, function in differentiated(code):
            yield from _argument(code, call, function)
            yield from _result(code, call, function)
        yield from _elsewhere(project, code)


def _elsewhere(project: Project, code: Syntax) -> Iterator[Finding]:
    """Methods and functions of other files that are differentiated, and functions under a bare decorator."""
    look = lookup(project)
    for call in code.of(ast.Call):
        fun = argument(call, 0, "fun", "f") if code.qualified(call.func) in GRADIENTS else None
        if not isinstance(fun, (ast.Name, ast.Attribute)) or function_of(code, fun) is not None:
            continue
        head = fun.value if isinstance(fun, ast.Attribute) else fun
        if not isinstance(head, ast.Name) or not (head.id in code.aliases or (head.id == "self" and head is not fun)):
            continue  # an argument may be any function
        found = look.function(code, fun)
        if found is not None and isinstance(found[1], ast.FunctionDef):
            yield from _result(code, call, found[1], found[0])
    for function in code.of(ast.FunctionDef):
        bare = next((d for d in function.decorator_list if code.qualified(d) in GRADIENTS), None)
        if bare is not None:
            yield from _result(code, bare, function)


def _argument(code: Syntax, call: ast.Call, function: ast.FunctionDef) -> Iterator[Finding]:
    names = [n for n in parameters(function) if n != "self"]
    if argument(call, 1, "argnums") is not None or len(names) < 2 or _INPUTS.search(function.name):
        return
    trained = [n for n in names[1:] if _PARAMETERS.fullmatch(n) and n.lower() not in ("w", "ws")]
    if _DATA.fullmatch(names[0]) and trained and "loss" in function.name.lower():
        yield _finding(
            code,
            call,
            f"differentiates {function.name} with respect to {names[0]}, its first argument; the parameters are "
            f"{trained[0]} (argnums={names.index(trained[0])})",
            "argument",
            forms.keyword_given(code.file, call, "argnums", f"{names.index(trained[0])}", "differentiate the weights"),
        )


def _result(
    code: Syntax, call: ast.expr, function: ast.FunctionDef, home: Syntax | None = None
) -> Iterator[Finding]:
    home = home or code
    returns = [n for n in below(function) if isinstance(n, ast.Return) and home.function(n) is function]
    aux = argument(call, 2, "has_aux") if isinstance(call, ast.Call) else None
    pairs = [n for n in returns if isinstance(n.value, ast.Tuple)]
    if returns and len(pairs) == len(returns) and aux is None:
        place = f"line {pairs[0].lineno}" if home is code else home.at(pairs[0])
        yield _finding(
            code, call, f"differentiates {function.name}, which returns a tuple ({place}), without has_aux=True", "aux"
        )
    asked = isinstance(aux, ast.Constant) and aux.value is True
    if asked and returns and all(_is_number(home, n.value) for n in returns):
        place = f"line {returns[0].lineno}" if home is code else home.at(returns[0])
        yield _finding(
            code, call, f"asks for has_aux=True, and {function.name} returns the loss alone ({place})", "no aux"
        )


def _is_number(code: Syntax, node: ast.expr | None, left: int = 8) -> bool:
    """A sum, a product, a mean: no pair."""
    if left <= 0:
        return False
    if isinstance(node, ast.Name):
        made = code.assigned(node)
        return made is not None and not isinstance(made, ast.Name) and _is_number(code, made, left - 1)
    if isinstance(node, ast.BinOp):
        plain = not isinstance(node.left, (ast.Tuple, ast.List, ast.Name, ast.Call))
        return plain or _is_number(code, node.left, left - 1)
    if not isinstance(node, ast.Call):
        return False
    return code.qualified(node.func).startswith("jax.numpy.") or (
        isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "sum"))


def _finding(code: Syntax, call: ast.expr, why: str, kind: str, patch: tuple[Patch, ...] = ()) -> Finding:
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} {why}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )

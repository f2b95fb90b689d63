"""A jitted function reads a variable that changes later.

What a jitted function takes from outside is fixed when it is traced. A learning rate, a parameter tree or a counter
that the loop binds anew is a constant inside: the schedule has no effect, the parameters stay the first ones. It has to
be an argument.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, parameters, syntax
from traindx_tools.on_code.tracing import Traced, traced
from traindx_tools.rules import Rule

RULE = Rule(
    id="C513",
    name="captured-state",
    title="A jitted function reads a variable that changes later",
    severity=Severity.HIGH,
    sees="A name that a jitted function takes from outside and that a loop outside binds anew.",
    matters="The function goes on with the first value: a schedule or an update without effect.",
    alike=("a constant that is never bound again",),
    confirm=("print the value inside with jax.debug.print over some steps",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at what every jitted function takes from outside."""
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        for one in traced(code):
            if "jit" not in one.how and "pmap" not in one.how:
                continue
            for name in _free(one.node):
                changed = _changed(code, one, name)
                if changed is not None:
                    yield _finding(code, one, name, changed)
                    break


def _free(function: ast.FunctionDef) -> list[ast.Name]:
    bound = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for inner in ast.walk(function):
        if isinstance(inner, (*FunctionNode, ast.Lambda)):
            bound |= set(parameters(inner))
            bound |= {inner.name} if isinstance(inner, FunctionNode) else set()
    loads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return [n for n in loads if n.id not in bound and not hasattr(builtins, n.id)]


def _changed(code: Syntax, one: Traced, name: ast.Name) -> ast.AST | None:
    """Where a loop of the function's own scope binds the name anew, while it also calls the function."""
    scope = code.scope(one.node)
    called = {one.node.name} | set(_names_of(code, one.node.name))
    for node in ast.walk(scope):
        stored = isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)
        if not stored or code.scope(node) is not scope:
            continue
        statement = code.statement(node)
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            continue  # a loop's own variable, over which tests are parametrised
        for loop in code.loops(node):
            inside = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in called
                         for n in ast.walk(loop))  # fmt: skip
            if inside and not any(n is one.node for n in ast.walk(loop)):
                return node
    return None


def _names_of(code: Syntax, function: str) -> Iterator[str]:
    """Names that are bound to the transformed function: `step = jax.jit(f)`."""
    for node in code.of(ast.Assign):
        made = node.value if isinstance(node.value, ast.Call) else None
        if made is not None and any(isinstance(a, ast.Name) and a.id == function for a in made.args):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _finding(code: Syntax, one: Traced, name: ast.Name, changed: ast.AST) -> Finding:
    return RULE.finding(
        f"{one.node.name} ({one.how}) reads {name.id} at {code.at(name)} from outside, and the loop binds it anew at "
        f"line {getattr(changed, 'lineno', 1)}: the compiled function keeps the first value",
        code.place(name),
        code.file.path,
        strength=Strength.DIRECT,
        measured={"kind": "captured", "name": name.id},
    )

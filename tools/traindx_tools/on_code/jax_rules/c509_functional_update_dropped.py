"""A functional array update whose result is not used.

`x.at[i].set(v)` returns a new array and leaves x as it was. As a statement of its own it does nothing: under jit it is
removed altogether. The same holds for every other method of `.at[...]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.rules import Rule

RULE = Rule(
    id="C509",
    name="functional-update-dropped",
    title="x.at[...].set() is called and its result is not used",
    severity=Severity.HIGH,
    sees="A call of a method of .at[...] as a statement.",
    matters="The array keeps its old values: a mask, a buffer or a cache that is never written.",
    alike=("an index that is out of bounds, which JAX drops silently",),
    confirm=("print the array after the statement",),
)

_METHODS = frozenset({"set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply", "mul"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that is only a call."""
    for file in project.files:
        if ".at[" not in file.text:
            continue
        for node in below(file.tree):
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
                continue
            array = _updated(node.value)
            if array is None:
                continue
            text = ast.unparse(array)
            patch = (
                patching.replace_text(file, node, f"{text} = {ast.unparse(node.value)}", "bind the new array")
                if isinstance(array, ast.Name)
                else None
            )
            yield RULE.finding(
                f"{file.segment(node)} at {file.path}:{node.lineno} returns a new array that is not used: {text} keeps "
                "its old values",
                Location(file=file.path, line=node.lineno, quote=file.line(node.lineno).strip()[:200]),
                file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "at"},
                patch=() if patch is None else (patch,),
            )


def _updated(call: ast.Call) -> ast.expr | None:
    """The array of `array.at[index].method(...)`."""
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in _METHODS:
        return None
    index = method.value
    if isinstance(index, ast.Subscript) and isinstance(index.value, ast.Attribute) and index.value.attr == "at":
        return index.value.value
    return None

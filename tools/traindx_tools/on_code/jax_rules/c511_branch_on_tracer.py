"""Python branches on a traced value.

Under jit, vmap and scan an argument has a shape and a type and no value. `if x > 0`, `while err > tol`, `assert` and
`and` need one: tracing stops with a TracerBoolConversionError. `jnp.where`, `lax.cond` and `lax.while_loop` decide on
the device; an argument that is a setting and no array belongs into `static_argnames`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import choices
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.on_code.tracing import (
    Traced,
    asks_for_tracer,
    called_in,
    depends,
    own_nodes_of,
    traced,
    values_traced,
)
from traindx_tools.rules import Rule

RULE = Rule(
    id="C511",
    name="branch-on-tracer",
    title="Python branches on a traced value",
    severity=Severity.HIGH,
    sees="if, while, assert or a conditional expression in a traced function whose test depends on a traced argument.",
    matters="Tracing stops with TracerBoolConversionError at the first call.",
    alike=("a test of a shape, a type or None, which is static", "a static argument"),
    confirm=("call the function once",),
)
_CONTAINER = re.compile(r"\b(typing\.)?(tuple|list|dict|Tuple|List|Dict|Sequence|Mapping|str|Callable)\b")
_WORDS = {ast.If: "if", ast.While: "while", ast.IfExp: "if", ast.Assert: "assert"}


def check(project: Project) -> Iterator[Finding]:
    """Look at every traced function."""
    for file in project.files:
        if "jax" not in file.text:
            continue
        code = syntax(file)
        told: set[int] = set()
        for one in traced(code):
            for inner in (one, *called_in(code, one)):
                if id(inner.node) not in told:
                    found = next(_branches(code, inner), None)
                    told |= {id(inner.node)} if found is not None else set()
                    yield from () if found is None else (found,)


def _branches(code: Syntax, one: Traced) -> Iterator[Finding]:
    names = values_traced(one)
    for node in own_nodes_of(one):
        test = node.test if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)) else None
        if test is not None and depends(test, names) and not _guarded(code, test) and not _of_a_tuple(one, test):
            yield RULE.finding(
                f"{_WORDS[type(node)]} {written(test)} at {code.at(node)} needs the value of a traced argument "
                f"of {one.node.name} ({one.how}): there is none while tracing",
                code.place(test),
                code.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "branch", "function": one.node.name, "how": one.how},
                patch=choices.with_where(code, node),
            )


def _guarded(code: Syntax, test: ast.expr) -> bool:
    """Whether a condition around the test first asks whether there is a tracer."""
    around = [n for a in code.above(test) if isinstance(a, (ast.If, ast.IfExp)) for n in below(a.test)]
    return any(isinstance(n, ast.Call) and asks_for_tracer(n) for n in around)


def _of_a_tuple(one: Traced, test: ast.expr) -> bool:
    """`if limits:` of an argument that is a tuple, a list or None by its annotation: its length is known."""
    bare = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(bare, ast.Name):
        return False
    arguments = (*one.node.args.posonlyargs, *one.node.args.args, *one.node.args.kwonlyargs)
    said = next((written(a.annotation) for a in arguments if a.arg == bare.id), "")
    return _CONTAINER.match(said.removeprefix("Optional[").removeprefix("typing.Optional[")) is not None

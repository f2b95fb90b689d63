"""A function is jitted anew in every iteration.

jit remembers what it compiled by the function object. A lambda, a partial, a function defined in the loop, or
`jax.jit(jax.grad(f))` is a new object each time: every iteration traces and compiles again, seconds instead of
milliseconds. jit once, outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C519",
    name="jit-in-loop",
    title="A function is jitted anew in every iteration",
    severity=Severity.MEDIUM,
    sees="jax.jit of a new function object inside a loop.",
    matters="Compilation in every step: the device idles.",
    alike=("a loop over a few configurations, each with a function of its own",),
    confirm=("JAX_LOG_COMPILES=1 shows a compilation in every step",),
)
_COUNTS = ("range", "enumerate", "tqdm", "trange", "tqdm.tqdm")
_JITS = ("jax.jit", "jax.pmap", "equinox.filter_jit", "flax.nnx.jit")


def check(project: Project) -> Iterator[Finding]:
    """Look at every jit inside a loop that runs long."""
    for file in project.files:
        if "jit" not in file.text or "jax" not in file.text:
            continue
        code = syntax(file)
        for call in code.of(ast.Call):
            if code.qualified(call.func) in _JITS and _is_new(code, argument(call, 0, "fun")):
                yield from _judged(code, call, call)
        for function in code.of(ast.FunctionDef):
            if any(code.qualified(d.func if isinstance(d, ast.Call) else d) in _JITS for d in function.decorator_list):
                yield from _judged(code, function, function)


def _is_new(code: Syntax, node: ast.expr | None) -> bool:
    return isinstance(node, (ast.Lambda, ast.Call))


def _judged(code: Syntax, node: ast.AST, place: ast.AST) -> Iterator[Finding]:
    for loop in code.loops(node):
        over = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
        few = isinstance(over, (ast.Tuple, ast.List))
        counted = isinstance(over, ast.Call) and ast.unparse(over.func) in (
            "range",
            "enumerate",
            "tqdm",
            "trange",
            "tqdm.tqdm",
        )
        if few or not (counted or isinstance(loop, ast.While) or _is_loader(over)):
            continue
        yield RULE.finding(
            f"{code.file.segment(place)} at {code.at(place)} compiles a new function in every iteration of the loop at "
            f"line {getattr(loop, 'lineno', 1)}",
            code.place(place),
            code.file.path,
            strength=Strength.DIRECT,
            measured={"kind": "loop"},
        )
        return


def _is_loader(over: ast.expr | None) -> bool:
    return over is not None and any(w in ast.unparse(over).lower() for w in ("loader", "batches", "dataset"))

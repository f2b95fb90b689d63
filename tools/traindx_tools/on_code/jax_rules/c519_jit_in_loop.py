"""A function is jitted anew in every iteration.

jit remembers what it compiled by the function object. A lambda, a partial, a function defined in the loop, or
`jax.jit(jax.grad(f))` is a new object each time: every iteration traces and compiles again, seconds instead of
milliseconds. So is a method (`jax.jit(self.loss)`), and a function that is defined and jitted inside a function which
the loop calls. jit once, outside.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
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
_STEPS = 30
_COUNTED = re.compile(r"step|iter|update|total|frames", re.IGNORECASE)
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
    if any("jit" in f.text and ("jax" in f.text or "equinox" in f.text) for f in project.files):
        yield from _in_called(lookup(project))


def _in_called(look: Lookup) -> Iterator[Finding]:
    """Functions that jit a new function at every call, and that a loop over steps calls."""
    for code in look.codes:
        seen: set[int] = set()
        for node, place in _made_in_functions(code):
            body = code.function(node)
            if body is None or id(body) in seen or code.loops(node) or not _each_call(code, node, body):
                continue
            loop = next(((c, x) for c, call in look.callers(body, code) for x in c.loops(call)
                         if _over_steps(look, c, x)), None)  # fmt: skip
            if loop is None:
                continue
            seen.add(id(body))
            yield RULE.finding(
                f"{body.name} compiles a new function at {code.at(place)} in every call, and the loop at "
                f"{loop[0].at(loop[1])} calls it: every step traces and compiles again",
                code.place(place),
                code.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "called"},
            )


def _made_in_functions(code: Syntax) -> Iterator[tuple[ast.AST, ast.AST]]:
    for call in code.of(ast.Call):
        inner = argument(call, 0, "fun")
        if code.qualified(call.func) in _JITS and (_is_new(code, inner) or isinstance(inner, ast.Attribute) or (
                isinstance(inner, ast.Name) and any(f.name == inner.id and code.function(f) is code.function(call)
                                                    for f in code.of(ast.FunctionDef)))):  # fmt: skip
            yield call, call
    for function in code.of(ast.FunctionDef):
        if code.function(function) is not None and any(
                code.qualified(d.func if isinstance(d, ast.Call) else d) in _JITS for d in function.decorator_list):
            yield function, function


def _each_call(code: Syntax, node: ast.AST, body: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the compiled function is used in this call alone: called here, not kept, and not called in a loop."""
    if body.name in ("__init__", "setup", "__post_init__") or any(
            "cache" in written(d) or "jit" in written(d) for d in body.decorator_list):  # fmt: skip
        return False
    up = code.parent(node)
    if isinstance(up, ast.Call) and up.func is node:  # jax.jit(f)(x)
        return True
    statement = node if isinstance(node, ast.FunctionDef) else code.statement(node)
    bound = statement.targets if isinstance(statement, ast.Assign) and statement.value is node else []
    names = {node.name} if isinstance(node, ast.FunctionDef) else {written(t) for t in bound}
    if isinstance(statement, ast.Assign) and any("." in n or "[" in n for n in names):
        return False  # kept on an object, or in a table
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) and names & set(n.names) for n in below(body)):
        return False
    uses = [n for n in below(body) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
    calls = [p for n in uses if isinstance(p := code.parent(n), ast.Call) and p.func is n]
    return bool(calls) and len(calls) == len(uses) and not any(code.loops(c) for c in calls)


def _over_steps(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    """A loop over batches, or over at least some dozens of steps."""
    over = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    if over is None or _is_loader(over):
        return True
    if not isinstance(over, ast.Call) or last_name(over.func) not in ("range", "trange", "tqdm"):
        return False
    inner = over.args[0] if over.args else None
    count = look.number(code, over.args[1] if len(over.args) > 1 else inner)
    return count >= _STEPS if count is not None else bool(_COUNTED.search(written(over)))


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
            bearing=Bearing.CAUSE,
            measured={"kind": "loop"},
        )
        return


def _is_loader(over: ast.expr | None) -> bool:
    return over is not None and any(w in ast.unparse(over).lower() for w in ("loader", "batches", "dataset"))

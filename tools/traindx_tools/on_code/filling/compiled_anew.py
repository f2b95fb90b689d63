"""Compilations of JAX that each turn of a loop makes anew: jit of a new function object, another static value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.compiled import JITS
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.values import Function
from traindx_tools.program.traced import CompiledAnew

_STEPS = 30
"""Turns from which on a loop runs long."""
_COUNTS = ("range", "trange", "tqdm", "enumerate")


def by_value(project: Project) -> Iterator[CompiledAnew]:
    """Every parameter that is static and given another number in each turn of a loop."""
    seen: set[tuple[int, str]] = set()
    for event in project.events:
        if event.kind == "static" and isinstance(event.receiver, Function):
            info = event.receiver.info
            if (id(info), event.name) not in seen:
                seen.add((id(info), event.name))
                first = next(iter(getattr(info.node, "decorator_list", ())), info.node)
                yield CompiledAnew(info.name, syntax(info.file).spot(first), event.spot, static=event.name)


def compiled_anew(look: Lookup) -> Iterator[CompiledAnew]:
    """Every jit of a lambda, a call or a function defined there, in a long loop or in a function that one calls."""
    for code in look.codes:
        for place, local in _made(code) if "jit" in code.file.text else ():
            loop = next((x for x in code.loops(place) if _is_long(look, code, x)), None)
            if loop is not None:
                yield CompiledAnew(code.file.segment(place), code.spot(place), code.spot(loop))
            elif (body := code.function(place)) is not None and not code.loops(place) and _in_this_call(
                    code, place, body) and local:  # fmt: skip
                around = next(((c, x) for c, call in look.callers(body, code) for x in c.loops(call)
                               if _is_long(look, c, x)), None)  # fmt: skip
                if around is not None:
                    yield CompiledAnew(code.file.segment(place), code.spot(place), Syntax.spot(*around), body.name)


def _made(code: Syntax) -> Iterator[tuple[ast.Call | ast.FunctionDef, bool]]:
    """What is compiled, and whether the function is a new object in each call of the function around it."""
    for call in code.of(ast.Call):
        inner = argument(call, 0, "fun")
        if code.qualified(call.func) not in JITS:
            continue
        here = isinstance(inner, ast.Name) and any(code.function(f) is code.function(call)
                                                   for f in code.functions(inner.id))  # fmt: skip
        if isinstance(inner, (ast.Lambda, ast.Call)) or here:
            yield call, True
    for function in code.of(ast.FunctionDef):
        if any(code.qualified(d.func if isinstance(d, ast.Call) else d) in JITS for d in function.decorator_list):
            yield function, code.function(function) is not None


def _in_this_call(code: Syntax, node: ast.Call | ast.FunctionDef, body: ast.AST) -> bool:
    """Whether the compiled function is called here and not kept."""
    around = code.function(node)
    if around is None or around.name in ("__init__", "setup") or any("cache" in written(d) or "jit" in written(d)
                                                                     for d in around.decorator_list):  # fmt: skip
        return False
    up = code.parent(node)
    if isinstance(up, ast.Call) and up.func is node:
        return True
    name = node.name if isinstance(node, ast.FunctionDef) else (
        written(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else "")
    shared = [g.names for g in code.inside(body, ast.Global)] + [n.names for n in code.inside(body, ast.Nonlocal)]
    if not name.isidentifier() or any(name in names for names in shared):
        return False
    uses = [n for n in below(body) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    calls = [p for n in uses if isinstance(p := code.parent(n), ast.Call) and p.func is n]
    return bool(calls) and len(calls) == len(uses) and not any(code.loops(c) for c in calls)


def _is_long(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    """A loop over batches, an endless one, or one of at least some dozens of turns or of a number that is not known."""
    over = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    if isinstance(over, (ast.Tuple, ast.List, ast.Constant)) or isinstance(loop, FunctionNode):
        return False
    if isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange") and over.args:
        count = look.number(code, over.args[1] if len(over.args) > 1 else over.args[0])
        return count is None or count >= _STEPS
    return over is None or (isinstance(over, ast.Call) and last_name(over.func) in _COUNTS) or any(
        w in written(over).lower() for w in ("loader", "batches", "dataset"))

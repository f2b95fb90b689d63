"""Terms of a differentiated function that are computed from what it was differentiated by, and not from its argument.

`grad(f)(params)` knows of `params` only what goes through the argument of f. A term of f that takes the array of the
scope around f has the same value and no gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.program.uses import UnusedResult

_GRADIENTS = frozenset({"grad", "value_and_grad", "grad_and_value", "filter_grad", "filter_value_and_grad"})
_ASKS = frozenset({"len", "isinstance", "hasattr", "getattr", "print", "range", "enumerate", "type", "stop_gradient"})
_MOST = 40
"""Expressions that a term is followed through."""


def outside_terms(look: Lookup) -> Iterator[UnusedResult]:
    """Every such term, each once."""
    for code in look.codes:
        if not any(word in code.file.text for word in _GRADIENTS):
            continue
        for call in code.of(ast.Call):
            maker = call.func if isinstance(call.func, ast.Call) else code.origin(call.func)
            if isinstance(maker, ast.Call) and last_name(maker.func) in _GRADIENTS and maker.args:
                yield from _of_call(look, code, call, maker)


def _of_call(look: Lookup, code: Syntax, call: ast.Call, maker: ast.Call) -> Iterator[UnusedResult]:
    at = argument(maker, 1, "argnums")
    place = at.value if isinstance(at, ast.Constant) else 0 if at is None else None
    found = look.function(code, maker.args[0])
    if not isinstance(place, int) or place >= len(call.args) or found is None or found[0] is not code:
        return
    body, names = found[1], list(parameters(found[1]))
    by = call.args[place]
    if place >= len(names) or isinstance(by, ast.Starred) or not _is_within(code, body, call):
        return
    outer = _made_of(code, by)
    for loss in _losses(code, body):
        terms = list(_terms(code, body, loss))
        for term in terms if len(terms) > 1 else ():
            inner = _names(code, body, term)
            if inner is not None and not inner & set(names) and (read := _read(code, body, term, outer - set(names))):
                yield UnusedResult("outside", written(term)[:60], code.spot(term), names[place], other=read)


def _is_within(code: Syntax, body: Body, call: ast.Call) -> bool:
    """Whether the function sees the names of the scope in which it is differentiated."""
    scope = code.function(call)
    return scope is not None and scope in code.above(body)


def _made_of(code: Syntax, by: ast.expr) -> set[str]:
    """What an argument is called, and what it was taken out of: `params, static = partition(model, ...)`."""
    found = {written(by)} if isinstance(by, (ast.Name, ast.Attribute)) else set()
    scope, name = code.scope(by), by.id if isinstance(by, ast.Name) else ""
    for made in code.inside(scope, ast.Assign) if name else ():
        targets = [e for t in made.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
        if code.scope(made) is scope and any(isinstance(t, ast.Name) and t.id == name for t in targets):
            taken = made.value.args[0] if isinstance(made.value, ast.Call) and made.value.args else made.value
            if isinstance(taken, (ast.Name, ast.Attribute)):
                found.add(written(taken))
    return found


def _losses(code: Syntax, body: Body) -> Iterator[ast.expr]:
    """The value that is differentiated: the first where others are handed out beside it."""
    for value in returned(body):
        yield value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value


def _terms(code: Syntax, body: Body, node: ast.expr, left: int = 8) -> Iterator[ast.expr]:
    made = code.assigned(node) if isinstance(node, ast.Name) and left else None
    if made is not None and body in code.above(made) and isinstance(made, (ast.BinOp, ast.Name)):
        yield from _terms(code, body, made, left - 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and left:
        yield from _terms(code, body, node.left, left - 1)
        yield from _terms(code, body, node.right, left - 1)
    else:
        yield node


def _parts(code: Syntax, body: Body, term: ast.expr) -> list[ast.expr] | None:
    """A term and the expressions that its names stand for within the function; None where that is not known."""
    todo: list[ast.expr] = [term]
    done: list[ast.expr] = []
    while todo:
        node = todo.pop()
        done.append(node)
        if len(done) > _MOST:
            return None
        for name in (n for n in below(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
            own = [v for s, v in code.bindings(name) if body in code.above(s)]
            todo += [v for v in own if not any(v is d for d in (*done, *todo))]
    return done


def _names(code: Syntax, body: Body, term: ast.expr) -> set[str] | None:
    parts = _parts(code, body, term)
    if parts is None or any(last_name(c.func) == "stop_gradient" for p in parts for c in below(p)
                            if isinstance(c, ast.Call)):  # fmt: skip
        return None
    return {name for part in parts for name in names_in(part)}


def _read(code: Syntax, body: Body, term: ast.expr, outer: set[str]) -> str:
    """The outer value that a call within a term computes with: as its argument, or as what its method is of."""
    for part in _parts(code, body, term) or ():
        for call in (c for c in below(part) if isinstance(c, ast.Call) and last_name(c.func) not in _ASKS):
            own = call.func.value if isinstance(call.func, ast.Attribute) else None
            for given in (*call.args, *(k.value for k in call.keywords), *([own] if own is not None else [])):
                if written(given) in outer and not isinstance(given, FunctionNode):
                    return written(given)
    return ""

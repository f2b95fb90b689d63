"""Gradients in functions that run on every device, followed from where they are computed to where they are applied.

A loss that is averaged says nothing about its gradients: only `pmean(grads)` makes the copies take the same step. Under
`shard_map` this is asked only where its own check of replication was turned off, for the check refuses it or averages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.tracing import GRADIENTS, function_of

_COLLECTIVES = frozenset({"pmean", "psum", "all_gather", "psum_scatter", "pmin", "pmax", "all_to_all"})
_MAPS = frozenset({"pmap", "filter_pmap", "shard_map"})


@dataclass(frozen=True)
class Alone:
    """The gradients of one device that are applied; `how` maps the function."""

    code: Syntax
    node: ast.Call
    function: ast.FunctionDef
    how: str


def applied_alone(code: Syntax) -> Iterator[Alone]:
    """Every update in a mapped function of a file whose gradients come straight from the differentiation."""
    for function, how in _mapped(code):
        for call in (n for n in below(function) if isinstance(n, ast.Call)):
            grads = _applied(call)
            if grads is not None and _straight(code, grads, function):
                yield Alone(code, call, function, how)
                break


def _mapped(code: Syntax) -> Iterator[tuple[ast.FunctionDef, str]]:
    for function in code.of(ast.FunctionDef):
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            head: ast.expr = decorator if call is None else call.func
            if call is not None and last_name(call.func) == "partial" and call.args:
                head = call.args[0]
            if last_name(head) in _MAPS and _asked(code, head, call):
                yield function, last_name(head)
    for call in code.calls(*_MAPS):
        given = function_of(code, argument(call, 0, "fun", "f"))
        if given is not None and _asked(code, call.func, call):
            yield given, last_name(call.func)


def _asked(code: Syntax, head: ast.expr, call: ast.Call | None) -> bool:
    name = code.qualified(head)
    if not name.startswith(("jax", "equinox")):
        return False
    if last_name(head) != "shard_map":
        return True
    return call is not None and any(k.arg in ("check_rep", "check_vma") and isinstance(k.value, ast.Constant)
                                    and k.value.value is False for k in call.keywords)  # fmt: skip


def _applied(call: ast.Call) -> ast.expr | None:
    """The gradients that an update is given."""
    name = last_name(call.func)
    if name == "apply_gradients":
        return argument(call, 99, "grads")
    named = name == "update" and isinstance(call.func, ast.Attribute) and len(call.args) + len(call.keywords) >= 2
    return argument(call, 0, "updates") if named and "state" in written(argument(call, 1, "state")).lower() else None


def _straight(code: Syntax, grads: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether gradients come from `grad` or `value_and_grad` with nothing in between, of a loss without collectives."""
    made = code.origin(grads)
    second = isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Constant) and made.slice.value == 1
    call = made.value if isinstance(made, ast.Subscript) and second else made
    if not isinstance(call, ast.Call):
        return False
    maker = code.origin(call.func)
    if not isinstance(maker, ast.Call) or code.qualified(maker.func) not in GRADIENTS:
        return False
    loss = function_of(code, argument(maker, 0, "fun", "f"))
    if loss is None or any(isinstance(n, ast.Call) and last_name(n.func) in _COLLECTIVES for n in below(loss)):
        return False
    inner = [n for n in below(function) if isinstance(n, ast.Call) and last_name(n.func) in _COLLECTIVES]
    given = [c.args[0] for c in inner if c.args]
    return not any("grad" in written(g).lower() or isinstance(g, ast.Tuple) for g in given)

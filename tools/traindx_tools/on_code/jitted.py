"""Functions that JAX compiles, methods too, and what runs inside them while they are traced.

A compiled function traces everything that it calls: helper functions, methods and properties of its object. What these
read from Python (an attribute, a global, an entry of a dictionary) is as much a constant as what it reads itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.tracing import function_of, traced

JITS = frozenset({"jax.jit", "jax.pmap", "jax.pjit", "equinox.filter_jit", "equinox.filter_pmap"})
PYTREE = re.compile(r"Module|PyTree|struct|register_pytree|register_dataclass|NamedTuple|Protocol|nnx")
"""Bases and decorators of classes whose objects are passed as arrays."""
_OUTSIDE = re.compile(r"callback|debug\.print|host_call|disable_jit|eval_shape")
_WRAPS = frozenset({"grad", "value_and_grad", "vmap", "pmap", "jit", "partial", "checkpoint", "remat", "filter_grad",
                    "filter_value_and_grad", "filter_vmap", "shard_map", "jacfwd", "jacrev", "hessian"})  # fmt: skip
_DEEP = 5
_MOST = 60


@dataclass(frozen=True)
class Jitted:
    """A compiled function: where it is defined, the call or decorator that compiles it, its class if self is fixed."""

    code: Syntax
    node: ast.FunctionDef | ast.Lambda
    how: str
    place: ast.AST
    of: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "the lambda"


@dataclass(frozen=True)
class Inside:
    """A function that runs while another one is traced; `via` is the place in the traced code that leads to it."""

    code: Syntax
    node: ast.FunctionDef | ast.Lambda
    via: ast.AST | None = None
    within: Syntax | None = None
    """Where that place is."""


def jitted(look: Lookup) -> Iterator[Jitted]:
    """Every function that is compiled once and called again."""
    for code in look.codes:
        if "jax" not in code.file.text and "equinox" not in code.file.text:
            continue
        for one in traced(code):
            if one.how in JITS:
                owner = code.parent(one.node)
                method = owner if isinstance(owner, ast.ClassDef) and "self" in one.static else _around(code, one.node)
                yield Jitted(code, one.node, one.how, one.node, method)
        for call in code.of(ast.Call):
            given = argument(call, 0, "fun", "f")
            while isinstance(given, ast.Call) and last_name(given.func) in _WRAPS and given.args:
                given = given.args[0]
            if code.qualified(call.func) not in JITS or given is None or function_of(code, given) is not None:
                continue
            if isinstance(given, ast.Lambda):
                yield Jitted(code, given, code.qualified(call.func), call, _around(code, given))
            elif isinstance(given, ast.Attribute):
                yield from _method(look, code, call, given)


def _around(code: Syntax, node: ast.AST) -> ast.ClassDef | None:
    """The class whose object a function inside a method sees as self."""
    own = isinstance(node, FunctionNode) and isinstance(code.parent(node), ast.ClassDef)
    holder = code.function(node)
    if own or holder is None or "self" not in parameters(holder):
        return None
    return code.owner(node)


def _method(look: Lookup, code: Syntax, call: ast.Call, given: ast.Attribute) -> Iterator[Jitted]:
    """`jax.jit(self._update)`, `jax.jit(agent.update)`: self is whatever the object was when it was traced."""
    for of, method in look.functions.get(given.attr, ()):
        owner = of.parent(method)
        if not isinstance(owner, ast.ClassDef) or "self" not in parameters(method):
            continue
        mine = written(given.value) == "self" and code.owner(call) is owner
        made = code.origin(given.value) if isinstance(given.value, (ast.Name, ast.Attribute)) else given.value
        if mine or (isinstance(made, ast.Call) and last_name(made.func) == owner.name):
            yield Jitted(of, method, code.qualified(call.func), call, owner)


def is_pytree(owner: ast.ClassDef | None) -> bool:
    """Whether objects of a class are arrays in a tree, that a compiled function may get as arguments."""
    return owner is not None and any(PYTREE.search(written(b)) for b in (*owner.bases, *owner.decorator_list))


def inside(look: Lookup, one: Jitted) -> list[Inside]:
    """The compiled function and everything of the project that runs while it is traced."""
    found = [Inside(one.code, one.node)]
    seen = {id(one.node)}
    depth = {id(one.node): 0}
    for here in found:
        if depth[id(here.node)] >= _DEEP or len(found) > _MOST:
            continue
        for node in below(here.node):
            other = _leads_to(look, here.code, node, one)
            if other is None or id(other[1]) in seen:
                continue
            seen.add(id(other[1]))
            depth[id(other[1])] = depth[id(here.node)] + 1
            found.append(Inside(other[0], other[1], node, here.code))
    return found


def _leads_to(look: Lookup, code: Syntax, node: ast.AST, one: Jitted) -> tuple[Syntax, ast.FunctionDef] | None:
    """The function that a name or attribute in traced code refers to, if it is called there."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node, ast.Attribute):
        if written(node.value) != "self" or one.of is None or code.owner(node) is not one.of:
            return _of_object(look, code, node, one)
        body = next((m for m in one.of.body if isinstance(m, ast.FunctionDef) and m.name == node.attr), None)
        return (code, body) if body is not None and not _handed_out(code, node) else None
    if node.id not in look.functions or _is_parameter(code, node):
        up = code.parent(node)
        _, made = look.origin(code, node) if isinstance(up, ast.Call) and up.func is node else (code, node)
        return look.made_by(code, made) if isinstance(made, ast.Call) else None
    if _handed_out(code, node):
        return None
    near = function_of(code, node)
    if near is not None and not isinstance(code.parent(near), ast.ClassDef):
        return code, near
    reached = look.function(code, node)
    return (reached[0], reached[1]) if reached is not None and isinstance(reached[1], ast.FunctionDef) and (
        node.id in code.aliases) else None  # fmt: skip


def _of_object(look: Lookup, code: Syntax, node: ast.Attribute, one: Jitted) -> tuple[Syntax, ast.FunctionDef] | None:
    """The method of an object that is made outside, or of a tree that comes as an argument; what `apply` runs."""
    up = code.parent(node)
    if not isinstance(up, ast.Call) or (up.func is not node and last_name(up.func) not in _WRAPS) or _handed_out(
            code, node):  # fmt: skip
        return None
    applied = node.attr in ("apply", "apply_fn")
    found = [(c, m) for c, m in look.functions.get("__call__" if applied else node.attr, ())
             if isinstance(c.parent(m), ast.ClassDef) and (not applied or is_pytree(c.owner(m)))]  # fmt: skip
    if applied or not found:
        return found[0] if len(found) == 1 else None
    where, made = look.origin(code, node.value)
    if isinstance(made, ast.Name) and _is_parameter(where, made):
        return found[0] if len(found) == 1 and is_pytree(found[0][0].owner(found[0][1])) else None
    around = {id(a) for a in code.above(node)} - {id(a) for a in one.code.above(one.node)}
    outer = isinstance(made, ast.Call) and (where is not code or id(where.function(made)) not in around)
    mine = [f for f in found if (kind := f[0].owner(f[1])) is not None and outer and kind.name == last_name(made.func)]  # type: ignore[attr-defined]
    return mine[0] if len(mine) == 1 else None


def runs_outside(code: Syntax, node: ast.AST) -> bool:
    """Whether code stands in a callback, which runs in every call."""
    return any(isinstance(a, ast.Call) and _OUTSIDE.search(written(a.func)) for a in code.above(node))


def _is_parameter(code: Syntax, node: ast.Name) -> bool:
    return any(node.id in parameters(f) for f in code.above(node) if isinstance(f, (*FunctionNode, ast.Lambda)))


def _handed_out(code: Syntax, node: ast.AST) -> bool:
    """Whether a function is given to something that runs it outside, in every call."""
    call = next((a for a in code.above(node) if isinstance(a, (ast.Call, ast.stmt))), None)
    return isinstance(call, ast.Call) and call.func is not node and _OUTSIDE.search(written(call.func)) is not None

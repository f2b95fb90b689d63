"""Which functions JAX traces, as it is written (a decorator, jit(f), scan(f, ...)), and what is traced in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.source import below, children
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def shadows(code: Syntax, scope: ast.AST, inside: ast.AST, name: str) -> bool:
    """Whether a scope around a use binds the name by a parameter, an assignment, a loop or an import.

    `inside`: the child of the scope that holds the use; a default or a decorator stands outside the function's names.
    """
    if isinstance(scope, _COMPREHENSIONS):
        return id(scope) in _bindings(code).get(name, ())
    if isinstance(scope, ast.Lambda):
        return inside is scope.body and name in _parameters(scope.args)
    if isinstance(scope, FunctionNode):
        own = name in _parameters(scope.args) or id(scope) in _bindings(code).get(name, ())
        return own and any(inside is s for s in scope.body)
    return False


def _parameters(spec: ast.arguments) -> set[str]:
    """Every parameter, but one that is the outer thing of this name unless it is given: `def g(x, f=f)`."""
    plain = [*spec.posonlyargs, *spec.args]
    defaults = dict(zip([a.arg for a in reversed(plain)], reversed(spec.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    named = {a.arg for a in (*plain, *spec.kwonlyargs, *(s for s in (spec.vararg, spec.kwarg) if s is not None))}
    return {n for n in named if not (isinstance(d := defaults.get(n), ast.Name) and d.id == n)}


@kept
def _bindings(code: Syntax) -> dict[str, set[int]]:
    """By name the functions and comprehensions that bind it, without parameters."""
    known = {name: {id(_binder(code, node)) for node in nodes} for name, nodes in code.stores.items()}
    for alias in code.of(ast.alias):
        known.setdefault((alias.asname or alias.name).split(".")[0], set()).add(id(code.function(alias)))
    for handler in code.of(ast.ExceptHandler):
        known.setdefault(handler.name or "", set()).add(id(code.function(handler)))
    declared = [(o, o.names) for o in code.of(ast.Global)] + [(o, o.names) for o in code.of(ast.Nonlocal)]
    for outer, names in declared:
        for name in names:
            known.get(name, set()).discard(id(code.function(outer)))
    return known


def _binder(code: Syntax, name: ast.Name) -> ast.AST | None:
    """The comprehension or function whose name it is; None at module or class level."""
    inside: ast.AST = name
    for up in code.above(name):
        if isinstance(up, ast.comprehension) and inside is up.target:
            return code.parent(up)
        if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef)):
            return up if isinstance(up, FunctionNode) else None
        inside = up
    return None


_ABSTRACT = {"jax.jit", "jax.pmap", "jax.vmap", "equinox.filter_jit", "equinox.filter_pmap", "equinox.filter_vmap",
             "flax.nnx.jit", "jax.pjit"}  # fmt: skip
"""Transformations under which a value is not known while tracing."""
_CONTROL = {"jax.lax.scan": (0,), "jax.lax.fori_loop": (2,), "jax.lax.while_loop": (0, 1), "jax.lax.cond": (1, 2),
            "jax.lax.map": (0,)}  # fmt: skip
GRADIENTS = {"jax.grad", "jax.value_and_grad", "equinox.filter_grad", "equinox.filter_value_and_grad", "jax.jacrev",
             "jax.jacfwd", "jax.hessian", "flax.nnx.grad", "flax.nnx.value_and_grad"}  # fmt: skip
_STATIC_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "size", "aval", "weak_type", "sharding"})
_STATIC_CALLS = frozenset({"len", "isinstance", "hasattr", "callable", "type", "shape", "ndim", "issubclass", "getattr",
                           "tree_structure", "id", "range", "size"})  # fmt: skip


_TRACER = re.compile(r"tracer|is_concrete|concrete_or_error", re.IGNORECASE)


@dataclass(frozen=True)
class Traced:
    """A function that is traced: `how` is the transformation's name, `static` its arguments that are not traced."""

    node: ast.FunctionDef
    how: str
    static: frozenset[str]


@kept
def traced(code: Syntax) -> list[Traced]:
    """Every function of a file whose values are abstract while it runs; each once."""
    found: dict[int, Traced] = {}
    for function in code.of(ast.FunctionDef):
        for decorator in function.decorator_list:
            made = _transformation(code, decorator)
            if made is not None and made[0] in _ABSTRACT:
                static = _static(code, function, made[1])
                if static is not None:
                    found.setdefault(id(function), Traced(function, made[0], static))
    for call in code.of(ast.Call):
        name = code.qualified(call.func)
        places = (0,) if name in _ABSTRACT else _CONTROL.get(name, ())
        for place in places:
            given = function_of(code, argument(call, place, "f", "fun", "body_fun", "cond_fun"))
            static = _static(code, given, call) if given is not None else None
            if given is not None and static is not None:
                found.setdefault(id(given), Traced(given, name, static))
    return list(found.values())


def _transformation(code: Syntax, node: ast.expr) -> tuple[str, ast.Call | None] | None:
    """(name, call with its options) of `@jax.jit`, `@jax.jit(...)`, `@partial(jax.jit, ...)`."""
    if isinstance(node, ast.Call):
        if last_name(node.func) == "partial" and node.args:
            return code.qualified(node.args[0]), node
        return code.qualified(node.func), node
    return code.qualified(node), None


def _static(code: Syntax, function: ast.FunctionDef, call: ast.Call | None) -> frozenset[str] | None:
    """The names of static arguments; None where they are not written as constants."""
    if call is None:
        return frozenset()
    names = list(parameters(function))
    static: set[str] = set()
    axes = argument(call, 1, "in_axes") if last_name(call.func).endswith("vmap") else None
    if axes is not None and not isinstance(axes, (ast.Tuple, ast.List, ast.Constant)):
        return None
    entries = axes.elts if isinstance(axes, (ast.Tuple, ast.List)) else []
    for name, entry in zip(names, entries, strict=False):
        if not isinstance(entry, ast.Constant) or entry.value is None:
            static.add(name)  # what is not mapped is passed through as it is
    for keyword in call.keywords:
        if keyword.arg not in ("static_argnums", "static_argnames", "static_broadcasted_argnums"):
            continue
        values = keyword.value.elts if isinstance(keyword.value, (ast.Tuple, ast.List)) else [keyword.value]
        for value in values:
            if not isinstance(value, ast.Constant):
                return None
            if isinstance(value.value, str):
                static.add(value.value)
            elif isinstance(value.value, int) and value.value < len(names):
                static.add(names[value.value])
    return frozenset(static)


def function_of(code: Syntax, node: ast.AST | None) -> ast.FunctionDef | None:
    """The function of this file that a name means, in the nearest scope that defines it.

    A method is no name inside the methods of its class. None where a parameter or a variable has taken the name.
    """
    if not isinstance(node, ast.Name):
        return None
    known = code.functions(node.id)
    in_function = False
    inside: ast.AST = node
    for scope in code.above(node) if known else ():
        here = [f for f in known if code.parent(f) is scope and not (in_function and isinstance(scope, ast.ClassDef))]
        if here:
            return here[-1]
        if shadows(code, scope, inside, node.id):
            return None
        inside = scope
        in_function = in_function or isinstance(scope, (*FunctionNode, ast.Lambda))
    return None


def values_traced(one: Traced) -> set[str]:
    """Names that hold traced values in the function: its arguments and what is computed from them.

    An argument with a default is not counted: a caller that leaves it out passes no array.
    """
    given = {n for n, default in parameters(one.node).items() if default is None}
    names = {n for n in given if n not in one.static and n not in ("self", "cls")}
    own = list(_own(one.node))
    for _ in range(3):
        before = len(names)
        for node in own:
            if isinstance(node, ast.Assign) and (depends(node.value, names) or _slope(node.value)):
                names |= {n.id for t in node.targets for n in below(t) if isinstance(n, ast.Name)
                          and isinstance(n.ctx, ast.Store)}  # fmt: skip
        if len(names) == before:
            break
    return names


def _slope(value: ast.expr) -> bool:
    """`jax.value_and_grad(f)(x)`, the arrays that come of it."""
    made = value.func if isinstance(value, ast.Call) else None
    return isinstance(made, ast.Call) and last_name(made.func).endswith(("value_and_grad", "grad"))


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's own body, without those of functions defined in it."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += reversed(children(node))


def own_nodes_of(one: Traced) -> list[ast.AST]:
    """The nodes of the function's own body, in order."""
    return list(_own(one.node))


def asks_for_tracer(node: ast.AST) -> bool:
    """`not_jax_tracer(x)`, `is_concrete(x)`: what stands beside it is read only where there is a value."""
    return isinstance(node, ast.Call) and _TRACER.search(last_name(node.func)) is not None


def depends(node: ast.AST, names: set[str]) -> bool:
    """Whether the value of an expression, not only its shape or type, depends on traced names.

    An attribute of an argument may be static (a field of a dataclass) and counts as not traced.
    """
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        if node.attr in _STATIC_ATTRIBUTES or isinstance(node.value, ast.Name):
            return False
        return depends(node.value, names)
    if isinstance(node, ast.BoolOp) and any(asks_for_tracer(v) for v in node.values):
        return False
    if isinstance(node, ast.IfExp) and (asks_for_tracer(node.test) or not depends(node.test, names)):
        return depends(node.body, names) or depends(node.orelse, names)
    if isinstance(node, ast.Call):
        if last_name(node.func) in _STATIC_CALLS or asks_for_tracer(node):
            return False
        own = isinstance(node.func, ast.Attribute) and depends(node.func.value, names)
        return own or any(depends(a, names) for a in (*node.args, *(k.value for k in node.keywords)))
    if isinstance(node, ast.Compare):
        if all(isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops):
            return False
        return any(depends(c, names) for c in (node.left, *node.comparators))
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.SetComp)):
        return False
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        return any(depends(c, names) for c in ast.iter_child_nodes(node))
    if isinstance(node, ast.Subscript):
        return depends(node.value, names)
    return any(depends(c, names) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))

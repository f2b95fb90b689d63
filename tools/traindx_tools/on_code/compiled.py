"""Functions that JAX traces, as the follower meets them, and what of the project runs inside them meanwhile.

A compiled function traces everything that it calls: helper functions, methods and properties of its object. What these
read from Python (an attribute, a global, an entry of a dictionary) is as much a constant as what it reads itself.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, syntax, written
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Function, Instance, Site

JITS = frozenset({"jax.jit", "jax.pmap", "jax.pjit", "equinox.filter_jit", "equinox.filter_pmap"})
GRADIENTS = frozenset({"jax.grad", "jax.value_and_grad", "equinox.filter_grad", "equinox.filter_value_and_grad",
                       "jax.jacrev", "jax.jacfwd", "jax.hessian", "flax.nnx.grad", "flax.nnx.value_and_grad"})
_ABSTRACT = JITS | {"jax.vmap", "equinox.filter_vmap", "flax.nnx.jit"}
"""Transformations under which a value is not known while tracing."""
_CONTROL = {"jax.lax.scan": (0,), "jax.lax.fori_loop": (2,), "jax.lax.while_loop": (0, 1), "jax.lax.cond": (1, 2),
            "jax.lax.map": (0,)}
_PYTREE = re.compile(r"Module|PyTree|struct|register_pytree|register_dataclass|NamedTuple|Protocol|nnx")
"""Bases and decorators of classes whose objects are passed as arrays."""
_OUTSIDE = re.compile(r"callback|debug\.print|host_call|disable_jit|eval_shape")
_STATIC_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "size", "aval", "weak_type", "sharding"})
_STATIC_CALLS = frozenset({"len", "isinstance", "hasattr", "callable", "type", "shape", "ndim", "issubclass", "getattr",
                           "tree_structure", "id", "range", "size"})
_TRACER = re.compile(r"tracer|is_concrete|concrete_or_error", re.IGNORECASE)
_MOST = 60


@dataclass(frozen=True, eq=False)
class Traced:
    """A function that is traced: by which transformation, the call or the function itself where that is written, the
    arguments that are not traced, and the class of the object that it sees as it was (`of`)."""

    code: Syntax
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    how: str
    place: ast.AST
    static: frozenset[str] = frozenset()
    of: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return "the lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(frozen=True, eq=False)
class Inside:
    """A function that runs while another one is traced; `via` is the place in the traced code that leads to it."""

    code: Syntax
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    via: ast.AST | None = None
    within: Syntax | None = None
    """Where that place is."""
    made: Site | None = None
    """Where the object is made whose method it is."""


@kept
def traced(project: Project) -> list[Traced]:
    """Every function whose values are abstract while it runs, each once."""
    found: dict[int, Traced] = {}
    for info in {id(b.function): b.function for b in project.blocks if b.function is not None}.values():
        how = next((w for w in info.wrappers if w in _ABSTRACT), None)
        if how is not None:
            owner = info.owner.node if info.owner is not None and "self" in info.statics else None
            found[id(info.node)] = _made(info, how, info.node, info.statics, owner)
    for event in project.calls(*{n.rpartition(".")[2] for n in (*_ABSTRACT, *_CONTROL)}):
        places = (0,) if event.name in _ABSTRACT else _CONTROL.get(event.name, ())
        for given in (event.args[i] for i in places if i < len(event.args)):
            if isinstance(given, Function):
                result = event.result if isinstance(event.result, Function) else None
                of = given.owner or (given.closure or {}).get("self")
                found.setdefault(id(given.info.node), _made(
                    given.info, event.name, event.node, result.statics if result is not None else frozenset(),
                    of.klass.info.node if isinstance(of, Instance) else None))
    return list(found.values())


def _made(info: FunctionInfo, how: str, place: ast.AST, static: frozenset[str], of: ast.ClassDef | None) -> Traced:
    return Traced(syntax(info.file), info.node, how, place, static, of)


def inside(project: Project, one: Traced) -> list[Inside]:
    """The traced function and everything of the project that runs in it."""
    found, seen = [Inside(one.code, one.node)], {id(one.node)}
    stack = list(_running(project).get(id(one.node), ()))
    for block in stack:
        inner = [b for b in block.body if isinstance(b, Block)]
        stack += [b for b in inner if len(stack) < 20 * _MOST]
        for call in inner:
            body = call.function.node if call.kind == "call" and call.function is not None else None
            if body is not None and id(body) not in seen and len(found) <= _MOST and call.function is not None:
                seen.add(id(body))
                of = call.subject.owner if isinstance(call.subject, Function) else None
                found.append(Inside(syntax(call.function.file), body, call.node, syntax(call.file),
                                    of.site if isinstance(of, Instance) else None))
    return found


@kept
def _running(project: Project) -> dict[int, list[Block]]:
    """The calls that are followed, by the function."""
    found: dict[int, list[Block]] = {}
    for block in project.blocks:
        if block.kind == "call" and block.function is not None:
            found.setdefault(id(block.function.node), []).append(block)
    return found


def is_pytree(owner: ast.ClassDef | None) -> bool:
    """Whether objects of a class are arrays in a tree, that a compiled function may get as arguments."""
    return owner is not None and any(_PYTREE.search(written(b)) for b in (*owner.bases, *owner.decorator_list))


def runs_outside(code: Syntax, node: ast.AST) -> bool:
    """Whether code stands in a callback, which runs in every call."""
    return any(isinstance(a, ast.Call) and _OUTSIDE.search(written(a.func)) for a in code.above(node))


def values_traced(node: ast.AST, static: frozenset[str] = frozenset()) -> set[str]:
    """Names that hold traced values in a function: its arguments and what is computed from them.

    An argument with a default is not counted: a caller that leaves it out passes no array.
    """
    spec = parameters(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else {}
    names = {n for n, default in spec.items() if default is None and n not in static and n not in ("self", "cls")}
    made = [n for n in below(node) if isinstance(n, ast.Assign)]
    for _ in range(3):
        before = len(names)
        for one in made:
            if depends(one.value, names) or _slope(one.value):
                names |= {n.id for t in one.targets for n in below(t) if isinstance(n, ast.Name)
                          and isinstance(n.ctx, ast.Store)}
        if len(names) == before:
            break
    return names


def _slope(value: ast.expr) -> bool:
    """`jax.value_and_grad(f)(x)`, the arrays that come of it."""
    made = value.func if isinstance(value, ast.Call) else None
    return isinstance(made, ast.Call) and last_name(made.func).endswith(("value_and_grad", "grad"))


def _asks_for_tracer(node: ast.AST) -> bool:
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
    if isinstance(node, ast.BoolOp) and any(_asks_for_tracer(v) for v in node.values):
        return False
    if isinstance(node, ast.IfExp) and (_asks_for_tracer(node.test) or not depends(node.test, names)):
        return depends(node.body, names) or depends(node.orelse, names)
    if isinstance(node, ast.Call):
        if last_name(node.func) in _STATIC_CALLS or _asks_for_tracer(node):
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

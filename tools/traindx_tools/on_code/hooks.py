"""Hooks on modules: which function is called, what it is given, and whether an expression still carries its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

FORWARD = frozenset({"register_forward_hook", "register_module_forward_hook"})
BACKWARD = frozenset({"register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook"})
_CUTS = frozenset(
    {"detach", "item", "numpy", "tolist", "size", "dim", "numel", "argmax", "argmin", "long", "int", "bool", "isnan",
     "isinf", "isfinite", "any", "all", "eq", "gt", "lt", "sign", "element_size", "argsort", "detach_", "ge", "le",
     "ne", "stride", "storage", "data_ptr", "new_zeros", "new_ones"})  # fmt: skip
"""Methods whose result carries no graph."""
_PLAIN = frozenset({"float", "int", "len", "str", "bool", "isinstance", "type", "id", "repr", "round", "deepcopy"})
_PLAIN_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "requires_grad", "data", "is_cuda", "grad_fn", "name"})  # fmt: skip


@dataclass(frozen=True)
class Hook:
    """A function that a module calls: `given` are its arguments that hold tensors, `code` where it is written."""

    code: Syntax
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    given: frozenset[str]
    registered_in: Syntax
    registration: ast.Call
    backward: bool


def hooks(codes: list[Syntax]) -> Iterator[Hook]:
    """Every hook that is registered and whose function is known."""
    for code in codes:
        if "_hook(" not in code.file.text:
            continue
        for call in code.calls(*FORWARD, *BACKWARD):
            for where, function in _functions(codes, code, argument(call, 0, "hook"), 4):
                names = [n for n in parameters(function) if n not in ("self", "cls")]
                backward = last_name(call.func) in BACKWARD
                if len(names) >= 2:
                    yield Hook(where, function, frozenset(names[1:]), code, call, backward)


def _functions(
    codes: list[Syntax], code: Syntax, node: ast.AST | None, left: int
) -> Iterator[tuple[Syntax, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    """The function that an expression means: a name, a method, a lambda, partial, or what a factory returns."""
    if node is None or left <= 0:
        return
    if isinstance(node, ast.Lambda):
        yield code, node
    elif isinstance(node, ast.Call) and last_name(node.func) == "partial" and node.args:
        yield from _functions(codes, code, node.args[0], left - 1)
    elif isinstance(node, ast.Call):
        for where, factory in _functions(codes, code, node.func, left - 1):
            for returned in (n for n in below(factory) if isinstance(n, ast.Return) and n.value is not None):
                if where.function(returned) is factory and not isinstance(returned.value, ast.Call):
                    yield from _functions(codes, where, returned.value, left - 1)
    elif isinstance(node, ast.Name):
        found = _named(code, node)
        made = code.assigned(node) if found is None else None
        if found is not None:
            yield code, found
        elif made is not None:
            yield from _functions(codes, code, made, left - 1)
        elif node.id in code.aliases:
            yield from _elsewhere(codes, code.aliases[node.id].rpartition(".")[2])
    elif isinstance(node, ast.Attribute):
        owner = code.owner(node)
        if written(node.value) in ("self", "cls") and owner is not None:
            yield from ((code, f) for f in code.functions(node.attr) if code.parent(f) is owner)
        else:
            yield from _elsewhere(codes, node.attr)


def _named(code: Syntax, node: ast.Name) -> ast.FunctionDef | None:
    around = {id(a) for a in code.above(node)}
    known = [f for f in code.functions(node.id) if id(code.parent(f)) in around]
    return known[-1] if known else None


def _elsewhere(codes: list[Syntax], name: str) -> Iterator[tuple[Syntax, ast.FunctionDef]]:
    """The one function of the project with this name."""
    found = [(c, f) for c in codes for f in c.functions(name)]
    if len(found) == 1:
        yield found[0]


def carries(hook: Hook, value: ast.expr) -> bool:
    """Whether a value still carries the graph of what the hook was given (or is a gradient, for a backward hook)."""
    return _carries(value, _carrying(hook), _recorded(hook, value))


def _carrying(hook: Hook) -> set[str]:
    """The hook's arguments and the names that are made of them without being cut."""
    names = set(hook.given)
    for _ in range(2):
        for node in below(hook.function):
            if isinstance(node, ast.Assign):
                targets = [t.id for t in node.targets if isinstance(t, ast.Name)]
                if _carries(node.value, names, _recorded(hook, node)):
                    names |= set(targets)
                elif any(isinstance(n, ast.Name) and n.id in names for n in below(node.value)):
                    names -= set(targets)
            elif isinstance(node, ast.For) and _carries(node.iter, names, True):
                names |= {n.id for n in below(node.target) if isinstance(n, ast.Name)}
    return names


def _recorded(hook: Hook, node: ast.AST) -> bool:
    """Whether operations record a graph here: not under no_grad."""
    function = hook.function
    decorators = getattr(function, "decorator_list", [])
    if any("no_grad" in written(d) or "inference_mode" in written(d) for d in decorators):
        return False
    for up in hook.code.above(node):
        if isinstance(up, ast.With) and any("no_grad" in written(i) or "inference" in written(i) for i in up.items):
            return False
        if up is function or isinstance(up, FunctionNode):
            break
    return True


def _carries(node: ast.expr, names: set[str], recorded: bool) -> bool:
    """Names and their parts always do; results of operations only where autograd records."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return _carries(node.value, names, recorded)
    if isinstance(node, ast.Attribute):
        return node.attr not in _PLAIN_ATTRIBUTES and _carries(node.value, names, recorded)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_carries(e, names, recorded) for e in node.elts)
    if isinstance(node, ast.Dict):
        return any(_carries(e, names, recorded) for e in node.values)
    if isinstance(node, ast.IfExp):
        return _carries(node.body, names, recorded) or _carries(node.orelse, names, recorded)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        over = any(_carries(g.iter, names, recorded) for g in node.generators)
        inner = {n.id for g in node.generators for n in below(g.target) if isinstance(n, ast.Name)}
        return _carries(node.elt, names | inner if over else names, recorded)
    if isinstance(node, ast.BinOp):
        return recorded and (_carries(node.left, names, recorded) or _carries(node.right, names, recorded))
    if isinstance(node, ast.UnaryOp):
        return recorded and not isinstance(node.op, ast.Not) and _carries(node.operand, names, recorded)
    if isinstance(node, ast.Call):
        return _called(node, names, recorded)
    return False


def _called(node: ast.Call, names: set[str], recorded: bool) -> bool:
    name = last_name(node.func)
    if name in _CUTS or name in _PLAIN or not recorded:
        return name in ("tuple", "list", "dict") and any(_carries(a, names, recorded) for a in node.args)
    if isinstance(node.func, ast.Attribute):
        if _carries(node.func.value, names, recorded):
            return True
        library = written(node.func.value) in ("torch", "F", "torch.nn.functional", "nn.functional", "torch.linalg")
        return library and any(_carries(a, names, recorded) for a in node.args)
    return name in ("tuple", "list", "sum", "max", "abs") and any(_carries(a, names, recorded) for a in node.args)

"""What a node of a syntax tree says by itself, without the file around it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from traindx_tools.on_code.source import below
from traindx_tools.on_code.values import finite_or_inf

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def listed(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The second of each pair, by the first."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name: "step" of `optimizer.step`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def written(node: ast.AST | None) -> str:
    """The text of an expression, "" where there is none."""
    parts: list[str] = []
    head = node
    while isinstance(head, ast.Attribute):  # nearly always a dotted name, which needs no unparser
        parts.append(head.attr)
        head = head.value
    if isinstance(head, ast.Name):
        return ".".join([head.id, *reversed(parts)]) if parts else head.id
    return "" if node is None else ast.unparse(node)


def names_in(node: ast.AST) -> set[str]:
    """Every plain name that is read or bound below a node."""
    return {n.id for n in below(node) if isinstance(n, ast.Name)}


def head_of(node: ast.AST | None) -> str:
    """The name that attributes and entries are taken of: `state` of `state.keys[0]`; "" where it is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """A call's argument by keyword or position; None where it is not given."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    plain = call.args[: next((i for i, a in enumerate(call.args) if isinstance(a, ast.Starred)), len(call.args))]
    return plain[position] if 0 <= position < len(plain) else None


def in_two_branches(condition: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """Whether two children of a condition are in its two branches."""
    if not isinstance(condition, (ast.If, ast.IfExp)) or condition.test in (one, other):
        return False
    body = condition.body if isinstance(condition.body, list) else [condition.body]
    return any(one is s for s in body) != any(other is s for s in body)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, ast.expr | None]:
    """A function's parameters with their defaults."""
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    found: dict[str, ast.expr | None] = {a.arg: None for a in plain}
    found.update({a.arg: d for a, d in zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True)})
    found.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)})
    return found


def pairs_of(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each name that an assignment binds with what it is given; an item of the value where that is not unpacked."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, item in zip(target.elts, value.elts, strict=True):
                yield from pairs_of(part, item)
        else:
            for i, part in enumerate(target.elts):
                yield part, ast.copy_location(ast.Subscript(value, ast.Constant(i), ast.Load()), value)
    else:
        yield target, value


def computed(op: ast.operator, a: float, b: float) -> float | None:
    """The result of one of the four operations on two numbers; None of another one, or for a division by 0."""
    if isinstance(op, ast.Add):
        return a + b
    if isinstance(op, ast.Sub):
        return a - b
    if isinstance(op, ast.Mult):
        return a * b
    if isinstance(op, ast.Div) and b:
        return a / b
    return None


NOTHING = object()
"""What is no plain value."""


def literal(node: ast.expr) -> object:
    """The plain value of an expression of constants (`2 ** 14`, `-1e-3`), else a marker that equals nothing plain."""
    if isinstance(node, ast.Constant):
        return finite_or_inf(node.value) if is_plain(node.value) else NOTHING
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = literal(node.operand)
        return -inner if isinstance(node.op, ast.USub) and isinstance(inner, (int, float)) else inner
    if isinstance(node, ast.BinOp):
        left, right = literal(node.left), literal(node.right)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)) and abs(left) < 1e9 and abs(right) < 1e9:
            return _computed(node.op, left, right)
    return NOTHING


def _computed(op: ast.operator, left: float, right: float) -> object:
    if isinstance(op, ast.Pow):
        return (left**right if abs(right) <= 64 and abs(left) <= 64 and (left > 0 or right == int(right)) and left
            else NOTHING)
    result = computed(op, left, right)
    return NOTHING if result is None else result


def is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 200)

"""The few numbers that the elements of a tensor can be, where the code says so: {0, 1} of a comparison."""

from __future__ import annotations

import ast

from traindx_tools.on_code.syntax import Syntax, argument, last_name

Values = frozenset[float]
_FLAGS: Values = frozenset({0.0, 1.0})
_DEEP = 14
_SAME = frozenset({
    "float", "long", "int", "to", "type", "astype", "type_as", "cpu", "cuda", "double", "half", "view", "reshape",
    "flatten", "squeeze", "unsqueeze", "repeat", "expand", "expand_as", "clone", "detach", "contiguous", "tensor",
    "as_tensor", "array", "asarray", "from_numpy", "FloatTensor", "LongTensor", "numpy", "repeat_interleave", "tile",
    "bool",
})  # fmt: skip
_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack"})
_COMPARES = frozenset({"eq", "ne", "gt", "ge", "lt", "le", "isin", "logical_and", "logical_or", "logical_not",
                       "bernoulli", "one_hot", "isclose"})  # fmt: skip


def values_of(code: Syntax, node: ast.expr | None, left: int = _DEEP) -> Values | None:
    """Every number that an element can be; None where that is not known."""
    if node is None or left <= 0:
        return None
    if isinstance(node, ast.Name):
        made = code.assigned(node)
        return None if made is None or _written_into(code, node) else values_of(code, made, left - 1)
    if isinstance(node, ast.Compare):
        return _FLAGS
    if isinstance(node, ast.UnaryOp):
        return _of_unary(code, node, left)
    if isinstance(node, ast.BinOp):
        return _of_arithmetic(code, node, left)
    if isinstance(node, ast.IfExp):
        return _joined(code, [node.body, node.orelse], left)
    if isinstance(node, (ast.List, ast.Tuple)):
        return _joined(code, node.elts, left) if node.elts else None
    if isinstance(node, ast.Call):
        return _of_call(code, node, left)
    number = code.number(node) if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return frozenset({float(node.value)})
    return None if number is None else frozenset({number})


def _of_unary(code: Syntax, node: ast.UnaryOp, left: int) -> Values | None:
    inner = values_of(code, node.operand, left - 1)
    if isinstance(node.op, ast.USub):
        return None if inner is None else frozenset(-v for v in inner)
    return inner if isinstance(node.op, ast.Invert) and inner == _FLAGS else _FLAGS if isinstance(
        node.op, ast.Not) else None  # fmt: skip


def _of_arithmetic(code: Syntax, node: ast.BinOp, left: int) -> Values | None:
    one, other = values_of(code, node.left, left - 1), values_of(code, node.right, left - 1)
    if isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return _FLAGS if one == other == _FLAGS else None
    if one is None or other is None or len(one) * len(other) > 8:
        return None
    if isinstance(node.op, ast.Mult):
        if isinstance(node.left, ast.List):
            return one  # [1] * n
        return frozenset(a * b for a in one for b in other)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        if isinstance(node.left, ast.List) or (isinstance(node.left, ast.BinOp) and _list_inside(node.left)):
            return one | other  # [1] * n + [0] * m
        sign = 1 if isinstance(node.op, ast.Add) else -1
        return frozenset(a + sign * b for a in one for b in other)
    return None


def _list_inside(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.List) or (isinstance(node.left, ast.BinOp) and _list_inside(node.left))


def _joined(code: Syntax, parts: list[ast.expr], left: int) -> Values | None:
    found: set[float] = set()
    for part in parts[:50]:
        inner = values_of(code, part, left - 1)
        if inner is None:
            return None
        found |= inner
    return frozenset(found) if len(found) <= 4 else None


def _of_call(code: Syntax, call: ast.Call, left: int) -> Values | None:
    name, plain = last_name(call.func), bool(code.qualified(call.func)) or isinstance(call.func, ast.Name)
    first = call.args[0] if call.args else None
    own = first if plain else getattr(call.func, "value", None)
    if name in ("ones", "ones_like", "new_ones"):
        return frozenset({1.0})
    if name in ("zeros", "zeros_like", "new_zeros"):
        return frozenset({0.0})
    if name in ("full", "full_like"):
        return values_of(code, argument(call, 1, "fill_value"), left - 1)
    if name in ("sign", "sgn"):
        return frozenset({-1.0, 1.0})
    if name in _COMPARES:
        return _FLAGS
    if name in ("randint", "integers", "random_integers"):
        numbers = [code.number(a) for a in call.args[:2]]
        below_two = numbers[:1] == [2] and len(call.args) == 2 and isinstance(call.args[1], (ast.Tuple, ast.List))
        return _FLAGS if numbers == [0, 2] or below_two else None
    if name == "where" and len(call.args) == 3:
        return _joined(code, call.args[1:], left)
    if name in _JOINS and isinstance(first, (ast.List, ast.Tuple)):
        return _joined(code, first.elts, left)
    if name in ("int", "float") and plain and not code.qualified(call.func):
        return values_of(code, first, left - 1)
    return values_of(code, own, left - 1) if name in _SAME and own is not None else None


def _written_into(code: Syntax, name: ast.Name) -> bool:
    """Whether entries are set later: `t = zeros(n); t[a:] = 1`, `t.scatter_(...)`."""
    places: list[list[ast.expr]] = [a.targets for a in code.of(ast.Assign)]
    places += [[a.target] for a in code.of(ast.AugAssign)]
    for targets in places:
        if any(isinstance(t, ast.Subscript) and last_name(t.value) == name.id for t in targets):
            return True
    return any(isinstance(c.func, ast.Attribute) and c.func.attr.endswith("_") and isinstance(c.func.value, ast.Name)
               and c.func.value.id == name.id for c in code.of(ast.Call))  # fmt: skip

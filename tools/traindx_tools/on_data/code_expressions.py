"""Arithmetic of several fields in the code, evaluated with numpy on the rows that the data hold.

Nothing of the code is run: its expressions are read (`df["b"] - df.c`, `x * y - z` of names that stand for fields, a
column that the code makes of others) and computed here, from a table of functions. What is not in the table makes the
whole expression unknown, and nothing is said of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from traindx_tools.on_data.code_fields import CASTS, Fields, argument, called
from traindx_tools.on_data.column import Array

Values = Mapping[str, Array]
Pair = tuple[Array, Array]
"""The value of each row, and the size of what was added and subtracted on the way: what rounding is measured by."""
DEPTH = 12
ROUNDING = 4.0
"""Units in the last place of what was subtracted, within which a difference is nothing."""
_ONE: Mapping[str, Callable[[Array], Array]] = {
    "abs": np.abs, "absolute": np.abs, "square": np.square, "exp": np.exp, "expm1": np.expm1, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "negative": np.negative,
    "radians": np.radians, "deg2rad": np.radians}
_TWO: Mapping[str, type[ast.operator]] = {
    "add": ast.Add, "subtract": ast.Sub, "sub": ast.Sub, "multiply": ast.Mult, "mul": ast.Mult, "divide": ast.Div,
    "div": ast.Div, "truediv": ast.Div, "true_divide": ast.Div, "pow": ast.Pow, "power": ast.Pow}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Array, Array], Array]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal}


@dataclass(frozen=True, eq=False)
class Expressions:
    """The expressions of fields that a file of code holds."""

    fields: Fields
    _reading: set[str] = field(default_factory=set, repr=False)
    """Columns whose making is being read: one that is made of itself is unknown."""

    @cached_property
    def made(self) -> dict[str, ast.expr]:
        """Columns that the code makes, once, and that the data do not hold."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.fields.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                name = _key(node.targets[0])
                if name and name not in self.fields.known:
                    found.setdefault(name, []).append(node.value)
        return {n: v[0] for n, v in found.items() if len(v) == 1}

    def names(self, node: ast.AST | None, depth: int = 0) -> frozenset[str]:
        """The fields that an expression is computed from; none where it is unknown or of numbers alone."""
        known = {n: np.ones(1) for n in self.fields.known}
        seen: set[str] = set()
        made = self.value(node, _Noted(known, seen), depth)
        return frozenset(seen) if made is not None else frozenset()

    def value(self, node: ast.AST | None, values: Values, depth: int = 0) -> Pair | None:
        """An expression on the rows of `values`; None where it is unknown, or of a field that is not there."""
        if node is None or depth > DEPTH:
            return None
        if (number := self.fields.number(node)) is not None:
            return np.array(number), np.array(abs(number))
        of = self.fields.of(node)
        if of:
            return _of_field(values, of[0]) if len(of) == 1 else None
        if isinstance(node, ast.Call):
            return self._called(node, values, depth)
        if isinstance(node, ast.BinOp):
            left, right = (self.value(n, values, depth + 1) for n in (node.left, node.right))
            return _computed(node.op, left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.value(node.operand, values, depth + 1)
            return inner and ((-inner[0] if isinstance(node.op, ast.USub) else inner[0]), inner[1])
        if isinstance(node, ast.Attribute) and node.attr == "values":
            return self.value(node.value, values, depth + 1)
        return self._named(node, values, depth)

    def _named(self, node: ast.AST, values: Values, depth: int) -> Pair | None:
        """What a name, or a column that the code makes, stands for."""
        if isinstance(node, ast.Name):
            return self.value(self.fields.stands_for(node.id), values, depth + 1)
        key = _key(node)
        if key not in self.made or key in self._reading:
            return None
        self._reading.add(key)
        try:
            return self.value(self.made[key], values, depth + 1)
        finally:
            self._reading.discard(key)

    def _called(self, node: ast.Call, values: Values, depth: int) -> Pair | None:
        name = called(node)
        if name in CASTS:
            return self.value(argument(node, "astype", "copy"), values, depth + 1)
        if node.keywords:
            return None
        operands = [*([node.func.value] if self._is_method(node) and isinstance(node.func, ast.Attribute) else []),
                    *node.args]
        given = [self.value(a, values, depth + 1) for a in operands]
        if name in _TWO and len(given) == 2:
            return _computed(_TWO[name](), given[0], given[1])
        if name in _ONE and len(given) == 1 and given[0] is not None:
            made = np.asarray(_ONE[name](given[0][0]))
            return made, np.abs(made)
        return None

    def _is_method(self, node: ast.Call) -> bool:
        """Whether a function is called on a value, `(b - c).abs()`, and not on a module, `np.abs(b - c)`."""
        return isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and self.fields.is_module(node.func.value.id))

    def compared(self, node: ast.Compare, values: Values) -> Array | None:
        """bool shape (rows,) or (): whether a comparison holds; None where it is unknown."""
        sides = [self.value(n, values) for n in (node.left, *node.comparators)]
        out: Array | None = None
        for op, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            if left is None or right is None or type(op) not in _COMPARED:
                return None
            one = _COMPARED[type(op)](left[0], right[0])
            out = one if out is None else out & one
        return out


class _Noted(dict[str, Array]):
    """Values that note which of them were asked for."""

    def __init__(self, values: Values, seen: set[str]) -> None:
        super().__init__(values)
        self._seen = seen

    def __getitem__(self, name: str) -> Array:
        self._seen.add(name)
        return super().__getitem__(name)


def _key(node: ast.AST) -> str:
    """The text by which a column is named: `df["d"]`, `df.d`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""


def _of_field(values: Values, name: str) -> Pair | None:
    if name not in values:
        return None
    found = values[name]
    return found, np.abs(found)


def _computed(op: ast.operator, left: Pair | None, right: Pair | None) -> Pair | None:
    if left is None or right is None:
        return None
    (a, size_a), (b, size_b) = left, right
    with np.errstate(all="ignore"):
        if isinstance(op, (ast.Add, ast.Sub)):
            return (a + b if isinstance(op, ast.Add) else a - b), size_a + size_b
        if isinstance(op, ast.Mult):
            return a * b, size_a * size_b
        if isinstance(op, ast.Div):
            made = np.asarray(a / b)
        elif isinstance(op, ast.Pow):
            made = np.asarray(np.power(a, b))
        elif isinstance(op, ast.Mod):
            made = np.asarray(np.mod(a, b))
        elif isinstance(op, ast.FloorDiv):
            made = np.asarray(np.floor_divide(a, b))
        else:
            return None
    return made, np.abs(made)


def is_nothing(pair: Pair) -> Array:
    """bool: whether a value is 0, or what rounding leaves of numbers of that size."""
    value, size = pair
    return np.asarray((np.abs(value) <= ROUNDING * np.finfo(np.float64).eps * size) & np.isfinite(size))

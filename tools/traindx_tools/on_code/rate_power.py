"""How often an expression holds a learning rate as a factor: 1 for `peak_lr * decay`, 0 for `lr / base_lr`.

The unit of an expression, as in physics: a sum or a choice whose parts have different units
(`min_lr + (1 - min_lr) * x`) shows that the name of a rate stands for a fraction there, and has none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written

_RATE = re.compile(r"^(.*_)?(lr|learning_?rate|lernrate|eta_(min|max))$"
                   r"|^(lr|learning_?rate|eta)_?(max|min|peak|base|init|initial|start|end|final|top|low|high|0|1|value)$",
                   re.IGNORECASE)  # fmt: skip
_CHOICES = frozenset({"min", "max", "minimum", "maximum", "clip", "clamp"})
_KEEPS = frozenset({"float", "abs", "item"})
_DEEP = 14
ANY = None
"""The unit of 0."""


class MixedError(Exception):
    """Parts of different units are added or compared."""


@dataclass(frozen=True)
class Power:
    """How often a rate is a factor, and the expressions of rates that are."""

    times: int | None
    rates: tuple[tuple[Syntax, ast.expr], ...] = ()


def power_of(look: Lookup, code: Syntax, node: ast.expr, inside: Body) -> Power | None:
    """The power of an expression that a function returns; None where parts of different units are joined."""
    try:
        return _power(look, code, node, inside, _DEEP)
    except MixedError:
        return None


def is_rate(node: ast.AST) -> bool:
    """Whether a name, attribute or entry is that of a learning rate."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return bool(_RATE.match(str(node.slice.value)))
    return bool(_RATE.match(last_name(node)))


def _power(look: Lookup, code: Syntax, node: ast.expr, inside: Body, left: int) -> Power:
    if left <= 0:
        return Power(0)
    if isinstance(node, ast.Constant):
        return Power(ANY if node.value == 0 else 0)
    if isinstance(node, ast.UnaryOp):
        return _power(look, code, node.operand, inside, left - 1)
    if isinstance(node, ast.BinOp):
        return _of_operation(look, code, node, inside, left)
    if isinstance(node, ast.IfExp):
        return _same([_power(look, code, n, inside, left - 1) for n in (node.body, node.orelse)])
    if isinstance(node, ast.Call):
        return _of_call(look, code, node, inside, left)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return _of_name(look, code, node, inside, left)
    return Power(0)


def _of_operation(look: Lookup, code: Syntax, node: ast.BinOp, inside: Body, left: int) -> Power:
    one = _power(look, code, node.left, inside, left - 1)
    if isinstance(node.op, ast.Pow):
        return Power(0) if not one.times else one
    other = _power(look, code, node.right, inside, left - 1)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return _same([one, other])
    if isinstance(node.op, ast.Mult):
        if ANY in (one.times, other.times):
            return Power(ANY)
        return Power((one.times or 0) + (other.times or 0), one.rates + other.rates)
    if isinstance(node.op, (ast.Div, ast.FloorDiv)):
        return Power(ANY) if one.times is ANY else Power(one.times - (other.times or 0), one.rates)
    return Power(0)


def _of_call(look: Lookup, code: Syntax, call: ast.Call, inside: Body, left: int) -> Power:
    name = last_name(call.func)
    if name in _CHOICES and len(call.args) > 1:
        return _same([_power(look, code, a, inside, left - 1) for a in call.args])
    if name in _KEEPS and call.args:
        return _power(look, code, call.args[0], inside, left - 1)
    found = look.function(code, call.func)
    if found is not None and found[1] is not inside:
        parts = [_power(look, found[0], r, found[1], left - 4) for r in returned(found[1])]
        return _same(parts) if parts else Power(0)
    return Power(0)


def _of_name(
    look: Lookup, code: Syntax, node: ast.Name | ast.Attribute | ast.Subscript, inside: Body, left: int
) -> Power:
    if isinstance(node, ast.Name) and node.id in _own(code, node):
        return Power(1, ((code, node),)) if is_rate(node) and not _counts(code, node, inside) else Power(0)
    bound = code.bindings(node) if isinstance(node, ast.Name) else []
    if bound and all(code.function(s) is code.function(node) for s, _ in bound) and code.function(node) is not None:
        made = code.assigned(node)
        values = [made] if made is not None else [v for _, v in bound]
        if not (is_rate(node) and all(_opaque(look, code, v) for v in values)):
            return _same([_power(look, code, v, inside, left - 1) for v in values])
    if is_rate(node):
        return Power(1, ((code, node),))
    if not isinstance(node, ast.Subscript):
        step = look.one_step(code, node)
        if step is not None and step[1] is not node and (is_rate(step[1]) or not isinstance(step[1], ast.Call)):
            return _power(look, *step, inside, left - 1)
    return Power(0)


def _own(code: Syntax, node: ast.Name) -> set[str]:
    """The parameters of the function that a name stands in."""
    body = next((a for a in code.above(node) if isinstance(a, (*FunctionNode, ast.Lambda))), None)
    return set(parameters(body)) if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else set()


def _counts(code: Syntax, node: ast.Name, inside: Body) -> bool:
    """Whether it is the function's first parameter: the step."""
    names = [n for n in parameters(inside) if n not in ("self", "cls")]
    return bool(names) and names[0] == node.id


def _opaque(look: Lookup, code: Syntax, value: ast.expr) -> bool:
    """Whether a value says nothing about its unit: a number, an entry, a call of something unknown."""
    if isinstance(value, ast.Call):
        return look.function(code, value.func) is None and last_name(value.func) not in (*_CHOICES, *_KEEPS)
    return isinstance(value, (ast.Constant, ast.Subscript)) or look.number(code, value) is not None


def _same(parts: Sequence[Power]) -> Power:
    known = [p for p in parts if p.times is not ANY]
    if len({p.times for p in known}) > 1:
        raise MixedError
    return Power(known[0].times if known else ANY, tuple(r for p in known for r in p.rates))


def key(node: ast.expr) -> str:
    """A rate as it is told from others: its last name."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return last_name(node) or written(node)

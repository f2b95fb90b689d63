"""The operators of Python and functions of numbers: their signs, and what they give where it is known."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import arithmetic, containers
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import function
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    ModuleValue,
    Operation,
    Parameters,
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    join,
    number,
    parts,
)

BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
SIGNS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
_NEVER_NONE = (Tensor, Thing, Instance, Bag, Table, Function, Klass, Parameters, Ref, ModuleValue, Operation)


def joined(left: Value, right: Value, by: str) -> Value:
    """What a test with two open parts gives; of two numbers or questions it stays known how they are joined."""
    found = join(left, right)
    if isinstance(found, Operation) and found.op == "either":
        return replace(found, detail=by)
    questions = (Symbol, Operation)
    certain = any(isinstance(v, Operation) and v.op in ("compare", "not", "%", "either") for v in (left, right))
    if certain and isinstance(left, questions) and isinstance(right, questions) and found == UNKNOWN:
        depth = 1 + max(left.depth, right.depth)
        return Operation("either", (left, right), depth, by) if depth <= 8 else UNKNOWN
    return found


def compared(op: ast.cmpop, left: Value, right: Value, assumes: bool = False) -> bool | None:
    """The answer of a comparison, None where it is open. `assumes`: settings are as their defaults say."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        for one, other in ((left, right), (right, left)):
            if other == NONE:
                same = True if one == NONE else False if isinstance(one, _NEVER_NONE) else None
                if isinstance(one, Const) and one.fixed and one.value is not None:
                    same = False
                if same is not None:
                    return same if isinstance(op, ast.Is) else not same
        return None
    if isinstance(op, (ast.In, ast.NotIn)):
        if isinstance(right, Table) and not right.open and isinstance(left, Const) and containers.hashable(left.value):
            return (left.value in right.items) is isinstance(op, ast.In)
        if isinstance(right, Bag) and not right.open and isinstance(left, Const) and left.fixed:
            among = [i.value for i in right.items if isinstance(i, Const) and i.fixed]
            if right.kind in ("list", "tuple", "set") and len(among) == len(right.items):
                return (left.value in among) is isinstance(op, ast.In)
        return None
    function = _COMPARE.get(type(op))
    if function and isinstance(left, Const) and isinstance(right, Const) and (assumes or (left.fixed and right.fixed)):
        try:
            return bool(function(left.value, right.value))
        except TypeError:
            return None
    return None


STEPS = (0, 1, 10, 100, 200, 400, 500, 1000, 2000, 4000, 8000, 10000, 100000)
"""Usual warm-ups are among them, where such a function has its peak."""


_STEP = Symbol("index", "step of a schedule")


def shape_of(caller: Interpreter, call: Call, given: Value | None) -> dict[str, Any]:
    """What is known of a rate that is a function of the step: its largest value over usual steps, and its length: the
    number by which it divides the step."""
    known = [number(v) for v in _at_steps(caller, call, given, [Const(step) for step in STEPS])]
    found = [v for v in known if v is not None]
    shares = [p for v in _at_steps(caller, call, given, [_STEP]) for p in parts(v)
              if isinstance(p, Operation) and p.op == "/" and _STEP in parts(p.operands[0])]
    lengths = [p.operands[1] for p in shares]
    lengths = [v for v in lengths if isinstance(v, Operation)] or lengths  # else it is a warm-up
    return {"largest": max(found) if found and len(found) == len(known) else None,
            "length": lengths[-1] if len({str(v) for v in lengths}) == 1 else None}


def _at_steps(caller: Interpreter, call: Call, given: Value | None, steps: Sequence[Value]) -> list[Value]:
    """The values of a function, or of several, at these steps. Nothing of it happens in the program."""
    functions = given.items if isinstance(given, Bag) else [given]
    if not all(isinstance(f, (Function, Instance)) for f in functions):
        return []
    aside, reached, loops = Block("call", call.node, call.frame.file), set(caller.reached), caller.loops
    caller.blocks.append(aside)
    caller.assumes = True
    found = [caller.call(f, [step], {}, call.node, call.frame) for f in functions if f is not None for step in steps]
    caller.blocks.pop()
    caller.assumes = False
    caller.reached, caller.loops = reached, loops
    return found


@function(*(f"math.{name}" for name in ("exp", "log", "sqrt", "cos", "sin", "tanh", "pow", "log2", "log10")))
def _math(caller: Interpreter, call: Call) -> Value | None:
    """A function of numbers: worked out where they are known, else arithmetic."""
    if any(isinstance(a, Tensor) for a in call.args):
        return None
    known = [a for a in call.args if isinstance(a, Const) and number(a) is not None]
    if len(known) < len(call.args) or not known:
        return arithmetic.operation(call.name, call.args)
    try:
        return Const(getattr(math, call.name[5:])(*(a.value for a in known)), all(a.fixed for a in known))
    except (ValueError, OverflowError, TypeError):
        return UNKNOWN

"""Functions of numbers, and what a function of the step gives at a few steps, where the program fixes it."""

from __future__ import annotations

import math

from traindx_tools.on_code import arithmetic
from traindx_tools.on_code.definitions import Function, Instance
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import function
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import UNKNOWN, Bag, Const, Tensor, Value, number

STEPS = (0, 1, 10, 100, 200, 400, 500, 1000, 2000, 4000, 8000, 10000, 100000)
"""Usual warm-ups are among them, where such a function has its peak."""


def largest(caller: Interpreter, call: Call, given: Value | None) -> float | None:
    """The largest value of a function, or of several, over the steps. Nothing of it happens in the program."""
    functions = given.items if isinstance(given, Bag) else [given]
    if not all(isinstance(f, (Function, Instance)) for f in functions):
        return None
    aside, reached, loops = Block("call", call.node, call.frame.file), set(caller.reached), caller.loops
    caller.blocks.append(aside)
    caller.assumes = True
    found = [number(caller.call(f, [Const(step)], {}, call.node, call.frame)) for f in functions if f is not None
             for step in STEPS]
    caller.blocks.pop()
    caller.assumes = False
    caller.reached, caller.loops = reached, loops
    known = [v for v in found if v is not None]
    return max(known) if known and len(known) == len(found) else None


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

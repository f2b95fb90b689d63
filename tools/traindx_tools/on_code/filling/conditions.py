"""When an arm of the text runs, from the value of its test."""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from dataclasses import replace

from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Operation,
    Symbol,
    Table,
    Tensor,
    Value,
    number,
    parts,
    truth,
)
from traindx_tools.program.conditions import ALWAYS, NEVER, Condition

MOST_TERMS = 12


def condition_of(block: Block) -> Condition:
    """When a branch runs."""
    if isinstance(block.node, ast.ExceptHandler):
        return NEVER
    if block.subject is None:
        return Condition("unknown", ("arm", id(block)))
    found = _of(block.subject, id(block.node), MOST_TERMS)
    made = Condition("not", parts=(found,)) if block.is_other else found
    test = getattr(block.node, "test", None)
    told = made.kind in ("never", "every", "not") or made.has("finite")
    # cutting a text out of the source is dear: only where it is told
    return replace(made, text=block.file.segment(test)) if told and test is not None else made


def _of(value: Value, place: int, left: int) -> Condition:
    known = truth(value)
    if known is not None:
        return ALWAYS if known else NEVER
    if isinstance(value, Operation) and left:
        if value.op == "not":
            return Condition("not", parts=(_of(value.operands[0], place, left - 1),))
        if value.op == "either" and value.detail in ("and", "or"):
            return Condition(value.detail, parts=tuple(_of(v, place, left - 1) for v in value.operands))
        if value.op == "%":
            return Condition("not", parts=(_remainder(value, 0.0),))
        if value.op == "compare":
            return _compared(value)
    if isinstance(value, Symbol) and value.role == "index":
        return Condition("after", rest=1)
    if isinstance(value, (Tensor, Symbol)) and (found := _finite(value)) is not None:
        return found
    return Condition("unknown", ("value", value) if value != UNKNOWN else ("place", place))


def _compared(value: Operation) -> Condition:
    """A comparison: a remainder with a number, an index with its bound, whatever else."""
    one, other = value.operands if len(value.operands) == 2 else (UNKNOWN, UNKNOWN)
    question = Condition("unknown", ("compared", value.op, value.detail, value.operands))
    if value.detail in ("==", "!="):
        found = next((f for a, b in ((one, other), (other, one)) if (f := _equal(a, b)) is not None), None)
        if found is not None:
            return found if value.detail == "==" else Condition("not", parts=(found,))
    asked = next((o.operands[0] for o in (one, other) if isinstance(o, Operation) and o.op == "len" and o.operands),
                 None)
    if isinstance(asked, (Bag, Table)):
        return Condition("unknown", ("length", id(asked), value.detail))
    at = number(other)
    if _is_index(one) and at is not None and value.detail in (">", ">="):
        return Condition("after", rest=_whole(at) + (value.detail == ">") if at < 2 else 1)
    plain = Condition("unknown", ("compared", "!=" if value.detail == "==" else value.detail, value.operands))
    return plain if value.detail not in ("==", "!=") else question


def _equal(one: Value, other: Value) -> Condition | None:
    if isinstance(one, Operation) and one.op == "%":
        return _remainder(one, number(other), other)
    if _is_index(one):
        at = number(other)
        return Condition("once", rest=_whole(at) if at < 2 else 1) if at is not None else Condition("last")
    return None


def _remainder(value: Operation, rest: float | None, other: Value | None = None) -> Condition:
    """`(i + 1) % k == 0`."""
    base, divisor = value.operands
    by = number(divisor)
    if rest is not None and by is not None and by > 0 and not 0 <= rest < by:
        return NEVER
    if other is not None and other == divisor and other != UNKNOWN:
        return NEVER
    if by == 1:
        return ALWAYS
    shift = _shift(base)
    last = isinstance(other, Operation) and other.op == "-" and other.operands[0] == divisor  # `== k - 1`
    if last or (rest is not None and by is not None and by > 2 and rest == by - 1):
        shift, rest = shift + 1, 0.0  # the last turn of a window, however long it is
    length: Hashable = (int(by) if by is not None and math.isfinite(by) and by == int(by) else
                        divisor if divisor != UNKNOWN else id(value))
    at = _whole(rest or 0.0)
    own = any(isinstance(p, Symbol) and p.role == p.name == "index" for p in parts(base))
    return Condition("every", key=("window", length), shift=shift, rest=at if by is not None else min(at, 1),
                     of_loop=own)


def _whole(at: float) -> int:
    """A turn as a whole number; what is not finite, or beyond any run, is the farthest that is told apart."""
    return int(min(max(at, -1e9), 1e9)) if not math.isnan(at) else 0


def _shift(base: Value) -> int:
    if isinstance(base, Operation) and base.op in ("+", "-"):
        amount = next((n for o in base.operands if (n := number(o)) is not None), None)
        return int(amount) * (1 if base.op == "+" else -1) if amount is not None and abs(amount) < 10 else 0
    return 0


def _is_index(value: Value) -> bool:
    """Whether a value is the index of a loop, give or take a constant."""
    if isinstance(value, Operation) and value.op in ("+", "-"):
        return any(_is_index(o) for o in value.operands) and all(_is_index(o) or isinstance(o, Const)
                                                                 for o in value.operands)
    return isinstance(value, Symbol) and value.role == "index"


def _finite(value: Tensor | Symbol) -> Condition | None:
    """Whether a test asks if gradients are finite."""
    tags = value.tags if isinstance(value, Tensor) else frozenset()
    if "finite gradients" in tags:
        return Condition("finite")
    return Condition("not", parts=(Condition("finite"),)) if "nonfinite gradients" in tags else None


def mentions_scale(value: Value | None) -> bool:
    """Whether a number was reckoned from a loss scale."""
    return value is not None and any(isinstance(p, Symbol) and p.role == "loss scale" for p in parts(value))

"""Schedules that are as long as the micro-batches of a run, and stepped once for each window of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.values import Const, Operation, Value, number, parts, unwrap


def window(place: Place, stepping: Block, steps: Sequence[Place]) -> float | None:
    """k, where a scheduler is stepped with its optimizer in `if (i + 1) % k == 0:` in the loop over batches."""
    if stepping not in place.path:
        return None
    inner = place.path[place.path.index(stepping) + 1 :]
    branches = [b for b in inner if b.kind == "branch"]
    if len(branches) != 1 or any(b.kind == "loop" for b in inner):
        return None
    node, test = branches[0].node, branches[0].subject
    if not isinstance(node, ast.If) or test is None or not any(branches[0] in p.path for p in steps):
        return None
    here = place.event.node
    if not any(n is here for statement in node.body for n in (statement, *below(statement))):
        return None
    rests = [p for p in parts(test) if isinstance(p, Operation) and p.op == "%"]
    equal = [n for n in ast.walk(node.test) if isinstance(n, ast.Eq)]
    every = number(rests[0].operands[1]) if len(rests) == 1 and equal else None
    return every if every is not None and every >= 2 else None


def every_batch(total: Value, outer: Sequence[Block], batches: Block) -> bool:
    """Whether a length is the number of all rounds: those of the loops around, times the batches of the inner one."""
    counts = [b.count for b in outer]
    if not counts or any(c is None for c in counts):
        return False
    wanted = [c for c in counts if c is not None and number(c) != 1]
    subject = unwrap(batches.subject) if batches.subject is not None else None
    inner = 0
    for factor in _factors(total):
        if factor in wanted:
            wanted.remove(factor)
        elif _is_length(factor, subject) or (batches.count is not None and factor == batches.count):
            inner += 1
        elif not (isinstance(factor, Const) and factor.value == 1):
            return False
    return not wanted and inner == 1


def _factors(value: Value) -> list[Value]:
    if isinstance(value, Operation) and value.op == "*":
        return [f for operand in value.operands for f in _factors(operand)]
    return [value]


def _is_length(value: Value, subject: Value | None) -> bool:
    return (isinstance(value, Operation) and value.op.startswith("len") and subject is not None
            and unwrap(value.operands[0]) is subject)  # fmt: skip

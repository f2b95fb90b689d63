"""What blocks of the trace are: when an arm runs, windows, counts, frameworks, forward passes, contexts."""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from dataclasses import replace

from traindx_tools.on_code import lengths
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Instance,
    Operation,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    truth,
    unwrap,
    whole,
)
from traindx_tools.program.conditions import ALWAYS, NEVER, Condition
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.timeline import Moment

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


def wrap(items: list[Act | Section]) -> None:
    """A context manager that is a generator: what stands behind its `yield` runs behind the body of the `with`."""
    for at in range(len(items) - 1, 0, -1):
        manager, body = items[at - 1], items[at]
        if not isinstance(manager, Section) or not isinstance(body, Section) or body.kind != "with":
            continue
        cut = _at_yield(manager.items)
        if manager.kind == "call" and cut is not None:
            before, after = (Section("call", manager.at, part, origin=manager.origin, has=manager.has) for part in cut)
            items[at - 1: at + 1] = [before, body, after]


def _at_yield(items: list[Act | Section]) -> tuple[list[Act | Section], list[Act | Section]] | None:
    """What stands before and behind a `yield`, which may stand in a `with` of its own."""
    cut: tuple[list[Act | Section], list[Act | Section]] | None
    for at, item in enumerate(items):
        if isinstance(item, Act):
            cut = ([], []) if item.moment is Moment.YIELD else None
        else:
            cut = _at_yield(item.items) if item.kind == "with" else None
        if cut is not None:
            return [*items[:at], *cut[0]], [*cut[1], *items[at + 1:]]
    return None


def gate(block: Block) -> Condition | None:
    """The window of `with accelerator.accumulate(model)`, where it is longer than one."""
    subject = block.subject
    if block.kind != "with" or not isinstance(subject, Symbol) or not subject.name.startswith("accumulate@"):
        return None
    steps = subject.parent.kwargs.get("gradient_accumulation_steps") if isinstance(subject.parent, Thing) else None
    if steps is None or number(steps) == 1:
        return None
    return Condition("every", key=("window", whole(number(steps)) or steps), shift=1)


def is_forward(block: Block) -> bool:
    """Whether a block is the forward pass of a module of the project."""
    info = block.function
    return block.kind == "call" and info is not None and info.owner is not None and info.name in (
        "forward", "__call__") and info.owner.is_module  # fmt: skip


def may_suspend(event: Event) -> bool:
    """Whether a decorator that is not known, or a framework without such a state, decides if autograd records here."""
    if event.function is not None and event.function.unknown_decorator:
        return True
    owner = unwrap(event.receiver) if event.receiver is not None else None
    if isinstance(owner, Thing):
        return owner.type.startswith("flax.")
    if isinstance(owner, Instance):
        return any(b.startswith("flax.") for b in owner.klass.info.foreign_bases)
    return "flax" in event.file.text and "torch" not in event.file.text


def turns(block: Block) -> int | None:
    """How often a loop runs where nobody changes the defaults of options."""
    return whole(lengths.turns(block.subject, block.count))


def count(block: Block) -> int | None:
    """How often a loop runs, where the text fixes it: once, where it is left at the end of its first turn."""
    if isinstance(block.node, (ast.For, ast.While)) and any(isinstance(s, (ast.Break, ast.Return))
                                                            for s in block.node.body):  # fmt: skip
        return 1
    subject = block.subject
    if isinstance(subject, Thing) and subject.type == "enumerate" and subject.args:
        subject = subject.args[0]
    times = block.count if block.count is not None else subject.size if isinstance(subject, Bag) else None
    return whole(number(times)) if isinstance(times, Const) and times.fixed else None


def framework(block: Block) -> str:
    """What calls a block: "lightning", "trainer", "" for the program itself."""
    if block.framework == "training_step":
        owner = block.function.owner if block.function is not None else None
        return "lightning" if owner is not None and owner.derives("LightningModule") else "trainer"
    return "trainer" if block.framework else ""


def is_unused(event: Event) -> bool:
    """Whether nobody takes the result of a call: it is a statement, or bound to `_`."""
    above = syntax(event.file).parent(event.node)
    return isinstance(above, ast.Expr) or (isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name)
                                           and above.targets[0].id == "_")


def is_repeated(event: Event, loop: Block | None) -> bool:
    """Whether the innermost loop only counts: what the module is given does not change in it."""
    if loop is None or not isinstance(loop.subject, Thing) or loop.subject.type != "range":
        return False
    first, last = loop.line, getattr(loop.node, "end_lineno", None) or loop.line
    given = (*event.args, *event.kwargs.values())
    made = [a.site for a in given if isinstance(a, Tensor)]
    inside = any(s is not None and s.path == loop.file.path and first <= s.line <= last for s in made)
    varies = any(isinstance(p, Symbol) and p.role in ("index", "item", "call") for a in given for p in parts(a)
                 if not isinstance(a, Tensor))
    return bool(given) and not inside and not varies

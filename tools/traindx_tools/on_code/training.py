"""The parts of a training loop: which optimizer steps, what it holds, what was sent backward."""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code import names
from traindx_tools.on_code.project import TrainingLoop
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import (
    UNKNOWN,
    Instance,
    Operation,
    Site,
    Symbol,
    Tensor,
    Thing,
    Value,
    unwrap,
)

_CLEARS = re.compile(r"(zero|clear|reset)_?grad", re.IGNORECASE)
_SCHEDULER_BASES = ("LRScheduler", "_LRScheduler", "LambdaLR")


def is_optimizer(value: Value | None) -> bool:
    """Whether a value is certainly an optimizer."""
    if isinstance(value, Thing):
        return names.is_optimizer(value.type)
    return isinstance(value, Instance) and value.klass.info.derives("Optimizer", "Adam", "AdamW", "SGD")


def is_scheduler(value: Value | None) -> bool:
    """Whether a value is certainly a learning-rate scheduler."""
    if isinstance(value, Thing):
        return names.is_scheduler(value.type)
    return isinstance(value, Instance) and value.klass.info.derives(*_SCHEDULER_BASES)


def is_scaler(value: Value | None) -> bool:
    """Whether a value is a gradient scaler."""
    return isinstance(value, Thing) and value.short in ("GradScaler", "ShardedGradScaler")


def stepped(event: Event) -> Value | None:
    """The optimizer that a call of `step` moves: the receiver, or the argument of a gradient scaler."""
    if event.method != "step" or event.kind != "call":
        return None
    if is_optimizer(event.receiver):
        return event.receiver
    first = event.args[0] if event.args else None
    if (is_scaler(event.receiver) or isinstance(event.receiver, Symbol)) and is_optimizer(first):
        return first
    return None


def clears(event: Event, optimizer: Value) -> bool:
    """Whether an event may clear the gradients that this optimizer uses."""
    if event.kind == "store" and event.name == "attribute.grad":
        return True
    if event.kind == "call" and _CLEARS.search(event.method) and event.method != "zero_grad":
        return True
    if event.kind != "call" or event.method not in ("zero_grad", "zero_", "fill_"):
        return False
    if event.method != "zero_grad":
        return (isinstance(event.receiver, Tensor) and "gradient" in event.receiver.tags) or (
            isinstance(event.receiver, Symbol) and event.receiver.name == "grad"
        )
    other = event.receiver
    return same(other, optimizer) or not is_optimizer(other)


def clearing(loop: TrainingLoop, optimizer: Value) -> list[Place]:
    """What may clear the gradients that this optimizer uses in a loop, in order (see `clears`)."""
    every, own = _clearing_of(loop)
    mine = own.get(identity(optimizer), [])
    return sorted((*every, *mine), key=lambda p: p.order) if every and mine else every or mine


def _clearing_of(loop: TrainingLoop) -> tuple[list[Place], dict[object, list[Place]]]:
    """What clears the gradients of any optimizer, and what only those of one; found once for each loop."""
    known: tuple[list[Place], dict[object, list[Place]]] | None = loop.__dict__.get("_clearing")
    if known is None:
        every: list[Place] = []
        own: dict[object, list[Place]] = {}
        for place in loop.places:
            other = place.event.receiver
            if place.event.kind == "call" and place.event.method == "zero_grad" and is_optimizer(other):
                own.setdefault(identity(other), []).append(place)
            elif clears(place.event, UNKNOWN):
                every.append(place)
        known = loop.__dict__["_clearing"] = every, own
    return known


def identity(value: Value | None) -> object:
    """What two values have in common that are the same object (see `same`)."""
    inner = unwrap(value) if value is not None else None
    return inner if isinstance(inner, Symbol) and inner != UNKNOWN else id(inner)


def steps_inside(loop: TrainingLoop, block: Block) -> list[Place]:
    """The steps of known optimizers that a block inside a loop holds, in order; found once."""
    known: dict[int, list[Place]] = loop.__dict__.setdefault("_steps_inside", {})
    found = known.get(id(block))
    if found is None:
        found = known[id(block)] = [p for p in loop.inside(block, "step") if stepped(p.event) is not None]
    return found


def steps_of(loop: TrainingLoop, block: Block, optimizer: Value) -> list[Place]:
    """The steps of one optimizer that a block inside a loop holds, in order; found once for all optimizers."""
    known: dict[int, dict[object, list[Place]]] = loop.__dict__.setdefault("_steps_of", {})
    if id(block) not in known:
        found: dict[object, list[Place]] = {}
        for place in steps_inside(loop, block):
            found.setdefault(identity(stepped(place.event)), []).append(place)
        known[id(block)] = found
    return known[id(block)].get(identity(optimizer), [])


def sent_backward(event: Event) -> Value | None:
    """The loss of a call of backward, however it is written."""
    receiver = event.receiver
    first = event.args[0] if event.args else event.kwargs.get("loss")
    if isinstance(receiver, Tensor):
        return receiver
    if isinstance(receiver, (Symbol, Operation)) and first is None:
        return receiver
    return first


def same(left: Value | None, right: Value | None) -> bool:
    """Whether two values are the same object, wrappers aside."""
    if left is None or right is None:
        return False
    a, b = unwrap(left), unwrap(right)
    return a is b or (isinstance(a, Symbol) and a != UNKNOWN and a == b)


def innermost(place: Place, loop: TrainingLoop) -> Block:
    """The innermost loop around an event that also holds a call of backward."""
    for block in reversed(place.path):
        if block.kind == "loop" and {"backward", "manual_backward"} & block.methods:
            return block
    return loop.block


def sites_of(value: Value | None) -> frozenset[Site]:
    """The sites that a value's graph comes from."""
    if not isinstance(value, Tensor):
        return frozenset()
    return value.parents | (frozenset({value.site}) if value.site else frozenset())


def text_of(event: Event, part: str = "receiver") -> str:
    """The receiver or the callee of a call as it is written."""
    node = event.node
    if isinstance(node, ast.Call):
        target = node.func.value if part == "receiver" and isinstance(node.func, ast.Attribute) else node.func
        return event.file.segment(target)
    return "?"

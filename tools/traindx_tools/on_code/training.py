"""The parts of a training loop: which optimizer steps, what it holds, what was sent backward."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code import names
from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.project import TrainingLoop
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Instance,
    Operation,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    unwrap,
)

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


def inside(value: Value, left: int = 4) -> Iterator[Value]:
    """A value and what it holds; of an object of the project nothing, for its methods are followed."""
    yield value
    inner = value.items if isinstance(value, Bag) else [*value.items.values()] if isinstance(value, Table) else (
        [*value.args, *value.kwargs.values()] if isinstance(value, Thing) and is_scheduler(value) else [])
    for one in inner if left else ():
        yield from inside(one, left - 1)


@kept
def steps_inside(loop: TrainingLoop, block: Block) -> list[Place]:
    """The steps of known optimizers that a block inside a loop holds, in order; found once."""
    return [p for p in loop.inside(block, "step") if stepped(p.event) is not None]


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

"""What a turn of a loop makes anew of what it was handed, and what is the same in each turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import Bag, Const, Instance, Operation, Symbol, Table, Tensor, Thing, Value

PUTS = frozenset({"replace", "_replace", "apply_gradients", "_update"})
"""Methods that give the like of their object with what they are told."""


def changed(before: Value, after: Value | None, block: Block | None = None, left: int = 4,
            unsure: set[int] | None = None) -> Iterator[Value]:
    """The parts of what is handed from turn to turn that are other values behind it. `block`: where they are made;
    `unsure`: gets the identities of parts of what is another value as a whole, of which no more is known."""
    same = isinstance(before, (Symbol, Const, Tensor)) and before == after
    if before is after or same or left < 0:
        return
    made = _made(block, after) if isinstance(before, (Symbol, Instance, Thing)) and block is not None else None
    if made is not None and (made.receiver is before or made.receiver == before):
        held = before.attrs if isinstance(before, Instance) else before.kwargs if isinstance(before, Thing) else {}
        yield from (before.child("attribute", name) if isinstance(before, Symbol) else held.get(name, before)
                    for name in made.kwargs)
        return
    pairs = list(_beside(before, after))
    yield from (p for one, other in pairs for p in changed(one, other, block, left - 1, unsure))
    if not pairs:
        yield before
        inside = [p for one in _inside(before) for p in changed(one, None, None, left - 1)]
        if unsure is not None:
            unsure.update(map(id, inside))
        yield from inside


def _made(block: Block, value: Value | None) -> Event | None:
    """The call that puts something new into an object, where it gave this value."""
    stack: list[Event | Block] = [block]
    while stack:
        one = stack.pop()
        if isinstance(one, Block):
            stack += one.body
        elif one.result is value and one.kind == "call" and one.method in PUTS:
            return one
    return None


def _inside(value: Value) -> list[Value]:
    if isinstance(value, Thing):
        return [*value.args, *value.kwargs.values()]
    return list(_named(value).values())


def _beside(before: Value, after: Value | None) -> Iterator[tuple[Value, Value]]:
    """What a value holds, with what stands in its place in another one of its kind."""
    mine, held = _named(before), {} if isinstance(after, Bag) and after.open else _named(after)
    of_object = isinstance(after, Instance)
    for name, value in held.items() if isinstance(before, Symbol) or type(before) is type(after) else ():
        if isinstance(before, Symbol):
            yield before.child("attribute" if of_object else "item", str(name) if of_object else repr(name)), value
        elif name in mine:
            yield mine[name], value


def _named(value: Value | None) -> dict[Any, Value]:
    """What a value holds, by its number, key or name."""
    if isinstance(value, Bag):
        return dict(enumerate(value.items))
    return dict(value.items if isinstance(value, Table) else value.attrs if isinstance(value, Instance) else {})


def is_same(value: Value, loop: Block, left: int = 8) -> bool:
    """Whether a value is the same in each turn of a loop: it comes from outside, or is computed of what does."""
    if isinstance(value, Const):
        return True
    anew = id(value) in loop.overwritten or any(
        value is r or (isinstance(value, Symbol) and value == r) for r in loop.renewed)
    if left < 0 or anew:
        return False
    if isinstance(value, Operation):
        return all(is_same(o, loop, left - 1) for o in value.operands)
    if isinstance(value, Thing):
        return loop not in value.born_in or (bool(value.args) and all(is_same(a, loop, left - 1) for a in value.args))
    if isinstance(value, Bag):
        return not value.open and all(is_same(i, loop, left - 1) for i in value.items)
    if not isinstance(value, Symbol) or value.role not in ("index", "parameter", "attribute", "item", "global"):
        return False
    if value.role == "index":
        return value.parent is not None and value.parent is not loop.subject
    return value.parent is None or is_same(value.parent, loop, left - 1)

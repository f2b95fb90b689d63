"""Calls that every process of a group has to make, and which processes come to them."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.containers import depends_on_rank
from traindx_tools.on_code.filling.spots import spot_of, spot_of_block
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.values import Bag, Operation, Symbol, Tensor, Thing, Value, number, parts
from traindx_tools.program.driving import Collective

_ROWS = table("calls.toml")["collectives"]
_TORCH, _ACCELERATE = frozenset(_ROWS["torch"]), frozenset(_ROWS["accelerate"])
_WRAPPERS, _FLAGS = frozenset(_ROWS["wrappers"]), frozenset(_ROWS["main_process"])


def collectives(project: Project) -> Iterator[Collective]:
    """Every one of all processes."""
    for root in project.roots:
        for place in walk(root, _TORCH | _ACCELERATE | {"__call__"}):
            if not _is_collective(place):
                continue
            event = place.event
            arms = [b for b in place.branches if b.subject is not None and asks_rank(b.subject)]
            arms += [b for b in _left_before(place) if b.subject is not None and asks_rank(b.subject)]
            matched = any(_is_matched(place, arm) for arm in arms if arm in place.path)
            shares = [(b, s) for b in place.loops if (s := _share(b.subject))]
            loop, share = shares[0] if shares else (None, "")
            yield Collective(
                event.method, spot_of(event), spot_of_block(arms[0]) if arms and not matched else None,
                spot_of_block(loop) if loop is not None else None, share == "uneven share")


def _is_collective(place: Place) -> bool:
    event, model = place.event, place.event.receiver
    if isinstance(model, Thing) and event.method == "__call__" and model.short in _WRAPPERS:
        return event.grad is not False or model.short.startswith("Fully")
    if event.kind != "call" or "group" in event.kwargs or "process_group" in event.kwargs:
        return False
    if event.name.startswith("torch.distributed.") and event.name.count(".") == 2:
        return event.method in _TORCH
    return event.name.startswith("accelerate.Accelerator.") and event.method in _ACCELERATE


def asks_rank(test: Value) -> bool:
    """Whether a condition holds in some processes only; rank > -1 asks whether the run is distributed at all."""
    if isinstance(test, Operation) and test.op in ("not", "either"):
        some = [asks_rank(o) for o in test.operands]
        return any(some) if test.detail != "or" else all(some)
    if isinstance(test, Operation) and test.op == "compare":
        return depends_on_rank(test) and not any((number(o) or 0.0) < 0 for o in test.operands) and not any(
            isinstance(p, Symbol) and "world_size" in p.name for p in parts(test))
    return isinstance(test, Symbol) and test.name in _FLAGS


def _left_before(place: Place) -> list[Block]:
    """The arms before a place, in the blocks around it, that leave it out: `if rank != 0: return`."""
    found: list[Block] = []
    for at, block in enumerate(place.path):
        inner = place.path[at + 1] if at + 1 < len(place.path) else place.event
        before = block.body[: block.body.index(inner)]
        found += [b for b in before if isinstance(b, Block) and b.kind == "branch" and (
            b.left in ("return", "continue") or (b.left == "break" and block.kind == "loop"))
            and place.event.method not in b.methods]
    return found


def _is_matched(place: Place, arm: Block) -> bool:
    """Whether another arm of the same function makes the call: the others wait first, or make it where this one does
    not."""
    at = place.path.index(arm)
    scope = next((b for b in reversed(place.path[:at]) if b.kind in ("call", "root")), place.path[0])
    stack = [b for b in scope.body if isinstance(b, Block)]
    while stack:
        one = stack.pop()
        if one.kind == "branch" and one not in place.path:
            if place.event.method in one.methods:
                return True
        elif one.kind != "call":
            stack.extend(b for b in one.body if isinstance(b, Block))
    return False


def _share(value: Value | None) -> str:
    """Whether a loop runs over what one process has of the data, and whether the shares certainly differ in size."""
    if isinstance(value, Tensor):
        return next((t for t in ("uneven share", "share") if t in value.tags), "")
    return next((s for s in map(_share, value.items[:3]) if s), "") if isinstance(value, Bag) else ""

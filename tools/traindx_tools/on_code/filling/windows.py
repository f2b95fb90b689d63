"""Schedules of optax inside what collects gradients over several calls, with the counts of the loops around."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.values import Bag, Operation, Tensor, Thing, Value, number
from traindx_tools.program.constants import Window

_LENGTHS = {"decay_steps": 2, "transition_steps": 2, "steps": 1}
_OF = {"cosine_decay_schedule": 1, "warmup_cosine_decay_schedule": 3, "linear_schedule": 2, "polynomial_schedule": 3}
"""Where the length stands among the arguments."""


def windows(project: Project) -> Iterator[Window]:
    """Every such schedule of an optimizer whose updates run a known number of times."""
    collects = [e for e in project.calls("MultiSteps", "apply_every") if e.name.startswith("optax.")]
    if not collects:
        return
    schedules = {e.site: e for e in project.calls(*_OF) if e.name.startswith("optax.")}
    seen: set[int] = set()
    updates = [p for r in project.roots_with({"update"}) for p in r.places if p.event.method == "update"]
    for place in updates:
        rounds = _rounds(place)
        parts = list(_nested(place.event.receiver))
        made = next((e for e in collects if any(e.result is p or e.result == p for p in parts)), None)
        every = size(made.argument(*_every(made))) if made is not None else None
        if made is None or rounds is None or every is None or every <= 1:
            continue
        for event in {id(e): e for p in parts if isinstance(p, Tensor) and (e := schedules.get(p.site)) is not None  # type: ignore[arg-type]
                      }.values():  # fmt: skip
            length = _length(event)
            if length is not None and id(event) not in seen:
                seen.add(id(event))
                yield Window(event.method, spot_of(event), length, rounds, every, f"{made.method} at {made.site}",
                             made.method == "MultiSteps")


def _every(made: Event) -> tuple[int, str]:
    return (1, "every_k_schedule") if made.method == "MultiSteps" else (0, "k")


def _length(event: Event) -> float | None:
    names = [n for n in _LENGTHS if n in event.kwargs]
    return size(event.kwargs[names[0]] if names else event.argument(_OF[event.method], ""))


def _rounds(place: Place) -> float | None:
    total = 1.0
    for block in place.loops:
        count = size(block.count)
        if count is None:
            return None
        total *= count
    return total if place.loops else None


def _nested(value: Value | None, left: int = 6) -> Iterator[Value]:
    if value is None or left <= 0:
        return
    yield value
    if isinstance(value, Thing):
        for inner in (*value.args, *value.kwargs.values()):
            yield from _nested(inner, left - 1)


def size(value: Value | None, left: int = 8) -> float | None:
    """A count that arithmetic over known numbers and sizes of arrays gives."""
    found = number(value)
    if found is not None or not isinstance(value, Operation) or left <= 0:
        return found
    if value.op == "len":
        of = value.operands[0]
        if isinstance(of, Tensor) and of.shape is not None and of.shape.exact and of.shape.dims:
            return of.shape.dims[0]
        return float(len(of.items)) if isinstance(of, Bag) and not of.open else None
    inner = [size(o, left - 1) for o in value.operands]
    known = [i for i in inner if i is not None]
    if len(known) < len(inner):
        return None
    if len(known) == 1:
        return {"ceil": float(ceil(known[0])), "int": float(int(known[0]))}.get(value.op)
    a, b = known[:2]
    return {"*": a * b, "+": a + b, "-": a - b, "//": a // b if b else None, "/": a / b if b else None}.get(value.op)

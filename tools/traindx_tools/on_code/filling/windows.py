"""Schedules of optax inside what collects gradients over several calls, with the counts of the loops around."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from traindx_tools.on_code.filling.schedule_uses import FEW
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.values import Bag, Const, Operation, Tensor, Thing, Value, number
from traindx_tools.program.constants import ScheduleUse, Window

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
        parts = list(nested(place.event.receiver))
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


def in_epochs(project: Project) -> Iterator[ScheduleUse]:
    """Schedules of optax, which counts updates, whose length is the number of epochs, or of the batches of one."""
    schedules = {e.site: e for e in project.calls(*_OF) if e.name.startswith("optax.")}
    seen: set[int] = set()
    for root in project.roots_with({"update", "apply_gradients"}) if schedules else ():
        for place in root.places:
            event = place.event
            if event.method not in ("update", "apply_gradients") or len(place.loops) < 2:
                continue
            inner = number(place.loops[-1].count) if place.loops[-1].count is not None else None
            held = event.receiver.kwargs.get("tx") if isinstance(event.receiver, Thing) else None
            for part in nested(held or event.receiver):
                made = schedules.get(part.site) if isinstance(part, Tensor) and part.site is not None else None
                length = _given(made) if made is not None else None
                outer = [b.count for b in place.loops[:-1]]
                if made is None or length is None or id(made) in seen or (inner is not None and inner <= FEW):
                    continue
                counts = "passes" if any(_is_one(length, c) for c in outer) else (
                    "batches of a pass" if _is_one(length, place.loops[-1].count) and None not in outer else "")
                if counts:
                    seen.add(id(made))
                    yield ScheduleUse(made.method, spot_of(event), spot_of(made), "batch",
                                      tuple(number(c) for c in outer), "so many", counts, asked=True)


def _is_one(length: Value, count: Value | None) -> bool:
    """Whether two counts are one value, and not two numbers that happen to be equal."""
    return length is count or (not isinstance(length, Const) and length == count)


def _every(made: Event) -> tuple[int, str]:
    return (1, "every_k_schedule") if made.method == "MultiSteps" else (0, "k")


def _length(event: Event) -> float | None:
    return size(_given(event))


def _given(event: Event) -> Value | None:
    names = [n for n in _LENGTHS if n in event.kwargs]
    return event.kwargs[names[0]] if names else event.argument(_OF[event.method], "")


def _rounds(place: Place) -> float | None:
    total = 1.0
    for block in place.loops:
        count = size(block.count)
        if count is None:
            return None
        total *= count
    return total if place.loops else None


def nested(value: Value | None, left: int = 6) -> Iterator[Value]:
    if value is None or left <= 0:
        return
    yield value
    if isinstance(value, Thing):
        for inner in (*value.args, *value.kwargs.values()):
            yield from nested(inner, left - 1)


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

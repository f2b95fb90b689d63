"""What is fitted on all rows, or gives rows more than once, before the rows are split."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Operation, Symbol, Thing, Value, parts
from traindx_tools.program.loading import PreparedBefore

_WORDS = {kind: tuple(names) for kind, names in table("data.toml")["prepared"].items()}
_SPLITS = frozenset(_WORDS["splits"])


def prepared_before(project: Project) -> Iterator[PreparedBefore]:
    """Every one, once: what a split is given was made by it."""
    made = {e.result: e for e in project.calls(*_WORDS["gives"], *_WORDS["statistics"]) if isinstance(e.result, Symbol)}
    told: set[Event] = set()
    for cut in project.calls(*_SPLITS, "split"):
        folds = isinstance(cut.receiver, Thing) and cut.receiver.short in _WORDS["folds"]
        for value in (v for a in cut.args for v in _inside(a)) if cut.method in _SPLITS or folds else ():
            seen = list(parts(value))
            for event in [made[p] for p in seen if isinstance(p, Symbol) and p in made]:
                kind = _kind(project, event, seen)
                if kind and event not in told:
                    told.add(event)
                    yield PreparedBefore(kind, event.text, event.spot, cut.spot)


def _inside(value: Value, left: int = 3) -> Iterator[Value]:
    """A value and what a data set or a list that is split was made of."""
    yield value
    held = value.items if isinstance(value, Bag) else value.args if isinstance(value, Thing) else ()
    for inner in held if left else ():
        yield from _inside(inner, left - 1)


def _kind(project: Project, event: Event, seen: list[Value]) -> str:
    """What an event does to all rows; "" where it is fitted on a part, or is no such thing."""
    if event.method in _WORDS["statistics"]:
        return "statistics" if _scales(event, seen) else ""
    name = event.receiver.short if isinstance(event.receiver, Thing) else ""
    if event.method == "transform":
        fits = [e.args[0] for e in project.calls("fit") if e.receiver is event.receiver and e.args]
        if not fits or fits != list(event.args[:1]):
            return ""
    return next((kind for kind in ("scales", "labels", "copied", "fitted") if any(w in name for w in _WORDS[kind])),
                "").replace("scales", "statistics")


def _scales(event: Event, seen: list[Value]) -> bool:
    """Whether rows are moved or divided by a statistic of these same rows, over all of them."""
    axis = event.kwargs.get("axis") or event.kwargs.get("dim") or event.argument(0, "")
    scaled = [o.operands for o in seen if isinstance(o, Operation) and o.op in "-/" and len(o.operands) == 2]
    return axis == Const(0) and any(
        event.result in list(parts(right)) and event.receiver in list(parts(left)) for left, right in scaled)

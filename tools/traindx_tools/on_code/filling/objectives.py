"""What is minimised, and the signed quantities in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code import quantities
from traindx_tools.on_code.optimizer_parameters import held, parts_held
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import sent_backward, stepped
from traindx_tools.on_code.values import Instance, Site, Tensor, Thing, Value, truth
from traindx_tools.program.entities import Objective
from traindx_tools.program.moments import Spot

_FORMS = ("negated", "log_prob", "loss")


def objectives(project: Project) -> Iterator[Objective]:
    """Of every training loop, every other backward call and every training step that a framework calls."""
    meant = re.compile("|".join(table("quantities.toml")["words"]["on_purpose"]), re.IGNORECASE)
    resolved = partial(_resolved, project, cache(partial(_trained, project)))
    in_loops: set[int] = set()
    for loop in project.training_loops:
        in_loops |= {id(p.event) for p in loop.backwards}
        steppers = {id(o): o for p in loop.of("step") if (o := stepped(p.event)) is not None}
        several = len({id(p.event) for p in loop.backwards}) > 1
        made = _calls_by_site(loop)
        for event in {id(p.event): p.event for p in loop.backwards}.values():
            value = sent_backward(event)
            if isinstance(value, Tensor) and value.grad is not False:
                (found, places), form = resolved(value), next((f for f in _FORMS if f in value.tags), "")
                yield Objective(event.spot, _made(value, event, project), found, places, form, not several,
                    len(steppers), next((m for o in steppers.values() if (m := _maximised(o))), ""),
                    _is_against_data(made.get(value.site, []), value), event.file.mentions(meant), event)
    for event in project.calls("backward", "manual_backward"):
        value = sent_backward(event)
        if id(event) not in in_loops and isinstance(value, Tensor) and quantities.of(value):
            found, places = resolved(value)
            yield Objective(event.spot, _made(value, event, project), found, places, optimizers=0, origin=event)
    for root in project.roots:
        value = root.result
        if root.framework == "training_step" and isinstance(value, Tensor) and quantities.of(value):
            found, places = resolved(value)
            at = project.spot(value.site or Site(root.file.path, root.line))
            yield Objective(at, at, found, places, optimizers=0)


def _made(value: Tensor, event: Event, project: Project) -> Spot:
    return project.spot(value.site) if value.site is not None else event.spot


def _maximised(optimizer: Value) -> str:
    if not isinstance(optimizer, Thing) or "maximize" not in optimizer.kwargs:
        return ""
    said = truth(optimizer.kwargs["maximize"])
    return f"{optimizer.short} at {optimizer.site}" if said and held(optimizer) else "" if said is False else "?"


def _calls_by_site(loop: TrainingLoop) -> dict[Site | None, list[Event]]:
    """The calls within a loop that give tensors, by where these were made."""
    found: dict[Site | None, list[Event]] = {}
    for event in (p.event for p in loop.places if p.event.kind == "call" and p.event.method != "requires_grad_"):
        if isinstance(event.result, Tensor):
            found.setdefault(event.result.site, []).append(event)
    return found


def _is_against_data(made: Iterable[Event], loss: Tensor) -> bool:
    targets = [e.argument(1, "target") for e in made if e.result == loss]
    return any(t is not None and not (isinstance(t, Tensor) and (t.models or t.grad is True)) for t in targets)


def _trained(project: Project) -> frozenset[int]:
    """The modules that some optimizer holds, by identity."""
    made = {id(e.result): e.result for e in project.events if isinstance(e.result, (Thing, Instance))
            and e.kind == "call" and held(e.result)}  # fmt: skip
    return frozenset(i for o in made.values() for i in parts_held(o))


def _resolved(project: Project, trained: Callable[[], frozenset[int]], value: Tensor
              ) -> tuple[dict[str, tuple[str, ...]], dict[str, Spot]]:  # fmt: skip
    """The quantities by name; differences of log-probabilities become divergences where one side is a reference."""
    found: dict[str, tuple[str, ...]] = {}
    places: dict[str, Spot] = {}
    for tag in sorted(quantities.of(value)):
        sign, (name, _, where) = tag[0], tag[1:].partition("@")
        event = _event_at(project, where, name) if where else None
        if event is not None:
            places[name] = event.spot
        if name == "apart" and event is not None:
            turn = _from_reference(event, trained())
            name = "divergence" if turn else name
            places[name] = event.spot
            sign = {"+": "-", "-": "+"}[sign] if turn < 0 else sign
        found[name] = (*found.get(name, ()), sign)
    return found, places


def _event_at(project: Project, where: str, quantity: str) -> Event | None:
    """The difference, or the call that takes a gradient, at a place."""
    path, _, line = where.rpartition(":")
    name = "torch.autograd.grad" if quantity == "slope" else "-"
    return next((e for e in project.events if e.name == name and e.line == int(line) and e.file.path == path), None)


def _from_reference(event: Event, trained: frozenset[int]) -> int:
    """1 where the tag's own direction is that of the divergence, -1 where it is the other one, 0 where none is."""
    left, right = (v.models if isinstance(v, Tensor) else frozenset() for v in event.args[:2])
    if not left or not right or left == right:
        return 0
    moved = bool(left & trained), bool(right & trained)
    if moved[0] == moved[1]:
        return 0
    fixed = [isinstance(v, Tensor) and v.grad is False for v in event.args[:2]]
    tagged_right = fixed[0] and not fixed[1]
    return -1 if moved[1] != tagged_right else 1

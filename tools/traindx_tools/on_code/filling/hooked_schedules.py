"""Schedules that a framework is handed: what their length counts, how often they are stepped."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.filling.schedule_uses import LENGTHS
from traindx_tools.on_code.filling.spots import spot_at
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Bag, Const, Method, Operation, Symbol, Table, Thing, Value, parts
from traindx_tools.program.constants import HookedSchedule

_LENGTHS = {**LENGTHS, "get_constant_schedule_with_warmup": (1, "num_warmup_steps")}
_STEPS = frozenset({"estimated_stepping_batches", "num_training_batches"})
_EPOCHS = frozenset({"max_epochs", "num_epochs", "epochs", "n_epochs"})


def hooked_schedules(project: Project) -> Iterator[HookedSchedule]:
    """Every one of which the unit of the length is known."""
    for event in project.calls("Trainer", "Seq2SeqTrainer"):
        pair, given = event.kwargs.get("optimizers"), event.kwargs.get("args")
        if event.name.startswith("transformers.") and isinstance(pair, Bag) and len(pair.items) == 2 and (
                isinstance(given, Thing) and isinstance(schedule := pair.items[1], Thing)):  # fmt: skip
            unit = _unit(schedule, [e for n, e in given.kwargs.items() if n == "num_train_epochs"])
            if unit == "epochs" and "max_steps" not in given.kwargs:
                yield HookedSchedule(schedule.short, spot_at(schedule.site, project), unit, True, False)
    for root in project.roots:
        owner = root.function.owner if root.function is not None else None
        if root.framework != "configure_optimizers" or owner is None or owner.method("lr_scheduler_step") or any(
                word in root.file.text for word in ("lr_schedulers(", "automatic_optimization")):
            continue
        for schedule, interval in _returned(root):
            counts = [v for i in project.instances if i.klass.info is owner for n, v in i.attrs.items() if n in _EPOCHS]
            unit = _unit(schedule, counts)
            if unit and (interval is None or isinstance(interval, Const)):
                by_step = isinstance(interval, Const) and interval.value == "step"
                at = spot_at(schedule.site, project)
                yield HookedSchedule(schedule.short, at, unit, by_step, interval is not None)


def _returned(root: Block) -> Iterator[tuple[Thing, Value | None]]:
    value = root.result
    given = value.items.get("lr_scheduler") if isinstance(value, Table) else None
    if isinstance(value, Bag) and len(value.items) == 2 and isinstance(value.items[1], Bag):
        listed = value.items[1].items
    else:
        listed = [given] if given is not None else []
    for one in listed:
        inside = one.items.get("scheduler") if isinstance(one, Table) else one
        if isinstance(inside, Thing) and not (isinstance(one, Table) and one.open):
            yield inside, one.items.get("interval") if isinstance(one, Table) else None


def _unit(schedule: Thing, epochs: list[Value]) -> str:
    """"steps" or "epochs", by the framework's own counts in the length; "" where it says neither."""
    length = schedule.argument(*_LENGTHS.get(schedule.short, (99, "")))
    if schedule.short == "OneCycleLR" and length is None:
        return "steps" if schedule.argument(4, "steps_per_epoch") is not None else ""
    if length is None:
        return ""
    seen = list(parts(length))
    names = {p.name for p in seen if isinstance(p, (Method, Symbol))}
    if names & _STEPS or any(isinstance(p, Operation) and p.op.startswith("len") for p in seen):
        return "steps"
    product = any(isinstance(p, Operation) and p.op == "*" for p in seen)
    return "epochs" if (names & _EPOCHS or length in epochs) and not product else ""

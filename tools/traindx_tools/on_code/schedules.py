"""How learning-rate schedules are built and stepped, and where the two disagree."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Location, Severity
from traindx_tools.finding import Value as Plain
from traindx_tools.on_code import names
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.training import innermost, is_optimizer, is_scheduler, same, steps_inside
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Operation,
    Symbol,
    Thing,
    Value,
    number,
    parts,
    truth,
    unwrap,
)


@dataclass(frozen=True)
class Fault:
    """A schedule that does not fit its loop."""

    kind: str
    statement: str
    where: Location
    severity: Severity = Severity.HIGH
    direct: bool = True
    measured: Mapping[str, Plain] = field(default_factory=dict)
    bearing: Bearing = Bearing.CAUSE


_LENGTHS: dict[str, tuple[int, str]] = {
    "CosineAnnealingLR": (1, "T_max"),
    "LinearLR": (3, "total_iters"),
    "PolynomialLR": (1, "total_iters"),
    "OneCycleLR": (2, "total_steps"),
    "get_linear_schedule_with_warmup": (2, "num_training_steps"),
    "get_cosine_schedule_with_warmup": (2, "num_training_steps"),
    "get_scheduler": (3, "num_training_steps"),
    "get_polynomial_decay_schedule_with_warmup": (2, "num_training_steps"),
    "get_cosine_with_hard_restarts_schedule_with_warmup": (2, "num_training_steps"),
}
"""Where each scheduler is told its length: position (after the optimizer, 0) and name."""


def faults(project: Project) -> Iterator[Fault]:
    """Every disagreement that is seen."""
    for loop in project.training_loops:
        for place in loop.of("step"):
            scheduler = place.event.receiver
            if isinstance(scheduler, Thing) and is_scheduler(scheduler):
                yield from _length(loop, place, scheduler)
                yield from _one_epoch_long(project, loop, place, scheduler)
                yield from _before_optimizer(loop, place)
                yield from _prepared(project, place, scheduler)
        yield from _turns_again(loop)
    for root in project.roots:
        yield from _resumed(root)


def length_of(scheduler: Thing) -> Value | None:
    """The number of steps that a scheduler was built for."""
    found = _LENGTHS.get(scheduler.short)
    return scheduler.argument(found[0], found[1]) if found else None


def counts_batches(value: Value) -> bool | None:
    """True if a length contains the length of a loader or data set, False if it is a plain number or name."""
    seen = list(parts(value))
    if any(isinstance(p, Operation) and p.op.startswith("len") for p in seen):
        return True
    if isinstance(value, Const):
        return False
    return None


def _lengths_in(value: Value | None) -> list[Value]:
    """What the lengths in a value are lengths of."""
    seen = list(parts(value)) if value is not None else []
    return [p.operands[0] for p in seen if isinstance(p, Operation) and p.op.startswith("len")]


def _one_epoch_long(project: Project, loop: TrainingLoop, place: Place, scheduler: Thing) -> Iterator[Fault]:
    """A decay whose length is the batches of one epoch, stepped once a batch in several epochs."""
    stepping = innermost_stepping(loop, place)
    total = length_of(scheduler)
    if total is None or stepping is None or stepping not in place.path or scheduler.short not in _DECAYS:
        return
    outer = [b for b in place.path[:place.path.index(stepping)] if b.kind == "loop"]
    subject = unwrap(stepping.subject) if stepping.subject is not None else None
    counts = [number(b.count) if b.count is not None else None for b in outer]
    if not outer or outer[-1].count is None or any(c == 1 for c in counts) or outer[-1] in scheduler.born_in:
        return
    if not _one_pass(total) or not any(unwrap(v) is subject for v in _lengths_in(total)):
        return
    epochs = f"{counts[-1]:g} epochs" if counts[-1] is not None else "epochs"
    yield Fault(
        "length of one epoch",
        f"{scheduler.short} built at {scheduler.site} is as long as one pass over the loader, and it is stepped in "
        f"every pass of the loop over {epochs} at {outer[-1].file.path}:{outer[-1].line} ({_place_name(place)}): after "
        "the first epoch the rate is at its end" + (" and rises again" if "osine" in scheduler.short else ""),
        Location(file=scheduler.site.path, line=scheduler.site.line, quote=_quote(project, scheduler)),
        direct=scheduler.short != "CosineAnnealingLR",
        measured={"scheduler": scheduler.short, "epochs": counts[-1]},
    )


_DECAYS = frozenset({"get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup", "get_scheduler",
                     "PolynomialLR", "get_polynomial_decay_schedule_with_warmup", "CosineAnnealingLR"})  # fmt: skip
"""Schedules that end: LinearLR is usually a warm-up. CosineAnnealingLR of one epoch may be a cycle on purpose."""
_SHRINKS = frozenset({"//", "/", "round", "extreme", "+", "-"})


def _one_pass(value: Value) -> bool:
    """Whether a length is that of a loader, or a part of it: rounded, divided, with a number added."""
    if not isinstance(value, Operation):
        return False
    if value.op.startswith("len"):
        return True
    grown = [o for o in value.operands if not isinstance(o, Const)]
    if value.op in ("//", "/"):
        return _one_pass(value.operands[0]) and number(value.operands[1]) != 0
    return value.op in _SHRINKS and len(grown) == 1 and _one_pass(grown[0])


def _turns_again(loop: TrainingLoop) -> Iterator[Fault]:
    """A cosine of step / length in a loop of more steps than that length, with nothing that holds the ratio below 1."""
    for place in loop.of("cos"):
        event = place.event
        angle = event.args[0] if event.args else None
        ratio = _ratio(angle)
        training = [b for b in place.path if b.kind == "loop" and {"backward", "manual_backward"} & b.methods]
        steps = number(training[0].count) if len(training) == 1 and training[0].count is not None else None
        if ratio is None or steps is None:
            continue
        if ratio < steps * 0.95 and not _guarded(place):
            yield Fault(
                "turns again",
                f"{event.file.segment(event.node)} at {_place_name(place)} reaches pi after {ratio:g} steps, and the "
                f"loop at line {loop.block.line} has {steps:g}: nothing holds the ratio at 1, so the rate rises again",
                location(event),
                measured={"length": ratio, "steps": steps},
            )


def _ratio(angle: Value | None) -> float | None:
    """The number of steps after which pi * step / length is pi; None where the form or the length is not known."""
    if not isinstance(angle, Operation):
        return None
    seen = list(parts(angle))
    if any(isinstance(p, Operation) and p.op not in ("*", "/", "-") for p in seen):
        return None
    if not any(isinstance(p, Symbol) and p.role == "index" for p in seen):
        return None
    pi = any(isinstance(p, Const) and isinstance(p.value, float) and abs(p.value - math.pi) < 1e-6 for p in seen)
    divisions = [p for p in seen if isinstance(p, Operation) and p.op == "/"]
    return number(divisions[0].operands[1]) if pi and len(divisions) == 1 else None


def _guarded(place: Place) -> bool:
    """Whether the function compares anything before it returns: a clamp, or a branch for late steps."""
    function = place.event.function
    if function is None:
        return bool(place.branches)
    return any(isinstance(n, (ast.Compare, ast.IfExp, ast.If)) for n in below(function.node))


def _place_name(place: Place) -> str:
    return f"{place.event.file.path}:{place.event.line}"


def _length(loop: TrainingLoop, place: Place, scheduler: Thing) -> Iterator[Fault]:
    loops = [b for b in place.path if b.kind == "loop"]
    stepping = innermost_stepping(loop, place)
    if stepping is None or not loops:
        return
    total = length_of(scheduler)
    if loops[-1] is stepping and not _in_condition(place, stepping):
        yield from _decays_away(place, scheduler, loops)
        if len(loops) >= 2 and not _few_inner(stepping):
            yield from _per_batch(place, scheduler, loops[:-1], total)
    elif stepping not in loops and total is not None and counts_batches(total):
        yield Fault(
            "per epoch, length in batches",
            f"{scheduler.short} built at {scheduler.site} for {_written(total)} steps is stepped only once for each "
            f"pass of the loop at {loops[-1].file.path}:{loops[-1].line} ({_place_name(place)}): the rate hardly moves",
            location(place.event),
            measured={"length": _written(total), "scheduler": scheduler.short},
        )


def _per_batch(place: Place, scheduler: Thing, outer: list[Block], total: Value | None) -> Iterator[Fault]:
    """A scheduler that counts epochs, stepped in the loop over batches."""
    counts = [b.count for b in outer if b.count is not None]
    epochs = next((n for n in map(number, counts) if n is not None), None)
    built = f"{scheduler.short} built at {scheduler.site}"
    if total is not None and any(c == total for c in counts):
        yield Fault(
            "per batch, length in epochs",
            f"{built} for {_written(total)} steps, the number of epochs, is stepped after every batch at "
            f"{_place_name(place)}: it reaches its end within one epoch or repeats",
            location(place.event),
            measured={"length": _written(total), "scheduler": scheduler.short},
        )
    for what, last in _milestones(scheduler):
        if epochs is not None and 1 < last < epochs:
            yield Fault(
                "per batch, milestones in epochs",
                f"{built} with {what} is stepped after every batch at {_place_name(place)} in {epochs:g} epochs: "
                "it decays in the first epochs",
                location(place.event),
                measured={"milestone": last, "epochs": epochs},
            )


def _milestones(scheduler: Thing) -> Iterator[tuple[str, float]]:
    if scheduler.short == "StepLR" and (size := number(scheduler.argument(1, "step_size"))) is not None:
        yield f"step_size {size:g}", size
    stones = scheduler.argument(1, "milestones")
    if scheduler.short == "MultiStepLR" and isinstance(stones, Bag) and stones.items and not stones.open:
        known = [n for n in map(number, stones.items) if n is not None]
        if len(known) == len(stones.items):
            yield f"milestones {', '.join(f'{n:g}' for n in known)}", max(known)


def _decays_away(place: Place, scheduler: Thing, loops: list[Block]) -> Iterator[Fault]:
    """ExponentialLR by a factor meant for epochs: after the run, or after 1000 batches, nothing is left of the rate."""
    gamma = number(scheduler.argument(1, "gamma")) if scheduler.short == "ExponentialLR" else None
    if gamma is None or not 0 < gamma < 0.99:
        return
    counts = [number(b.count) if b.count is not None else None for b in loops]
    steps = 1.0
    for count in counts:
        steps *= count if count is not None else 1000.0
    if len(loops) < 2 and counts[0] is None:
        return
    if gamma**steps < 1e-5:
        yield Fault(
            "per batch, factor of an epoch",
            f"ExponentialLR with gamma {gamma:g} built at {scheduler.site} is stepped after every batch at "
            f"{_place_name(place)}: the rate falls to {gamma**1000:.1e} of itself in 1000 batches",
            location(place.event),
            direct=gamma <= 0.97,
            measured={"gamma": gamma},
        )


def innermost_stepping(loop: TrainingLoop, place: Place) -> Block | None:
    """The innermost loop in which the scheduler's optimizer is stepped."""
    first = next((p for p in steps_inside(loop, loop.block) if p is not place), None)
    return innermost(first, loop) if first is not None else None


def _few_inner(block: Block) -> bool:
    count = number(block.count) if block.count is not None else None
    return count is not None and count <= 8


def _in_condition(place: Place, stepping: Block) -> bool:
    return (
        any(b.kind == "branch" for b in place.path[place.path.index(stepping) :]) if stepping in place.path else False
    )


def _before_optimizer(loop: TrainingLoop, place: Place) -> Iterator[Fault]:
    stepping = innermost_stepping(loop, place)
    if stepping is None or stepping not in place.path:
        return
    inside = steps_inside(loop, stepping)
    if inside and place.order < inside[0].order and not _in_condition(place, stepping):
        event, other = place.event, inside[0].event
        yield Fault(
            "before the optimizer",
            f"The scheduler is stepped at {_place_name(place)} before the optimizer at line {other.line}: the first "
            "value of the schedule is skipped",
            location(event),
            severity=Severity.MEDIUM,
            measured={"optimizer_line": other.line},
        )


def _prepared(project: Project, place: Place, scheduler: Thing) -> Iterator[Fault]:
    accelerator = scheduler.state.get("prepared")
    total = length_of(scheduler)
    if not isinstance(accelerator, Thing) or total is None or accelerator.short != "Accelerator":
        return
    if truth(accelerator.kwargs.get("step_scheduler_with_optimizer")) is False or truth(
        accelerator.kwargs.get("split_batches")
    ):
        return
    seen = list(parts(total))
    multiplied = any(isinstance(p, Symbol) and p.name == "num_processes" for p in seen)
    own = any(isinstance(p, Operation) and p.op == "len prepared" for p in seen)
    if own and not multiplied:
        several = any(True for _ in project.calls("spawn", "notebook_launcher", "debug_launcher"))
        yield Fault(
            "prepared scheduler, length of one process",
            f"The {scheduler.short} built at {scheduler.site} for {_written(total)} steps was passed to "
            f"accelerator.prepare() at {scheduler.state.get('prepared_site')}, whose wrapper steps it "
            "num_processes times "
            "for each optimizer step; the length counts one process's batches and is not multiplied by num_processes, "
            "so the schedule ends after 1/num_processes of training",
            Location(file=scheduler.site.path, line=scheduler.site.line, quote=_quote(project, scheduler)),
            severity=Severity.HIGH if several else Severity.MEDIUM,
            direct=several,
            measured={"length": _written(total), "several_processes": several},
        )


def _quote(project: Project, thing: Thing) -> str | None:
    file = project.file(thing.site.path)
    return file.line(thing.site.line).strip()[:200] if file else None


def _resumed(root: Block) -> Iterator[Fault]:
    if "load_state_dict" not in root.methods:
        return
    places = list(walk(root))
    loads = [p for p in places if p.event.kind == "call" and p.event.method == "load_state_dict"]
    for load in loads:
        optimizer = load.event.receiver
        if not is_optimizer(optimizer):
            continue
        for place in places:
            made = place.event.result
            if place.order <= load.order or not isinstance(made, Thing) or place.event.name != made.type:
                continue
            if not names.is_scheduler(made.type) or not same(made.argument(0, "optimizer"), optimizer):
                continue
            last = made.kwargs.get("last_epoch")
            restored = any(p.event.receiver is made and p.order > place.order for p in loads)
            if restored or (last is not None and number(last) != -1):
                continue
            event = place.event
            yield Fault(
                "built after the optimizer's state was loaded",
                f"{made.short} is built at {_place_name(place)} after the optimizer's state was loaded at line "
                f"{load.event.line}: its constructor sets the learning rate back to the schedule's start, and its own "
                "state is not loaded",
                location(event),
                measured={"load_line": load.event.line, "scheduler": made.short},
            )
            break


def _written(value: Value) -> str:
    """A length as a person would write it."""
    if isinstance(value, Const):
        return f"{value.value}"
    if isinstance(value, Operation):
        if value.op.startswith("len"):
            return "len(loader)"
        if len(value.operands) == 2:
            return f"{_written(value.operands[0])} {value.op} {_written(value.operands[1])}"
        return _written(value.operands[0])
    if isinstance(value, Symbol):
        return value.name if value.role in ("parameter", "attribute", "global", "item") else "n"
    return "n"

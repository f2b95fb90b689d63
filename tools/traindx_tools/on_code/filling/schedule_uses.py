"""Where learning-rate schedules are stepped, and what their lengths count: in loops, in optax, by a framework."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.filling.blocks import condition_of
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.training import innermost, inside, is_optimizer, is_scheduler, same, stepped, steps_inside
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Method,
    Operation,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    truth,
    unwrap,
)
from traindx_tools.program.constants import HookedSchedule, ScheduleUse, Window
from traindx_tools.program.known import Known

LENGTHS: dict[str, tuple[int, str]] = {
    "CosineAnnealingLR": (1, "T_max"), "LinearLR": (3, "total_iters"), "PolynomialLR": (1, "total_iters"),
    "OneCycleLR": (2, "total_steps"), "get_scheduler": (3, "num_training_steps"),
    **dict.fromkeys(("get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup",
                     "get_polynomial_decay_schedule_with_warmup",
                     "get_cosine_with_hard_restarts_schedule_with_warmup"), (2, "num_training_steps"))}
"""Where each scheduler is told its length: position (after the optimizer, 0) and name."""
_RATES = frozenset(f"{kind}.{name}" for kind in ("item", "attribute") for name in table("settings.toml")["rates"])
FEW = 8
"""Turns of a loop up to which it may be one over parts of a step, and not over batches."""


def schedule_uses(project: Project) -> Iterator[ScheduleUse]:
    """Every place in a training loop at which a known scheduler is stepped."""
    for loop in project.training_loops:
        for place in loop.of("step"):
            scheduler = place.event.receiver
            first = next((p for p in steps_inside(loop, loop.block) if p is not place), None)
            if isinstance(scheduler, Thing) and is_scheduler(scheduler) and first is not None and place.loops:
                yield _use(project, loop, place, scheduler, innermost(first, loop))


def schedules_reset(project: Project) -> Iterator[ScheduleUse]:
    """Schedules that are built over an optimizer whose state was loaded before, and whose own state is not loaded."""
    for root in project.roots_with(("load_state_dict",)):
        places = project.places(root)
        loads = [p for p in places if p.event.kind == "call" and p.event.method == "load_state_dict"]
        for place in places:
            made = place.event.result
            if not isinstance(made, Thing) or place.event.name != made.type or not is_scheduler(made):
                continue
            before = [p for p in loads if p.order < place.order and is_optimizer(p.event.receiver)
                      and same(made.argument(0, "optimizer"), p.event.receiver)]
            restored = any(p.event.receiver is made and p.order > place.order for p in loads)
            if before and not restored and number(made.kwargs.get("last_epoch", Const(-1))) == -1:
                yield ScheduleUse(made.short, place.event.spot, place.event.spot, "", loaded=before[0].event.spot)


def _use(project: Project, loop: TrainingLoop, place: Place, scheduler: Thing, stepping: Block) -> ScheduleUse:
    around = place.loops
    inside = stepping in around
    always = not any(b.kind == "branch" for b in place.path[place.path.index(stepping):]) if inside else False
    outer = around[:around.index(stepping)] if inside else ()
    counts = [number(b.count) if b.count is not None else None for b in outer]
    total = scheduler.argument(*LENGTHS[scheduler.short]) if scheduler.short in LENGTHS else (
        scheduler.state.get("length"))
    steps = steps_inside(loop, stepping)[:1]
    by_hand = place.event.argument(0, "epoch") is not None  # `step(epoch + share)` says where it is and skips nothing
    first = steps if always and not by_hand else []
    few = number(stepping.count) if stepping.count is not None else None
    gamma = scheduler.argument(1, "gamma") if scheduler.short == "ExponentialLR" else None
    return ScheduleUse(
        scheduler.short, place.event.spot, project.spot(scheduler.site),
        "batch" if around[-1] is stepping and always else "pass" if inside else "epoch",
        tuple(counts), _written(total) if total is not None else "",
        _counts(total, outer, stepping, scheduler) if total is not None else "",
        _last_milestone(scheduler), number(gamma),
        prod(c if c is not None else _UNKNOWN for c in (*counts, few)) if counts or few is not None else None,
        next((p.event.spot for p in first if place.order < p.order), None), few is not None and few <= FEW,
        processes=_of_one_process(project, scheduler, total), every=_window(place, steps, total))


def _window(place: Place, steps: list[Place], total: Value | None) -> float | None:
    """Turns for each of which a schedule is stepped once though its length counts all; below 1 the other way round."""
    windows = [o.operands[1] for p in (*steps, place) for b in p.branches if condition_of(b).kind == "every"
               for o in (parts(b.subject) if b.subject is not None else ()) if isinstance(o, Operation) and o.op == "%"]
    number_of = number(windows[0]) if windows else None
    if not windows or not steps or total is None or number_of is None or number_of <= 1:
        return None
    seen = [p for p in parts(total) if isinstance(p, Operation)]
    divided = [p for p in seen if p.op in ("/", "//")]
    together = any(b in steps[0].branches for b in place.branches if condition_of(b).kind == "every")
    if together and not divided and any(p.op.startswith("len") for p in seen):
        return number_of
    if not together and not place.branches and any(p.operands[1] == windows[0] for p in divided):
        return 1 / number_of
    return None


def schedules_left(project: Project) -> Iterator[ScheduleUse]:
    """Schedules of an optimizer that steps in a loop which nothing ever steps, and that nobody else was given."""
    steps = [e for e in project.calls("step") if stepped(e) is None]
    if any(isinstance(e.receiver, (Symbol, Operation)) and not e.args for e in steps):
        return  # whatever that is
    given = {id(p) for e in project.events for v in (*e.args, *e.kwargs.values()) for p in inside(v)
             if e.kind != "store" or e.function is None or e.function.owner is None or e.function.owner.foreign_bases}
    given |= {id(p) for r in project.roots if r.result is not None for p in inside(r.result)}
    given |= {id(e.receiver) for e in steps}
    trained = {id(o): p.event for loop in project.training_loops for p in loop.of("step")
               if (o := stepped(p.event)) is not None}
    for event in project.events:
        made = event.result
        if isinstance(made, Thing) and event.name == made.type and is_scheduler(made) and id(made) not in given:
            step = trained.get(id(made.argument(0, "optimizer")))
            if step is not None and not made.state.get("prepared"):
                yield ScheduleUse(made.short, step.spot, event.spot, "never")


def by_metric(project: Project) -> Iterator[ScheduleUse]:
    """Schedules whose `step` is given a loss or another metric, which it takes for the number of an epoch."""
    for event in project.calls("step"):
        made, given = event.receiver, event.argument(0, "epoch")
        if isinstance(made, Thing) and is_scheduler(made) and made.short != "ReduceLROnPlateau" and _is_metric(given):
            yield ScheduleUse(made.short, event.spot, event.spot, "epoch", as_epoch=event.text)


def _is_metric(value: Value | None) -> bool:
    """Whether a number was computed by a model or read off a tensor, and counts nothing."""
    found = [value] if isinstance(value, Tensor) else list(parts(value)) if isinstance(value, Operation) else []
    read = any(isinstance(p, Tensor) or (isinstance(p, Operation) and p.op == "item") for p in found)
    return read and not any(isinstance(p, Symbol) and p.role == "index" for p in found)


def formulas(project: Project) -> Iterator[ScheduleUse]:
    """Rates set by a formula in which the number of an epoch is divided by a number of batches."""
    for loop in project.training_loops:
        for place in loop.places:
            event = place.event
            if event.kind != "store" or event.name not in _RATES or not event.args or not place.loops:
                continue
            outer = [b for b in place.loops if any(b in p.path[:-1] and innermost(p, loop) is not b
                                                   for p in steps_inside(loop, b))]
            for share in parts(event.args[0]):
                if not isinstance(share, Operation) or share.op != "/":
                    continue
                top, length = (list(parts(o)) for o in share.operands)
                counts = [p for p in top if isinstance(p, Symbol) and p.role == "index"]
                lens = [any(isinstance(p, Operation) and p.op.startswith("len") for p in s) for s in (top, length)]
                if counts and lens == [False, True] and all(any(c.parent is b.subject for b in outer) for c in counts):
                    yield ScheduleUse("The formula of the rate", event.spot, event.spot, "epoch",
                                      length="all", counts="batches")
                    break


def _of_one_process(project: Project, scheduler: Thing, total: Value | None) -> Known | None:
    """Whether accelerate's wrapper steps it once for each process, and its length counts the batches of one."""
    accelerator = scheduler.state.get("prepared")
    if not isinstance(accelerator, Thing) or accelerator.short != "Accelerator" or total is None:
        return None
    given = accelerator.kwargs
    seen = list(parts(total))
    found = (truth(given.get("step_scheduler_with_optimizer")) is not False and not truth(given.get("split_batches"))
             and any(isinstance(p, Operation) and p.op == "len prepared" for p in seen)
             and not any(isinstance(p, Symbol) and p.name == "num_processes" for p in seen))
    several = any(True for _ in project.calls("spawn", "notebook_launcher", "debug_launcher"))
    return None if not found else Known.DERIVED if several else Known.GUESSED


_UNKNOWN = 1000.0
"""Turns that a loop is taken to have where nothing says how many."""


def _counts(total: Value, outer: tuple[Block, ...], stepping: Block, scheduler: Thing) -> str:
    """What a length counts."""
    if any(b.count == total for b in outer):
        return "passes"
    lengths = [p.operands[0] for p in parts(total) if isinstance(p, Operation) and p.op.startswith("len")]
    subject = unwrap(stepping.subject) if stepping.subject is not None else None
    anew = not outer or outer[-1].count is None or outer[-1] in scheduler.born_in
    if not anew and _one_pass(total) and any(unwrap(v) is subject for v in lengths):
        return "batches of a pass"
    return "batches" if lengths else ""


def _one_pass(value: Value) -> bool:
    """Whether a length is that of a loader, or a part of it: rounded, divided, with a number added."""
    if not isinstance(value, Operation):
        return False
    if value.op.startswith("len"):
        return True
    grown = [o for o in value.operands if not isinstance(o, Const)]
    if value.op in ("//", "/"):
        return _one_pass(value.operands[0]) and number(value.operands[1]) != 0
    return value.op in ("round", "extreme", "+", "-") and len(grown) == 1 and _one_pass(grown[0])


def _last_milestone(scheduler: Thing) -> float | None:
    """The step at which the last decay happens, where there are steps of it."""
    if scheduler.short == "StepLR":
        return number(scheduler.argument(1, "step_size"))
    stones = scheduler.argument(1, "milestones") if scheduler.short == "MultiStepLR" else None
    known = [number(i) for i in stones.items] if isinstance(stones, Bag) and not stones.open else [None]
    return None if None in known else max((n for n in known if n is not None), default=None)


def _written(value: Value) -> str:
    """A length as a person would write it."""
    if isinstance(value, Operation) and not value.op.startswith("len"):
        texts = [_written(o) for o in value.operands[:2]]
        return f" {value.op} ".join(texts) if len(value.operands) == 2 else texts[0]
    if isinstance(value, Symbol) and value.role in ("parameter", "attribute", "global", "item"):
        return value.name
    return "len(loader)" if isinstance(value, Operation) else f"{value.value}" if isinstance(value, Const) else "n"


_OPTAX_LENGTHS = {"decay_steps": 2, "transition_steps": 2, "steps": 1}
_OPTAX_LENGTH_AT = {"cosine_decay_schedule": 1, "warmup_cosine_decay_schedule": 3, "linear_schedule": 2,
                    "polynomial_schedule": 3}
"""Where the length stands among the arguments."""


def windows(project: Project) -> Iterator[Window]:
    """Every such schedule of an optimizer whose updates run a known number of times."""
    collects = [e for e in project.calls("MultiSteps", "apply_every") if e.name.startswith("optax.")]
    if not collects:
        return
    schedules = {e.site: e for e in project.calls(*_OPTAX_LENGTH_AT) if e.name.startswith("optax.")}
    seen: set[int] = set()
    updates = [p for r in project.roots_with({"update"}) for p in r.places if p.event.method == "update"]
    for place in updates:
        rounds = _rounds(place)
        parts = list(nested(place.event.receiver))
        made = next((e for e in collects if any(e.result is p or e.result == p for p in parts)), None)
        place_of = (1, "every_k_schedule") if made is not None and made.method == "MultiSteps" else (0, "k")
        every = size(made.argument(*place_of)) if made is not None else None
        if made is None or rounds is None or every is None or every <= 1:
            continue
        for event in {id(e): e for p in parts if isinstance(p, Tensor) and (e := schedules.get(p.site)) is not None  # type: ignore[arg-type]
                      }.values():  # fmt: skip
            length = size(_length_given(event))
            if length is not None and id(event) not in seen:
                seen.add(id(event))
                yield Window(event.method, event.spot, length, rounds, every, f"{made.method} at {made.site}",
                             made.method == "MultiSteps")


def in_epochs(project: Project) -> Iterator[ScheduleUse]:
    """Schedules of optax, which counts updates, whose length is the number of epochs, or of the batches of one."""
    schedules = {e.site: e for e in project.calls(*_OPTAX_LENGTH_AT) if e.name.startswith("optax.")}
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
                length = _length_given(made) if made is not None else None
                outer = [b.count for b in place.loops[:-1]]
                if made is None or length is None or id(made) in seen or (inner is not None and inner <= FEW):
                    continue
                counts = "passes" if any(_is_one(length, c) for c in outer) else (
                    "batches of a pass" if _is_one(length, place.loops[-1].count) and None not in outer else "")
                if counts:
                    seen.add(id(made))
                    yield ScheduleUse(made.method, event.spot, made.spot, "batch",
                                      tuple(number(c) for c in outer), "so many", counts, asked=True)


def _is_one(length: Value, count: Value | None) -> bool:
    """Whether two counts are one value, and not two numbers that happen to be equal."""
    return length is count or (not isinstance(length, Const) and length == count)


def _length_given(event: Event) -> Value | None:
    names = [n for n in _OPTAX_LENGTHS if n in event.kwargs]
    return event.kwargs[names[0]] if names else event.argument(_OPTAX_LENGTH_AT[event.method], "")


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


_HOOKED_LENGTHS = {**LENGTHS, "get_constant_schedule_with_warmup": (1, "num_warmup_steps")}
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
                yield HookedSchedule(schedule.short, project.spot(schedule.site), unit, True, False)
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
                at = project.spot(schedule.site)
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
    length = schedule.argument(*_HOOKED_LENGTHS.get(schedule.short, (99, "")))
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

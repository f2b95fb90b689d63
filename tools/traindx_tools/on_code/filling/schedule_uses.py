"""Where learning-rate schedules are stepped, and what their lengths count."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.filling.conditions import condition_of
from traindx_tools.on_code.filling.spots import spot_at, spot_of
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import innermost, inside, is_optimizer, is_scheduler, same, stepped, steps_inside
from traindx_tools.on_code.values import Bag, Const, Operation, Symbol, Thing, Value, number, parts, truth, unwrap
from traindx_tools.program.constants import ScheduleUse
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
                yield ScheduleUse(made.short, spot_of(place.event), spot_of(place.event), "",
                                  loaded=spot_of(before[0].event))


def _use(project: Project, loop: TrainingLoop, place: Place, scheduler: Thing, stepping: Block) -> ScheduleUse:
    around = place.loops
    inside = stepping in around
    always = not any(b.kind == "branch" for b in place.path[place.path.index(stepping):]) if inside else False
    outer = around[:around.index(stepping)] if inside else ()
    counts = [number(b.count) if b.count is not None else None for b in outer]
    total = scheduler.argument(*LENGTHS[scheduler.short]) if scheduler.short in LENGTHS else None
    steps = steps_inside(loop, stepping)[:1]
    first = steps if always else []
    few = number(stepping.count) if stepping.count is not None else None
    gamma = scheduler.argument(1, "gamma") if scheduler.short == "ExponentialLR" else None
    return ScheduleUse(
        scheduler.short, spot_of(place.event), spot_at(scheduler.site, project),
        "batch" if around[-1] is stepping and always else "pass" if inside else "epoch",
        tuple(counts), _written(total) if total is not None else "",
        _counts(total, outer, stepping, scheduler) if total is not None else "",
        _last_milestone(scheduler), number(gamma),
        prod(c if c is not None else _UNKNOWN for c in (*counts, few)) if counts or few is not None else None,
        next((spot_of(p.event) for p in first if place.order < p.order), None), few is not None and few <= FEW,
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
                yield ScheduleUse(made.short, spot_of(step), spot_of(event), "never")


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
                    yield ScheduleUse("The formula of the rate", spot_of(event), spot_of(event), "epoch",
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

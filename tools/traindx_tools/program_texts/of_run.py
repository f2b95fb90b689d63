"""The facts of a program as a short text, so that a reader need not run it again to know what it does.

At most 800 tokens (taken as four characters each, the usual measure for English): the most telling lines come first,
and what does not fit is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from traindx_tools.program.entities import Loss, Model, Optimizer, Schedule, StateFile
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment, Timeline

Entity = TypeVar("Entity")

MOST_CHARACTERS = 4 * 800
LONGEST_LINE = 400
MOST_EACH = 6
"""Entities of one kind that are written out."""


def facts(program: Program, folder: str = "") -> str:
    """The text, one fact a line; "" where nothing was seen. `folder`: paths below it are written from there."""
    return bounded(_lines(program), folder)


def bounded(told: Iterable[str], folder: str = "") -> str:
    """Lines, the most telling first, within the bound; paths below `folder` are written from there."""
    lines = [_short(x.replace(f"{folder}/", "") if folder else x) for x in told]
    kept: list[str] = []
    room = MOST_CHARACTERS - 40
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append(f"({len(lines) - len(kept)} more facts are left out)")
            break
        kept.append(line)
    return "\n".join(kept)


def _lines(program: Program) -> Iterator[str]:
    yield from _timeline(program.timeline)
    yield from _each("model", program.models, _model)
    yield from _inputs(program.models)
    yield from _each("optimizer", program.optimizers, _optimizer)
    yield from _each("schedule", program.schedules, _schedule)
    yield from _each("loss", program.losses, _loss)
    yield from _each("file", program.files, _file)
    yield from program.remarks


def _each(kind: str, these: Sequence[Entity], tell: Callable[[Entity], str]) -> Iterator[str]:
    for one in these[:MOST_EACH]:
        yield f"{kind} {tell(one)}"
    if len(these) > MOST_EACH:
        yield f"{len(these) - MOST_EACH} more of kind {kind}"


def _timeline(timeline: Timeline) -> Iterator[str]:
    if not timeline.courses:
        return
    counts = ", ".join(f"{course.count} {moment.value}" for moment, course in timeline.courses.items())
    yield f"timeline: {counts}"
    for text, count in timeline.usual():
        yield f"usual order up to a step ({count} times): {text}"
    for moment in (Moment.BACKWARD, Moment.STEP, Moment.CLEAR, Moment.SCHEDULE, Moment.CLIP):
        course = timeline.courses.get(moment)
        if course is not None and course.lines:
            yield f"{moment.value} at {', '.join(line for line, _ in course.lines.most_common(3))}"


def _model(model: Model) -> str:
    calls = ", ".join(f"{n} {what}" for what, n in model.calls.items())
    roles = "; ".join(r.value for r in model.roles) or "role unknown"
    return (f"{model.name}: {roles}; {model.parameters:,} values, {model.trainable:,} trainable, {model.held:,} held "
            f"by an optimizer, {model.reached:,} got gradients, {model.moved:,} moved; calls: {calls}")


def _inputs(models: Sequence[Model]) -> Iterator[str]:
    for model in models[:MOST_EACH]:
        given = [f"{what}: {held}" for what, held in model.inputs.items() if held]
        if given:
            yield f"first inputs of {model.name}: {'; '.join(given)}"


def _optimizer(optimizer: Optimizer) -> str:
    values = {rate for _, rate in optimizer.rates}
    rates = (f"{values.pop():.4g} throughout" if len(values) == 1 else
             ", ".join(f"{rate:.4g} at step {step}" for step, rate in optimizer.rates))
    return (f"{optimizer.kind}: {optimizer.steps} steps over {optimizer.values:,} values{_at(optimizer.line)}; "
            f"rate {rates}")


def _schedule(schedule: Schedule) -> str:
    horizon = f", made for {schedule.horizon} of its steps" if schedule.horizon is not None else ""
    warmup = f", warm-up of {schedule.warmup}" if schedule.warmup is not None else ""
    made = f", defined at {schedule.made}" if schedule.made else ""
    return f"{schedule.kind}: stepped {schedule.steps} times{_at(schedule.line)}{horizon}{warmup}{made}"


def _loss(loss: Loss) -> str:
    values = f", first value {loss.first:.4g}, last {loss.last:.4g}" if None not in (loss.first, loss.last) else ""
    return f"{loss.name}: {loss.calls} calls{_at(loss.line)} on {', '.join(loss.shapes)}{values}"


def _file(file: StateFile) -> str:
    what = "written" if file.written else "read"
    taken = "" if file.written else f"; loaded from it: {', '.join(file.taken) or 'nothing'}"
    parts = f" ({', '.join(file.parts)})" if file.parts else ""
    return f"{file.path} {what} after step {file.step}{_at(file.line)}, {file.tensors} tensors{parts}{taken}"


def _at(line: str | None) -> str:
    return f" at {line}" if line else ""


def _short(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE - 3]}..."

"""An optimizer's constants are swapped or out of range.

Adam's betas are (0.9, 0.999): the first for the mean, the second for the square. Swapped, the step is divided by the
last gradient alone and multiplied by a mean over a thousand steps. A momentum of 1 or more never forgets, and a
decoupled weight decay of 1 or more removes the weights at the pace of the learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Thing, Value, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C136",
    name="optimizer-constants",
    title="An optimizer's constants are out of range",
    severity=Severity.MEDIUM,
    sees="betas, momentum and weight decay given to an optimizer.",
    matters="Slow divergence, or weights that shrink whatever the loss says.",
    alike=("a learning rate that is too high",),
    confirm=("train with the optimizer's defaults and compare",),
    thresholds={
        "momentum": Threshold(1.0, "at or above", "a geometric sum that does not converge"),
        "weight decay": Threshold(1.0, "at or above", "usual 0 to 0.3"),
    },
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer that is made."""
    for event in project.events:
        made = event.result
        if event.kind != "call" or not isinstance(made, Thing) or event.name != made.type:
            continue
        if made.type.startswith(("torch.optim.", "optax.")) and "lr_scheduler" not in made.type:
            for kind, said, value in _wrong(made):
                yield _finding(event, made, kind, said, value)


def _wrong(made: Thing) -> Iterator[tuple[str, str, float]]:
    first, second = _betas(made)
    if first is not None and second is not None and first > second and second < 0.95:
        yield "betas", f"betas of ({first:g}, {second:g}), in the wrong order", first
    momentum = number(made.kwargs.get("momentum"))
    if momentum is not None and momentum >= 1:
        yield "momentum", f"a momentum of {momentum:g}, which never forgets", momentum
    decay = number(made.kwargs.get("weight_decay"))
    if decay is not None and decay >= 1:
        yield "weight decay", f"a weight decay of {decay:g}", decay


def _betas(made: Thing) -> tuple[float | None, float | None]:
    given: Value | None = made.kwargs.get("betas")
    if isinstance(given, Bag) and len(given.items) == 2:
        return number(given.items[0]), number(given.items[1])
    return number(made.kwargs.get("b1")), number(made.kwargs.get("b2"))


def _finding(event: Event, made: Thing, kind: str, said: str, value: float) -> Finding:
    return RULE.finding(
        f"{made.short} at {event.file.path}:{event.line} has {said}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if kind == "momentum" else Severity.MEDIUM,
        measured={"kind": kind, "value": value},
    )

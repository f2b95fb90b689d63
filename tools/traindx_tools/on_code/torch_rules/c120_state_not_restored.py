"""A run is resumed without all of its state.

A resumed run needs more than the model: the optimizer's moments, the schedule's position, the loss scale. Where
training goes on from a saved epoch or step and one of them is not loaded, the run continues with empty moments, a
learning rate from the schedule's start, or a loss scale of 65536: a jump in the loss at the point of resumption. The
rule asks that the loop's start comes from the checkpoint; loading weights for a new run is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler, same, stepped
from traindx_tools.on_code.values import UNKNOWN, Const, Instance, Symbol, Thing, Value, number, parts

(RULE,) = pages("state", ("C120",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop that starts from a checkpoint."""
    for loop in project.training_loops:
        if not _starts_from_checkpoint(loop):
            continue
        loaded = [
            p.event
            for p in loop.before
            if p.event.kind == "call" and p.event.method in ("load_state_dict", "load_state", "load_checkpoint")
        ]
        if not loaded or any(e.method != "load_state_dict" for e in loaded):
            continue
        restored = [e.receiver for e in loaded]
        if any(r is None or r == UNKNOWN for r in restored):
            continue  # what is loaded into is not known
        seen: list[Value] = []
        for place in loop.of("step"):
            owner, what, severity = _state(place.event)
            if owner is None or any(same(owner, s) for s in seen) or any(same(owner, r) for r in restored):
                continue
            seen.append(owner)
            yield _finding(loop, place, what, severity, loaded[0])


def _starts_from_checkpoint(loop: TrainingLoop) -> bool:
    subject = loop.block.subject
    if not (isinstance(subject, Thing) and subject.type == "range" and len(subject.args) >= 2):
        return False
    return any(isinstance(p, Symbol) and p.name.startswith("torch.load@") for p in parts(subject.args[0]))


def _state(event: Event) -> tuple[Value | None, str, Severity]:
    receiver = event.receiver
    if is_scheduler(receiver):
        if isinstance(receiver, Thing) and number(receiver.kwargs.get("last_epoch", Const(-1))) != -1:
            return None, "", Severity.INFO  # it is made at the position where it goes on
        return receiver, "learning-rate schedule", Severity.HIGH
    optimizer = stepped(event)
    if is_optimizer(optimizer) and isinstance(optimizer, (Thing, Instance)):
        plain = isinstance(optimizer, Thing) and optimizer.short == "SGD" and "momentum" not in optimizer.kwargs
        return (None if plain else optimizer), "optimizer", Severity.HIGH
    if is_scaler(receiver):
        return receiver, "gradient scaler", Severity.MEDIUM
    return None, "", Severity.INFO


def _finding(loop: TrainingLoop, place: Place, what: str, severity: Severity, load: Event) -> Finding:
    event = place.event
    return RULE.finding(
        f"The loop at {loop.block.file.path}:{loop.block.line} goes on from a checkpoint (loaded at line "
        f"{load.line}), but the "
        f"state of the {what} stepped at {event.file.path}:{event.line} is not loaded: it starts anew at every "
        "resumption",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={"kind": what, "load_line": load.line, "loop_line": loop.block.line},
    )

"""The operation that made the first NaN or infinity which reached the loss, a gradient or a parameter.

The step in which a value stopped being finite is run again with every operation watched: forward, backward, optimizer.
The origin is the first operation whose inputs were finite and whose output was not, on the way to the value that went
wrong; it is named with its line in the user's code, its module, what it was given and what made it so.

An infinity that the program writes on purpose (a mask of -inf) is no origin while softmax turns it into 0; where it
becomes NaN (a row masked completely, 0 * inf), that operation is the origin. Values that are not finite and never reach
loss, gradients or parameters are no origin either. An operation of the backward pass is placed at the line of the
forward pass that made its autograd node. Compiled regions are watched while they run eagerly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_torch.nonfinite.events import Event
    from traindx_tools.on_torch.nonfinite.reasons import Reason

RULE = Rule(
    id="T101",
    name="nonfinite-origin",
    title="The operation that made the first NaN or infinity",
    severity=Severity.CRITICAL,
    sees="every operation of the step that went wrong: forward, backward and optimizer, with its inputs and outputs",
    matters="everything after it is a consequence; this is the line to change",
    alike=("anomaly detection names an autograd function of the backward pass, often far from the first NaN",
           "an infinity in a mask that softmax turns into 0 is legitimate and is not named"),
    confirm=("look at the smallest and largest input that the statement names, at its line",
             "traindx run -- CMD after the change: no T1xx finding"),
)


@dataclass(frozen=True)
class Origin:
    """What is known of an origin: the record, its reason, and where the value was seen in the end."""

    event: Event
    reason: Reason
    seen_in: str
    """"the loss", "the gradient of `layer.weight`", ..."""
    step: int
    backward: int
    rank: int
    others: int = 0
    """Further origins in the same step."""
    eager: bool = False


def check(origin: Origin) -> Iterator[Finding]:
    """The finding for an origin."""
    event, reason = origin.event, origin.reason
    place = event.place
    where = Location(file=place.file if place else None, line=place.line if place else None, step=origin.step,
                     module=event.module, rank=origin.rank, quote=place.quote if place else None)
    yield RULE.finding(_statement(origin), where, "the traced step", measured=_measured(origin),
                       bearing=Bearing.CAUSE if place or event.module or event.name else Bearing.SIGN,
                       title=f"Origin of the first non-finite value: {reason.id}")


def _statement(origin: Origin) -> str:
    event, reason = origin.event, origin.reason
    at = f" at {event.place.file}:{event.place.line}" if event.place else ""
    in_module = f" of module `{event.module}`" if event.module else ""
    what = f"{event.op} in the {_phase(event)}{in_module}{at}" if event.op else f"in the {_phase(event)}{in_module}{at}"
    given = f"; given {_inputs(event)}" if event.inputs else ""
    gave = f", it gave {event.output}" if event.output is not None else ""
    compiled = "; compiled regions were run eagerly to see it" if origin.eager else ""
    return f"step {origin.step}: {what}: {reason.words}{given}{gave}; it reached {origin.seen_in}{compiled}"


def _phase(event: Event) -> str:
    backward = f"backward pass ({event.node})" if event.node else "backward pass"
    return {"backward": backward, "optimizer": "optimizer step", "gradients": "code between backward and step"}.get(
        event.phase, event.phase if " " in event.phase else f"{event.phase} pass")


def _inputs(event: Event) -> str:
    return "; ".join(f"input {i}: {s}" for i, s in enumerate(event.inputs[:3]))


def _measured(origin: Origin) -> dict[str, Value]:
    event = origin.event
    first = event.inputs[0] if event.inputs else None
    found: dict[str, Value] = {
        "reason": origin.reason.id, "op": event.op, "phase": event.phase.split(" ")[0], "kind": event.kind,
        "seen_in": origin.seen_in, "step": origin.step, "backward": origin.backward, "other_origins": origin.others}
    if event.node:
        found["node"] = event.node
    if event.module:
        found["module"] = event.module
    if event.name:
        found["name"] = event.name
    if event.place is not None:
        found |= {"file": event.place.file, "line": event.place.line, "function": event.place.function,
                  "code": event.place.quote}
        if event.place.library:
            found["library"] = event.place.library
    if first is not None:
        found |= {"input_dtype": first.dtype, "input_zeros": first.zeros}
        if math.isfinite(first.least):
            found |= {"input_min": first.least, "input_max": first.most,
                      "input_largest": max(abs(first.least), abs(first.most))}
    if len(event.inputs) > 1 or origin.reason.id == "zero-by-zero":
        found["divisor_size"] = event.inputs[1].count if len(event.inputs) > 1 else 1
    if event.output is not None:
        out = event.output
        found |= {"dtype": out.dtype, "nan_share": out.nans / out.count, "inf_share": out.infs / out.count}
    return found

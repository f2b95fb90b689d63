"""The optimizer is sent the wrong way: the sign of the loss.

Optimizers minimise. `-cross_entropy(...)` makes predictions worse with every step; a log-probability without a minus
(a policy gradient, a likelihood) lowers the probability of what was good; an objective like 1 + log v - m^2 - v is a
negative divergence and needs the factor -1/2. `maximize=True` in the optimizer makes all of these right, and a plain
loss wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.held import held
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import sent_backward, stepped
from traindx_tools.on_code.values import Tensor, Thing, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C148",
    name="loss-sign",
    title="The loss has the wrong sign",
    severity=Severity.HIGH,
    sees="A loss of torch with a minus before it, or a log-probability without one, that backward is called on.",
    matters="Training runs away from its goal: the loss falls without bound, accuracy falls below chance.",
    alike=("a minimax game with two optimizers", "gradient ascent on purpose"),
    confirm=("print the metric beside the loss: it worsens while the loss falls",),
)

_ON_PURPOSE = re.compile(r"unlearn|forget_|ascent|advers|attack|perturb|worst", re.IGNORECASE)
"""Names of programs that make a loss larger on purpose."""


def check(project: Project) -> Iterator[Finding]:
    """Look at what every training loop sends backward."""
    for loop in project.training_loops:
        optimizers = {id(o): o for p in loop.of("step") if (o := stepped(p.event)) is not None}
        if len(optimizers) > 1 or any(_maximises(o) for o in optimizers.values()):
            if len(optimizers) == 1:
                yield from _maximised(loop, *optimizers.values())
            continue
        for place in loop.backwards:
            loss = sent_backward(place.event)
            if isinstance(loss, Tensor) and loss.grad is not False:
                yield from _judged(loop, place, loss)


def _maximises(optimizer: object) -> bool:
    return (
        isinstance(optimizer, Thing)
        and truth(optimizer.kwargs.get("maximize")) is not False
        and ("maximize" in optimizer.kwargs)
    )


def _maximised(loop: TrainingLoop, optimizer: object) -> Iterator[Finding]:
    """A loss of torch, as it is, in a loop whose one optimizer over a model maximises."""
    if not isinstance(optimizer, Thing) or truth(optimizer.kwargs["maximize"]) is not True or not held(optimizer):
        return
    losses = [(p.event, sent_backward(p.event)) for p in loop.backwards]
    if len(losses) != 1 or losses[0][0].file.mentions(_ON_PURPOSE):
        return
    event, loss = losses[0]
    made = [p.event for p in loop.places if isinstance(loss, Tensor) and p.event.kind == "call" and
            p.event.result == loss and p.event.method != "requires_grad_"]  # fmt: skip
    if not isinstance(loss, Tensor) or loss.grad is not True or "loss" not in loss.tags or not made:
        return
    if "negated" in loss.tags or not any(_against_labels(e) for e in made):
        return
    yield RULE.finding(
        f"{optimizer.short} at {optimizer.site} is made with maximize=True, and backward() at "
        f"{event.file.path}:{event.line} is called on a loss (computed at {loss.site}): every step makes it larger",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "maximised", "made_at": str(optimizer.site), "backward_line": event.line},
    )


def _against_labels(event: Event) -> bool:
    """Whether what the loss compares the output with came out of the data: nothing that a model computed."""
    target = event.argument(1, "target")
    return target is not None and not (isinstance(target, Tensor) and (target.models or target.grad is True))


def _judged(loop: TrainingLoop, place: Place, loss: Tensor) -> Iterator[Finding]:
    several = len(loop.backwards) > 1
    why = None
    if "negated" in loss.tags and not several:
        why = "a loss with a minus before it: minimising it maximises the loss"
    elif "log_prob" in loss.tags and not several:
        why = "a log-probability without a minus: minimising it makes what was sampled or observed less likely"
    if why is None:
        return
    event = place.event
    made = [p.event for p in loop.places if loss.site is not None and p.event.site == loss.site]
    where = made[0] if made else event
    yield RULE.finding(
        f"backward() at {event.file.path}:{event.line} is called on {why} (computed at {loss.site})",
        location(where),
        where.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "negated" if "negated" in loss.tags else "log_prob", "backward_line": event.line},
    )

"""The arguments of kl_div are not what it expects.

`kl_div(input, target)` wants log-probabilities as its input and probabilities as its target, and computes
KL(target || input). A target of log-probabilities needs `log_target=True`; without it `target * log(target)` of a
negative number is NaN or nonsense. With the trained model on the target's side and a fixed one as the input it is the
reverse divergence, which seeks one mode: sometimes wanted, often a mix-up.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Thing, Value, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C180",
    name="divergence-arguments",
    title="The arguments of kl_div are not what it expects",
    severity=Severity.HIGH,
    sees="The kinds of both arguments of kl_div, and which of them carries a gradient.",
    matters="NaN, a negative distillation loss, or a student that covers one mode of its teacher.",
    alike=("a temperature that is not squared in the loss", "a reverse divergence that is wanted"),
    confirm=("kl_div of a distribution with itself has to be 0",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every kl_div."""
    for event in project.calls("kl_div"):
        given, target = event.argument(0, "input"), event.argument(1, "target")
        if isinstance(target, Tensor):
            if target.kind == "log_softmax" and not _log_target(event):
                yield _finding(
                    event,
                    f"gets log-probabilities (made at {target.kind_site}) as its target without log_target=True",
                    "log target",
                    Severity.HIGH,
                )
            elif target.grad and isinstance(given, Tensor) and given.grad is False and target.models:
                yield _finding(
                    event,
                    "has the trained model as its target and a fixed distribution as its input: it is KL(model || "
                    "fixed), not KL(fixed || model)",
                    "reversed",
                    Severity.MEDIUM,
                )


def _log_target(event: Event) -> bool:
    value: Value | None = event.kwargs.get("log_target")
    if value is None and isinstance(event.receiver, Thing):
        value = event.receiver.kwargs.get("log_target")
    return value is not None and truth(value) is not False


def _finding(event: Event, why: str, kind: str, severity: Severity) -> Finding:
    return RULE.finding(
        f"kl_div at {event.file.path}:{event.line} {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if kind == "log target" else Bearing.SIGN,
        severity=severity,
        measured={"kind": kind},
        patch=_patch(event) if kind == "log target" else (),
    )


def _patch(event: Event) -> tuple[Patch, ...]:
    loss = event.receiver
    layer = isinstance(loss, Thing) and loss.short == "KLDivLoss"
    if layer and isinstance(loss, Thing) and loss.site.path != event.file.path:
        return ()
    node = loss.node if layer and isinstance(loss, Thing) else event.node
    return forms.keyword_given(event.file, node, "log_target", "True", "the target is in logarithms")

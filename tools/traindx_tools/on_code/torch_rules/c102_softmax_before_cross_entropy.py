"""A loss that normalises by itself is fed normalised values, or the other way round.

`CrossEntropyLoss` applies log-softmax, `BCEWithLogitsLoss` a sigmoid. Fed with probabilities they squash twice: the
loss cannot fall below -ln(e / (e + C - 1)) for C classes (0.744 for 4) and gradients are small. `NLLLoss` and
`KLDivLoss` are the reverse: they want log-probabilities, and raw scores or probabilities make the loss negative and
meaningless. The values are followed through models, methods such as `predict_proba`, reshapes and clamps. A log-
softmax in front of CrossEntropyLoss changes nothing (log-softmax of a log-softmax is itself) and is only remarked.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C102",
    name="softmax-before-cross-entropy",
    title="A loss is fed values of the wrong kind",
    severity=Severity.HIGH,
    sees="The input of a loss that comes from softmax, sigmoid, log_softmax or straight from a linear layer.",
    matters="The loss has a floor well above zero or no floor at all, and its gradients are wrong in size.",
    alike=("a model that cannot separate the classes", "label smoothing, which has a floor of its own"),
    confirm=(
        "compare the loss of a perfect prediction with the floor -ln(e / (e + C - 1))",
        "look at the range of the loss's input: probabilities lie in [0, 1] and sum to 1",
    ),
)
_SEVERE = Severity.HIGH
_JUDGED: dict[tuple[str, str], tuple[Severity, str]] = {
    ("cross_entropy", "softmax"): (_SEVERE, "applies log-softmax itself, so probabilities are soft-maxed twice"),
    ("cross_entropy", "sigmoid"): (_SEVERE, "applies log-softmax itself, so its input is squashed twice"),
    ("cross_entropy", "log_softmax"): (
        Severity.LOW,
        "applies log-softmax again, which changes nothing: redundant, not the cause of a fault",
    ),
    ("binary_cross_entropy_with_logits", "sigmoid"): (
        _SEVERE,
        "applies a sigmoid itself, so its input is squashed twice",
    ),
    ("binary_cross_entropy_with_logits", "softmax"): (
        _SEVERE,
        "applies a sigmoid itself, so its input is squashed twice",
    ),
    ("sigmoid_binary_cross_entropy", "sigmoid"): (_SEVERE, "applies a sigmoid itself, so its input is squashed twice"),
    ("softmax_cross_entropy", "softmax"): (
        _SEVERE,
        "applies log-softmax itself, so probabilities are soft-maxed twice",
    ),
    ("softmax_cross_entropy_with_integer_labels", "softmax"): (
        _SEVERE,
        "applies log-softmax itself, so probabilities are soft-maxed twice",
    ),
    ("nll_loss", "softmax"): (_SEVERE, "wants log-probabilities and gets probabilities: the loss is -p, not -log p"),
    ("nll_loss", "sigmoid"): (_SEVERE, "wants log-probabilities and gets values in [0, 1]"),
    ("nll_loss", "linear"): (_SEVERE, "wants log-probabilities and gets raw scores: the loss falls without bound"),
    ("kl_div", "softmax"): (_SEVERE, "wants log-probabilities as its input and gets probabilities"),
    ("binary_cross_entropy", "linear"): (_SEVERE, "wants probabilities in [0, 1] and gets raw scores"),
}
_WRITTEN = {
    "softmax": "softmax output",
    "sigmoid": "sigmoid output",
    "log_softmax": "log_softmax output",
    "linear": "the raw output of a linear layer",
}
_INPUT_NAMES = ("input", "logits")


def check(project: Project) -> Iterator[Finding]:
    """Look at every loss that is computed."""
    for method in {m for m, _ in _JUDGED}:
        for event in project.calls(method):
            found = _judged(event)
            if found is not None:
                yield found


def _judged(event: Event) -> Finding | None:
    value = event.args[0] if event.args else next((event.kwargs[n] for n in _INPUT_NAMES if n in event.kwargs), None)
    if not isinstance(value, Tensor) or (event.method, value.kind) not in _JUDGED:
        return None
    severity, why = _JUDGED[event.method, value.kind]
    if value.kind == "linear" and _poisson_like(event):
        return None
    name = event.receiver.short if isinstance(event.receiver, Thing) else event.method
    made = f", made at {value.kind_site}" if value.kind_site else ""
    return RULE.finding(
        f"{_WRITTEN[value.kind]}{made} is fed to {name} at {event.file.path}:{event.line}, which {why}",
        location(event),
        event.file.path,
        strength=Strength.DIRECT,
        severity=severity,
        measured={
            "kind": f"{value.kind} into {event.method}",
            "loss": name,
            "input": value.kind,
            "made_at": str(value.kind_site) if value.kind_site else None,
            "training": event.grad is not False and event.framework != "validation_step",
        },
    )


def _poisson_like(event: Event) -> bool:
    log_target = event.kwargs.get("log_input")
    return isinstance(log_target, Const) and log_target.value is True

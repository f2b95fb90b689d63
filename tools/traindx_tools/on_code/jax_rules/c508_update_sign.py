"""Updates with the wrong sign.

`optax.apply_updates` adds. The ready-made optimizers return negative multiples of the gradient; a chain put together
from `scale_by_*` parts needs `optax.scale(-lr)` or `scale_by_learning_rate(lr)` at its end. With a positive scale every
step climbs the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.values import Const, Symbol, Thing, Value, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C508",
    name="update-sign",
    title="Updates point up the gradient",
    severity=Severity.CRITICAL,
    sees="An optax chain of scale_by_* parts that ends with a positive scale.",
    matters="The loss rises from the first step.",
    alike=("a learning rate that is too high",),
    confirm=("print the loss before and after one step with a tiny learning rate",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every chain."""
    for event in project.calls("chain"):
        if event.name != "optax.chain" or event.kwargs or not event.args:
            continue
        names = [_name(a) for a in event.args]
        if not all(n.startswith("optax.") for n in names) or not any(".scale_by_" in n for n in names):
            continue
        if any(n.rpartition(".")[2] in _SIGNED for n in names):
            continue
        scales = [a for a, n in zip(event.args, names, strict=True) if n == "optax.scale"]
        values = [number(_first(s)) for s in scales]
        if len(scales) == 1 and values[0] is not None and values[0] > 0:
            yield RULE.finding(
                f"optax.chain at {event.file.path}:{event.line} ends with the positive factor {values[0]:g}: "
                "apply_updates adds it, so every step climbs the loss",
                location(event),
                event.file.path,
                strength=Strength.DIRECT,
                measured={"kind": "scale", "factor": values[0]},
                patch=forms.opposite(event.file, event.node),
            )


_SIGNED = frozenset({
    "scale_by_learning_rate", "adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam", "radam",
    "scale_by_schedule", "amsgrad", "adafactor", "inject_hyperparams",
})  # fmt: skip


def _name(value: Value) -> str:
    if isinstance(value, Thing):
        return value.type
    return value.name.partition("@")[0] if isinstance(value, Symbol) else ""


def _first(value: Value) -> Value | None:
    return value.argument(0, "step_size") if isinstance(value, Thing) else Const(None)

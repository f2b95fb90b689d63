"""The parts of an optax chain stand in the wrong order, or get what they need from nobody.

A chain applies its parts in order. Weight decay behind the learning rate (`chain(adam(lr), add_decayed_weights(wd))`)
adds +wd * w to the update: the weights grow, undamped by the rate. Decay and trust ratios need the parameters:
`tx.update(grads, state)` without them raises.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Thing, Value

(RULE,) = pages("jax", ("C524",))
_RATES = frozenset({"adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam", "radam", "adafactor",
                    "scale_by_learning_rate", "scale_by_schedule", "novograd", "amsgrad"})  # fmt: skip
_NEEDS = frozenset({"add_decayed_weights", "adamw", "lamb", "lars", "scale_by_trust_ratio", "nadamw", "lion"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every chain, and at every update."""
    for event in project.calls("chain"):
        if event.name == "optax.chain":
            yield from _order(event)
    for event in project.calls("update"):
        owner = event.receiver
        given = len(event.args) + len([k for k in event.kwargs if k != "**"])
        if isinstance(owner, Thing) and given == 2 and "params" not in event.kwargs and "**" not in event.kwargs:
            part = _needing(owner)
            if part is not None and isinstance(event.node, ast.Call):
                yield _finding(
                    event,
                    f"calls update without the parameters, which {part} needs: it raises a ValueError",
                    "parameters",
                )


def _order(event: Event) -> Iterator[Finding]:
    names = [_name(a) for a in event.args]
    decays = [i for i, n in enumerate(names) if n == "add_decayed_weights"]
    rates = [i for i, n in enumerate(names) if n in _RATES]
    if decays and rates and min(decays) > max(rates) and "scale" not in names[max(rates) :]:
        yield _finding(
            event,
            f"adds decayed weights behind {names[max(rates)]}, which has applied the (negative) learning rate: the "
            "weights grow by that share in every step",
            "decay",
        )


def _name(value: Value) -> str:
    if isinstance(value, Thing):
        return value.short if value.type.startswith("optax.") else ""
    name = value.name.partition("@")[0] if isinstance(value, Symbol) else ""
    return name.rpartition(".")[2] if name.startswith("optax.") else ""


def _needing(owner: Thing) -> str | None:
    """The part of an optimizer that needs the parameters; lion and its kin only with decay, which adamw always has."""
    if owner.type == "optax.chain":
        return next((n for a in owner.args if (n := _name(a)) in _NEEDS - {"lion"}), None)
    known = owner.type.startswith("optax.") and owner.short in _NEEDS - {"lion"}
    return owner.short if known else None


def _finding(event: Event, why: str, kind: str) -> Finding:
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=forms.decay_first(event.file, event.node)
        if kind == "decay"
        else forms.parameters_passed(event.file, event.node),
    )

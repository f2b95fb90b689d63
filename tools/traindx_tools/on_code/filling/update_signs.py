"""By which number the chains of optax that are put together from parts multiply the gradient."""

from __future__ import annotations

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Operation, Symbol, Tensor, Thing, Value, number

_RATES = frozenset({"scale_by_learning_rate", "adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam",
                    "radam", "amsgrad", "adafactor", "inject_hyperparams"})
"""Parts that turn the sign themselves."""


def factor(project: Project, chain: Event) -> float | None:
    """The product of the factors of a chain of scale_by_* parts, of a schedule the largest number; None where it is not
    known, or where the updates are not applied as they come."""
    names = [_name(part) for part in chain.args]
    if chain.kwargs or not any("scale_by_" in n for n in names) or _RATES & {n.rpartition(".")[2] for n in names} or (
            not all(n.startswith("optax.") for n in names) or not _applied(project)):
        return None
    product, known = 1.0, False
    for part, name in zip(chain.args, names, strict=True):
        if name in ("optax.scale", "optax.scale_by_schedule") and isinstance(part, Thing):
            given = part.argument(0, "step_size" if name == "optax.scale" else "step_size_fn")
            value = number(given) if name == "optax.scale" else _peak(project, given)
            if value is None:
                return None
            product, known = product * value, True
    return product if known else None


def _name(part: Value) -> str:
    return part.type if isinstance(part, Thing) else part.name.partition("@")[0] if isinstance(part, Symbol) else ""


def _applied(project: Project) -> bool:
    """Whether what `update` gives is handed to apply_updates as it is."""
    given = [e.argument(1, "updates") for e in project.calls("apply_updates")]
    return any(isinstance(g, Symbol) and g.role == "item" and g.parent is not None
               and getattr(g.parent, "name", "").startswith("update@") for g in given)


def _peak(project: Project, schedule: Value | None) -> float | None:
    """The number of largest size that a schedule of optax is given, or one of those that it joins."""
    if not isinstance(schedule, Tensor):
        return None
    made = [e for e in project.events if e.site == schedule.site and e.name.startswith("optax.")]
    given = [i for e in made for v in (*e.args, *e.kwargs.values()) for i in (v.items if isinstance(v, Bag) else [v])]
    if any(isinstance(v, Operation) and v.op == "-" and len(v.operands) == 1 for v in given):
        return None
    known = [_peak(project, v) if isinstance(v, Tensor) and v.site != schedule.site else number(v) for v in given]
    numbers = [n for n in known if n is not None]
    return min(numbers) if any(n < 0 for n in numbers) else max(numbers, default=None)

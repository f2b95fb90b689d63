"""Updates with the wrong sign.

`optax.apply_updates` adds. The ready-made optimizers return negative multiples of the gradient; a chain put together
from `scale_by_*` parts needs `optax.scale(-lr)` or `scale_by_learning_rate(lr)` at its end; `scale_by_schedule` turns
no sign either. With a positive factor every step climbs the loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Symbol, Thing, Value, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C508",
    name="update-sign",
    title="Updates point up the gradient",
    severity=Severity.CRITICAL,
    sees="An optax chain of scale_by_* parts that ends with a positive scale or schedule.",
    matters="The loss rises from the first step.",
    alike=("a learning rate that is too high",),
    confirm=("print the loss before and after one step with a tiny learning rate",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every chain."""
    for event in project.calls("chain"):
        if event.name != "optax.chain" or event.kwargs or not event.args:
            continue
        names = [_name(a) or _written(event, i) for i, a in enumerate(event.args)]
        if not all(n.startswith("optax.") for n in names) or not any(".scale_by_" in n for n in names):
            continue
        around = f"{event.function.name if event.function else ''} {event.file.line(event.line)}"
        if any(n.rpartition(".")[2] in _SIGNED for n in names) or _ASCENT.search(around) or _GAIN.search(around):
            continue
        if "optax.scale_by_schedule" in names:
            yield from _scheduled(project, event, names)
            continue
        scales = [a for a, n in zip(event.args, names, strict=True) if n == "optax.scale"]
        values = [number(_first(s)) for s in scales]
        if len(scales) == 1 and values[0] is not None and values[0] > 0:
            yield RULE.finding(
                f"optax.chain at {event.file.path}:{event.line} ends with the positive factor {values[0]:g}: "
                "apply_updates adds it, so every step climbs the loss",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "scale", "factor": values[0]},
                patch=forms.opposite(event.file, event.node),
            )


_ASCENT = re.compile(r"ascen|advers|attack|perturb|maximi[sz]|dual|lagrang|\bsam\b|look_?ahead|extrapolat", re.I)
_GAIN = re.compile(r"reward|elbo|log_?p(rob|df)?\b|log_?lik|utility|score_fn|evidence", re.IGNORECASE)
"""What is maximised: its gradient is added."""


def _scheduled(project: Project, event: Event, names: list[str]) -> Iterator[Finding]:
    """A chain whose schedule is one of optax's, all of its numbers positive, and nothing turns the sign."""
    node, code = event.node, syntax(event.file)
    if "optax.scale" in names or not isinstance(node, ast.Call) or len(node.args) != len(names):
        return
    written_there: ast.expr | None = node.args[names.index("optax.scale_by_schedule")]
    holder = code.assigned(written_there) if isinstance(written_there, ast.Name) else written_there
    schedule = argument(holder, 0, "step_size_fn") if isinstance(holder, ast.Call) else None
    applied = any(e.name.endswith("apply_updates") for e in project.calls("apply_updates"))
    turned = any(f.mentions(_TURNED) for f in project.files if "optax" in f.text)
    if schedule is None or not applied or turned or not _positive(code, schedule):
        return
    last = node.args[-1]
    yield RULE.finding(
        f"optax.chain at {event.file.path}:{event.line} ends with scale_by_schedule({written(schedule)}), which is "
        "positive, and nothing turns the sign: apply_updates adds it, so every step climbs the loss",
        location(event), event.file.path, bearing=Bearing.CAUSE, measured={"kind": "schedule", "factor": None},
        patch=Change(event.file, "descend").insert(
            last.end_lineno or 0, last.end_col_offset or 0, f", {_prefix(node)}scale(-1.0)").patches(),
    )  # fmt: skip


def _prefix(chain: ast.Call) -> str:
    """`optax.` as the chain is written."""
    return f"{written(chain.func.value)}." if isinstance(chain.func, ast.Attribute) else ""


def _positive(code: Syntax, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is a schedule of optax without a negative number in it."""
    if isinstance(node, ast.Name):
        made = code.assigned(node)
        return made is not None and depth < 4 and _positive(code, made, depth + 1)
    if not isinstance(node, ast.Call) or last_name(node.func) not in _SCHEDULES:
        return False
    if any(isinstance(n, ast.USub) for n in ast.walk(node)):
        return False
    names = [n for a in (*node.args, *(k.value for k in node.keywords)) for n in below(a) if isinstance(n, ast.Name)]
    values = [code.assigned(n) for n in names]
    return not any(isinstance(n, ast.USub) for v in values if v is not None for n in ast.walk(v))


_SCHEDULES = frozenset({
    "warmup_cosine_decay_schedule", "cosine_decay_schedule", "exponential_decay", "constant_schedule",
    "linear_schedule",
    "polynomial_schedule", "piecewise_constant_schedule", "piecewise_interpolate_schedule", "join_schedules",
    "warmup_exponential_decay_schedule", "cosine_onecycle_schedule", "linear_onecycle_schedule", "sgdr_schedule",
    "warmup_constant_schedule",
})  # fmt: skip
_TURNED = re.compile(r"lambda\s+\w+(\s*,\s*\w+)*\s*:\s*(-|\w+\s*-)|\bneg(ative)?\(")
"""The sign is turned by hand: `tree_map(lambda u: -u, updates)`, `p - u`."""
_SIGNED = frozenset({
    "scale_by_learning_rate", "adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam", "radam",
    "amsgrad", "adafactor", "inject_hyperparams",
})  # fmt: skip


def _name(value: Value) -> str:
    if isinstance(value, Thing):
        return value.type
    return value.name.partition("@")[0] if isinstance(value, Symbol) else ""


def _written(event: Event, index: int) -> str:
    """The qualified name of a part that is made in the chain itself."""
    part = event.node.args[index] if isinstance(event.node, ast.Call) and index < len(event.node.args) else None
    return syntax(event.file).qualified(part.func) if isinstance(part, ast.Call) else ""


def _first(value: Value) -> Value | None:
    return value.argument(0, "step_size") if isinstance(value, Thing) else Const(None)

"""Adam's epsilon is 0 in the parameters' dtype.

optax keeps Adam's moments in the parameters' dtype. In float16 the default eps of 1e-8 is below the smallest number
(6e-8, half of it rounds to 0): an entry whose gradient has been exactly 0 so far, such as an embedding row that no
batch used, gets 0 / (sqrt(0) + 0) = NaN as its update.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.bounds import rounded
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Table, Tensor, Thing, Value, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C505",
    name="adam-eps-in-half",
    title="Adam's epsilon is 0 in float16",
    severity=Severity.HIGH,
    sees="optax's Adam family with its eps, initialised on parameters of dtype float16.",
    matters="0 / 0 in the first update of every parameter with a zero gradient: NaN weights.",
    alike=("overflow of activations in float16",),
    confirm=("jnp.float16(1e-8) == 0", "find which entries of the first update are NaN: those with zero gradient"),
    thresholds={
        "smallest float16": Threshold(2.0**-24, "absolute", "IEEE 754 binary16"),
        "default eps": Threshold(1e-8, "absolute", "optax.adam"),
    },
)
_ADAMS = frozenset(
    {"optax.adam", "optax.adamw", "optax.scale_by_adam", "optax.nadam", "optax.radam", "optax.lamb", "optax.amsgrad"}
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer state that is made."""
    makers = {id(e.result): e for e in project.events if e.kind == "call" and e.name in _ADAMS}
    for event in project.calls("init", "create"):
        optimizer = event.receiver if event.method == "init" else event.kwargs.get("tx")
        params = event.args[0] if event.args else event.kwargs.get("params")
        if optimizer is None or params is None or not any(t.dtype == "float16" for t in _leaves(params)):
            continue
        for adam in _adams(optimizer):
            eps = number(adam.kwargs.get("eps")) if "eps" in adam.kwargs else 1e-8
            if eps is not None and rounded(eps, "float16") == 0 and id(adam) in makers:
                yield _finding(makers[id(adam)], adam, eps, event)


def _adams(value: Value) -> Iterator[Thing]:
    if isinstance(value, Thing):
        if value.type in _ADAMS:
            yield value
        for inner in (*value.args, *value.kwargs.values()):
            yield from _adams(inner)


def _leaves(value: Value, depth: int = 0) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth < 6 and isinstance(value, Table):
        for inner in [*value.items.values(), *([value.rest] if value.rest else [])]:
            yield from _leaves(inner, depth + 1)
    elif depth < 6 and isinstance(value, Bag):
        for inner in value.items:
            yield from _leaves(inner, depth + 1)


def _finding(made: Event, adam: Thing, eps: float, init: Event) -> Finding:
    return RULE.finding(
        f"{made.file.segment(made.node)} at {made.file.path}:{made.line} has eps {eps:g}, which is 0 in the "
        "parameters' dtype "
        "float16: entries with zero gradient are updated by 0 / 0 = NaN",
        location(made),
        made.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "adam eps", "eps": eps, "dtype": "float16", "init_line": init.line},
        patch=_patch(made),
    )


def _patch(made: Event) -> tuple[Patch, ...]:
    node = made.node
    if not isinstance(node, ast.Call):
        return ()
    kept = [ast.unparse(a) for a in node.args]
    kept += [
        f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}"
        for k in node.keywords
        if k.arg != "eps"
    ]
    text = f"{ast.unparse(node.func)}({', '.join([*kept, 'eps=0.0001'])})"
    made_patch = patching.replace_text(made.file, node, text, "an epsilon that float16 can hold")
    return (made_patch,) if made_patch is not None else ()

"""An optax optimizer has no learning rate, a negative one, or the first value of a schedule.

`scale_by_adam()` and its kin give the direction up the gradient; without `scale_by_learning_rate(lr)` behind it the
weights climb, with steps of size 1. `adam(-1e-3)` turns the sign that adam has turned already. `adam(schedule(0))`
calls the schedule once, so that the rate stays where it begins: at 0 for a warm-up. `chain(scale_by_adam(), adam(lr))`
divides by the second moment twice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C548",
    name="optax-rate-left-out",
    title="An optax optimizer is put together without its learning rate",
    severity=Severity.CRITICAL,
    sees="scale_by_* as a whole optimizer, a negative learning rate, a schedule that is called instead of handed over, "
         "two optimizers in one chain.",
    matters="The loss rises from the first step, or the rate never moves.",
    alike=("a chain whose updates are scaled by hand", "ascent on purpose"),
    confirm=("print the updates of one step beside the gradients: signs have to be opposite",),
)  # fmt: skip
_OPTIMIZERS = frozenset({"adam", "adamw", "sgd", "rmsprop", "lion", "lamb", "adagrad", "nadam", "nadamw", "radam",
                         "adafactor", "adabelief", "yogi", "amsgrad", "adamax", "lars", "novograd"})  # fmt: skip
_DIRECTIONS = frozenset({"scale_by_adam", "scale_by_rms", "scale_by_lion", "scale_by_radam", "scale_by_amsgrad",
                         "scale_by_adamax", "scale_by_belief", "scale_by_yogi", "scale_by_stddev"})  # fmt: skip
_HARMLESS = frozenset({"clip", "clip_by_global_norm", "clip_by_block_rms", "adaptive_grad_clip", "zero_nans",
                       "add_decayed_weights", "centralize", "trace", "identity"})  # fmt: skip
_TURNED = re.compile(
    r"lambda\s+\w+(\s*,\s*\w+)*\s*:\s*(-|\w+\s*-)|neg(ative)?\b|\.scale\(|scale_by_learning_rate|"
    r"scale_by_schedule|-\s*(lr|learning_rate|step_size|eta)\b|ascen|maximi[sz]|advers|attack"
)
_ASCENDS = re.compile(r"ascen|maximi[sz]|advers|attack|\bdual|lagrang")
_SCHEDULES = re.compile(r"(schedule|exponential_decay)$")


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer of optax."""
    files = [f for f in project.files if "optax" in f.text]
    turned = any(f.mentions(_TURNED) for f in files)
    for file in files:
        code = syntax(file)
        for call in code.calls(*_OPTIMIZERS):
            if code.qualified(call.func).startswith("optax."):
                yield from _rate(code, call)
        if not turned:
            yield from (f for call in code.calls(*_DIRECTIONS) for f in _bare(code, call))
        for call in code.calls("chain"):
            yield from _twice(code, call)


def _rate(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    given = argument(call, 0, "learning_rate")
    value = code.number(given)
    name = last_name(call.func)
    if given is None:
        return
    if value is not None and value < 0 and not code.file.mentions(_ASCENDS):
        patch: tuple[Patch, ...] = ()
        if isinstance(given, ast.UnaryOp):
            patch = Change(code.file, "descend").replace(given, source_of(code.file, given.operand)).patches()
        yield _finding(code, given, "negative", f"{name} gets a learning rate of {value:g}: its updates have the minus "
                       "already, and every step climbs the loss", patch)  # fmt: skip
        return
    made = code.origin(given)
    if isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords:
        schedule = made.func if isinstance(made.func, ast.Call) else code.assigned(made.func)
        called = isinstance(schedule, ast.Call) and _SCHEDULES.search(last_name(schedule.func)) is not None
        if called and isinstance(schedule, ast.Call) and code.qualified(schedule.func).startswith("optax."):
            change = Change(code.file, "hand the schedule over")
            yield _finding(code, given, "called", f"{name} gets {written(made)[:70]}, the value of the schedule at one "
                           "step: the learning rate never moves",
                           change.replace(given, source_of(code.file, made.func)).patches()
                           if given is made else ())  # fmt: skip


def _bare(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    """A direction that is the whole optimizer, alone or in a chain of parts without a rate."""
    if not code.qualified(call.func).startswith("optax."):
        return
    whole: ast.expr = call
    up = code.parent(call)
    if isinstance(up, ast.Call) and code.qualified(up.func) == "optax.chain":
        parts = [last_name(a.func) if isinstance(a, ast.Call) else "" for a in up.args]
        if not all(p in _DIRECTIONS | _HARMLESS for p in parts):
            return
        whole = up
    if not _is_used(code, whole):
        return
    text = source_of(code.file, call)
    prefix = f"{written(call.func.value)}." if isinstance(call.func, ast.Attribute) else ""
    rate, change = f"{prefix}scale_by_learning_rate(1e-3)", Change(code.file, "with a learning rate")
    if isinstance(up, ast.Call) and whole is up:
        last = up.args[-1]
        change = change.insert(last.end_lineno or 0, last.end_col_offset or 0, f", {rate}")
    else:
        change = change.replace(call, f"{prefix}chain({text}, {rate})")
    why = f"{written(call)} has no learning rate behind it, which would turn the sign as well"
    yield _finding(code, call, "no rate", f"{why}: apply_updates adds steps of size 1 up the gradient",
                   change.patches())  # fmt: skip


def _is_used(code: Syntax, whole: ast.expr) -> bool:
    """Whether it is what a state is made with: `tx=...`, or a name that init is called on."""
    up = code.parent(whole)
    if isinstance(up, ast.keyword):
        return up.arg == "tx"
    target = up.targets[0] if isinstance(up, ast.Assign) and up.value is whole else None
    if not isinstance(target, ast.Name):
        return False
    scope = code.scope(whole)
    applied = "apply_updates" in code.file.text or "apply_gradients" in code.file.text
    return applied and any(
        (isinstance(n, ast.keyword) and n.arg == "tx" and written(n.value) == target.id)
        or (isinstance(n, ast.Call) and written(n.func) == f"{target.id}.init")
        for n in below(scope)
    )


def _twice(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    if code.qualified(call.func) != "optax.chain":
        return
    names = [last_name(a.func) if isinstance(a, ast.Call) else "" for a in call.args]
    whole = [n for n in names if n in _OPTIMIZERS]
    doubled = [n for n in names if n in _DIRECTIONS] if whole and whole[0] != "sgd" else []
    if doubled or len(whole) > 1:
        yield _finding(code, call, "twice", f"{written(call)[:80]} applies {doubled[0] if doubled else whole[0]} and "
                       f"then {whole[-1]} to what it gave: the gradient is divided by its size twice", ())  # fmt: skip


def _finding(code: Syntax, node: ast.AST, kind: str, why: str, patch: tuple[Patch, ...]) -> Finding:
    severity = {"called": Severity.HIGH, "twice": Severity.MEDIUM}.get(kind)
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"kind": kind}, patch=patch)  # fmt: skip

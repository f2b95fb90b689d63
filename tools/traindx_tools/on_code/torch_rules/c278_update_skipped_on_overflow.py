"""A step whose gradients overflowed is skipped by hand, and `scaler.update()` with it.

The loss scale starts high on purpose: the first overflows teach `GradScaler` a scale that fits, because
`scaler.step()` leaves such a step out and `scaler.update()` halves the scale. A guard of one's own, `if not
isfinite(norm): continue`, that stands between backward and update takes that lesson away: the scale stays where it is,
the next gradients overflow as well, and no step is ever taken. `unscale_` before the guard makes it an error: unscale_
was called already since the last update.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C278",
    name="update-skipped-on-overflow",
    title="scaler.update() is skipped when the gradients overflow",
    severity=Severity.HIGH,
    sees="A return, a continue or a condition on the gradient norm that keeps scaler.update() from being called.",
    matters="The loss scale is never lowered: every later step overflows as well and is skipped, nothing is learned.",
    alike=("a loss that is NaN by itself, which no scale changes",
           "a guard that lowers the scale with scaler.update(new_scale)"),
    confirm=("print scaler.get_scale() beside the skipped steps: it stays the same",),
)  # fmt: skip
_FINITE = re.compile(r"isfinite|isnan|isinf|nonfinite|non_finite|finite|overflow|\bmath\.inf\b|['\"]inf['\"]")
_GRADIENT = re.compile(r"norm|grad", re.IGNORECASE)
_LEAVES = (ast.Return, ast.Continue)


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of `update` on a gradient scaler."""
    files = [f for f in project.files if "update" in f.text and "scale" in f.text]
    if not any("GradScaler" in f.text for f in project.files):
        return
    for code in (syntax(f) for f in files):
        steps: dict[tuple[int, str], ast.Call] = {}  # the last `scaler.step(optimizer)` of a scaler in a function
        for step in code.calls("step"):
            if step.args and isinstance(step.func, ast.Attribute):
                steps[id(code.scope(step)), written(step.func.value)] = step
        for update in code.calls("update"):
            if update.args or update.keywords or not isinstance(update.func, ast.Attribute):
                continue
            scaler = update.func.value
            last = steps.get((id(code.scope(update)), written(scaler)))
            if last is None or _disabled(code, scaler):
                continue
            guard = _left(code, update) or _around(code, update)
            if guard is not None and not _beside(code, guard, scaler):
                yield _finding(code, update, last, guard)


def _left(code: Syntax, update: ast.Call) -> ast.If | None:
    """An earlier `if not isfinite(norm): return` of the block that the update stands in, or of one around it."""
    inner: ast.AST = code.statement(update) or update
    for up in (inner, *code.above(inner)):
        if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef)):
            break
        block = code.block(up)
        for statement in block[: block.index(up)] if isinstance(up, ast.stmt) and up in block else ():
            leaves = isinstance(statement, ast.If) and any(isinstance(n, _LEAVES) for n in statement.body)
            if leaves and isinstance(statement, ast.If) and _of_gradients(code, statement.test):
                return statement
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            break
    return None


def _around(code: Syntax, update: ast.Call) -> ast.If | None:
    """`if isfinite(norm):` around the update, where the other side has none."""
    for up in code.above(update):
        if isinstance(up, (*FunctionNode, ast.Lambda, ast.ClassDef, ast.For, ast.AsyncFor, ast.While)):
            break
        if isinstance(up, ast.If) and _of_gradients(code, up.test):
            return up
    return None


def _of_gradients(code: Syntax, test: ast.expr) -> bool:
    """Whether a condition asks if gradients are finite; a question about the loss is another matter."""
    parts = [test]
    for node in below(test):
        named = isinstance(node, (ast.Name, ast.Attribute)) and "loss" not in last_name(node).lower()
        made = code.assigned(node) if named else None
        parts += [made] if made is not None else []
    texts = " ".join(written(p) for p in parts)
    return bool(_FINITE.search(texts)) and bool(_GRADIENT.search(texts))


def _beside(code: Syntax, guard: ast.If, scaler: ast.expr) -> bool:
    """Whether the guard sees to the scale itself, on one of its sides or by a call that is given the scaler."""
    name = written(scaler)
    update = 0
    for node in below(guard):
        if not isinstance(node, ast.Call):
            continue
        if last_name(node.func) == "update" and isinstance(node.func, ast.Attribute):
            update += written(node.func.value) == name
        elif any(written(a) == name for a in node.args) or any(written(k.value) == name for k in node.keywords):
            return True
    inside = any(isinstance(n, _LEAVES) for n in guard.body)
    return update > (0 if inside else 1)


def _disabled(code: Syntax, scaler: ast.expr) -> bool:
    made = code.origin(scaler)
    if not isinstance(made, ast.Call):
        return False
    enabled = argument(made, 99, "enabled")
    if isinstance(enabled, ast.Constant) and enabled.value is False:
        return True
    return last_name(made.func) not in ("GradScaler", "ShardedGradScaler") and "Scaler" in last_name(made.func)


def _finding(code: Syntax, update: ast.Call, step: ast.Call, guard: ast.If) -> Finding:
    leaves = any(isinstance(n, _LEAVES) for n in guard.body)
    how = "leaves" if leaves else "goes on"
    return RULE.finding(
        f"`if {written(guard.test)[:60]}` at {code.at(guard)} {how} before {written(update.func)}() at line "
        f"{update.lineno} where the gradients are not finite: the loss scale is never lowered, so that every later "
        "step overflows too",
        code.place(guard),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "left" if leaves else "condition", "update_line": update.lineno, "step_line": step.lineno},
        patch=_patch(code, update, step, guard),
    )


def _patch(code: Syntax, update: ast.Call, step: ast.Call, guard: ast.If) -> tuple[Patch, ...]:
    """Step and update go in front of the guard, where they follow it at once: the step is left out by the scaler."""
    moved = [code.statement(step), code.statement(update)]
    block = code.block(guard)
    at = block.index(guard) if guard in block else -1
    if at < 0 or block[at + 1 : at + 3] != moved or not all(isinstance(m, ast.Expr) for m in moved):
        return ()
    change = Change(code.file, "let the scaler skip the step and lower its scale")
    for statement in moved:
        change = change.move_before(statement, guard)
    return change.patches()

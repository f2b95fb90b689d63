"""Timesteps are drawn beyond the noise schedule.

A schedule of T entries has the indices 0 to T - 1, and the upper end of randint is exclusive. `randint(1, T + 1)`
reaches T: an index error now and then (a device-side assert on a GPU), once in T draws of a sample.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C191",
    name="timestep-beyond-schedule",
    title="Timesteps are drawn beyond the noise schedule",
    severity=Severity.HIGH,
    sees="The upper end of randint for timesteps and the length of the schedule (linspace) that they index.",
    matters="An index error after some hundred steps, at random.",
    alike=("a schedule with an extra entry for t = 0",),
    confirm=("print(t.max(), len(betas))",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every draw of timesteps in a file with a schedule."""
    for file in project.files:
        if "randint" not in file.text or "beta" not in file.text or "linspace" not in file.text:
            continue
        code = syntax(file)
        lengths = _lengths(code)
        if len(lengths) != 1 or "torch.cat" in file.text or ".pad(" in file.text:
            continue
        (length,) = lengths.values()
        for call in code.calls("randint"):
            high = argument(call, 1, "high", "maxval") if _has_low(call) else argument(call, 0, "high")
            if high is not None and _is_time(code, call) and _beyond(code, high, length):
                yield _finding(code, call, high, length)


def _lengths(code: Syntax) -> dict[str, ast.expr]:
    """The lengths of the noise schedules of a file, by text."""
    found: dict[str, ast.expr] = {}
    for call in code.calls("linspace"):
        statement, steps = code.statement(call), argument(call, 2, "steps", "num")
        named = isinstance(statement, (ast.Assign, ast.Return)) and "beta" in written(statement).lower()
        if named and steps is not None:
            found[written(steps)] = steps
    return found


def _has_low(call: ast.Call) -> bool:
    plain = [a for a in call.args if not isinstance(a, (ast.Tuple, ast.List))]
    return len(plain) >= 2


def _is_time(code: Syntax, call: ast.Call) -> bool:
    statement = code.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Name) and target.id.lower() in ("t", "ts", "timesteps", "timestep", "steps", "time")


def _beyond(code: Syntax, high: ast.expr, length: ast.expr) -> bool:
    one_more = isinstance(high, ast.BinOp) and isinstance(high.op, ast.Add) and code.number(high.right) == 1
    if one_more and isinstance(high, ast.BinOp) and written(high.left) == written(length):
        return True
    top, size = code.number(high), code.number(length)
    return top is not None and size is not None and top > size


def _finding(code: Syntax, call: ast.Call, high: ast.expr, length: ast.expr) -> Finding:
    made = patching.replace_text(code.file, high, written(length), "the upper end is exclusive")
    patch: tuple[Patch, ...] = (made,) if made is not None else ()
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} draws timesteps up to {written(high)} - 1 for a schedule of "
        f"{written(length)} entries (indices up to {written(length)} - 1)",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "timestep"},
        patch=patch,
    )

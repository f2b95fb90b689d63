"""What was restored is made anew.

A model or an optimizer loads its state, and the same name is then bound to a fresh one (for a new learning rate, for
another phase): what was loaded is gone. The new optimizer starts without moments, the new model with random weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.names import is_optimizer, is_scheduler
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C204",
    name="made-anew-after-loading",
    title="What was restored is made anew",
    severity=Severity.HIGH,
    sees="load_state_dict of an object, and a later assignment of a new object to the same name.",
    matters="The run starts over although it says that it resumes.",
    alike=("a wrapper around the same object (DDP, compile)",),
    confirm=("print the state's size after the last construction: len(optimizer.state)",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every restored state."""
    for file in project.files:
        if "load_state_dict" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("load_state_dict"):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(owner, (ast.Name, ast.Attribute)):
                continue
            for statement, value in code.bindings(owner):
                if statement.lineno > call.lineno and _replaces(code, call, statement, value, owner):
                    yield _finding(code, call, statement, written(owner), _kind(code, value))
                    break


def _replaces(code: Syntax, call: ast.Call, statement: ast.stmt, value: ast.expr, owner: ast.expr) -> bool:
    if (
        not isinstance(value, ast.Call)
        or _kind(code, value) is None
        or written(owner) in {written(a) for a in value.args}
    ):
        return False
    if code.scope(statement) is not code.scope(call) or code.loops(statement) or code.loops(call):
        return False
    if last_name(owner) in names_in(value) or written(owner) in written(value):
        return False
    around = {id(a) for a in code.above(call)}
    inside = code.parent(statement)
    return inside is not None and id(inside) in around  # not in another branch


def _kind(code: Syntax, value: ast.expr) -> str | None:
    name = code.qualified(value.func) if isinstance(value, ast.Call) else ""
    if is_optimizer(name):
        return "optimizer"
    if is_scheduler(name):
        return "scheduler"
    own = {c.name for c in code.of(ast.ClassDef) if any("Module" in written(b) for b in c.bases)}
    return "model" if isinstance(value, ast.Call) and last_name(value.func) in own else None


def _finding(code: Syntax, call: ast.Call, statement: ast.stmt, name: str, kind: str | None) -> Finding:
    return RULE.finding(
        f"{name} is made anew at {code.at(statement)} after its state was loaded at line {call.lineno}: what was "
        "restored is lost",
        code.place(statement),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind or "object", "load_line": call.lineno},
        patch=order.loaded_afterwards(code.file, call, statement),
    )

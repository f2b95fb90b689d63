"""A donated buffer is used after the call.

`donate_argnums` hands an argument's memory to the result. On an accelerator the argument is gone after the call:
reading it raises "Array has been deleted". The caller has to go on with the result alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, parameters, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C518",
    name="donated-buffer-used",
    title="A donated buffer is used after the call",
    severity=Severity.HIGH,
    sees="An argument that jit donates and that is read again after the call without being bound anew.",
    matters="RuntimeError: Array has been deleted, on GPU and TPU (the CPU ignores donation).",
    alike=("an argument that the call's result replaces",),
    confirm=("run one step on the accelerator",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that is jitted with donation."""
    for file in project.files:
        if "donate_argn" not in file.text:
            continue
        code = syntax(file)
        for name, places in _donating(code).items():
            for call in code.calls(name):
                if isinstance(call.func, ast.Name):
                    yield from _judged(code, call, places)


def _donating(code: Syntax) -> dict[str, tuple[int, ...]]:
    """Names of functions and the positions that they donate."""
    found: dict[str, tuple[int, ...]] = {}
    for call in code.of(ast.Call):
        value = argument(call, 99, "donate_argnums")
        names = argument(call, 99, "donate_argnames")
        up = code.parent(call)
        if value is None and names is None:
            continue
        if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
            found[up.targets[0].id] = _numbers(value)
        elif isinstance(up, ast.FunctionDef):
            own = list(parameters(up))
            texts = [c.value for c in ast.walk(names) if isinstance(c, ast.Constant)] if names is not None else []
            found[up.name] = (*_numbers(value), *(own.index(str(t)) for t in texts if str(t) in own))
    return found


def _numbers(value: ast.expr | None) -> tuple[int, ...]:
    return tuple(c.value for c in ast.walk(value) if isinstance(c, ast.Constant) and isinstance(c.value, int)) if (
        value is not None) else ()  # fmt: skip


def _judged(code: Syntax, call: ast.Call, places: tuple[int, ...]) -> Iterator[Finding]:
    statement = code.statement(call)
    bound = {n for t in statement.targets for n in names_in(t)} if isinstance(statement, ast.Assign) else set()
    for place in places:
        given = call.args[place] if place < len(call.args) else None
        if not isinstance(given, ast.Name) or given.id in bound or isinstance(statement, ast.Return):
            continue
        again = _read_again(code, call, given.id)
        if again is not None:
            yield RULE.finding(
                f"{given.id} is donated to {last_name(call.func)} at {code.at(call)} and read again at line {again}: "
                "its buffer is gone by then",
                code.place(call),
                code.file.path,
                strength=Strength.DIRECT,
                measured={"kind": "donated", "name": given.id, "read_line": again},
            )
            return


def _read_again(code: Syntax, call: ast.Call, name: str) -> int | None:
    """The line at which the name is read after the call, before it is bound anew; in a loop the call itself counts."""
    own = {id(n) for n in ast.walk(call)}
    scope, loops = code.scope(call), code.loops(call)
    inside = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and code.scope(n) is scope]
    later = sorted((n for n in inside if n.lineno > call.lineno and id(n) not in own), key=lambda n: n.lineno)
    if later:
        return later[0].lineno if isinstance(later[0].ctx, ast.Load) else None
    if loops and not any(isinstance(n.ctx, ast.Store) and n in list(ast.walk(loops[0])) for n in inside):
        return call.lineno
    return None

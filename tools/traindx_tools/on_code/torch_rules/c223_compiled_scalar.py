"""A compiled function is given a Python number that changes in every step.

`torch.compile` specialises on the value of a Python number. Of an int it makes a symbol at the second value; a float
(a learning rate, a temperature, `loss.item()`) means one more compilation for each value until the limit of
recompilations (8) is reached and the function runs uncompiled. A tensor is data and compiles once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Loops, Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C223",
    name="compiled-scalar",
    title="A compiled function gets another Python number in every step",
    severity=Severity.INFO,
    sees="Calls of functions under torch.compile in a loop, with floats made from the loop's index, .item() or a rate.",
    matters="A compilation in every step, then the fallback to uncompiled code: slower than without compile.",
    alike=("shapes that change from batch to batch",),
    confirm=('TORCH_LOGS="recompiles" names the guard that failed',),
)
_CHANGES = re.compile(r"\.item\(\)|get_last_lr\(|param_groups|float\(")


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of something compiled."""
    for file in project.files:
        if "torch" not in file.text or "compile" not in file.text:
            continue
        code = syntax(file)
        compiled = _compiled(code)
        for call in code.of(ast.Call):
            name = written(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else ""
            loop = next(iter(code.loops(call)), None)
            if name not in compiled or not isinstance(loop, Loops):
                continue
            for given in (*call.args, *(k.value for k in call.keywords)):
                if _changes(code, given, loop):
                    yield RULE.finding(
                        f"{file.segment(call)} at {code.at(call)} hands the compiled {name} the Python number "
                        f"{written(given)}, which changes in every step: it compiles again for each value",
                        code.place(call),
                        file.path,
                        bearing=Bearing.SIGN,
                        measured={"kind": "scalar", "argument": written(given)},
                    )
                    break


def _compiled(code: Syntax) -> set[str]:
    """What is bound to torch.compile(...) or decorated with it."""
    names = {written(t) for c in code.calls("compile") if code.qualified(c.func) == "torch.compile"
             and isinstance(s := code.statement(c), ast.Assign) and s.value is c for t in s.targets}  # fmt: skip
    for function in code.of(ast.FunctionDef):
        marks = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
        if any(code.qualified(m) == "torch.compile" for m in marks):
            names.add(function.name)
    return names


def _changes(code: Syntax, given: ast.expr, loop: ast.AST) -> bool:
    """Whether a value is a Python float that is made anew in the loop."""
    origin = code.origin(given)
    inside = any(n is origin for n in below(loop))
    if isinstance(origin, ast.Call) and code.qualified(origin.func).startswith("torch."):
        return False
    if _CHANGES.search(written(origin)) and inside:
        return not any(
            isinstance(n, ast.Call) and last_name(n.func) in ("tensor", "as_tensor") for n in below(origin)
        )
    index = (
        names_in(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) and "range" in written(loop.iter) else set()
    )
    divides = any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.Pow)) for n in below(origin))
    return inside and divides and bool(names_in(origin) & index) and isinstance(origin, ast.BinOp)

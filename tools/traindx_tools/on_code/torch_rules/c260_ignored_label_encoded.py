"""A label that the cross entropy ignores is an index for another term of the loss.

`ignore_index=255` (or -100) lets the cross entropy skip pixels and tokens without a label. A second term that turns the
same target into a one-hot tensor (`F.one_hot`, `scatter_`) knows nothing of it: 255 is no channel, and the first batch
with such a label fails with an index out of bounds, on the GPU with a device-side assert. The target has to be clamped,
and its ignored places masked, before it is encoded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import (
    FunctionNode,
    Syntax,
    argument,
    last_name,
    names_in,
    parameters,
    syntax,
    written,
)

(RULE,) = pages("recipes", ("C260",))
_HANDLED = re.compile(r"clamp|clip|masked_fill|where\(|ignore|valid|void|!=|<|\[\w*(mask|keep|known|valid)\w*\]|%")
_LOSSES = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")
_CLASSES = 64
"""An ignore_index from 0 up to this may be one of the classes, as padding often is."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that gives one target to such a loss and to something else."""
    if not any("ignore_index" in f.text for f in project.files):
        return
    if not any("one_hot(" in f.text or "scatter" in f.text for f in project.files):
        return
    codes = [syntax(f) for f in project.files]
    for code in codes:
        for call, ignored in _losses(code):
            target = argument(call, 1, "target", "labels")
            around = code.scope(call)
            names = names_in(target) if target is not None else set()
            for name in sorted(names):
                for other in (n for n in below(around) if isinstance(n, ast.Call) and n is not call):
                    found = _encoded(codes, code, other, name)
                    if found is not None:
                        yield _finding(*found, call, code, ignored)
                        return


def _losses(code: Syntax) -> Iterator[tuple[ast.Call, str]]:
    """Calls of a cross entropy that ignores a label beyond the classes, and that label."""
    for call in code.calls(*_LOSSES):
        given = argument(call, 99, "ignore_index")
        if given is None:
            continue
        number = code.number(given)
        if number is not None and 0 <= number < _CLASSES:
            continue
        said = written(given) if number is None else f"{number:g}"
        if last_name(call.func).endswith("Loss"):
            statement = code.statement(call)
            kept = last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
            yield from ((use, said) for use in code.calls(kept) if kept)
        else:
            yield call, said


def _encoded(codes: list[Syntax], code: Syntax, call: ast.Call, name: str) -> tuple[Syntax, ast.Call] | None:
    """The one-hot encoding of a name's value: by this call, or in the function or module that it calls."""
    if _is_encoding(call, name):
        around = code.function(call)
        return (code, call) if around is None or not _handled(around, name) else None
    place = next((i for i, a in enumerate(call.args) if isinstance(a, ast.Name) and a.id == name), None)
    if place is None:
        return None
    for of_file, function in _called(codes, code, call):
        names = [p for p in parameters(function) if p != "self"]
        if place < len(names) and not _handled(function, names[place]):
            for inner in (n for n in below(function) if isinstance(n, ast.Call)):
                if _is_encoding(inner, names[place]):
                    return of_file, inner
    return None


def _called(codes: list[Syntax], code: Syntax, call: ast.Call) -> Iterator[tuple[Syntax, ast.FunctionDef]]:
    """The function of that name, or the forward of the module that an attribute or name of that name holds."""
    name = last_name(call.func)
    made = {last_name(v.func) for _, v in code.bindings(call.func) if isinstance(v, ast.Call)}
    for of_file in codes:
        methods = [f for n in ("forward", "__call__") for f in of_file.functions(n) if n != name] if made else []
        for function in (*of_file.functions(name), *methods):
            owner = of_file.owner(function)
            if (function.name == name and owner is None) or (
                    owner is not None and owner.name in made and function.name in ("forward", "__call__")):  # fmt: skip
                yield of_file, function


def _is_encoding(call: ast.Call, name: str) -> bool:
    kind = last_name(call.func)
    if kind == "one_hot":
        return bool(call.args) and name in names_in(call.args[0])
    return kind in ("scatter_", "scatter") and len(call.args) > 1 and name in names_in(call.args[1])


def _handled(function: ast.AST, name: str) -> bool:
    """Whether a function does something about labels beyond the classes."""
    body = function.body if isinstance(function, FunctionNode) else []
    lines = [written(s) for s in body if name in names_in(s)]
    return any(_HANDLED.search(line.replace("ignore_index", "")) for line in lines)


def _finding(code: Syntax, call: ast.Call, loss: ast.Call, where: Syntax, ignored: str) -> Finding:
    return RULE.finding(
        f"{written(call)[:80]} at {code.at(call)} makes the raw target one-hot, and the target holds the ignore label "
        f"{ignored}, which only the cross entropy at {where.at(loss)} skips (ignore_index): no channel of the one-hot",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "ignored", "label": ignored},
    )

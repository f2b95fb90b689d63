"""A call or a layer written in another form (C143, C144, C180, C214, optax)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.repairs.names import reads
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax


def keyword_given(file: SourceFile, call: ast.AST, name: str, value: str, summary: str) -> tuple[Patch, ...]:
    """A call with one keyword argument more, or with another value for it."""
    return Change(file, summary).pass_argument(call, name, value).patches() if isinstance(call, ast.Call) else ()


def registered(file: SourceFile, value: ast.expr) -> tuple[Patch, ...]:
    """nn.ModuleList around a list of layers, nn.ModuleDict around a dict."""
    code = syntax(file)
    library = next((k for k, v in code.aliases.items() if v == "torch.nn"), None)
    library = library or ("torch.nn" if "torch" in code.aliases else None)
    kind = "ModuleDict" if isinstance(value, (ast.Dict, ast.DictComp)) else "ModuleList"
    if library is None or not isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
        return ()
    if isinstance(value, ast.List) and not value.elts:
        return ()
    return Change(file, "register the layers").wrap(value, f"{library}.{kind}(", ")").patches()


def kept_result(file: SourceFile, node: ast.AST) -> tuple[Patch, ...]:
    """What an update returns bound to the names that went in."""
    code = syntax(file)
    statement = code.statement(node)
    change = Change(file, "keep what the update returns")
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if last_name(call.func) == "apply_updates" and call.args and isinstance(call.args[0], ast.Name):
            return change.insert(statement.lineno, statement.col_offset, f"{call.args[0].id} = ").patches()
        if last_name(call.func) == "apply_gradients" and isinstance(owner, ast.Name):
            return change.insert(statement.lineno, statement.col_offset, f"{owner.id} = ").patches()
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        target, call = statement.targets[0], statement.value
        state = argument(call, 1, "state")
        if last_name(call.func) != "update" or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return ()
        thrown = target.elts[1]
        unread = isinstance(thrown, ast.Name) and not any(thrown.id in reads(s) for s in change.block(statement))
        if unread and isinstance(state, ast.Name):
            return change.replace(thrown, state.id).patches()
    return ()


def operand(code: Syntax, call: ast.Call) -> ast.expr | None:
    """What a function of one array is applied to: x of f(x), of library.f(x) and of x.f()."""
    called = call.func
    if isinstance(called, ast.Attribute) and not code.qualified(called):
        return called.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None

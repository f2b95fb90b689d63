"""Ranks that start from different weights (C116), or call a collective unequally often (C117)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written

_SAYS = re.compile(r"^(print|tqdm\.write|(\w+\.)*(log|logger|logging|lg)\w*(\.\w+)?|(\w+\.)+(info|debug|warning))$")
_RANK = re.compile(r"rank|is_(local_)?(main|master|global_zero|world_process_zero)", re.IGNORECASE)
_WAITS = ("barrier", "monitored_barrier", "wait_for_everyone")


def reached_by_all(file: SourceFile, condition: ast.AST, node: ast.AST) -> tuple[Patch, ...]:
    """The call that reaches a collective taken out of a condition on the rank, in front of it or behind it."""
    code = syntax(file)
    statement = code.statement(node)
    if not isinstance(condition, ast.If) or condition.orelse or statement is None or not isinstance(node, ast.Call):
        return ()
    if not any(s is statement for s in condition.body) or _in_an_arm(code, condition):
        return ()
    change = Change(file, "let every rank call it")
    before = condition.body[: condition.body.index(statement)]
    if isinstance(statement, ast.Expr) and statement.value is node and last_name(node.func) in _WAITS:
        return change.move_after(statement, condition).patches() if statement is condition.body[-1] else ()
    if not all(_only_says(s) for s in before) or _comes_late(statement, code.above(node)):
        return ()
    if not _known_everywhere(code, node):
        return ()
    if getattr(statement, "value", None) is node:
        return change.move_before(statement, condition).patches()
    name = next(n for n in ("result", "gathered", "for_all_ranks") if n not in names_in(code.scope(node)))
    return change.before(condition, f"{name} = {source_of(file, node)}").replace(node, name).patches()


def _in_an_arm(code: Syntax, condition: ast.If) -> bool:
    """Whether the condition is an `elif`, or stands under another one on the rank."""
    up = code.parent(condition)
    if isinstance(up, ast.If) and any(s is condition for s in up.orelse):
        return True
    return _on_some_ranks(code, condition)


def _on_some_ranks(code: Syntax, node: ast.AST) -> bool:
    return any(isinstance(a, ast.If) and _RANK.search(written(a.test)) for a in code.above(node))


def _known_everywhere(code: Syntax, node: ast.Call) -> bool:
    """Whether no name in the call is bound under a condition on the rank."""
    names = [n for n in below(node) if isinstance(n, ast.Name)]
    return not any(_on_some_ranks(code, s) for n in names for s, _ in code.bindings(n))


def _only_says(statement: ast.stmt) -> bool:
    """Whether a statement prints or logs and changes nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and bool(
        _SAYS.match(written(statement.value.func)))  # fmt: skip


def _comes_late(statement: ast.stmt, above: Iterable[ast.AST]) -> bool:
    """Whether a call happens only sometimes, or many times, when its statement runs."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return True
    some = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp)
    return any(isinstance(a, some) for a in above if getattr(a, "lineno", 0) >= statement.lineno)


def wrapped_again(code: Syntax, thaw: ast.AST, wrapper: ast.AST) -> tuple[Patch, ...]:
    """`net = DDP(net.module, ...)` behind what unfreezes a part, so that the hooks cover what is trained now."""
    made, statement = code.statement(wrapper), code.statement(thaw)
    loop = code.parent(statement) if statement is not None else None
    if isinstance(loop, ast.For) and loop.body == [statement]:
        statement = loop
    target = made.targets[0] if isinstance(made, ast.Assign) and made.value is wrapper else None
    if not isinstance(wrapper, ast.Call) or not wrapper.args or statement is None or target is None:
        return ()
    own = isinstance(target, ast.Attribute) and written(target.value) == "self"
    near = code.owner(thaw) is code.owner(wrapper) is not None if own else (
        isinstance(target, ast.Name) and code.scope(thaw) is code.scope(wrapper))  # fmt: skip
    text, first = source_of(code.file, wrapper), source_of(code.file, wrapper.args[0])
    if not near or "\n" in text or not text.startswith(f"{source_of(code.file, wrapper.func)}({first}"):
        return ()
    name = written(target)
    if any(written(other.value) == name for other in code.of(ast.Assign)):
        return ()  # the old wrapper would go on under another name
    again = text.replace(f"({first}", f"({name}.module", 1)
    return Change(code.file, "wrap the model again").after(statement, f"{name} = {again}").patches()

"""Learning-rate schedules (C110): stepped elsewhere, built for all processes, built from where the run goes on."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event, Place


def per_epoch(step: Event) -> tuple[Patch, ...]:
    """The step of a scheduler that counts epochs, behind the loop over batches."""
    code = syntax(step.file)
    statement, inner = code.statement(step.node), next(iter(code.loops(step.node)), None)
    if not _is_step(statement) or not isinstance(inner, ast.stmt) or code.parent(statement) is not inner:  # type: ignore[arg-type]
        return ()
    if not code.loops(inner) and code.function(inner) is None:
        return ()  # no loop over epochs around it
    return Change(step.file, "step the schedule once per epoch").move_after(statement, inner).patches()


def _is_step(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not statement.value.args


def goes_on(load: Place, built: Place) -> tuple[Patch, ...]:
    """A scheduler that goes on where the checkpoint was written: its state loaded, or its first step given."""
    file = load.event.file
    code = syntax(file)
    node = _call_beside(built, load)
    statement = code.statement(node) if node is not None else None
    if node is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ()
    name = statement.targets[0]
    return _loaded(file, code, load.event, statement, name) or _begun(file, code, node, name)


def _call_beside(built: Place, load: Place) -> ast.Call | None:
    """The call, in the function that loads, by which the scheduler is made."""
    calls = [b.node for b in built.path if b.kind == "call"] + [built.event.node]
    wanted = load.event.function.node if load.event.function else None
    code = syntax(load.event.file)
    found = [n for n in calls if isinstance(n, ast.Call) and code.parent(n) is not None and code.function(n) is wanted]
    return found[0] if found else None


def _loaded(file: SourceFile, code: Syntax, load: Event, statement: ast.Assign, name: ast.expr) -> tuple[Patch, ...]:
    """Where the checkpoint holds the scheduler's state: load it, and the optimizer's after it was built."""
    state = f"{written(name)}.state_dict()"
    saved = [k for d in code.of(ast.Dict) for k, v in zip(d.keys, d.values, strict=True) if written(v) == state]
    keys = [k.value for k in saved if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    given = load.node.args[0] if isinstance(load.node, ast.Call) and load.node.args else None
    loading = code.statement(load.node)
    if len(set(keys)) != 1 or not isinstance(given, ast.Subscript) or loading is None:
        return ()
    change = Change(file, "load the schedule's state, and the optimizer's after it was built")
    if code.parent(loading) is not code.parent(statement):
        return ()
    quoted = source_of(file, given.slice)[:1]
    load_it = f"{written(name)}.load_state_dict({source_of(file, given.value)}[{quoted}{keys[0]}{quoted}])"
    text = "\n".join(file.line(n).strip() for n in range(loading.lineno, (loading.end_lineno or loading.lineno) + 1))
    return change.delete(loading).after(statement, f"{text}\n{load_it}").patches()


def _begun(file: SourceFile, code: Syntax, node: ast.Call, name: ast.expr) -> tuple[Patch, ...]:
    """Where the loop that steps it counts from a number that the checkpoint sets: begin the schedule there."""
    function = code.scope(node)
    step = f"{written(name)}.step"
    steps = [c for c in code.calls("step") if written(c.func) == step and code.scope(c) is function]
    loop = next(iter(code.loops(steps[0])), None) if len(steps) == 1 else None
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
        return ()
    start = loop.iter.args[0] if len(loop.iter.args) >= 2 else None
    if not isinstance(start, ast.Name) or not _zero_then_loaded(code, start) or isinstance(function, ast.Module):
        return ()
    if argument(node, 99, "last_epoch") is not None or last_name(node.func) in ("OneCycleLR", "SequentialLR"):
        return ()
    change = Change(file, "begin the schedule where the checkpoint was written")
    return change.pass_argument(node, "last_epoch", f"{start.id} - 1").patches()


def _zero_then_loaded(code: Syntax, start: ast.Name) -> bool:
    values = [v for _, v in code.bindings(start)]
    return len(values) == 2 and any(isinstance(v, ast.Constant) and v.value == 0 for v in values)


def bound_between(code: Syntax, first: ast.stmt, last: ast.stmt, names: set[str]) -> bool:
    """Whether any of these names is bound on the lines from one statement up to, not including, another."""
    scope = code.scope(last)
    for node in below(scope):
        line = getattr(node, "lineno", 0)
        if not first.lineno <= line < last.lineno:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            return True
        if isinstance(node, (*FunctionNode, ast.ClassDef)) and node.name in names:
            return True
    return False


def reads(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {n.id for n in below(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

"""The state of an optax optimizer is made anew for every update.

`tx.init(params)` makes empty moments and a step count of 0. Beside the update, in the loop over batches or in the step
that the loop calls, every update starts from them: Adam is the sign of one batch's gradient times the rate, momentum
never builds up, and a schedule stays at its first value. The state has to be made once, handed to the step and taken
back from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.steps_of import calls_of, loops_around
from traindx_tools.on_code.syntax import Syntax, last_name, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C534",
    name="optimizer-state-made-anew",
    title="The state of an optax optimizer is made anew for every update",
    severity=Severity.HIGH,
    sees="init of an optimizer with state, or an nnx.Optimizer, in the same loop body, or the same called step, as its "
         "update; a state that a step is given and overwrites with a new one.",
    matters="No moments, no momentum, and a schedule that stays at its first value.",
    alike=("an inner loop that adapts a copy", "one state for each of several runs"),
    confirm=("print(opt_state[0].count): it is 1 after every step",),
)
_STATELESS = re.compile(r"optax\.(sgd\((?!.*momentum)|scale\(|identity\(|clip|noisy_sgd|sign_sgd)")
_OPTIMIZERS = re.compile(r"(^|[._])(tx|opt|optim|optimi[sz]er)\w*$", re.IGNORECASE)
_INSIDE = re.compile(r"\b(fori_loop|while_loop|scan)\(")


def check(project: Project) -> Iterator[Finding]:
    """Look at every init of an optimizer."""
    if not any("optax" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        if "nnx" in code.file.text:
            yield from _held(look, code)
        if "optax" not in code.file.text or ".init(" not in code.file.text:
            continue
        for call in code.calls("init"):
            update = _updated_beside(look, code, call)
            if update is not None:
                yield _finding(look, code, call, update)


def _updated_beside(look: Lookup, code: Syntax, call: ast.Call) -> ast.Call | None:
    """The update that gets this state and no other, each time."""
    if not isinstance(call.func, ast.Attribute) or not call.args:
        return None
    owner = call.func.value
    loops, body = code.loops(call), code.function(call)
    around: ast.AST = loops[0] if loops else body if body is not None else code.file.tree
    if isinstance(around, ast.Module) or (body is not None and body.name in ("__init__", "setup", "main")
                                          and not loops):  # fmt: skip
        return None
    statement = code.statement(call)
    kept = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if kept is None or not isinstance(kept, (ast.Name, ast.Tuple)):
        return None
    names = {n.id for n in below(kept) if isinstance(n, ast.Name)}
    updates = [n for n in below(around) if isinstance(n, ast.Call) and last_name(n.func) == "update"]
    if not updates or not _with_state(look, code, owner):
        return None
    for update in updates:
        same = isinstance(update.func, ast.Attribute) and written(update.func.value) == written(owner)
        given = len(update.args) > 1 and isinstance(update.args[1], ast.Name) and update.args[1].id in names
        if not same or not given or code.loops(update) != loops or code.function(update) is not body:
            continue
        if _conditional(code, call, around) or update.lineno < call.lineno:
            return None
        if loops:
            return update if _long(look, code, loops[0], around) else None
        if body is None or _INSIDE.search(written(body)):
            return None
        if names & set(parameters(body)) and update.lineno > call.lineno and not _read_before(body, call, names):
            return update  # the state that comes in is overwritten before anything has read it
        if not loops_around(look, code, call):
            return None
        return update if _called_each_step(look, code, call) and not _returned(body, names) else None
    return None


def _read_before(body: ast.AST, call: ast.Call, names: set[str]) -> bool:
    """Whether the state that the step was given is read in front of the new one."""
    return any(isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) and n.lineno <= call.lineno
               for n in below(body))  # fmt: skip


def _held(look: Lookup, code: Syntax) -> Iterator[Finding]:
    """An nnx.Optimizer that is made beside its only update, in the step or in the loop."""
    for call in code.calls("Optimizer", "ModelAndOptimizer"):
        body, statement, loops = code.function(call), code.statement(call), code.loops(call)
        if not code.qualified(call.func).startswith("flax.nnx.") or not isinstance(statement, ast.Assign):
            continue
        name = written(statement.targets[0])
        around: ast.AST | None = loops[0] if loops else body
        if around is None or _conditional(code, call, around) or _STATELESS.match(_expanded(code, code.origin(
                call.args[1]) if len(call.args) > 1 else call)):  # fmt: skip
            continue
        updates = [c for c in code.calls("update") if written(c.func) == f"{name}.update"
                   and code.function(c) is body and c.lineno > call.lineno]  # fmt: skip
        beside = [c for c in updates if code.loops(c) == loops]
        model = written(call.args[0]) if call.args else ""
        inside = list(below(around))
        kept = any(isinstance(n, ast.Return) and n.value is not None and name in written(n.value) for n in inside)
        made = any(isinstance(n, ast.Assign) and written(n.targets[0]) == model for n in inside)
        if not beside or kept or made:
            continue
        if loops or (loops_around(look, code, call) and body is not None and model in parameters(body)):
            yield _finding(look, code, call, beside[0])


def _with_state(look: Lookup, code: Syntax, owner: ast.expr) -> bool:
    """Whether it is an optimizer, by where it was made or by its name, and has a state that matters."""
    of, made = look.origin(code, owner)
    known = isinstance(made, ast.Call) and of.qualified(made.func).startswith("optax.")
    return (known or bool(_OPTIMIZERS.search(written(owner)))) and not (known and _STATELESS.match(_expanded(of, made)))


def _expanded(code: Syntax, made: ast.expr) -> str:
    """The text of an optimizer with the full name of its maker."""
    return f"{code.qualified(made.func)}({', '.join(map(written, [*made.args, *made.keywords]))})" if isinstance(
        made, ast.Call) else ""  # fmt: skip


def _conditional(code: Syntax, call: ast.Call, around: ast.AST) -> bool:
    """Whether the state is made only sometimes: `if state is None`, at the start of a stage."""
    for up in code.above(call):
        if up is around:
            return False
        if isinstance(up, (ast.If, ast.IfExp, ast.Try)):
            return True
    return False


def _long(look: Lookup, code: Syntax, loop: ast.AST, around: ast.AST) -> bool:
    """Whether a loop goes on from the parameters of its last pass, over more than a few things."""
    over = getattr(loop, "iter", None)
    if isinstance(over, (ast.Tuple, ast.List)):
        return False
    bound = {n.id for n in below(around) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    applied = [n for n in below(around) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
               and last_name(n.value.func) == "apply_updates"]  # fmt: skip
    for one in applied:
        target = written(one.targets[0])
        given = {n.id for n in below(one.value) if isinstance(n, ast.Name)}
        begun = [n for n in below(around) if isinstance(n, ast.Assign) and n is not one
                 and any(written(t) == target for t in n.targets)]  # fmt: skip
        if target in given and target in bound and not begun:
            return True
    return False


def _called_each_step(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether the loop that calls the step keeps the parameters that it returns."""
    body = code.function(call)
    if body is None or not any(isinstance(n, ast.Call) and last_name(n.func) == "apply_updates" for n in below(body)):
        return False
    for other, made in calls_of(look, code, body):
        statement = other.statement(made)
        few = all(isinstance(getattr(x, "iter", None), (ast.Tuple, ast.List)) for x in other.loops(made))
        if not isinstance(statement, ast.Assign) or statement.value is not made:
            continue
        target = statement.targets[0]
        kept = {written(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])}
        if not (few and other.loops(made)) and kept & {written(a) for a in made.args}:
            return True
    return False


def _returned(body: ast.AST, names: set[str]) -> bool:
    """Whether the step hands its state back, to be kept by the caller."""
    for node in below(body):
        if isinstance(node, ast.Return) and node.value is not None:
            inside = {n.id for n in below(node.value) if isinstance(n, ast.Name)}
            if inside & names:
                return True
    return False


def _finding(look: Lookup, code: Syntax, call: ast.Call, update: ast.Call) -> Finding:
    around = loops_around(look, code, call)
    inside = f"in {getattr(code.function(call), 'name', 'a function')}, which is given one"
    if around:
        of, loop = around[0]
        inside = f"in the loop at line {getattr(loop, 'lineno', 1)}" if code.loops(call) else (
            f"in {getattr(code.function(call), 'name', 'a function')}, which the loop at {of.at(loop)} calls")
    return RULE.finding(
        f"{written(call)[:60]} at {code.at(call)} makes the state of the optimizer anew {inside}, and the update at "
        f"line {update.lineno} uses it: moments, momentum and step count start from zero every time",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "anew"},
    )

"""The result of an update is thrown away.

Nothing in JAX changes in place: `optax.apply_updates`, `state.apply_gradients` and a jitted train step return new
values. A call as a statement, an unpacking into a name that is never read, or an optimizer state that is not carried
on leave the old values in use: parameters that never change, or an Adam whose moments start from zero in every step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.definitions import FunctionNode, own_nodes
from traindx_tools.on_code.dropped_updates import Dropped, dropped
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import argument, last_name, syntax, written
from traindx_tools.on_code.values import Bag, Symbol, Table, Thing, Value, parts
from traindx_tools.rules import Rule

RULE = Rule(
    id="C506",
    name="update-dropped",
    title="The result of an update is thrown away",
    severity=Severity.CRITICAL,
    sees="Results of apply_updates, apply_gradients, an optimizer update or a train step that nothing reads.",
    matters="Training goes through all motions and the parameters, or the optimizer state, stay as they were.",
    alike=("a learning rate of 0", "gradients that are stopped"),
    confirm=("compare a leaf of params before and after a step",),
)

_APPLY = ("optax.apply_updates", "equinox.apply_updates")


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that calls an update."""
    if not any("optax" in f.text or "apply_gradients" in f.text for f in project.files):
        return
    names = {id(e.node): e.name for e in project.events if e.kind == "call"
             and ("apply_gradients" not in e.name or "keras" not in e.file.text)}  # that of Keras updates in place
    owners = {id(e.node): e.receiver for e in project.calls("update")}
    results = _returned(project)
    steps = {id(b.node): b.function.node for b in project.blocks if b.kind == "call" and b.function is not None}
    told: set[tuple[str, int]] = set()
    for file in project.files:
        if "optax" not in file.text and "apply_gradients" not in file.text:
            continue
        code = syntax(file)
        looping = {id(code.scope(n)) for kind in (ast.For, ast.While) for n in code.of(kind)}
        for scope in _scopes(file) if looping else ():
            if id(scope) not in looping:
                continue
            body = scope.body
            nodes = list(own_nodes(body))
            repeated = {id(n) for loop in nodes if isinstance(loop, (ast.For, ast.While)) for n in below(loop)}
            if not repeated:
                continue
            read = {n.id for n in _deep(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            for node in nodes:
                if id(node) not in repeated:
                    continue
                why = _dropped(node, names, owners, results, read)
                if why:
                    told.add((file.path, getattr(node, "lineno", 0)))
                    yield _finding(file, node, why, steps)
        for lost in dropped(lookup(project), code):
            if (file.path, lost.call.lineno) not in told:
                yield _lost(lost)


def _scopes(file: SourceFile) -> Iterator[ast.Module | ast.FunctionDef | ast.AsyncFunctionDef]:
    yield file.tree
    for node in below(file.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _deep(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from below(statement)


def _returned(project: Project) -> dict[int, Value]:
    """What followed calls returned, by their node."""
    return {id(b.node): b.result for b in project.blocks if b.kind == "call" and b.result is not None}


def _dropped(
    node: ast.AST, names: dict[int, str], owners: dict[int, Value | None], results: dict[int, Value], read: set[str]
) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = names.get(id(node.value), "")
        if name in _APPLY or name.endswith(".apply_gradients"):
            return f"{ast.unparse(node.value.func)}() returns new values and its result is not used"
        return None
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return None
    unread = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Name) and t.id not in read]
    owner = owners.get(id(node.value))
    if isinstance(owner, Thing) and _has_state(owner) and len(target.elts) == 2 and 1 in unread:
        return "the new optimizer state is not kept: moments and step counts start anew in every step"
    result = results.get(id(node.value))
    if isinstance(result, Bag) and not result.open and len(result.items) == len(target.elts):
        for i in unread:
            if _is_updated(result.items[i]):
                return f"the updated parameters that {ast.unparse(node.value.func)}() returns are not kept"
            carried = any(_is_updated(v) for j, v in enumerate(result.items) if j not in unread)
            if carried and _is_state(result.items[i]):
                return (f"the new optimizer state that {ast.unparse(node.value.func)}() returns is not kept: moments "
                        "start anew in every step, and a schedule of the learning rate stays at its first value")
    return None


_STATEFUL = frozenset({"adam", "adamw", "lion", "lamb", "rmsprop", "nadam", "radam", "adagrad", "amsgrad", "adafactor",
                       "scale_by_adam", "trace"})  # fmt: skip


def _has_state(owner: Thing) -> bool:
    """Whether it is an optimizer whose state matters: moments, momentum."""
    if owner.type == "optax.chain":
        return any(isinstance(a, Thing) and _has_state(a) for a in owner.args)
    momentum = owner.type == "optax.sgd" and owner.argument(1, "momentum") is not None
    return momentum or (owner.type.startswith("optax.") and owner.short in _STATEFUL)


def _is_updated(value: Value) -> bool:
    if isinstance(value, Symbol):
        names = [p.name for p in parts(value) if isinstance(p, Symbol)]
        return any(n.startswith(("apply_gradients@", *(f"{a}@" for a in _APPLY))) for n in names[:2])
    if isinstance(value, Table):
        return any(_is_updated(v) for v in value.items.values())
    return False


def _is_state(value: Value) -> bool:
    """Whether it is the second of what an optimizer's update returned."""
    update = value.parent if isinstance(value, Symbol) and (value.role, value.name) == ("item", "1") else None
    return (isinstance(update, Symbol) and update.role == "call" and update.name.startswith("update@")
            and isinstance(update.parent, Thing) and _has_state(update.parent))


def _kept_state(file: SourceFile, node: ast.AST, steps: dict[int, FunctionNode]) -> tuple[Patch, ...]:
    """The state bound to the name that went in, where the step hands that one to the optimizer's update."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return ()
    target, step = node.targets[0], steps.get(id(node.value))
    if step is None or isinstance(step, ast.Lambda) or not isinstance(target, ast.Tuple):
        return ()
    updates = [(n.value, n.targets[0]) for n in below(step) if isinstance(n, ast.Assign)
               and isinstance(n.value, ast.Call) and last_name(n.value.func) == "update"]
    names = [a.arg for a in (*step.args.posonlyargs, *step.args.args)]
    made = updates[0][1] if len(updates) == 1 else None
    given = argument(updates[0][0], 1, "state") if len(updates) == 1 else None
    if not isinstance(given, ast.Name) or given.id not in names or not isinstance(made, ast.Tuple):
        return ()
    went_in, new = argument(node.value, names.index(given.id), given.id), written(made.elts[-1])
    returns = [n.value for n in below(step) if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    at = [i for r in returns for i, e in enumerate(r.elts) if written(e) == new]
    if len(at) != 1 or not isinstance(went_in, ast.Name):
        return ()
    return Change(file, "keep the optimizer's state").replace(target.elts[at[0]], went_in.id).patches()


def _lost(lost: Dropped) -> Finding:
    """An update whose result does not leave the function that makes it."""
    code, called = lost.code, f"{written(lost.call.func)}()"
    if lost.kind == "parameters":
        why = f"{called} returns new values and its result is not used: the parameters stay as they were"
        patch = forms.kept_result(code.file, lost.call)
    else:
        kept = " and the old one is returned" if lost.known else ""
        why = (f"the new optimizer state that {called} returns is not kept{kept}: moments start anew in every step, "
               "and a schedule of the learning rate stays at its first value")  # fmt: skip
        bound = isinstance(lost.target, ast.Name) and isinstance(lost.state, ast.Name)
        patch = Change(code.file, "keep the optimizer's state").replace(
            lost.target, written(lost.state)).patches() if lost.known and bound else ()
    return RULE.finding(
        f"At {code.at(lost.call)} {why}",
        code.place(lost.call),
        code.file.path,
        bearing=Bearing.CAUSE if lost.known else Bearing.SIGN,
        severity=Severity.CRITICAL if lost.known else Severity.HIGH,
        measured={"kind": lost.kind},
        patch=patch,
    )


def _finding(file: SourceFile, node: ast.AST, why: str, steps: dict[int, FunctionNode]) -> Finding:
    line = getattr(node, "lineno", 1)
    kind = "state" if "optimizer state" in why else "parameters"
    return RULE.finding(
        f"At {file.path}:{line} {why}",
        Location(file=file.path, line=line, quote=file.line(line).strip()[:200]),
        file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=forms.kept_result(file, node) or (_kept_state(file, node, steps) if kind == "state" else ()),
    )

"""What is taken out of a checkpoint and is gone before anybody reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.nodes import pairs_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler
from traindx_tools.on_code.unread import ANY_FILE, Place, Unread
from traindx_tools.on_code.values import Symbol, library_of, parts
from traindx_tools.program.moments import Spot
from traindx_tools.program.parts import RestoredLost

_GENERATORS = frozenset({"default_rng", "RandomState", "Generator", "Random", "PRNGKey", "key"})


def restored_lost(project: Project, look: Lookup) -> Iterator[RestoredLost]:
    """Each once. A position counts in a program that goes on: it restores the state of an optimizer too."""
    goes_on = any(is_optimizer(e.receiver) for e in project.calls("load_state_dict"))
    told: set[tuple[Spot, str]] = set()
    for one in project.lost:
        kind, lost, entry = _kind(one), one.lost, _entry(one)
        if lost is None or (kind == "position" and not goes_on) or not (_key(entry) in _keys(look) or not any(
                isinstance(p, Symbol) and p.name.partition("@")[0] in ANY_FILE for p in parts(one.value))):
            continue
        at, target = syntax(one.at.file).spot(one.at.node), _target(lost.node)
        if (at, target) not in told:
            told.add((at, target))
            yield RestoredLost(kind, written(entry), target, at, _where(one, lost), one.state)


def _kind(one: Unread) -> str:
    """What it is, by what stands there now or stood there before."""
    if one.turns:
        return "position"
    for value in (one.instead, one.value):
        name = library_of(value)
        if is_scheduler(value) or is_scaler(value) or is_optimizer(value) or name.startswith("optax."):
            return "schedule" if is_scheduler(value) else "scaler" if is_scaler(value) else "optimizer"
        if name.partition("@")[0].rpartition(".")[2] in _GENERATORS:
            return "generator"
    return "object" if one.state else "value"


def _entry(one: Unread) -> ast.expr:
    """The expression that takes it out."""
    code, node = syntax(one.at.file), one.at.node
    if isinstance(node, ast.Call):
        values = [*node.args, *(k.value for k in node.keywords)]
    else:
        statement = code.statement(node)
        pairs = [p for t in statement.targets for p in pairs_of(t, statement.value)] if isinstance(
            statement, ast.Assign) else []
        values = [v for t, v in pairs if any(n is node for n in below(t))]
    whole = values[0] if values else node
    assert isinstance(whole, ast.expr)
    return next((n for n in below(whole) if isinstance(n, ast.expr) and _key(n) is not None), whole)


def _key(node: ast.expr) -> str | None:
    """The text by which an entry is taken: `x["epoch"]`, `x.get("epoch")`."""
    of = node.slice if isinstance(node, ast.Subscript) else node.args[0] if (
        isinstance(node, ast.Call) and last_name(node.func) in ("get", "pop") and node.args) else None
    return str(of.value) if isinstance(of, ast.Constant) else None


def _keys(look: Lookup) -> set[str]:
    """The texts under which the program keeps something: keys of dicts, names of keyword arguments."""
    found = {str(k.value) for c in look.codes for d in c.of(ast.Dict) for k in d.keys if isinstance(k, ast.Constant)}
    return found | {k.arg for c in look.codes for call in c.of(ast.Call) for k in call.keywords if k.arg}


def _target(node: ast.AST) -> str:
    return written(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else written(
        node)


def _where(one: Unread, lost: Place) -> Spot:
    """Where it is lost: of an attribute of an object, the call of the method that sets it and does no more."""
    call = next((b for b in reversed(lost.path) if b.kind == "call"), None)
    body = call.function.node if call is not None and call.function is not None else None
    loaded = next((b.function for b in reversed(one.at.path) if b.kind == "call"), None)
    sets = written(lost.node).startswith("self.") and isinstance(body, ast.FunctionDef) and body.name != "__init__"
    resets = sets and body is not None and not any(isinstance(n, (ast.For, ast.While)) for n in below(body))
    if call is not None and resets and call.function is not loaded:
        return Syntax.spot(syntax(call.file), call.node)
    return syntax(lost.file).spot(lost.node)

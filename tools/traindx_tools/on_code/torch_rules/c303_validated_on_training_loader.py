"""Evaluation runs over the training loader, and the held-out loader is never read.

Both loaders are built, and the evaluation is given the first one: the validation loss follows the training loss, early
stopping and the best checkpoint are chosen by data that the model was trained on. The loader for validation stands
there unused. A training metric beside a validation metric uses both and is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.loaders import loader_part
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD, TRAIN, named
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C303",
    name="validated-on-training-loader",
    title="Evaluation runs over the training loader while the held-out one is never read",
    severity=Severity.HIGH,
    sees="An evaluation call, or a loop without gradients, over the training loader, and an unused held-out loader.",
    matters="Validation equals training: overfitting goes unseen, and the best checkpoint is the last one.",
    alike=("a training metric, beside a validation metric", "statistics of BatchNorm that are taken anew"),
    confirm=("print(loader.dataset is train_set) inside the evaluation",),
)
_LOADER = re.compile(r"loader|_dl$|^dl_|DL$|_iter$|batches", re.IGNORECASE)
_EVALUATES = re.compile(r"(^|_)(eval(uate|uation)?|valid(ate|ation)?|val|test|accuracy|infer|predict)(_|$)",
                        re.IGNORECASE)  # fmt: skip
_NOT_CALLED = re.compile(r"fit|train|bn_|_bn|calibrat|sanity|memori|debug|prepare|wrap|find", re.IGNORECASE)
_MEASURED = frozenset({"len", "print", "type", "str", "repr", "info"})
_ALL = re.compile(r"locals\(\)|globals\(\)|vars\(self\)|__dict__|getattr\(")


@dataclass(frozen=True)
class _Evaluation:
    """Where the training loader is evaluated, what is called, and what the code says about the result."""

    node: ast.expr
    part: str | None


def check(project: Project) -> Iterator[Finding]:
    """Look at every held-out loader that nothing reads."""
    files = [f for f in project.files if f.mentions(_LOADER)]
    if not files or any(f.mentions(_ALL) for f in files):
        return
    look = lookup(project)
    for code in look.codes:
        scopes = _scopes(code)
        for (scope, text), part in scopes.items():
            if part != HELD or not _unread(look, code, scope, text):
                continue
            others = [t for (s, t), p in scopes.items() if s is scope and p == HELD and t != text]
            read = [t for t in others if not _unread(look, code, scope, t)]
            for trained in (t for (s, t), p in scopes.items() if s is scope and p == TRAIN):
                yield from _judged(code, scope, text, trained, bool(read))


def _scopes(code: Syntax) -> dict[tuple[ast.AST, str], str]:
    """Loaders by the function or class that they belong to, as they are written, and the part that each says."""
    found: dict[tuple[ast.AST, str], str] = {}
    stored: list[ast.Name | ast.Attribute] = [n for n in code.of(ast.Name) if isinstance(n.ctx, ast.Store)]
    stored += [n for n in code.of(ast.Attribute) if isinstance(n.ctx, ast.Store)]
    for node in (n for n in stored if _LOADER.search(last_name(n))):
        part = loader_part(last_name(node))
        owner = code.owner(node) if isinstance(node, ast.Attribute) else code.scope(node)
        plain = isinstance(node, ast.Name) or written(node.value) == "self"
        if part is not None and owner is not None and plain and _is_made(code, node):
            found[owner, written(node)] = part
    for body in code.of(ast.FunctionDef):
        for name in parameters(body):
            part = loader_part(name) if _LOADER.search(name) else None
            if part is not None:
                found[body, name] = part
    return found


def _is_made(code: Syntax, node: ast.expr) -> bool:
    """Whether a name gets a loader: from a call, or one of the results of a call."""
    statement = code.statement(node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    value = statement.value
    return isinstance(value, (ast.Call, ast.Tuple)) or (isinstance(value, ast.Name) and _LOADER.search(value.id)
                                                        is not None)  # fmt: skip


def _unread(look: Lookup, code: Syntax, scope: ast.AST, text: str) -> bool:
    """Whether nothing looks at a loader but for its length."""
    name = text.rpartition(".")[2]
    own = text.startswith("self.")
    for other in look.codes if own or isinstance(scope, ast.Module) else (code,):
        if name not in other.file.text:
            continue
        nodes: list[ast.Name] | list[ast.Attribute] = other.of(ast.Name)
        if own or other is not code:
            nodes = other.of(ast.Attribute)
        for node in nodes:
            if last_name(node) != name or not isinstance(node.ctx, ast.Load):
                continue
            inside = own or other is not code or scope in (other.scope(node), *other.above(node))
            if inside and not _only_measured(other, node):
                return False
        taken = {a.name for i in other.of(ast.ImportFrom) for a in i.names} if other is not code else set()
        if taken & {name, "*"}:
            return False
    strings = {c.value for c in code.of(ast.Constant) if isinstance(c.value, str)}
    return name not in strings


def _only_measured(code: Syntax, node: ast.AST) -> bool:
    """`len(loader)`, `len(loader.dataset)`, `print(...)` of it."""
    up = code.parent(node)
    while isinstance(up, ast.Attribute):
        up = code.parent(up)
    if isinstance(up, (ast.FormattedValue, ast.JoinedStr)):
        return True
    return isinstance(up, ast.Call) and last_name(up.func) in _MEASURED


def _judged(code: Syntax, scope: ast.AST, held: str, trained: str, another: bool) -> Iterator[Finding]:
    found = list(_evaluations(code, scope, trained))
    if not found or not _trains(code, scope, trained, [e.node for e in found]):
        return
    for one in found:
        if one.part == TRAIN or (another and one.part != HELD):
            continue
        yield RULE.finding(
            f"{_short(one.node)} at {code.at(one.node)} evaluates on {trained}, on which the model is trained; {held} "
            "is made for it and never read",
            code.place(one.node),
            code.file.path,
            bearing=Bearing.CAUSE,
            severity=None if one.part == HELD else Severity.MEDIUM,
            measured={"kind": "other loader", "name": held, "trained": trained},
            patch=_exchanged(code, one.node, trained, held),
        )
        return


def _short(node: ast.expr) -> str:
    return written(node)[:60] if isinstance(node, ast.Call) else f"The loop over {written(node)[:40]}"


def _trains(code: Syntax, scope: ast.AST, trained: str, evaluated: list[ast.expr]) -> bool:
    """Whether the training loader is used once more, for training."""
    inside = {id(n) for e in evaluated for n in below(e)}
    uses = [n for n in below(scope) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)
            and written(n) == trained and id(n) not in inside]  # fmt: skip
    return any(not _only_measured(code, n) for n in uses)


def _evaluations(code: Syntax, scope: ast.AST, trained: str) -> Iterator[_Evaluation]:
    for node in below(scope):
        if isinstance(node, ast.For) and _iterated(node.iter, trained) and _without_training(code, node):
            yield _Evaluation(node.iter, _said_in(node))
        elif isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            name = last_name(node.func)
            if not any(written(a) == trained for a in given) or name.endswith("Loader"):
                continue
            part = _said(code, node)
            if part == HELD or (_EVALUATES.search(name) and not _NOT_CALLED.search(name)):
                yield _Evaluation(node, part)


def _iterated(node: ast.expr, trained: str) -> bool:
    around = ("enumerate", "tqdm", "progress", "iter")
    while isinstance(node, ast.Call) and last_name(node.func) in around and node.args:
        node = node.args[0]
    return written(node) == trained


def _without_training(code: Syntax, loop: ast.For) -> bool:
    """A loop under no_grad that trains nothing and takes up a metric."""
    inside = {last_name(n.func) for n in below(loop) if isinstance(n, ast.Call)}
    if inside & {"backward", "step", "append", "extend", "update_bn"}:
        return False
    for up in code.above(loop):
        if isinstance(up, ast.With) and re.search(r"no_grad|inference_mode", written(up.items[0].context_expr)):
            return True
        if isinstance(up, FunctionNode):
            return any("no_grad" in written(d) or "inference_mode" in written(d) for d in up.decorator_list)
    return False


def _said_in(loop: ast.For) -> str | None:
    """What the names that a loop adds up say."""
    parts = {named(re.sub(r"_?(loss|acc\w*)", "", last_name(n.target)) or "_")
             for n in below(loop) if isinstance(n, ast.AugAssign)} - {None}  # fmt: skip
    return parts.pop() if len(parts) == 1 else None


def _said(code: Syntax, call: ast.Call) -> str | None:
    """What the code calls the result: the names that it is bound to, and the texts beside it or beside these names."""
    statement = code.statement(call)
    if statement is None:
        return None
    texts: list[str] = []
    names: list[str] = []
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [last_name(n) for t in targets for n in below(t) if isinstance(n, (ast.Name, ast.Attribute))]
        texts += [str(n.value) for t in targets for n in below(t)
                  if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip
    parts = {named(re.sub(r"_?(loss(es)?|acc\w*|metrics?|score|error|err|f1|auc)(?=_|$)", "", n).strip("_"))
             for n in names} - {None}  # fmt: skip
    if parts:
        return parts.pop() if len(parts) == 1 else None
    places = [statement, *_read_by(code, call, names)]
    constants = [n.value for s in places for n in below(s) if isinstance(n, ast.Constant)]
    texts += [c for c in constants if isinstance(c, str)]
    train = any(re.search(r"train", t, re.IGNORECASE) for t in texts)
    held = any(re.search(r"(^|[^a-z])(val|test|dev|eval)", t, re.IGNORECASE) for t in texts)
    return None if train == held else TRAIN if train else HELD


def _read_by(code: Syntax, call: ast.Call, names: list[str]) -> Iterator[ast.stmt]:
    """The plain statements of the same function that read one of these names."""
    scope = code.scope(call)
    for node in code.of(ast.Name) if names else ():
        if node.id in names and isinstance(node.ctx, ast.Load) and code.scope(node) is scope:
            statement = code.statement(node)
            if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
                yield statement


def _exchanged(code: Syntax, node: ast.expr, trained: str, held: str) -> tuple[Patch, ...]:
    """The held-out loader in place of the training loader."""
    uses = [n for n in below(node) if isinstance(n, (ast.Name, ast.Attribute)) and written(n) == trained]
    change = Change(code.file, "evaluate on the held-out loader")
    return change.replace(uses[0], held).patches() if len(uses) == 1 else ()

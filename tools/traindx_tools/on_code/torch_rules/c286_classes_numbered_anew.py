"""Classes or words are numbered anew for each part of the data.

`{name: i for i, name in enumerate(sorted(set(...)))}` gives numbers to the names that occur in the rows at hand, and
`ids.setdefault(name, len(ids))` in the order in which they occur. In a function or data set that is given the training
rows and the held-out rows, each part gets a numbering of its own: one class that is missing, one more, or another
order shifts all that follow, and number 3 means another class (or word) in validation. Training is perfect, validation
below chance with a rising loss: it looks like overfitting. A numbering that is handed in, or built from a fixed list,
is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.refits import both_parts, guarded, named
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD, TRAIN, part_of
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written

(RULE,) = pages("data", ("C286",))
_IDS = re.compile(r"label|class|target|vocab|categ|token|word|char|stoi|2id|to_i|tag|species|(^|\W)y(\W|$)|cls|code")
_LISTED = re.compile(r"listdir|iterdir|scandir|glob|user|session|group|doc")
"""Folders of classes, as image folders have them, and numbers that only tell rows apart."""
_CODES = ("factorize", "Categorical")
_WORDS = ("enumerate", "factorize", ".codes", "setdefault(", " not in ", "defaultdict(")
_EMPTY = frozenset({"dict", "OrderedDict", "defaultdict"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every numbering."""
    files = [f for f in project.files if any(word in f.text for word in _WORDS)]
    if not files:
        return
    look = lookup(project)
    for file in files:
        code = syntax(file)
        numbered = list(_numberings(code))
        for node, source in numbered:
            yield from _judged(look, code, node, source, [n for n, _ in numbered])


def _numberings(code: Syntax) -> Iterator[tuple[ast.AST, ast.expr]]:
    """(the numbering, the names that are numbered): mappings over a set of what occurs, and codes of pandas."""
    for made in code.of(ast.DictComp):
        over = made.generators[0].iter
        if not isinstance(over, ast.Call) or last_name(over.func) != "enumerate" or not over.args:
            continue
        names = code.origin(over.args[0])
        if _of_occurring(code, names) and not _LISTED.search(written(names) + written(made)):
            yield made, names
    for call in code.calls(*_CODES):
        if call.args and code.qualified(call.func).startswith("pandas") and len(call.args) + len(call.keywords) == 1:
            yield call, call.args[0]
    yield from _growing(code)


def _growing(code: Syntax) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Mappings that give the next number to each new name: setdefault, `if name not in ids`, a defaultdict."""
    for call in code.calls("setdefault"):
        if isinstance(call.func, ast.Attribute) and len(call.args) == 2 and _is_next(call.args[1], call.func.value):
            yield from _over_rows(code, call, call.func.value)
    for test in code.of(ast.If):
        asks = isinstance(test.test, ast.Compare) and isinstance(test.test.ops[0], ast.NotIn)
        first = test.body[0]
        stored = first.targets[0] if asks and isinstance(first, ast.Assign) else None
        if isinstance(first, ast.Assign) and isinstance(stored, ast.Subscript) and _is_next(first.value, stored.value):
            yield from _over_rows(code, test, stored.value)
    for made in code.calls("defaultdict"):
        statement = code.statement(made)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        first_free = made.args[0] if made.args else None
        counts = first_free is not None and written(first_free).endswith("count().__next__")
        if target is None or first_free is None or not (counts or (
                isinstance(first_free, ast.Lambda) and _is_next(first_free.body, target))):  # fmt: skip
            continue
        for read in code.of(ast.Subscript):
            if written(read.value) == written(target) and code.function(read) is code.function(made):
                yield from list(_over_rows(code, read, read.value))[:1]
                break


def _is_next(value: ast.expr, mapping: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) == "len" and len(value.args) == 1 and (
        written(value.args[0]) == written(mapping))  # fmt: skip


def _over_rows(code: Syntax, node: ast.AST, mapping: ast.expr) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The mapping begins empty in the function that goes over the rows: what it goes over is numbered."""
    body = code.function(node)
    bound = code.bindings(mapping) if isinstance(mapping, (ast.Name, ast.Attribute)) else []
    fresh = [code.function(s) is body and (isinstance(v, ast.Dict) or (
        isinstance(v, ast.Call) and last_name(v.func) in _EMPTY)) for s, v in bound]  # fmt: skip
    if body is None or not fresh or not all(fresh):
        return
    rows: ast.expr | None = None
    for up in code.above(node):
        if up is body:
            break
        over = up.iter if isinstance(up, ast.For) else (
            up.generators[0].iter if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else None)  # fmt: skip
        rows = over if over is not None else rows
    if rows is not None and not _LISTED.search(written(rows)):
        yield node, rows


def _of_occurring(code: Syntax, names: ast.expr) -> bool:
    """Whether it is the set of what occurs: sorted(set(...)), {... for ...}, column.unique()."""
    if not isinstance(names, (ast.Call, ast.SetComp)):
        return False
    inner: ast.expr = names
    for _ in range(3):
        if isinstance(inner, ast.Call) and last_name(inner.func) in ("sorted", "list", "tuple") and inner.args:
            inner = code.origin(inner.args[0])
    called = last_name(inner.func) if isinstance(inner, ast.Call) else ""
    return isinstance(inner, ast.SetComp) or called in ("set", "unique", "Counter")


def _judged(look: Lookup, code: Syntax, node: ast.AST, source: ast.expr, others: list[ast.AST]) -> Iterator[Finding]:
    statement = code.statement(node)
    body = code.function(node)
    if statement is None or not _IDS.search(written(statement).lower()):
        return
    part = part_of(look, code, source)
    if part == HELD:
        beside = [o for o in others if o is not node and code.scope(o) is code.scope(node)]
        if any(isinstance(o, ast.expr) and part_of(look, code, o) == TRAIN for o in beside):
            yield _finding(code, node, "the held-out part, beside one of the training part", "beside")
        return
    if part is not None or body is None or guarded(code, node, body) or not _used(body, statement):
        return
    for place, held in both_parts(look, code, body, source):
        what = f"whatever {named(code, body)} is given, and it is given the held-out part as well, at {place.at(held)}"
        yield _finding(code, node, what, "function")
        return


def _used(body: ast.AST, statement: ast.stmt) -> bool:
    """Whether the function (or, on self, the class) looks ids up: not a count of what occurs."""
    targets = [written(t) for t in getattr(statement, "targets", ())]
    if any(t.startswith("self.") for t in targets):
        return True
    reads = {written(n.value) for n in below(body) if isinstance(n, ast.Subscript)}
    reads |= {written(n.func.value) for n in below(body) if isinstance(n, ast.Call)
              and isinstance(n.func, ast.Attribute) and n.func.attr == "get"}  # fmt: skip
    mapped = {written(a) for n in below(body) if isinstance(n, ast.Call) and last_name(n.func) in ("map", "replace")
              for a in n.args}  # fmt: skip
    return bool(set(targets) & (reads | mapped)) or not isinstance(getattr(statement, "value", None), ast.DictComp)


def _finding(code: Syntax, node: ast.AST, what: str, kind: str) -> Finding:
    return RULE.finding(
        f"{' '.join(written(node).split())[:80]} at {code.at(node)} numbers the names of {what}: class ids are built "
        "separately per split, so the same id means another class",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
    )

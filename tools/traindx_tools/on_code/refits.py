"""What transforms data (scalers, encoders, vocabularies, decompositions) and is fitted on held-out data once more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD, TRAIN, part_of
from traindx_tools.on_code.splits import named as part_named
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_KINDS = re.compile(r"Scaler|Normali[sz]er$|Standardi[sz]er|Encoder$|Vectorizer|^(Incremental|Kernel|Sparse)?PCA$"
                    r"|TruncatedSVD|Imputer"
                    r"|Binarizer|Discretizer|QuantileTransformer|PowerTransformer|Skalier")  # fmt: skip
_PICTURES = re.compile(r"plot|visual|draw|tsne|umap|zeichne", re.IGNORECASE)
_FITS = ("fit_transform", "fit")
_FITTED = re.compile(r"\.fit(_transform)?\(")


@dataclass(frozen=True)
class Refit:
    """What is fitted anew: where, and the sentence about it."""

    code: Syntax
    node: ast.AST
    statement: str
    kind: str


@dataclass(frozen=True)
class _Fit:
    """A call that fits, what kind of thing, on which part."""

    code: Syntax
    call: ast.Call
    kind: str
    part: str | None


def refits(project: Project) -> tuple[Refit, ...]:
    """Every second fit of a project; found once."""
    known: tuple[Refit, ...] | None = project.__dict__.get("_refits")
    if known is None:
        known = project.__dict__["_refits"] = tuple(_found(project))
    return known


def _found(project: Project) -> Iterator[Refit]:
    if not any(f.mentions(_FITTED) for f in project.files):
        return
    look = lookup(project)
    fits = list(_fits(look))
    told: set[int] = set()
    for fit in fits:
        for refit in (*_twice(look, fit, fits), *_in_function(look, fit)):
            if id(fit.call) not in told:
                told.add(id(fit.call))
                yield refit


def _fits(look: Lookup) -> Iterator[_Fit]:
    for code in look.codes:
        for call in code.calls(*_FITS):
            if not isinstance(call.func, ast.Attribute) or not (call.args or call.keywords):
                continue
            kind = _kind(look, code, call.func.value)
            if kind is not None:
                given = call.args[0] if call.args else call.keywords[0].value
                yield _Fit(code, call, kind, part_of(look, code, given))


def _kind(look: Lookup, code: Syntax, owner: ast.expr) -> str | None:
    """The class of what is fitted, if it is one that transforms."""
    made = owner
    if isinstance(owner, ast.Subscript):
        return None
    if not isinstance(owner, ast.Call):
        bound = [v for _, v in code.bindings(owner)] if isinstance(owner, (ast.Name, ast.Attribute)) else []
        calls = [v for v in bound if isinstance(v, ast.Call)]
        if not calls or len({last_name(c.func) for c in calls}) > 1:
            return None
        made = calls[0]
    name = last_name(made.func) if isinstance(made, ast.Call) else ""
    own = look.classes.get(name, [])
    if own:
        methods = {f.name for _, k in own for f in k.body if isinstance(f, ast.FunctionDef)}
        changes = any(re.match(r"transform|normali[sz]e|standardi[sz]e|scale|encode|apply", m) for m in methods)
        return name if changes and "predict" not in methods else None
    return name if _KINDS.search(name) else None


def _twice(look: Lookup, fit: _Fit, fits: list[_Fit]) -> Iterator[Refit]:
    """A fit on held-out data beside one on training data in the same file."""
    if fit.part != HELD or _drawn(fit):
        return
    for first in fits:
        if first.part != TRAIN or first.kind != fit.kind or first.code is not fit.code or not _together(first, fit):
            continue
        yield Refit(
            fit.code,
            fit.call,
            f"{written(fit.call)[:80]} at {fit.code.at(fit.call)} fits a {fit.kind} on held-out data, although one "
            f"was fitted on the training data at line {first.call.lineno}: the two parts come in different units",
            "fitted twice",
        )
        return


def _together(first: _Fit, second: _Fit) -> bool:
    """Whether both run in one program: in one function, or one of them at the top level or in methods of one class."""
    a, b = first.code.function(first.call), second.code.function(second.call)
    return a is b or None in (a, b) or first.code.owner(first.call) is second.code.owner(second.call) is not None


def _drawn(fit: _Fit) -> bool:
    """Whether it only makes a picture."""
    function = fit.code.function(fit.call)
    return function is not None and bool(_PICTURES.search(function.name))


def _in_function(look: Lookup, fit: _Fit) -> Iterator[Refit]:
    """A function or data set that fits something of its own on what it is given, and is given both parts."""
    code, body = fit.code, fit.code.function(fit.call)
    if body is None or fit.part is not None or guarded(code, fit.call, body) or _drawn(fit):
        return
    owner = fit.call.func.value if isinstance(fit.call.func, ast.Attribute) else None
    if owner is None or not _made_here(code, owner, body):
        return
    given = fit.call.args[0] if fit.call.args else fit.call.keywords[0].value
    for place, held in both_parts(look, code, body, given):
        yield Refit(
            code,
            fit.call,
            f"{written(fit.call)[:80]} at {code.at(fit.call)} fits a new {fit.kind} on whatever {named(code, body)} "
            f"is given, and it is given the held-out part as well, at {place.at(held)}: the two parts come in "
            "different units",
            "fitted in a function",
        )
        return


def guarded(code: Syntax, call: ast.AST, body: ast.AST) -> bool:
    """Whether a condition inside the function decides about it."""
    for up in code.above(call):
        if up is body:
            return False
        if isinstance(up, (ast.If, ast.IfExp, *FunctionNode, ast.Lambda)):
            return True
    return False


def _made_here(code: Syntax, owner: ast.expr, body: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether each call of the function makes what is fitted anew."""
    if isinstance(owner, ast.Call):
        return True
    bound = code.bindings(owner)
    return bool(bound) and all(code.function(s) is body and isinstance(v, ast.Call) for s, v in bound)


def both_parts(
    look: Lookup, code: Syntax, body: ast.FunctionDef | ast.AsyncFunctionDef, given: ast.expr
) -> Iterator[tuple[Syntax, ast.Call]]:
    """The call with the held-out part, where another one passes the training part to the same parameter."""
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    for name in spec:
        if not _from(code, given, name, 5):
            continue
        parts: dict[str, tuple[Syntax, ast.Call]] = {}
        passed: dict[str, str] = {}
        for other, call in look.callers(body, code):
            value = argument(call, spec.index(name), name)
            if value is None:
                continue
            part = part_of(look, other, value) or _bound_part(other, call)
            if part is not None:
                parts.setdefault(part, (other, call))
                passed.setdefault(part, written(value))
        if passed.get(TRAIN) == passed.get(HELD):
            continue
        if TRAIN in parts and HELD in parts:
            yield parts[HELD]


def _bound_part(code: Syntax, call: ast.Call) -> str | None:
    """The part that the name of the result says: `train, val = Rows(a), Rows(b)`."""
    statement = code.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = [(t, v) for t, v in zip(target.elts, value.elts, strict=True) if v is call]
    else:
        pairs = [(target, value)] if value is call else []
    return part_named(last_name(pairs[0][0])) if pairs else None


def _from(code: Syntax, node: ast.expr, name: str, left: int) -> bool:
    """Whether a value is computed from a parameter."""
    if left <= 0:
        return False
    for part in below(node):
        if isinstance(part, ast.Name) and part.id == name and not code.bindings(part):
            return True
        if isinstance(part, (ast.Name, ast.Attribute)):
            for _, value in code.bindings(part)[:3]:
                if value is not node and _from(code, value, name, left - 1):
                    return True
    return False


def named(code: Syntax, body: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function's name, the class's for its __init__."""
    owner = code.owner(body)
    return owner.name if body.name == "__init__" and owner is not None else body.name

"""Features are made of, or chosen by, the labels of all rows, and the rows are split afterwards.

The mean outcome of a category (target encoding) or a group, and a selection of features by their relation to the labels
carry the labels into the inputs. Taken over all rows they carry those of the validation rows as well, and for a
category of few rows the row's own: validation is excellent, and new data, whose labels nobody knows, are not. They have
to be taken from the training rows alone, for the training rows themselves out of fold.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.splits import HELD, TRAIN, part_of
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

(RULE,) = pages("data", ("C352",))
_LABEL = re.compile(r"y|ys|y_all|labels?|targets?|outcomes?|(target|label|outcome)_(col\w*|values?|all)|response", re.I)
_CHOOSES = re.compile(r"KBest|SelectPercentile|SelectFromModel|^RFE(CV)?$|TargetEncoder|LeaveOneOutEncoder|WOEEncoder")
_SCORES = ("mutual_info_classif", "mutual_info_regression", "f_classif", "f_regression", "corrcoef")
_PAST = re.compile(r"shift\(|expanding\(|cumsum|cumcount|cummax|rolling\(")
_MEANS = re.compile(r"\.(mean|sum|median)\(|['\"](mean|sum|median)['\"]")
_SHOWN = frozenset({"print", "info", "plot", "bar", "debug", "format"})
_FOLDS = re.compile(r"fold|oof|leave_one|loo(_|$)", re.IGNORECASE)
_DEEP = 6
Taken = tuple[ast.Call, ast.expr, str]
"""A statistic, the labels that it is taken of, and what it is in words."""


def check(project: Project) -> Iterator[Finding]:
    """Look at everything that is computed from labels."""
    words = ("groupby(", "bincount(", ".fit(", "corrcoef(", "mutual_info", "f_classif")
    if not any(w in f.text for f in project.files for w in words):
        return
    look = lookup(project)
    told: set[tuple[str, int]] = set()
    for code in look.codes:
        for call, labels, what in _statistics(look, code):
            place = code.file.path, getattr(code.scope(call), "lineno", 0)
            split = _split(look, code, call, labels, _DEEP) if place not in told and _is_used(code, call, what) else ""
            if split:
                told.add(place)
                yield _finding(code, call, what, split)


def _statistics(look: Lookup, code: Syntax) -> Iterator[Taken]:
    for call in code.calls("groupby"):
        up, text = code.parent(call), written(code.statement(call))
        by_column = isinstance(up, ast.Subscript) and _is_label(look, code, up.slice)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is not None and (by_column or _is_label(look, code, owner)) and _MEANS.search(text) and (
                not _PAST.search(text)):
            yield call, owner, "means of groups"
    for call in code.calls("bincount"):
        weights = argument(call, 1, "weights")
        if weights is not None and _is_label(look, code, weights):
            yield call, weights, "sums by category"
    for call in code.calls("fit", *_SCORES):
        made = code.origin(call.func.value) if isinstance(call.func, ast.Attribute) else None
        chooser = last_name(made.func) if isinstance(made, ast.Call) else ""
        labels = argument(call, 1, "y")
        if labels is not None and (_CHOOSES.search(chooser) or (
                last_name(call.func) in _SCORES and _is_label(look, code, labels))):
            yield call, labels, "the fit of a selection" if _CHOOSES.search(chooser) else "scores of features"


def _is_label(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> bool:
    """Whether a value, or the name of a column, is the labels: by its name, what it is made of, or what
    callers pass."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and any(_LABEL.fullmatch(last_name(s.targets[0]))
            and repr(node.value) in written(s.value) for c in look.codes for s in c.of(ast.Assign))
    if isinstance(node, ast.Subscript):
        return _is_label(look, code, node.slice, left - 1)
    if not left or not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if _LABEL.fullmatch(last_name(node)):
        return True
    return any(_is_label(look, c, v, left - 1) for c, v, _ in _passed(look, code, node))


def _passed(look: Lookup, code: Syntax, node: ast.expr | None) -> list[tuple[Syntax, ast.expr, ast.Call]]:
    """What the callers of a function pass for a parameter."""
    body = code.function(node) if isinstance(node, ast.Name) and not code.bindings(node) else None
    spec = [n for n in parameters(body) if n not in ("self", "cls")] if isinstance(body, ast.FunctionDef) else []
    if not isinstance(node, ast.Name) or not isinstance(body, ast.FunctionDef) or node.id not in spec:
        return []
    given = [(c, argument(call, spec.index(node.id), node.id), call) for c, call in look.callers(body, code)]
    return [(c, v, call) for c, v, call in given if v is not None]


def _is_used(code: Syntax, call: ast.Call, what: str) -> bool:
    """Whether the result becomes more than a text: it is stored as a column, chooses columns, or is looked up."""
    statement = code.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if what == "the fit of a selection" or any(isinstance(t, ast.Subscript) for t in targets):
        return True
    names = {n for t in targets for n in names_in(t)}
    reads = [r for n in names for r in code.reads(code.scope(call), n) if r.lineno > call.lineno]
    return any(not any(isinstance(up, ast.Call) and last_name(up.func) in _SHOWN for up in code.above(r))
               for r in reads)


def _split(look: Lookup, code: Syntax, at: ast.expr, labels: ast.expr, left: int) -> str:
    """Where the rows are split after the statistic was taken of all of them; "" where they are not."""
    scope, root = code.scope(at), _root(code, labels)
    if not left or _FOLDS.search(getattr(scope, "name", "")) or not _is_whole(look, code, labels):
        return ""
    here = _splits_below(look, code, scope, at)
    if here or not isinstance(scope, FunctionNode):
        return here
    given = _passed(look, code, root)
    if not given and isinstance(scope, ast.FunctionDef) and (root is None or root.id not in parameters(scope)):
        given = [(c, call, call) for c, call in look.callers(scope, code)]  # it reads the rows itself
    found = (_split(look, c, call, v, left - 1) for c, v, call in given if not isinstance(c.parent(call), ast.Expr))
    return next((f for f in found if f), "")


def _root(code: Syntax, node: ast.expr) -> ast.Name | None:
    """The name that a value is made of: `table` of `y = table["label"].astype(float)`."""
    for _ in range(10):
        made = code.assigned(node) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and (made is None or made is node):
            return node
        inner = made or getattr(node, "value", None) or getattr(node, "func", None)
        if not isinstance(inner, ast.expr):
            return None
        node = inner
    return None


def _is_whole(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> bool:
    """Whether a value holds all rows: no part by its name, and no rows taken of it on the way."""
    if not left:
        return True
    if isinstance(node, ast.Subscript):
        column = isinstance(look.origin(code, node.slice)[1], ast.Constant) or _is_label(look, code, node.slice)
        return column and _is_whole(look, code, node.value, left - 1)
    if isinstance(node, (ast.Name, ast.Attribute)) and part_of(look, code, node) in (TRAIN, HELD):
        return False
    made = code.assigned(node) if isinstance(node, ast.Name) else None
    inner = made or getattr(node, "value", None) or getattr(getattr(node, "func", None), "value", None)
    return not isinstance(inner, ast.expr) or inner is node or _is_whole(look, code, inner, left - 1)


def _splits_below(look: Lookup, code: Syntax, scope: ast.AST, at: ast.expr) -> str:
    """A split in the same function, further down."""
    for call in code.calls_in(scope, "train_test_split", "random_split"):
        if call.lineno > at.lineno and code.scope(call) is scope:
            return f"{written(call)[:60]} at {code.at(call)}"
    parts: dict[str, dict[str, ast.Subscript]] = {}
    for taken in code.inside(scope, ast.Subscript):
        plain = taken.lineno > at.lineno and isinstance(taken.value, (ast.Name, ast.Attribute))
        part = part_of(look, code, taken) if plain else None
        if part is not None and part_of(look, code, taken.value) is None:
            parts.setdefault(written(taken.value), {})[part] = taken
    both = next((b for b in parts.values() if TRAIN in b and HELD in b), None)
    return f"{written(both[TRAIN])[:40]} and {written(both[HELD])[:40]} at {code.at(both[TRAIN])}" if both else ""


def _finding(code: Syntax, node: ast.Call, what: str, split: str) -> Finding:
    return RULE.finding(
        f"{written(node)[:80]} at {code.at(node)} computes {what} from the labels of all rows, which become features, "
        f"and the rows are split afterwards ({split}): the labels of the validation rows leak into their own inputs. "
        "Take "
        "them from the training rows alone (out of fold for those)",
        code.place(node), code.file.path, bearing=Bearing.CAUSE, measured={"kind": what})

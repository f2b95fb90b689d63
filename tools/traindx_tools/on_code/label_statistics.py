"""Where a program computes something from labels: means of groups, sums by category, features chosen by the labels.

Each is followed to the whole of the labels (not those of the training part) through the callers of the function that
it stands in, and to the calls after which the rows are split.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.splits import HELD, TRAIN, part_of
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

_LABEL = re.compile(r"y|ys|y_all|labels?|targets?|outcomes?|(target|label|outcome)_(col\w*|values?|all)|response"
                    r"|y_full|(all|full)_(y|labels?|targets?)", re.IGNORECASE)  # fmt: skip
_CHOOSES = re.compile(r"KBest|SelectPercentile|SelectFromModel|^RFE(CV)?$|TargetEncoder|LeaveOneOutEncoder|WOEEncoder"
                      r"|LinearDiscriminantAnalysis|SelectF[a-z]+|CatBoostEncoder|JamesSteinEncoder")  # fmt: skip
_SCORES = frozenset({"mutual_info_classif", "mutual_info_regression", "f_classif", "f_regression", "chi2", "corrcoef",
                     "pearsonr", "spearmanr", "pointbiserialr"})  # fmt: skip
_SAME = frozenset({"astype", "to_numpy", "values", "copy", "float", "numpy", "ravel", "reshape", "tolist", "array",
                   "asarray", "Series", "flatten", "squeeze", "map", "fillna", "reset_index", "int"})  # fmt: skip
_SPLITS = ("train_test_split", "random_split")
_FOLDS = re.compile(r"fold|oof|leave_one|loo(_|$)|crossfit|cross_fit", re.IGNORECASE)
_DEEP = 6


@dataclass(frozen=True)
class Statistic:
    """Something that is computed from labels: what the labels are, and the rows that they come with."""

    code: Syntax
    node: ast.expr
    labels: ast.expr
    kind: str
    names: frozenset[str]
    """Names that hold the result."""
    chosen: bool = False
    """Whether it changes the features by itself: the fit of a selection or of an encoder."""


def label_columns(look: Lookup) -> frozenset[str]:
    """Columns that hold the labels: `y = table["bought"]`, `frame.pop("bought")`, `TARGET = "bought"`."""
    found: set[str] = set()
    for code in look.codes:
        for assign in code.of(ast.Assign):
            target = assign.targets[0]
            if not isinstance(target, (ast.Name, ast.Attribute)) or not _LABEL.fullmatch(last_name(target)):
                continue
            if isinstance(assign.value, ast.Constant) and isinstance(assign.value.value, str):
                found.add(assign.value.value)
            node: ast.expr = assign.value
            for _ in range(4):
                if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                    found.update({node.slice.value} if isinstance(node.slice.value, str) else ())
                    break
                if isinstance(node, ast.Call) and last_name(node.func) == "pop" and node.args:
                    found.update({str(a.value) for a in node.args if isinstance(a, ast.Constant)})
                if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                    node = node.elt
                    continue
                inner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                    not code.qualified(node.func) else getattr(node, "value", None)  # fmt: skip
                plain = isinstance(node, ast.Call) and (isinstance(node.func, ast.Name) or code.qualified(node.func))
                if isinstance(node, ast.Call) and plain and node.args:
                    inner = node.args[0]
                if not isinstance(inner, ast.expr):
                    break
                node = inner
    return frozenset(found)


def statistics(look: Lookup, columns: frozenset[str]) -> Iterator[Statistic]:
    """Everything that is computed from labels, by rows or by columns."""
    for code in look.codes:
        yield from _of_groups(look, code, columns)
        yield from _of_sums(look, code, columns)
        yield from _of_loops(look, code, columns)
        yield from _of_choices(look, code, columns)
        yield from _of_classes(look, code, columns)


def _of_groups(look: Lookup, code: Syntax, columns: frozenset[str]) -> Iterator[Statistic]:
    """`frame.groupby("doctor")["label"].mean()`, `labels.groupby(codes).transform("mean")`."""
    for call in code.calls("groupby"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        up = code.parent(call)
        if owner is None:
            continue
        column = up.slice if isinstance(up, ast.Subscript) and up.value is call else None
        labels = ast.copy_location(ast.Subscript(owner, column, ast.Load()), call) if column is not None else owner
        by_column = column is not None
        if not (_is_column(look, code, column, columns) if by_column else is_label(look, code, owner, columns)):
            continue
        whole = code.statement(call)
        text = written(whole)
        if re.search(r"shift\(|expanding\(|cumsum|cumcount|cummax|rolling\(", text):
            continue
        if not re.search(r"\.(mean|sum|median)\(|['\"](mean|sum|median)['\"]|np\.mean", text):
            continue
        yield Statistic(code, call, labels, "means of groups", _targets(whole))


def _of_sums(look: Lookup, code: Syntax, columns: frozenset[str]) -> Iterator[Statistic]:
    """`np.bincount(codes, weights=labels)`, `np.add.at(sums, codes, labels)`."""
    for call in code.calls("bincount"):
        weights = argument(call, 1, "weights")
        if weights is not None and is_label(look, code, weights, columns):
            yield Statistic(code, call, weights, "sums by category", _targets(code.statement(call)))
    for call in code.calls("at"):
        adds = written(call.func).endswith("add.at") and len(call.args) == 3
        if adds and is_label(look, code, call.args[2], columns):
            yield Statistic(code, call, call.args[2], "sums by category", frozenset(names_in(call.args[0])))


def _of_loops(look: Lookup, code: Syntax, columns: frozenset[str]) -> Iterator[Statistic]:
    """`for level, label in zip(levels, labels): sums[level] += label`."""
    for target, value in _added_up(code):
        labels = _looped(code, value) if isinstance(value, ast.Name) else _of_row(code, value)
        if labels is None or code.number(target.slice) is not None or not code.loops(target):
            continue
        if isinstance(labels, ast.Subscript) and isinstance(labels.slice, ast.Name) and not isinstance(
                labels.value, ast.Subscript):  # fmt: skip
            labels = labels.value  # labels[i]
        if is_label(look, code, labels, columns) and not is_label(look, code, target.slice, columns):
            yield Statistic(code, value, labels, "sums by category", frozenset(names_in(target.value)))


def _added_up(code: Syntax) -> Iterator[tuple[ast.Subscript, ast.expr]]:
    """(entry, summand) of `sums[k] += v` and `sums[k] = sums.get(k, 0) + v`; numbers as they are: v of `float(v)`."""
    found: list[tuple[ast.expr, ast.expr]] = [(s.target, s.value) for s in code.of(ast.AugAssign)
                                              if isinstance(s.op, ast.Add)]  # fmt: skip
    for step in code.of(ast.Assign):
        value, target = step.value, step.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and \
                written(target.value) + ".get(" in written(value.left):  # fmt: skip
            found.append((target, value.right))
    for target, value in found:
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
            value = value.args[0]
        if isinstance(target, ast.Subscript):
            yield target, value


def _of_row(code: Syntax, value: ast.expr) -> ast.expr | None:
    """`row["late"]` of `for row in rows` as `rows["late"]`."""
    if not isinstance(value, ast.Subscript):
        return None
    if isinstance(value.slice, ast.Constant) and isinstance(value.value, ast.Name):
        for loop in code.loops(value):
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and loop.target.id == value.value.id:
                return ast.copy_location(ast.Subscript(loop.iter, value.slice, ast.Load()), value)
    return value


def _looped(code: Syntax, name: ast.Name) -> ast.expr | None:
    """What a loop variable runs over: the argument of `zip` at its place."""
    for loop in code.loops(name):
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
            continue
        target: ast.expr = loop.target
        over: ast.expr = loop.iter
        counted = last_name(loop.iter.func) == "enumerate" and loop.iter.args
        if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target, over = target.elts[1], loop.iter.args[0]
        if isinstance(over, ast.Call) and last_name(over.func) == "zip" and isinstance(target, ast.Tuple):
            for part, source in zip(target.elts, over.args, strict=False):
                if isinstance(part, ast.Name) and part.id == name.id:
                    return source
    return None


def _of_choices(look: Lookup, code: Syntax, columns: frozenset[str]) -> Iterator[Statistic]:
    """`SelectKBest(k=10).fit(x, labels)`, `mutual_info_classif(x, labels)`, `np.corrcoef(x[:, j], labels)`."""
    for call in code.calls("fit", "fit_transform"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        made = code.origin(owner) if owner is not None else None
        labels = argument(call, 1, "y")
        if not isinstance(made, ast.Call) or labels is None or not _CHOOSES.search(last_name(made.func)):
            continue
        told = last_name(call.func) == "fit_transform" and code.calls_in(code.scope(call), "train_test_split")
        if not told:  # C194 tells of those
            yield Statistic(code, call, labels, f"the fit of {last_name(made.func)}", frozenset(), chosen=True)
    for call in code.calls(*_SCORES):
        labels = argument(call, 1, "y")
        if labels is not None and is_label(look, code, labels, columns):
            yield Statistic(code, call, labels, "scores of features", _targets(code.statement(call)))


def _of_classes(look: Lookup, code: Syntax, columns: frozenset[str]) -> Iterator[Statistic]:
    """`x[labels == c].mean(0)`: the middle of a class."""
    for call in code.calls("mean", "median"):
        plain = bool(code.qualified(call.func))
        held = argument(call, 0, "a") if plain else getattr(call.func, "value", None)
        if not isinstance(held, ast.Subscript) or not isinstance(held.slice, ast.Compare):
            continue
        labels = held.slice.left
        if isinstance(held.slice.ops[0], ast.Eq) and is_label(look, code, labels, columns) and not is_label(
                look, code, held.value, columns):  # fmt: skip
            yield Statistic(code, call, labels, "means of classes", _targets(code.statement(call)))


def _targets(statement: ast.stmt | None) -> frozenset[str]:
    """Names that a statement binds; a column that it stores is given by the text `[]`."""
    if not isinstance(statement, ast.Assign):
        return frozenset()
    columns = {"[]"} if any(isinstance(t, ast.Subscript) for t in statement.targets) else set()
    plain = {n for t in statement.targets if not isinstance(t, ast.Subscript) for n in names_in(t)}
    return frozenset(columns | plain)


def is_label(look: Lookup, code: Syntax, node: ast.expr, columns: frozenset[str], left: int = _DEEP) -> bool:
    """Whether a value is the labels: by its name, its column, or what a caller passes."""
    if left <= 0:
        return False
    if isinstance(node, ast.Subscript):
        rows = not isinstance(node.slice, ast.Constant)
        return _is_column(look, code, node.slice, columns) or (
            rows and is_label(look, code, node.value, columns, left - 1))  # fmt: skip
    if isinstance(node, ast.Call) and last_name(node.func) in _SAME:
        inner = node.args[0] if code.qualified(node.func) and node.args else getattr(node.func, "value", None)
        return isinstance(inner, ast.expr) and is_label(look, code, inner, columns, left - 1)
    if isinstance(node, ast.Attribute) and node.attr in (*columns, "values"):
        return node.attr in columns or is_label(look, code, node.value, columns, left - 1)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if _LABEL.fullmatch(last_name(node)):
        return True
    made = code.assigned(node)
    if made is not None and made is not node:
        return is_label(look, code, made, columns, left - 1)
    return any(is_label(look, c, v, columns, left - 1) for c, v, _ in passed(look, code, node))


def _is_column(look: Lookup, code: Syntax, node: ast.expr | None, columns: frozenset[str]) -> bool:
    if node is None:
        return False
    _, made = look.origin(code, node)
    if isinstance(made, ast.Constant):
        return made.value in columns
    return isinstance(node, ast.Name) and _LABEL.fullmatch(node.id) is not None


def passed(look: Lookup, code: Syntax, node: ast.expr) -> list[tuple[Syntax, ast.expr, ast.Call]]:
    """What the callers of a function pass for a parameter."""
    if not isinstance(node, ast.Name) or code.bindings(node):
        return []
    body = code.function(node)
    if not isinstance(body, ast.FunctionDef) or node.id not in parameters(body):
        return []
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    if node.id not in spec:
        return []
    given = [(c, argument(call, spec.index(node.id), node.id), call) for c, call in look.callers(body, code)]
    return [(c, v, call) for c, v, call in given if v is not None]


def split_after(look: Lookup, found: Statistic) -> str:
    """Where the rows are split after the statistic was taken of all of them; empty where they are not."""
    return _split(look, found.code, found.node, found.labels, _DEEP)


def _split(look: Lookup, code: Syntax, at: ast.expr, labels: ast.expr, left: int) -> str:
    scope = code.scope(at)
    if left <= 0 or _FOLDS.search(getattr(scope, "name", "")) or not _whole(look, code, labels, _DEEP):
        return ""
    here = _splits_below(look, code, scope, at)
    if here or not isinstance(scope, FunctionNode):
        return here
    root = _root(code, labels)
    given = passed(look, code, root) if root is not None else []
    if not given and isinstance(scope, ast.FunctionDef) and (root is None or root.id not in parameters(scope)):
        given = [(c, call, call) for c, call in look.callers(scope, code)]  # it reads them itself
    for other, value, call in given:
        if (there := _split(look, other, call, value, left - 1)) and _taken(other, call):
            return there
    return ""


def _taken(code: Syntax, call: ast.Call) -> bool:
    """Whether the result of a call is kept."""
    return not isinstance(code.parent(call), ast.Expr)


def _root(code: Syntax, node: ast.expr) -> ast.Name | None:
    """The parameter that a value is made of: `table` of `y = table["label"].astype(float)`."""
    for _ in range(10):
        if isinstance(node, ast.Name):
            made = code.assigned(node)
            if made is None or made is node:
                return node
            node = made
        elif isinstance(node, ast.Call):
            inner = node.args[0] if code.qualified(node.func) and node.args else getattr(node.func, "value", None)
            if not isinstance(inner, ast.expr):
                return None
            node = inner
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        else:
            return None
    return None


def _whole(look: Lookup, code: Syntax, node: ast.expr, left: int) -> bool:
    """Whether a value holds all rows: no part by its name, and no rows taken of it on the way."""
    if left <= 0:
        return True
    if isinstance(node, ast.Subscript):
        if not _takes_columns(look, code, node.slice):
            return False
        return _whole(look, code, node.value, left - 1)
    if isinstance(node, (ast.Name, ast.Attribute)) and part_of(look, code, node) in (TRAIN, HELD):
        return False
    if isinstance(node, ast.Call):
        if last_name(node.func) in ("query", "sample", "head", "drop_duplicates", "take", "filter", "isin"):
            return False
        inner = node.args[0] if code.qualified(node.func) and node.args else getattr(node.func, "value", None)
        return not isinstance(inner, ast.expr) or _whole(look, code, inner, left - 1)
    if isinstance(node, ast.Attribute) and written(node.value) != "self":
        return _whole(look, code, node.value, left - 1)
    made = code.assigned(node)
    return made is None or made is node or _whole(look, code, made, left - 1)


def _takes_columns(look: Lookup, code: Syntax, index: ast.expr) -> bool:
    """Whether an index names columns, and takes no rows."""
    if isinstance(index, ast.Tuple):
        first = index.elts[0]
        return isinstance(first, ast.Slice) and first.lower is None and first.upper is None
    if isinstance(index, ast.Slice):
        return index.lower is None and index.upper is None
    if isinstance(index, ast.Name) and _LABEL.fullmatch(index.id):
        return True
    _, made = look.origin(code, index)
    if isinstance(made, (ast.List, ast.Tuple)):
        return all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in made.elts)
    return isinstance(made, ast.Constant) and isinstance(made.value, (str, int))


def _splits_below(look: Lookup, code: Syntax, scope: ast.AST, at: ast.expr) -> str:
    """A split in the same function, further down."""
    for call in code.calls_in(scope, *_SPLITS):
        if call.lineno > at.lineno and code.scope(call) is scope:
            return f"{written(call)[:60]} at {code.at(call)}"
    for call in code.calls_in(scope, "split"):
        owner = code.origin(call.func.value) if isinstance(call.func, ast.Attribute) else None
        folds = isinstance(owner, ast.Call) and re.search(r"Fold|Shuffle", last_name(owner.func))
        if folds and call.lineno > at.lineno:
            return f"{written(call)[:60]} at {code.at(call)}"
    parts: dict[str, dict[str, ast.Subscript]] = {}
    for taken in code.inside(scope, ast.Subscript):
        if taken.lineno <= at.lineno or not isinstance(taken.value, (ast.Name, ast.Attribute)):
            continue
        part = part_of(look, code, taken)
        if part is not None and part_of(look, code, taken.value) is None:
            parts.setdefault(written(taken.value), {})[part] = taken
    for both in parts.values():
        if TRAIN in both and HELD in both:
            return f"{written(both[TRAIN])[:40]} and {written(both[HELD])[:40]} at {code.at(both[TRAIN])}"
    return ""

"""Statistics over all samples with which data are normalised before they are split by arithmetic.

`(x - x.mean(0)) / x.std(0)`, a scaler's `fit_transform` or a function of the project that does the same; afterwards
`x[:n]` and `x[n:]`, `x[train_idx]` and `x[val_idx]`, a mask and its opposite, or `random_split` of a data set that is
made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD, TRAIN, named
from traindx_tools.on_code.syntax import Syntax, argument, last_name, method_of, names_in, parameters, written

_SCALERS = re.compile(r"(Standard|MinMax|Robust|MaxAbs)Scaler$|PowerTransformer$|QuantileTransformer$")
_CENTRES = frozenset({"mean", "min", "amin", "nanmean", "median", "nanmin", "average", "nanmedian"})
_KEEPS = frozenset({"float", "reshape", "astype", "to", "unsqueeze", "tensor", "as_tensor", "from_numpy", "asarray",
                    "array", "contiguous", "double", "float32", "to_numpy", "numpy", "FloatTensor"})  # fmt: skip
_SHAPES = frozenset({"reshape", "view", "unsqueeze", "to", "float"})
_DEEP = 4


@dataclass(frozen=True)
class Early:
    """Data normalised by statistics of all samples: where, how, and where they are split."""

    code: Syntax
    node: ast.AST
    how: str
    split: str
    """Where they are split afterwards."""


@dataclass(frozen=True)
class _Whole:
    """A name that holds data normalised by their own statistics over samples."""

    name: str
    node: ast.AST
    how: str


def early_statistics(look: Lookup) -> Iterator[Early]:
    """Every normalisation of a project that comes before the split of its result."""
    for code in look.codes:
        for whole in _normalised(look, code):
            for where, held in ((code, whole), *_given_back(look, code, whole)):
                split = _split_after(look, where, held)
                if split is not None:
                    yield Early(code, whole.node, whole.how, where.at(split))
                    break


def _given_back(look: Lookup, code: Syntax, whole: _Whole) -> Iterator[tuple[Syntax, _Whole]]:
    """The names that callers give to it, where a function returns it."""
    body = code.function(whole.node)
    if not isinstance(body, ast.FunctionDef) or body.name == "__init__":
        return
    gives = list(returned(body))
    parts = gives[0].elts if len(gives) == 1 and isinstance(gives[0], ast.Tuple) else gives[:1]
    for place, part in enumerate(parts):
        if not any(written(n) == whole.name for n in below(part)) or isinstance(part, ast.Subscript):
            continue
        for other, call in look.callers(body, code):
            statement = other.statement(call)
            target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
            if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
                target = target.elts[place]
            if isinstance(target, ast.Name) and statement is not None and named(target.id) is None:
                yield other, _Whole(target.id, statement, whole.how)


def _normalised(look: Lookup, code: Syntax) -> Iterator[_Whole]:
    for node in code.of(ast.Assign):
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, (ast.Name, ast.Attribute)) or named(last_name(target)):
            continue
        how = _how(look, code, node.value, _DEEP)
        if how:
            yield _Whole(written(target), node, how)
    for change in code.of(ast.AugAssign):
        target = change.target
        plain = isinstance(change.op, ast.Sub) and isinstance(target, (ast.Name, ast.Attribute))
        if plain and not named(last_name(target)) and _source(code, change.value) == written(target):
            yield _Whole(written(target), change, f"{written(change)[:60]} takes its mean over all samples")


def _how(look: Lookup, code: Syntax, value: ast.expr, left: int) -> str:
    """How a value is normalised by statistics of the whole of itself; "" where it is not."""
    if left <= 0:
        return ""
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        if name in ("fit_transform", "transform") and isinstance(value.func, ast.Attribute) and value.args:
            return _scaled(code, value)
        if name in _KEEPS:
            inner = value.args[0] if value.args and code.qualified(value.func) else getattr(value.func, "value", None)
            return _how(look, code, inner, left - 1) if isinstance(inner, ast.expr) else ""
        return _by_function(look, code, value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Add)):
        return _how(look, code, value.left, left - 1)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return ""
    top = value.left
    if not isinstance(top, ast.BinOp) or not isinstance(top.op, ast.Sub) or named(_root(top.left)):
        return ""
    same = _source(code, top.right) == written(top.left)
    whole = isinstance(top.left, (ast.Name, ast.Attribute, ast.Subscript)) and not _is_part(code, top.left)
    return f"{written(value)[:60]} takes its statistics over all samples" if same and whole else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return last_name(node)


def _is_part(code: Syntax, node: ast.expr) -> bool:
    """Whether it is some rows only: x[:n], x[train_idx], or a name of such."""
    made = code.origin(node)
    if not isinstance(made, ast.Subscript):
        return False
    rows = made.slice.elts[0] if isinstance(made.slice, ast.Tuple) and made.slice.elts else made.slice
    everything = isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is None
    column = isinstance(rows, ast.Constant) and isinstance(rows.value, str)
    return not everything and not column and not isinstance(rows, ast.List)


def _source(code: Syntax, node: ast.expr) -> str:
    """What a statistic over all samples is taken of, "" where it is none or over another axis."""
    node = code.unwrapped(node, lambda n: method_of(n, _SHAPES))
    first = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    if isinstance(node, (ast.Subscript, ast.Attribute)) and (first or written(node).endswith(".values")):
        node = code.origin(node.value)  # x.min(0)[0], x.min(0).values
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _CENTRES:
        return ""
    library = bool(code.qualified(node.func))
    axis = argument(node, 1 if library else 0, "axis", "dim")
    if axis is not None and not _over_samples(axis):
        return ""
    if library:
        return written(node.args[0]) if node.args else ""
    return written(node.func.value)


def _over_samples(axis: ast.expr) -> bool:
    if isinstance(axis, (ast.Tuple, ast.List)):
        return any(isinstance(a, ast.Constant) and a.value == 0 for a in axis.elts)
    return isinstance(axis, ast.Constant) and (axis.value == 0 or axis.value is None) and axis.value is not False


def _scaled(code: Syntax, call: ast.Call) -> str:
    """`Scaler().fit_transform(x)`, or `scaler.transform(x)` of one that was fitted on the very x."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call
    given = call.args[0]
    if named(_root(given)) or _is_part(code, given):
        return ""
    made = code.origin(owner)
    fitted = last_name(call.func) == "fit_transform"
    if isinstance(made, ast.Call) and last_name(made.func) == "fit" and isinstance(made.func, ast.Attribute):
        fitted = fitted or (bool(made.args) and written(made.args[0]) == written(given))
        made = code.origin(made.func.value)
    kind = last_name(made.func) if isinstance(made, ast.Call) else ""
    if not _SCALERS.search(kind):
        return ""
    fits = [c for c in code.calls("fit", "partial_fit") if isinstance(c.func, ast.Attribute)
            and written(c.func.value) == written(owner) and code.scope(c) is code.scope(call)]  # fmt: skip
    fitted = fitted or (len(fits) == 1 and bool(fits[0].args) and written(fits[0].args[0]) == written(given))
    return f"{written(call)[:60]} fits the {kind} on all samples" if fitted else ""


def _by_function(look: Lookup, code: Syntax, call: ast.Call) -> str:
    """A function of the project that gives back its argument, normalised by its own statistics."""
    if not call.args or named(_root(call.args[0])):
        return ""
    if last_name(call.func) not in look.functions and not code.bindings(call.func):
        return ""
    home = look.function(code, call.func)
    if home is None or not isinstance(home[1], ast.FunctionDef) or home[0].owner(home[1]) is not None:
        return ""
    known: dict[int, bool] = look.__dict__.setdefault("_normalises", {})
    if id(home[1]) not in known:
        known[id(home[1])] = _normalises(look, home[0], home[1])
    whole = known[id(home[1])] and not _is_part(code, call.args[0])
    return f"{written(call)[:60]} takes its statistics over all samples" if whole else ""


def _normalises(look: Lookup, code: Syntax, body: ast.FunctionDef) -> bool:
    """Whether a function gives back its first argument, normalised by its own statistics."""
    spec = list(parameters(body))
    gives = [g.elts[0] if isinstance(g, ast.Tuple) and g.elts else g for g in returned(body)]
    if len(gives) != 1 or not spec:
        return False
    made = code.origin(gives[0])
    return not isinstance(made, ast.Call) and bool(_how(look, code, made, 1)) and spec[0] in names_in(made)


def _split_after(look: Lookup, code: Syntax, whole: _Whole) -> ast.AST | None:
    """The split of what was normalised, further down in the same scope."""
    scope, line = code.scope(whole.node), getattr(whole.node, "lineno", 0)
    own = whole.name.startswith("self.")
    taken: list[tuple[ast.Subscript, ast.expr]] = []
    for node in code.of(ast.Subscript):
        same = written(node.value) == whole.name and isinstance(node.ctx, ast.Load)
        near = code.owner(node) is code.owner(whole.node) if own else code.scope(node) is scope and node.lineno > line
        if same and near:
            rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            taken.append((node, rows))
    found = _cut(code, taken) or _chosen(code, taken)
    if found is not None:
        return found
    return _of_data_set(look, code, whole, scope, line)


def _cut(code: Syntax, taken: list[tuple[ast.Subscript, ast.expr]]) -> ast.AST | None:
    """`x[:n]` and `x[n:]`, where n is a share of the samples or the names say what the parts are for."""
    slices = [(n, r) for n, r in taken if isinstance(r, ast.Slice) and r.step is None]
    for node, rows in slices:
        if rows.upper is None or rows.lower is not None:
            continue
        for other, rest in slices:
            same = rest.lower is not None and written(rest.lower) == written(rows.upper)
            if same and (_is_share(code, rows.upper) or HELD in (_bound(code, node), _bound(code, other))):
                return node
    return None


def _is_share(code: Syntax, end: ast.expr) -> bool:
    """`int(0.8 * len(x))`, `len(x) - n_val`, `x.shape[0] * 8 // 10`."""
    made = code.origin(end)
    shares = (ast.Mult, ast.Div, ast.FloorDiv)
    arithmetic = any(isinstance(n, ast.BinOp) and isinstance(n.op, shares) for n in below(made))
    text = written(made)
    if isinstance(made, (ast.BinOp, ast.Call)):
        text += " ".join(written(code.origin(n)) for n in below(made) if isinstance(n, ast.Name))
    return arithmetic and bool(re.search(r"len\(|\.shape\[0\]|\.size\(0\)|\.shape", text))


def _bound(code: Syntax, node: ast.Subscript) -> str | None:
    """The part that the name says to which a piece is bound."""
    statement = code.statement(node)
    if not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return next((named(last_name(t)) for t, v in zip(target.elts, value.elts, strict=True)
                     if any(n is node for n in below(v))), None)  # fmt: skip
    return named(last_name(target))


def _chosen(code: Syntax, taken: list[tuple[ast.Subscript, ast.expr]]) -> ast.AST | None:
    """By two index arrays, or by a mask and its opposite."""
    names = [(n, r) for n, r in taken if isinstance(r, (ast.Name, ast.Attribute))]
    for node, rows in names:
        for _, other in names:
            if named(last_name(rows)) == TRAIN and named(last_name(other)) == HELD:
                return node
            one, two = code.origin(rows), code.origin(other)
            if isinstance(one, ast.Subscript) and isinstance(two, ast.Subscript) and _halves(one, two):
                return node
        for inverted in (r for _, r in taken if isinstance(r, ast.UnaryOp) and isinstance(r.op, ast.Invert)):
            if written(inverted.operand) == written(rows) and _bound(code, node) in (TRAIN, HELD):
                return node
    direct = [(n, r) for n, r in taken if isinstance(r, ast.Subscript)]
    return next((n for n, r in direct for _, other in direct if _halves(r, other)), None)  # x[order[:n]], x[order[n:]]


def _halves(one: ast.Subscript, two: ast.Subscript) -> bool:
    if written(one.value) != written(two.value):
        return False
    a, b = one.slice, two.slice
    return (isinstance(a, ast.Slice) and isinstance(b, ast.Slice) and a.upper is not None and a.lower is None
            and b.lower is not None and written(a.upper) == written(b.lower))  # fmt: skip


def _of_data_set(look: Lookup, code: Syntax, whole: _Whole, scope: ast.AST, line: int) -> ast.AST | None:
    """`random_split` or two subsets of a data set that holds it."""
    owner = code.owner(whole.node)
    if whole.name.startswith("self.") and owner is not None:
        if "Dataset" not in " ".join(written(b) for b in owner.bases):
            return None
        makers = [(c, m) for c, m in look.calls.get(owner.name, ())]
        if len(makers) != 1:  # made for each part apart, perhaps
            return None
        where, made = makers[0]
        return _drawn_from(where, made, 0)
    for call in code.calls("TensorDataset"):
        inside = any(whole.name == written(n) for a in call.args for n in below(a))
        if inside and call.lineno >= line and code.scope(call) is scope:
            found = _drawn_from(code, call, line)
            if found is not None:
                return found
    return None


def _drawn_from(code: Syntax, made: ast.Call, line: int) -> ast.AST | None:
    subsets = 0
    for call in code.calls("random_split", "Subset"):
        if not call.args or call.lineno < line:
            continue
        if call.args[0] is made or code.origin(call.args[0]) is made:
            subsets += 1
            if last_name(call.func) == "random_split" or subsets == 2:
                return call
    return None

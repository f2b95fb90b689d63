"""Evaluation inputs are not scaled as the training inputs were.

The model is trained on scaled inputs (a fitted scaler, a mean and a standard deviation, a Normalize) and evaluated on
raw ones: every prediction is made outside the range that was trained. The training loss is fine, the evaluation is far
off from the first epoch. The rule compares what is given to the same model (or data set class), and the lists of
transforms for training and evaluation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import data
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C192",
    name="evaluation-inputs-not-scaled",
    title="Evaluation inputs are not scaled as the training inputs",
    severity=Severity.HIGH,
    sees="Two inputs of one model that are made alike, one through a scaler and one without it.",
    matters="Evaluation is far worse than training although the data come from one distribution.",
    alike=("overfitting, which begins small and grows", "a shift between training and evaluation data"),
    confirm=("print(x_train.mean(), x_train.std(), x_eval.mean(), x_eval.std())",),
)


_HELD = re.compile(r"(val|valid|test|te|ev|eval|dev|held|holdout|xv|xe|xte)", re.IGNORECASE)
_PAIRED = re.compile(
    r"^(x|xs|inputs?|features?|data|images?)_?train|^train_?(x|xs|inputs?|features?|data|images?)", re.I
)
_SCALERS = re.compile(r"Scaler|Normali[sz]er|Standardi[sz]er|PowerTransformer|QuantileTransformer")
_METHODS = frozenset({"transform", "fit_transform", "normalize", "normalise", "standardize", "scale", "__call__"})
_SCALING = ("scal", "Scal", "normal", "Normal", "standard", "Standard", "std", "Compose")
_LIBRARIES = ("np.", "numpy.", "torch.", "jnp.", "F.")
_PLAIN = frozenset({"print", "len", "isinstance", "range", "enumerate", "zip", "list", "tuple", "set", "sorted", "max",
                    "min", "sum", "float", "int", "str", "shape", "permutation", "randperm", "arange"})  # fmt: skip
_CASTS = frozenset({"astype", "float", "double", "to", "cuda", "cpu", "copy", "clone", "reshape", "view", "numpy",
                    "half", "values", "unsqueeze", "squeeze", "contiguous", "type"})  # fmt: skip
_TENSORS = frozenset({"tensor", "from_numpy", "as_tensor", "asarray", "array", "FloatTensor", "Tensor",
                      "ascontiguousarray"})  # fmt: skip
_HOLDERS = frozenset({"TensorDataset"})
_KEEPS = frozenset({"print", "save", "savez", "savez_compressed", "dump"})


def check(project: Project) -> Iterator[Finding]:
    """Look at pairs of inputs, and at pairs of transforms."""
    for file in project.files:
        if "torch" not in file.text and "jax" not in file.text:
            continue
        if not any(word in file.text for word in _SCALING):
            continue
        code = syntax(file)
        found = list(_inputs(code))
        yield from found or list(_pairs(code)) or _rescaled(code)
        yield from _transforms(code)


def _inputs(code: Syntax) -> Iterator[Finding]:
    """Pairs of names that are given to the same callee at the same position."""
    given: dict[tuple[int, str], dict[str, ast.Name]] = {}
    for call in code.of(ast.Call):
        if not call.args or not isinstance(call.func, (ast.Name, ast.Attribute)) or last_name(call.func) in _PLAIN:
            continue
        first = call.args[0]
        while isinstance(first, ast.Subscript):
            first = first.value
        if isinstance(first, ast.Name) and not (callee := written(call.func)).startswith(_LIBRARIES):
            given.setdefault((id(code.scope(call)), callee), {}).setdefault(first.id, first)
    seen: set[str] = set()
    for (_, callee), names in given.items():
        held = [n for n in names.values() if _HELD.search(n.id)]
        for one in names.values() if held else ():
            scaled = code.assigned(one) if not _HELD.search(one.id) else None
            for other in held if scaled is not None else ():
                if other.id in seen:
                    continue
                raw = code.assigned(other)
                if scaled is None or raw is None or not _differs_by_scaling(code, scaled, raw):
                    continue
                seen.add(other.id)
                why = f"{other.id} is given to {callee} as it is, and {one.id} (line {scaled.lineno}) was scaled"
                yield _finding(code, raw, why, "inputs", _patch(code, scaled, raw))


def _pairs(code: Syntax) -> Iterator[Finding]:
    """Inputs that are paired by their names: x_train and x_val of one scope."""
    names: dict[int, dict[str, ast.Name]] = {}
    if not any(map(_PAIRED.search, {name.id for name in code.of(ast.Name)})):
        return
    for name in code.of(ast.Name):
        if isinstance(name.ctx, ast.Load):
            names.setdefault(id(code.scope(name)), {})[name.id] = name  # the last use, behind all assignments
    for known in names.values():
        for one in known.values():
            if not _PAIRED.search(one.id):
                continue
            for held in ("val", "valid", "test", "eval", "dev"):
                other = known.get(re.sub("train", held, one.id))
                scaled = code.assigned(one) if other is not None and other is not one else None
                raw = code.assigned(other) if other is not None else None
                if scaled is None or raw is None or other is None or not _differs_by_scaling(code, scaled, raw):
                    continue
                why = f"{other.id} is used as it is, and {one.id} (line {scaled.lineno}) was scaled"
                yield _finding(code, raw, why, "inputs", _patch(code, scaled, raw))
                return


def _rescaled(code: Syntax) -> Iterator[Finding]:
    """x_train = (x_train - mean) / std under its own name, where x_val goes the same way without it."""
    statements: list[ast.Assign | ast.AugAssign] = [*code.of(ast.Assign), *code.of(ast.AugAssign)]
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if not isinstance(target, ast.Name) or not _PAIRED.search(target.id) or not _scales(code, statement, target):
            continue
        scope = code.scope(statement)
        for held in ("val", "valid", "test", "eval", "dev"):
            other = re.sub("train", held, target.id)
            reads = [r for r in code.reads(scope, other) if r.lineno > statement.lineno]
            if other == target.id or not reads or not _begin_alike(code, target, reads[0]):
                continue
            if all(_goes_on_raw(code, r, target.id) for r in code.reads(scope, other)) and _statistics_end(
                    code, statement, target.id):  # fmt: skip
                why = f"{other} is used as it is, and {target.id} (line {statement.lineno}) was scaled"
                yield _finding(code, reads[0], why, "inputs")
                break


def _scales(code: Syntax, statement: ast.Assign | ast.AugAssign, target: ast.Name) -> bool:
    """Whether a statement standardises a name by statistics: at once, or `x -= mean` before this `x /= std`."""
    scope, value = code.scope(statement), statement.value
    if isinstance(statement, ast.AugAssign):
        less = [a for a in code.of(ast.AugAssign) if isinstance(a.op, ast.Sub) and code.scope(a) is scope
                and written(a.target) == target.id and _is_mean(code, a.value, target.id)]  # fmt: skip
        return isinstance(statement.op, ast.Div) and bool(less)
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CASTS:
        value = value.func.value
    inner = _inner(code, value)
    if not isinstance(inner, ast.Name) or inner.id != target.id:
        return False
    return not isinstance(value, ast.BinOp) or (
        isinstance(value.left, ast.BinOp) and _is_mean(code, value.left.right, target.id)
    )


def _is_mean(code: Syntax, node: ast.expr, of: str) -> bool:
    """Whether it is the mean of what a name holds: `x.mean(0)`, `np.mean(x, axis=0)`."""
    made = code.origin(node)
    return isinstance(made, ast.Call) and last_name(made.func) == "mean" and of in names_in(made)


def _begin_alike(code: Syntax, one: ast.Name, other: ast.Name) -> bool:
    """Whether two names begin as parts of one value, as two parameters of a function, or in the same form."""
    around = code.function(one)
    given = parameters(around) if around is not None else {}
    if one.id in given or other.id in given:
        return one.id in given and other.id in given
    first, second = code.bindings(one)[:1], code.bindings(other)[:1]
    if not first or not second:
        return False
    return first[0][0] is second[0][0] or _form(code, first[0][1], None) == _form(code, second[0][1], None)


def _goes_on_raw(code: Syntax, read: ast.Name, train: str) -> bool:
    """Whether a use leaves the values as they are: shapes, casts, tensors, and callees that get the scaled ones too."""
    node: ast.AST = read
    while True:
        up = code.parent(node)
        if isinstance(up, (ast.Subscript, ast.keyword, ast.Tuple, ast.List, ast.Starred)):
            node = up
        elif isinstance(up, ast.Attribute):
            if up.attr in ("shape", "dtype", "ndim", "size"):
                return True
            if up.attr not in _CASTS:
                return False
            node = up
        elif isinstance(up, ast.Call):
            if node is up.func:
                node = up
                continue
            name = last_name(up.func)
            if name in _PLAIN or name in _HOLDERS:
                return name in _PLAIN or isinstance(code.parent(up), (ast.Assign, ast.Call, ast.keyword))
            alike = code.calls_in(code.scope(read), name)
            if name in _TENSORS:
                node = up
                continue
            return any(train in names_in(a) for call in alike if written(call.func) == written(up.func)
                       for a in call.args)  # fmt: skip
        else:
            return isinstance(up, ast.Assign) and node is not read and read.id in names_in(up.targets[0])


def _statistics_end(code: Syntax, scaling: ast.Assign | ast.AugAssign, train: str) -> bool:
    """Whether what a scaling uses is used for nothing else but being kept or printed."""
    names = {n for n in names_in(scaling.value) if n != train and n not in code.aliases}
    scope = code.scope(scaling)
    for read in (r for name in names for r in code.reads(scope, name)):
        kept = any(isinstance(a, ast.Call) and last_name(a.func) in _KEEPS for a in code.above(read))
        if code.statement(read) is not scaling and not kept and not _fits(code, read, train):
            return False
    return True


def _fits(code: Syntax, read: ast.Name, train: str) -> bool:
    """`scaler.fit(x_train)` as a statement of its own."""
    statement = code.statement(read)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and last_name(call.func) == "fit" and train in names_in(call)


def _differs_by_scaling(code: Syntax, scaled: ast.expr, raw: ast.expr) -> bool:
    """Whether the two are made alike but for a scaling that only the first has."""
    wanted = _form(code, raw, None)
    if any(_inner(code, n) is not None for n in below(raw)):
        return False
    return any(
        (inner := _inner(code, node)) is not None and _form(code, scaled, (node, inner)) == wanted
        for node in below(scaled)
        if isinstance(node, ast.expr)
    )


def _inner(code: Syntax, node: ast.AST) -> ast.expr | None:
    """x of `scaler.transform(x)`, `scaler(x)`, `(x - mean) / std`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left = node.left
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub) and not isinstance(left.right, ast.Constant):
            return left.left
        return None
    if not (isinstance(node, ast.Call) and len(node.args) == 1):
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS else node.func
    made = code.origin(owner) if isinstance(owner, (ast.Name, ast.Attribute)) else owner
    while isinstance(made, ast.Call) and last_name(made.func) == "fit" and isinstance(made.func, ast.Attribute):
        made = made.func.value
    return node.args[0] if isinstance(made, ast.Call) and _SCALERS.search(last_name(made.func)) else None


def _form(code: Syntax, node: ast.expr, without: tuple[ast.expr, ast.expr] | None) -> str:
    """The form of an expression: names and numbers left out, one call replaced by its argument."""

    def of(one: ast.AST, left: int = 40) -> str:
        if left <= 0:
            return "..."
        if without is not None and one is without[0]:
            one = without[1]
        if isinstance(one, ast.Name):
            made = code.assigned(one) if one is not node else None
            if isinstance(made, ast.Subscript) and isinstance(made.value, ast.Call):
                return of(made, left - 8)
            return "name"
        if isinstance(one, ast.Constant):
            return "constant"
        if isinstance(one, ast.Attribute):
            return f"{of(one.value, left - 1)}.{one.attr}"
        inner = (c for c in ast.iter_child_nodes(one) if not isinstance(c, (ast.expr_context, ast.Slice)))
        parts = [of(c, left - 1) for c in inner]
        return f"{type(one).__name__}({','.join(parts)})"

    return of(node)


def _transforms(code: Syntax) -> Iterator[Finding]:
    """Two lists of transforms in one scope, of which only the training one normalises."""
    found: dict[int, list[tuple[str, ast.Call]]] = {}
    for call in code.calls("Compose"):
        up = code.parent(call)
        name = last_name(up.targets[0]) if isinstance(up, ast.Assign) else ""
        if name:
            found.setdefault(id(code.scope(call)), []).append((name, call))
    for pairs in found.values():
        train = [c for n, c in pairs if re.search(r"train|(^|_)tr(_|$)", n) and "Normalize(" in written(c)]
        for name, call in pairs:
            text = written(call)
            held = _HELD.search(name) and "train" not in name
            if train and held and "Normalize" not in text and "ToTensor" in text and "Lambda" not in text:
                why = f"{name} does not normalise, and the training transforms at line {train[0].lineno} do"
                yield _finding(code, call, why, "transforms")


def _patch(code: Syntax, scaled: ast.expr, raw: ast.expr) -> tuple[Patch, ...]:
    wanted = _form(code, raw, None)
    for node in below(scaled):
        inner = _inner(code, node) if isinstance(node, ast.expr) else None
        if inner is not None and isinstance(node, ast.expr) and _form(code, scaled, (node, inner)) == wanted:
            return data.scaled_alike(code.file, raw, scaled, node, inner)
    return ()


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, patch: tuple[Patch, ...] = ()) -> Finding:
    return RULE.finding(
        f"At {code.at(node)} {why}: the model is evaluated on another scale",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )

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

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written

(RULE,) = pages("data", ("C192",))


_HELD = re.compile(r"(val|valid|test|te|ev|eval|dev|held|holdout|xv|xe|xte)", re.IGNORECASE)


_SCALERS = re.compile(r"Scaler|Normali[sz]er|Standardi[sz]er|PowerTransformer|QuantileTransformer")
_METHODS = frozenset({"transform", "fit_transform", "normalize", "normalise", "standardize", "scale", "__call__"})
_SCALING = ("scal", "Scal", "normal", "Normal", "standard", "Standard", "std", "Compose")
_LIBRARIES = ("np.", "numpy.", "torch.", "jnp.", "F.")
_PLAIN = frozenset({"print", "len", "isinstance", "range", "enumerate", "zip", "list", "tuple", "set", "sorted", "max",
                    "min", "sum", "float", "int", "str", "shape", "permutation", "randperm", "arange"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at pairs of inputs, and at pairs of transforms."""
    for file in project.files:
        if "torch" not in file.text and "jax" not in file.text:
            continue
        if not any(word in file.text for word in _SCALING):
            continue
        code = syntax(file)
        yield from _inputs(code)
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
                yield _finding(code, raw, why, "inputs")


def _differs_by_scaling(code: Syntax, scaled: ast.expr, raw: ast.expr) -> bool:
    """Whether the two are made alike but for a scaling that only the first has."""
    wanted = _form(code, raw, None)
    if any(_inner(code, n) is not None for n in below(raw)):
        return False
    return any((inner := _inner(code, node)) is not None and _form(code, scaled, (node, inner)) == wanted
        for node in below(scaled) if isinstance(node, ast.expr))


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


def _finding(code: Syntax, node: ast.AST, why: str, kind: str) -> Finding:
    return RULE.finding(f"At {code.at(node)} {why}: the model is evaluated on another scale", code.place(node),
        code.file.path, bearing=Bearing.CAUSE, measured={"kind": kind})

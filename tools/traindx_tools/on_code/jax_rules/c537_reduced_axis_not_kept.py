"""A value is divided by, or centred on, a reduction of itself whose axis was not kept.

`z / norm(z, axis=-1)` of shape (N, D) divides by N numbers, which broadcasting lines up with the D columns: an error
where N and D differ, and silently the wrong quotient where they agree (attention over a square matrix, a batch as
large as the width). `keepdims=True` (`keepdim=True` in torch) keeps the axis with length 1: each row meets its own
number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C537",
    name="reduced-axis-not-kept",
    title="A value is normalised by a reduction whose axis was not kept",
    severity=Severity.HIGH,
    sees="x / norm(x, axis=-1), x - x.mean(axis=1), p / p.sum(-1) and the like without keepdims or a new axis.",
    matters="An error, or, where the sizes agree, rows that are divided by the numbers of other rows.",
    alike=("a reduction over the first axis, which broadcasts as it is", "a vector, or one row under vmap",
           "a matrix that equals its transpose"),
    confirm=("print the sum (or the norm) of one row of the result: 1 is expected",),
)  # fmt: skip
_REDUCES = frozenset({"norm", "sum", "mean", "std", "var", "max", "min", "amax", "amin", "logsumexp", "nansum",
                      "nanmean", "nanstd", "vector_norm"})  # fmt: skip
_LIBRARIES = ("jax.", "numpy.", "torch.", "scipy.", "cupy.")
_AROUND = frozenset({"sqrt", "maximum", "clip", "clamp", "clamp_min", "clip_by_value", "rsqrt", "log", "abs",
                     "stop_gradient", "detach"})  # fmt: skip
_SYMMETRIC = re.compile(r"adj|graph|laplac|kernel|gram|affin|similar|dist|cov|corr|(?-i:^[AKS]$)|^df|frame", re.I)
_MENTIONED = re.compile(r"norm\(|sum\(|mean\(|std\(|max\(|logsumexp\(|var\(|min\(")


def check(project: Project) -> Iterator[Finding]:
    """Look at every quotient and every difference."""
    for file in project.files:
        text = file.text
        if not ("jax" in text or "torch" in text or "numpy" in text) or not file.mentions(_MENTIONED):
            continue
        code = syntax(file)
        told: set[int] = set()
        for node in code.of(ast.BinOp):
            if not isinstance(node.op, (ast.Div, ast.Sub)):
                continue
            found = _reduction(code, node.right, node.left)
            if found is not None and node.lineno not in told:
                finding = _judged(code, node, *found)
                if finding is not None:
                    told.add(node.lineno)
                    yield finding


def _reduction(code: Syntax, node: ast.expr, of: ast.expr, left: int = 6) -> tuple[ast.Call, ast.expr] | None:
    """The reduction of the same value that a divisor is made of, and the axis; None where an axis is put back."""
    if left <= 0 or isinstance(node, (ast.Subscript, ast.Constant)):
        return None
    if isinstance(node, ast.Name):
        made = code.assigned(node)
        return _reduction(code, made, of, left - 1) if made is not None and _unchanged(code, of, made) else None
    if isinstance(node, ast.BinOp):
        both = [_reduction(code, n, of, left - 1) for n in (node.left, node.right)]
        plain = [isinstance(n, ast.Constant) or code.number(n) is not None for n in (node.left, node.right)]
        small = [_named_small(n) for n in (node.left, node.right)]
        for at, other in ((0, 1), (1, 0)):
            if both[at] is not None and (plain[other] or small[other]):
                return both[at]
        return None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if name in _AROUND:
        inner = node.args[0] if node.args else None
        if isinstance(node.func, ast.Attribute) and not code.qualified(node.func):
            inner = node.func.value
        return _reduction(code, inner, of, left - 1) if inner is not None else None
    return _called(code, node, of) if name in _REDUCES else None


def _named_small(node: ast.expr) -> bool:
    return re.fullmatch(r"(\w*_)?(eps|epsilon|tiny|delta)", last_name(node), re.IGNORECASE) is not None


def _called(code: Syntax, call: ast.Call, of: ast.expr) -> tuple[ast.Call, ast.expr] | None:
    method = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
    if not method and not code.qualified(call.func).startswith(_LIBRARIES):
        return None  # a function of the project's own may keep the axis
    value = call.func.value if method and isinstance(call.func, ast.Attribute) else argument(call, 0, "a", "x", "input")
    shift = 0 if method else 1
    power = last_name(call.func) in ("norm", "vector_norm")
    axis = argument(call, shift + power, "axis", "dim")
    kept = argument(call, 99, "keepdims", "keepdim", "keep_dims") or argument(call, shift + power + 1)
    if kept is not None and not (isinstance(kept, ast.Constant) and kept.value is False):
        return None
    if value is None or axis is None or any(k.arg is None for k in call.keywords):
        return None
    return (call, axis) if written(_core(value)) == written(_core(of)) else None


def _core(node: ast.expr) -> ast.expr:
    """x of `x ** 2`, `abs(x)`, `jnp.square(x)`, `x.abs()`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _core(node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and written(node.left) == written(node.right):
        return _core(node.left)
    if isinstance(node, ast.Call) and last_name(node.func) in ("abs", "square", "pow"):
        if node.args and not (isinstance(node.func, ast.Attribute) and last_name(node.func) == "pow"):
            return _core(node.args[0])
        return _core(node.func.value) if isinstance(node.func, ast.Attribute) else node
    return node


def _unchanged(code: Syntax, of: ast.expr, made: ast.expr) -> bool:
    """Whether a name still holds what the reduction was made of."""
    if not isinstance(of, ast.Name):
        return True
    return not any(made.lineno <= s.lineno < of.lineno for s, _ in code.bindings(of))


def _judged(code: Syntax, node: ast.BinOp, call: ast.Call, axis: ast.expr) -> Finding | None:
    places = axis.elts if isinstance(axis, (ast.Tuple, ast.List)) else [axis]
    numbers = [code.number(p) for p in places]
    value = written(node.left)
    if not numbers or any(n is None for n in numbers) or _SYMMETRIC.search(value):
        return None
    known = all(n is not None and n >= 1 for n in numbers)
    if not known and numbers != [-1.0]:
        return None
    if not known and not _is_matrix(code, node.left):
        return None  # the value may be a vector, of which the last axis is the only one
    keep = "keepdim" if _of_torch(code, call) else "keepdims"
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} lines the numbers of {written(call)[:60]} up with the last axis "
        f"of {value[:40]}: the reduced axis was not kept ({keep}=True), so rows meet the numbers of other rows, or "
        "sizes do not fit",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "quotient" if isinstance(node.op, ast.Div) else "difference", "axis": written(axis)},
        patch=_kept(code, call, keep),
    )


def _of_torch(code: Syntax, call: ast.Call) -> bool:
    name = code.qualified(call.func)
    return name.startswith("torch.") if name else "torch" in code.file.text and "jax" not in code.file.text


def _is_matrix(code: Syntax, node: ast.expr) -> bool:
    """Whether the value has more than one axis, by what else its function does with it."""
    name, scope = written(node), code.scope(node)
    for other in below(scope):
        if isinstance(other, ast.Attribute) and other.attr in ("T", "mT") and written(other.value) == name:
            return True
        if isinstance(other, ast.Call) and last_name(other.func) in ("transpose", "swapaxes") and name in (
            written(other.func.value) if isinstance(other.func, ast.Attribute) else "", written(argument(other, 0))):
            return True
        if isinstance(other, ast.Subscript) and written(other.value) == f"{name}.shape":
            place = code.number(other.slice)
            if place is not None and (place >= 1 or place <= -2):
                return True
    made = code.origin(node)
    product = isinstance(made, ast.BinOp) and isinstance(made.op, ast.MatMult) and isinstance(made.right, ast.Attribute)
    return product and isinstance(made, ast.BinOp) and written(made.right).endswith((".T", ".mT"))


def _kept(code: Syntax, call: ast.Call, keep: str) -> tuple[Patch, ...]:
    return Change(code.file, "keep the reduced axis").pass_argument(call, keep, "True").patches()

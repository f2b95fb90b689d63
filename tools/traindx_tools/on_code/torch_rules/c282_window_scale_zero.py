"""A sample is divided by its own mean, sum or largest value, which is 0 for a sample of zeros.

Windows of a series are often brought to a common level: `past / past.abs().mean()`. A product that is not sold yet, a
silent stretch, an empty image has nothing but zeros: 0 / 0 is NaN, and x / 0 is infinite where the target of the same
window is not 0. One such sample in a batch makes the loss NaN, and the next step every weight. The raw data hold no
NaN, so that a check of them finds nothing. A lower bound in the units of the data is needed: a divisor of 1e-6 is
finite and makes targets of a million, so that no patch is offered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C282",
    name="window-scale-zero",
    title="A sample is divided by its own level, which can be 0",
    severity=Severity.INFO,
    sees="x / x.abs().mean(), x / x.sum() or x / x.max() of one sample in a data set or a collate function, unguarded.",
    matters="A sample of zeros becomes NaN or inf, and the loss with it.",
    alike=("NaN in the raw data", "a logarithm of 0 in the loss", "an overflow of half precision"),
    confirm=("count the samples of the data set that are not finite: torch.isfinite(sample).all()",),
)
_LEVELS = frozenset({"mean", "sum", "max", "amax", "norm", "median", "nanmean"})
_PLACES = re.compile(r"^(__getitem__|collate\w*|\w*_collate|\w*window\w*)$")
_GUARD = re.compile(r"maximum|clip|clamp|where|\beps|epsilon|EPS|tiny|1e-|nan_to_num|\bor\b|\+ ?[01]\b|\+ ?[01]\.")


def check(project: Project) -> Iterator[Finding]:
    """Look at the divisions where samples are made."""
    for file in project.files:
        if "__getitem__" not in file.text and "collate" not in file.text:
            continue
        code = syntax(file)
        seen: set[int] = set()
        for division in code.of(ast.BinOp):
            body = code.function(division)
            if not isinstance(division.op, ast.Div) or body is None or not _PLACES.match(body.name):
                continue
            level = code.origin(division.right)
            of = _measured(code, level)
            if of is None or id(level) in seen or not _of_the_same(code, division.left, of):
                continue
            if _GUARD.search(written(level)) or _GUARD.search(written(division.right)) or _asked(code, division):
                continue
            seen.add(id(level))
            yield _finding(code, division, level)


def _measured(code: Syntax, level: ast.expr) -> ast.expr | None:
    """What a mean, sum or maximum is taken of: x of `x.abs().mean()`, `np.mean(np.abs(x))`, `np.abs(x).max()`."""
    node, found = level, False
    for _ in range(5):
        if not isinstance(node, ast.Call):
            break
        name, plain = last_name(node.func), bool(code.qualified(node.func)) or isinstance(node.func, ast.Name)
        if name not in _LEVELS and name not in ("abs", "absolute", "float", "item"):
            return None
        found = found or name in _LEVELS
        inner = argument(node, 0, "input", "a") if plain else getattr(node.func, "value", None)
        if not isinstance(inner, ast.expr):
            return None
        node = inner
    return node if found and isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)) else None


def _of_the_same(code: Syntax, top: ast.expr, of: ast.expr) -> bool:
    """Whether what is divided is what the level was taken of."""
    return written(top) == written(of)


def _asked(code: Syntax, division: ast.BinOp) -> bool:
    """Whether a condition in the function speaks of the level."""
    name = last_name(division.right)
    body = code.function(division)
    inside = list(below(body)) if body is not None else []
    tests = [n.test for n in inside if isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    return any(isinstance(n, ast.Name) and n.id == name for t in tests for n in below(t)) or any(
        isinstance(up, (ast.If, ast.IfExp)) for up in code.above(division))  # fmt: skip


def _finding(code: Syntax, division: ast.BinOp, level: ast.expr) -> Finding:
    return RULE.finding(
        f"{written(division)[:60]} at {code.at(division)} divides a sample by {written(level)[:60]} (line "
        f"{level.lineno}), which is zero for a sample of zeros: 0 / 0 is NaN, and no epsilon guards it",
        code.place(level),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "level", "divisor": written(level)[:60]},
    )

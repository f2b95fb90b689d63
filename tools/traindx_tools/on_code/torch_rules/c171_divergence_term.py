"""The Kullback-Leibler term of a variational model is written wrongly.

For a Gaussian posterior against a standard normal it is -0.5 * sum(1 + log v - m^2 - v). Three mistakes: its sign (a
factor of +0.5, or subtracted from a loss) rewards a posterior that runs away from the prior; its formula (a plus before
the variance or the square); its reduction (a sum over the batch beside a reconstruction that is a mean over all
elements, or the reverse), which changes the weight between the two by the batch times the number of elements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.on_code.terms import addends, exponent
from traindx_tools.rules import Rule

RULE = Rule(
    id="C171",
    name="divergence-term",
    title="The divergence term of a variational model is wrong",
    severity=Severity.HIGH,
    sees="1 + log v - m^2 - v: its signs, the factor before it, its reduction beside the reconstruction's.",
    matters="The posterior collapses onto the prior, or runs away from it.",
    alike=("a weight of the divergence that is too large", "posterior collapse of a powerful decoder"),
    confirm=("evaluate the term at m = 0, log v = 0: it is 0; anywhere else it is positive",),
)
_AWAY = "the posterior is pushed away from the prior"
_NEGATIVE = f"it is negative as written (the factor has to be -0.5) and is added to the loss: {_AWAY}"
_SQUARES = ("pow", "square")
_REDUCTIONS = frozenset({"sum", "mean", "nansum", "nanmean"})
_LOSSES = ("mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "l1_loss", "cross_entropy",
           "MSELoss", "BCELoss", "BCEWithLogitsLoss", "L1Loss", "smooth_l1_loss")  # fmt: skip


@dataclass(frozen=True)
class _Term:
    """The expression 1 + log v - m^2 - v with signs as written."""

    node: ast.BinOp
    signs: tuple[int, int, int, int]
    """Of 1, log v, m^2 and v."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every expression with a logarithm, its exponential, a square and a 1."""
    for file in project.files:
        if "exp" not in file.text or ("torch" not in file.text and "jax" not in file.text):
            continue
        code = syntax(file)
        asked: _Asked = {}
        for term in _terms(code):
            yield from _judged(code, term, asked)


def _terms(code: Syntax) -> Iterator[_Term]:
    for node in code.of(ast.BinOp):
        up = code.parent(node)
        if not isinstance(node.op, (ast.Add, ast.Sub)) or (
            isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Add, ast.Sub))
        ):
            continue
        found = list(addends(node))
        if len(found) != 4:
            continue
        exps = [(s, n, exponent(n)) for s, n in found if exponent(n) is not None]
        ones = [s for s, n in found if isinstance(n, ast.Constant) and n.value in (1, 1.0)]
        squares = [s for s, n in found if _is_square(n)]
        if len(exps) != 1 or len(ones) != 1 or len(squares) != 1:
            continue
        logs = [s for s, n in found if written(n) == written(exps[0][2])]
        if len(logs) == 1:
            yield _Term(node, (ones[0], logs[0], squares[0], exps[0][0]))


def _is_square(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        power = isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2
        return power or (isinstance(node.op, ast.Mult) and written(node.left) == written(node.right))
    return isinstance(node, ast.Call) and last_name(node.func) in _SQUARES


_Asked = dict[tuple[int, str, str], bool]
"""What was found of a name, by its function and what was asked of it."""


def _judged(code: Syntax, term: _Term, asked: _Asked) -> Iterator[Finding]:
    one = term.signs[0]
    if term.signs != (one, one, -one, -one):
        yield _finding(
            code, term.node, "its signs are wrong: it has to be 1 + log v - m^2 - v up to a factor", "formula"
        )
        return
    factor, reduced, top = _outside(code, term.node)
    sign = -one * factor
    name = _name_of(code, top)
    if name is None or not sign:
        return
    key = id(code.scope(top)), name, "negative" if sign < 0 else reduced
    if sign < 0:
        if key not in asked:
            asked[key] = _used_as_loss(code, top, name) and not _negated_later(code, top, name)
        if asked[key]:
            yield _finding(code, term.node, _NEGATIVE, "sign")
    elif key not in asked:  # the uses of one name say the same of every term that is bound to it
        asked[key] = True
        yield from _subtracted(code, top, name)
        yield from _reduction(code, top, name, reduced)


def _outside(code: Syntax, node: ast.AST) -> tuple[int, str, ast.AST]:
    """The sign of the factors around it, its reduction ("sum", "mean", "sum of rows", ...), the outermost of these."""
    sign, reduced, top = 1, "", node
    for up in code.above(node):
        if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.USub):
            sign = -sign
        elif isinstance(up, ast.BinOp) and isinstance(up.op, (ast.Mult, ast.Div)):
            other = up.right if up.left is top else up.left
            number = code.number(other)
            sign = -sign if number is not None and number < 0 else sign
            if isinstance(up.op, ast.Div) and number is None:
                reduced += " divided"
        elif isinstance(up, ast.Call) and last_name(up.func) in _REDUCTIONS:
            whole = argument(
                up, 0 if isinstance(up.func, ast.Attribute) and _contains(up.func, node) else 1, "dim", "axis"
            )
            reduced += " " + last_name(up.func) + ("" if whole is None else " of rows")
        elif not isinstance(up, (ast.Attribute, ast.Call)):
            break
        top = up
    return sign, reduced.strip(), top


def _contains(outer: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in below(outer))


def _name_of(code: Syntax, top: ast.AST) -> str | None:
    """The name that the term is bound to."""
    up = code.parent(top)
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        return up.targets[0].id
    return None


def _uses(code: Syntax, top: ast.AST, name: str) -> list[ast.Name]:
    return code.reads(code.scope(top), name)


def _used_as_loss(code: Syntax, top: ast.AST, name: str) -> bool:
    """Whether it is added to something: here and now, not handed to a caller."""
    for use in _uses(code, top, name):
        for up in code.above(use):
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add):
                return True
            if isinstance(up, ast.stmt):
                break
    return False


def _negated_later(code: Syntax, top: ast.AST, name: str) -> bool:
    for use in _uses(code, top, name):
        below: ast.AST = use
        for up in code.above(use):
            if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.USub):
                return True
            if isinstance(up, ast.BinOp):
                other = up.right if up.left is below else up.left
                if (isinstance(up.op, ast.Sub) and up.right is below) or (code.number(other) or 0.0) < 0:
                    return True
            if isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Sub):
                return True
            if isinstance(up, ast.stmt):
                break
            below = up
    return False


def _subtracted(code: Syntax, top: ast.AST, name: str) -> Iterator[Finding]:
    for use in _uses(code, top, name):
        below: ast.AST = use
        for up in code.above(use):
            if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.USub):
                break
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Sub) and up.right is below:
                outer = next((a for a in code.above(up) if isinstance(a, (ast.UnaryOp, ast.stmt))), None)
                if _is_loss(code, up.left) and isinstance(outer, ast.Assign):
                    yield _finding(code, up, f"{name} is positive and subtracted from a loss: {_AWAY}", "sign")
                break
            if isinstance(up, ast.stmt):
                break
            below = up


def _is_loss(code: Syntax, node: ast.expr) -> bool:
    """Whether a value comes from a loss of the library, or is a squared difference that was averaged."""
    origin = code.origin(node)
    if re.search(r"(\*\* ?2|\.pow\(2\)|square\().*(mean|sum)\(", written(origin)) and "-" in written(origin):
        return not written(origin).lstrip("(").startswith("-")
    if not isinstance(origin, ast.Call):
        return False
    called = code.origin(origin.func) if isinstance(origin.func, (ast.Name, ast.Attribute)) else origin.func
    return last_name(origin.func) in _LOSSES or (isinstance(called, ast.Call) and last_name(called.func) in _LOSSES)


def _reduction(code: Syntax, top: ast.AST, name: str, reduced: str) -> Iterator[Finding]:
    """A sum over batch and latents beside a reconstruction that is a mean over every element."""
    if reduced not in ("sum", "mean"):
        return
    for use in _uses(code, top, name):
        below: ast.AST = use
        for up in code.above(use):
            if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add):
                other = up.right if up.left is below else up.left
                how = _reconstruction(code, other) if isinstance(other, ast.expr) else None
                if how is not None and how != reduced and not (names_in(up) - names_in(other) - {name}):
                    heavy = "dwarfs the reconstruction" if reduced == "sum" else "hardly counts"
                    sizes = f"a {reduced} over batch and latents, the reconstruction a {how} over batch and elements"
                    yield _finding(code, up, f"{name} is {sizes}: the divergence {heavy}", "reduction")
                    return
                break
            if isinstance(up, (ast.stmt, ast.BinOp)):
                break
            below = up


def _reconstruction(code: Syntax, node: ast.expr) -> str | None:
    origin = code.origin(node)
    if not isinstance(origin, ast.Call):
        return None
    if last_name(origin.func) in _LOSSES:
        given = argument(origin, 99, "reduction")
        if given is None:
            return "mean"
        return str(given.value) if isinstance(given, ast.Constant) and given.value in ("sum", "mean") else None
    return None


def _finding(code: Syntax, node: ast.AST, why: str, kind: str) -> Finding:
    return RULE.finding(
        f"The divergence term {code.file.segment(node)} at {code.at(node)}: {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE if kind != "reduction" else Bearing.SIGN,
        severity=Severity.HIGH if kind != "reduction" else Severity.MEDIUM,
        measured={"kind": kind},
    )

"""Attention scores are masked with 0 in front of the softmax.

exp(0) is 1: a score that was set to 0, or multiplied with a mask of zeros, still gets its share of the weights, and
more of it than every score below 0. What must not be attended to needs -inf, or a large negative number, before the
softmax. Multiplying the weights with the mask after the softmax blocks, but the rest no longer sums to 1, less the
fewer there are: the first position of a causal model keeps 1/n of its value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C334",
    name="scores-masked-with-zero",
    title="Scores are masked with 0 in front of a softmax",
    severity=Severity.HIGH,
    sees="where or masked_fill with 0 (or with a positive number), or a product with a mask, whose result goes into a "
         "softmax; a product of weights with a mask and no new normalisation.",
    matters="Masked positions are attended to: padding takes part, and a causal model sees the future.",
    alike=("weights masked after the softmax and normalised again", "a mask of 0 and -inf that is added",
           "dropout of weights"),
    confirm=("print the weights of the first query: those of later keys have to be 0",),
)  # fmt: skip
_MASK = re.compile(r"(\w+_)?(mask|masks|tril|triu|causal|visible|allowed|bias_mask|pad(ding)?)(_\w+)?", re.IGNORECASE)
_WEIGHTS = re.compile(r"scores?|logits?|att(n|ention)?(_\w+)?|sim|energy|weights?|wei|dots?|qk", re.IGNORECASE)
_GUMBEL = re.compile(r"gate|router|expert|moe|linear_att|straight", re.IGNORECASE)
_SUM = re.compile(r"(?<!ein)sum\(")
_CHAIN = frozenset({"float", "to", "type_as", "astype"})


def check(project: Project) -> Iterator[Finding]:
    """Look at what every softmax over scores gets."""
    for file in project.files:
        if "softmax" not in file.text or not ("torch" in file.text or "jax" in file.text):
            continue
        code = syntax(file)
        for call in code.calls("softmax", "Softmax"):
            plain = code.qualified(call.func)
            own = isinstance(call.func, ast.Attribute) and not plain
            scores = getattr(call.func, "value", None) if own else argument(call, 0, "input", "x")
            if scores is None or (own and isinstance(scores, ast.Name) and scores.id == "self"):
                continue
            found = _before(code, scores)
            if found is not None and not _GUMBEL.search(_around(code, call)):
                node, why, patch = found
                yield _finding(code, node, "before", why, Bearing.CAUSE, patch)
            elif found is None and not _GUMBEL.search(_around(code, call)):
                yield from _after(code, call)


def _around(code: Syntax, node: ast.AST) -> str:
    body, owner = code.function(node), code.owner(node)
    return f"{getattr(body, 'name', '')} {getattr(owner, 'name', '')}"


def _before(code: Syntax, node: ast.expr) -> tuple[ast.AST, str, tuple[Patch, ...]] | None:
    """The masking with 0 that scores come out of."""
    for _ in range(6):
        node = code.origin(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Add)):
            node = node.left
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return _multiplied(code, node)
        if not isinstance(node, ast.Call):
            return None
        name = last_name(node.func)
        if name == "where":
            return _chosen(code, node)
        if name in ("masked_fill", "masked_fill_"):
            value = argument(node, 1, "value")
            if _is_zero(code, value):
                return node, f"{written(node)[-60:]} sets blocked scores to 0", _minus_infinity(code, value)
            return None  # blocked as it should be, whatever was done to those scores before
        if name in _CHAIN and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    return None


def _is_zero(code: Syntax, value: ast.expr | None) -> bool:
    if value is None:
        return False
    number = code.number(value)
    if number is not None:
        return number == 0
    text = written(value)
    return bool(re.search(r"finfo\(.*\)\.(tiny|eps|smallest\w*)$|zeros_like\(", text)) and not text.startswith("-")


def _minus_infinity(code: Syntax, value: ast.expr | None) -> tuple[Patch, ...]:
    if value is None or isinstance(code.number(value), type(None)):
        return ()
    return Change(code.file, "nothing of it after the softmax").replace(value, "-1e9").patches()


def _chosen(code: Syntax, node: ast.Call) -> tuple[ast.AST, str, tuple[Patch, ...]] | None:
    """`where(mask, scores, 0.0)` and `where(mask, 0.0, scores)`, where the rest are scores."""
    if len(node.args) != 3 or not _is_mask(code, node.args[0]):
        return None
    for value, other in ((node.args[2], node.args[1]), (node.args[1], node.args[2])):
        if _is_zero(code, value) and code.number(other) is None:
            return node, f"{written(node)[:80]} sets blocked scores to {written(value)}", _minus_infinity(code, value)
    return None


def _is_mask(code: Syntax, node: ast.expr) -> bool:
    """Whether a value is a mask: by its name, or by what it is made of."""
    if isinstance(node, ast.Subscript):
        return _is_mask(code, node.value)
    if isinstance(node, ast.Compare):
        return _is_mask(code, node.left) or isinstance(node.ops[0], (ast.GtE, ast.LtE, ast.Gt, ast.Lt))
    if isinstance(node, ast.UnaryOp):
        return _is_mask(code, node.operand)
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) and not code.qualified(node.func) else None
        return last_name(node.func) in ("tril", "triu") or (inner is not None and _is_mask(code, inner))
    return isinstance(node, (ast.Name, ast.Attribute)) and _MASK.fullmatch(last_name(node)) is not None


def _multiplied(code: Syntax, node: ast.BinOp) -> tuple[ast.AST, str, tuple[Patch, ...]] | None:
    """`scores * mask`, where the mask holds ones and zeros."""
    for mask, scores in ((node.right, node.left), (node.left, node.right)):
        if _of_ones(code, mask) and not _of_ones(code, scores) and code.number(scores) is None:
            return node, f"{written(node)[:80]} multiplies scores with a mask of ones and zeros", ()
    return None


def _of_ones(code: Syntax, node: ast.expr) -> bool:
    """Whether it is a mask that is not known to hold anything else than ones and zeros."""
    if not _is_mask(code, node):
        return False
    made = code.origin(node)
    text = written(made)
    return not any(w in text for w in ("inf", "e9", "e4", "10000", "finfo", "1e", "log("))


def _after(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    """`softmax(scores) * mask`, and no sum that it is divided by."""
    body = code.function(call)
    up = code.parent(call)
    if body is None or not isinstance(up, ast.BinOp) or not isinstance(up.op, ast.Mult):
        return
    other = up.right if up.left is call else up.left
    if not _of_ones(code, other) or not _score_like(code, call):
        return
    divided = any(isinstance(n, (ast.BinOp, ast.AugAssign)) and isinstance(n.op, ast.Div) and _SUM.search(written(n))
                  for n in below(body))  # fmt: skip
    if divided or any(last_name(n.func) == "normalize" for n in below(body) if isinstance(n, ast.Call)):
        return
    yield _finding(code, up, "after", f"{source_of(code.file, up)[:80]} masks the weights after the softmax, and "
                   "nothing normalises them again", Bearing.SIGN, ())  # fmt: skip


def _score_like(code: Syntax, call: ast.Call) -> bool:
    given = argument(call, 0, "input", "x")
    node = given if code.qualified(call.func) else getattr(call.func, "value", None)
    return isinstance(node, (ast.Name, ast.Attribute)) and _WEIGHTS.fullmatch(last_name(node)) is not None


def _finding(
    code: Syntax, node: ast.AST, kind: str, why: str, bearing: Bearing, patch: tuple[Patch, ...]
) -> Finding:
    certain = bearing is Bearing.CAUSE
    tail = " in front of a softmax: exp(0) is 1, and what is blocked keeps its share" if certain else ""
    severity = None if certain else Severity.MEDIUM
    return RULE.finding(f"{why}{tail} (at {code.at(node)})", code.place(node), code.file.path, bearing=bearing,
                        severity=severity, measured={"kind": kind}, patch=patch)  # fmt: skip

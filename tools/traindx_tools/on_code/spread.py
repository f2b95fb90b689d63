"""Whether a value rises or falls with the spread of what a batch uses: entropy of average probabilities, perplexity.

+1: it is larger where codes, experts or clusters are used evenly (or embeddings lie far apart); -1: it is smaller.
Only averages over the batch count: a lower entropy of each sample's own probabilities is often wanted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

_DEEP = 16
_RISING = frozenset({
    "exp", "log", "mean", "sum", "float", "sqrt", "relu", "clamp", "clamp_min", "softplus", "to", "view", "squeeze",
    "stack", "reshape", "pow", "square", "log2", "nanmean", "maximum", "max", "type_as", "item_", "nansum", "log1p",
})  # fmt: skip
_KEEPS = frozenset({"clamp", "clamp_min", "float", "clip", "all_reduce", "view", "reshape", "squeeze", "flatten", "to"})
_LOGS = frozenset({"log", "log2", "log_", "safe_log", "log_safe"})
_NAMED = re.compile(r"(prob|code|codebook|usage|vq|avg|batch)_?(perplexity|ppl|entropy)$|^perplexity$"
                    r"|^(avg|mean|batch|marginal)_?(ent|entropy)$", re.IGNORECASE)  # fmt: skip
_AVERAGED = re.compile(r"^(avg|mean|average|marginal|usage|batch)_?(p|prob|probs|q|usage|assign\w*|soft\w*|dist\w*)$",
                       re.IGNORECASE)  # fmt: skip


@dataclass(frozen=True)
class Direction:
    """+1 or -1, with what it was found by: "entropy", "distance", "name"."""

    sign: int
    by: str

    def turned(self) -> Direction:
        """The opposite."""
        return Direction(-self.sign, self.by)


def direction(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> Direction | None:
    """How a value changes with the spread; None where nothing says it."""
    if left <= 0:
        return None
    entropy = _entropy(look, code, node)
    if entropy is not None:
        return entropy
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = direction(look, code, node.operand, left - 1)
        return None if inner is None else inner.turned()
    if isinstance(node, ast.BinOp):
        return _of_operation(look, code, node, left)
    if isinstance(node, ast.Call):
        return _of_call(look, code, node, left)
    step = look.one_step(code, node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if step is not None and step[1] is not node:
        return direction(look, *step, left - 1)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        entries = list(_entries(look, str(node.slice.value)))
        found = [d for c, v in entries if (d := direction(look, c, v, left - 1)) is not None]
        if found and all(d.sign == found[0].sign for d in found):
            return found[0]
        return Direction(1, "name") if not entries and _NAMED.search(str(node.slice.value)) else None
    name = last_name(node)
    return Direction(1, "name") if name and _NAMED.search(name) and not _is_made(code, node) else None


def _is_made(code: Syntax, node: ast.expr) -> bool:
    return bool(code.bindings(node))


def _entries(look: Lookup, key: str) -> Iterator[tuple[Syntax, ast.expr]]:
    """The values of a key in the dictionaries of the project."""
    for code in look.codes:
        if key not in code.file.text:
            continue
        for table in code.of(ast.Dict):
            for k, v in zip(table.keys, table.values, strict=True):
                if isinstance(k, ast.Constant) and k.value == key:
                    yield code, v
        for call in code.calls("dict"):
            yield from ((code, k.value) for k in call.keywords if k.arg == key)
        for statement in code.of(ast.Assign):
            target = statement.targets[0]
            at = target.slice if isinstance(target, ast.Subscript) else None
            if isinstance(at, ast.Constant) and at.value == key:
                yield code, statement.value


def _of_operation(look: Lookup, code: Syntax, node: ast.BinOp, left: int) -> Direction | None:
    a, b = direction(look, code, node.left, left - 1), direction(look, code, node.right, left - 1)
    if isinstance(node.op, (ast.Sub, ast.Div)) and b is not None:
        b = b.turned()
    if isinstance(node.op, (ast.Mult, ast.Div)):
        for known, other in ((a, node.right), (b, node.left)):
            number = code.number(other)
            if known is not None and number is not None and number < 0:
                return known.turned()
    both = [d for d in (a, b) if d is not None]
    if not both or any(d.sign != both[0].sign for d in both):
        return None
    return both[0]


def _of_call(look: Lookup, code: Syntax, node: ast.Call, left: int) -> Direction | None:
    name = last_name(node.func)
    inner = _inner(code, node)
    if name in ("pdist", "cdist"):
        return Direction(1, "distance")
    if name in ("mul", "mul_", "div", "multiply") and isinstance(node.func, ast.Attribute) and node.args and inner:
        known = direction(look, code, inner, left - 1)
        number = code.number(node.args[0])
        return known.turned() if known is not None and number is not None and number < 0 else known
    if name in ("neg", "neg_", "negative") and inner is not None:
        known = direction(look, code, inner, left - 1)
        return known.turned() if known is not None else None
    if name in _RISING and inner is not None:
        return direction(look, code, inner, left - 1)
    body = look.function(code, node.func)
    if body is None or isinstance(body[1], ast.Lambda):
        return None
    values = [r for r in returned(body[1]) if not isinstance(r, (ast.Tuple, ast.Dict))]
    results = [direction(look, body[0], r, left - 2) for r in values]
    return results[0] if len(results) == 1 else None


def _inner(code: Syntax, node: ast.Call) -> ast.expr | None:
    """What a function or method is applied to."""
    if isinstance(node.func, ast.Attribute) and not code.qualified(node.func) and not (
        isinstance(node.func.value, ast.Name) and node.func.value.id in code.aliases
    ):
        return node.func.value
    return node.args[0] if node.args else None


def _entropy(look: Lookup, code: Syntax, node: ast.expr) -> Direction | None:
    """p * log p of an average p over the batch: -1 (its negative is the entropy); entr(p) and .entropy(): +1."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for p, log in ((node.left, node.right), (node.right, node.left)):
            made = code.origin(log) if isinstance(log, ast.Name) else log
            minus = isinstance(p, ast.UnaryOp) and isinstance(p.op, ast.USub)
            plain = p.operand if isinstance(p, ast.UnaryOp) and minus else p
            if isinstance(made, ast.Call) and last_name(made.func) in _LOGS and _holds(code, made, plain):
                sign = 1 if minus else -1
                return Direction(sign, "entropy") if _average(look, code, plain) else None
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in ("entr", "xlogy") and node.args and _average(look, code, node.args[0]):
            return Direction(1 if name == "entr" else -1, "entropy")
        owner = node.func.value if isinstance(node.func, ast.Attribute) and name == "entropy" else None
        if isinstance(owner, (ast.Call, ast.Name)):
            made = code.origin(owner)
            drawn = isinstance(made, ast.Call) and "Categorical" in written(made.func)
            probs = argument(made, 0, "probs") if isinstance(made, ast.Call) and drawn else None
            return Direction(1, "entropy") if probs is not None and _average(look, code, probs) else None
    return None


def _holds(code: Syntax, log: ast.Call, p: ast.expr) -> bool:
    inner = _inner(code, log)
    text = written(p)
    return inner is not None and any(written(n) == text for n in below(inner) if isinstance(n, ast.expr))


def _average(look: Lookup, code: Syntax, node: ast.expr, left: int = 8) -> bool:
    """Whether probabilities are averaged over the batch: mean over axis 0, or a name that says so."""
    for _ in range(left):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("mean", "nanmean"):
                return _over_first(code, node)
            if name == "reduce" and "mean" in written(node):
                return True
            inner = _inner(code, node) if name in _KEEPS else None
            if inner is None:
                return False
            node = inner
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div, ast.Mult)):
            node = node.left
        else:
            step = look.one_step(code, node)
            if step is None or step[1] is node:
                return isinstance(node, ast.Name) and not code.bindings(node) and _AVERAGED.match(node.id) is not None
            code, node = step
    return False


def _over_first(code: Syntax, call: ast.Call) -> bool:
    method = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
    axis = argument(call, 0 if method else 1, "dim", "axis")
    parts = axis.elts if isinstance(axis, (ast.Tuple, ast.List)) else [axis]
    return any(code.number(p) == 0 for p in parts if p is not None)

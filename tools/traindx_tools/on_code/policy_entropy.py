"""Which written value is the entropy of a policy: a distribution's own, collected over a rollout, or by hand."""

from __future__ import annotations

import ast
import re

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.syntax import Syntax, last_name, written

_REDUCING = frozenset({"mean", "sum", "stack", "cat", "concatenate", "concat", "hstack", "vstack", "flatten", "view",
                       "reshape", "squeeze", "nanmean", "fsum", "average", "array", "to", "float"})  # fmt: skip
_LOG = re.compile(r"log", re.IGNORECASE)
_DEEP = 10


def is_entropy(find: Lookup, code: Syntax, node: ast.AST, left: int = _DEEP) -> bool:
    """Whether a value is an entropy, without a minus: followed through reductions, lists, names and functions."""
    if left <= 0 or not isinstance(node, ast.expr):
        return False
    if isinstance(node, ast.Call):
        return _of_call(find, code, node, left)
    if isinstance(node, ast.ListComp):
        return is_entropy(find, code, node.elt, left - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return is_entropy(find, code, node.left, left - 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _by_hand(code, node.operand)
    if isinstance(node, ast.Subscript):
        return _element(find, code, node, left)
    if not isinstance(node, ast.Name):
        return False
    made = code.assigned(node)
    if isinstance(made, ast.List) and not made.elts:
        return _collected(find, code, node, left)
    return made is not None and made is not node and is_entropy(find, code, made, left - 1)


def _of_call(find: Lookup, code: Syntax, call: ast.Call, left: int) -> bool:
    name = last_name(call.func)
    if name == "entropy" and not call.args:
        return isinstance(call.func, ast.Attribute)
    if name in _REDUCING:
        own = isinstance(call.func, ast.Attribute) and not code.qualified(call.func)
        inner = call.func.value if own and isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
        return inner is not None and is_entropy(find, code, inner, left - 1)
    called = find.function(code, call.func)
    values = list(returned(called[1])) if called is not None else []
    return called is not None and bool(values) and all(is_entropy(find, called[0], v, left - 1) for v in values)


def _collected(find: Lookup, code: Syntax, name: ast.Name, left: int) -> bool:
    """Whether a list that begins empty is given entropies only."""
    scope = code.function(name)
    given = [c.args[0] for c in code.calls("append") if c.args and code.function(c) is scope
             and isinstance(c.func, ast.Attribute) and written(c.func.value) == name.id]  # fmt: skip
    return bool(given) and all(is_entropy(find, code, g, left - 1) for g in given)


def _element(find: Lookup, code: Syntax, node: ast.Subscript, left: int) -> bool:
    """`_, logp, entropy, value = agent.evaluate(...)` where the function is the project's own."""
    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
    called = find.function(code, node.value.func) if isinstance(node.value, ast.Call) else None
    values = list(returned(called[1])) if called is not None else []
    return called is not None and isinstance(at, int) and bool(values) and all(
        isinstance(v, ast.Tuple) and at < len(v.elts) and is_entropy(find, called[0], v.elts[at], left - 1)
        for v in values
    )


def _by_hand(code: Syntax, node: ast.expr) -> bool:
    """`(p * p.log()).sum(-1).mean()` behind a minus: one factor a probability, the other its logarithm."""
    summed = False
    while isinstance(node, ast.Call) and last_name(node.func) in _REDUCING:
        summed = summed or last_name(node.func) == "sum"
        own = isinstance(node.func, ast.Attribute) and not code.qualified(node.func)
        inner = node.func.value if own and isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
        if inner is None:
            return False
        node = inner
    if not (summed and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    sides = [(written(s), written(code.origin(s))) for s in (node.left, node.right)]
    logs = [_LOG.search(name) is not None or re.search(r"log\b|log\(|log_softmax", made) is not None
            for name, made in sides]  # fmt: skip
    chances = [re.search(r"(^|_)(p|pi|prob|probs|probability|probabilities)\b|softmax|\.exp\(|exp\(", f"{name} {made}")
               is not None for name, made in sides]  # fmt: skip
    return (logs[0] and not logs[1] and chances[1]) or (logs[1] and not logs[0] and chances[0])

"""Which way a metric improves by how its value is computed, where its name says nothing: `v`, `score`, `result`.

A sum or mean of what a loss function gives falls; a share of predictions that equal their targets rises. Results of
functions of the project are followed into what these return. A sign or a difference on the way ends it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.metric_direction import Direction, by_name, turns
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in

_LOSSES = frozenset({
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "softmax_cross_entropy", "mean_squared_error", "mean_absolute_error",
    "log_loss",
    "softmax_cross_entropy_with_integer_labels", "root_mean_squared_error",
})  # fmt: skip
_SCORES = frozenset({
    "accuracy_score", "f1_score", "roc_auc_score", "balanced_accuracy_score", "average_precision_score", "r2_score",
    "jaccard_score", "precision_score", "recall_score", "matthews_corrcoef",
})  # fmt: skip
_CRITERION = re.compile(r"^(self\.)?(criterion|crit|loss_fn|loss_func|loss_function|lossfn)$")
_SAYS = re.compile(r"neg|minus|reward|return|elbo|likelihood|adv", re.IGNORECASE)
_DEEP = 5


def by_flow(look: Lookup, code: Syntax, node: ast.expr) -> Direction | None:
    """The direction of a value whose name does not say it; None where its making does not either."""
    names = [last_name(n) for n in below(node) if isinstance(n, (ast.Name, ast.Attribute))]
    if any(_SAYS.search(n) for n in names) or turns(code, node):
        return None
    ways = set(_ways(look, code, node, _DEEP))
    return "min" if ways == {"min"} else "max" if ways == {"max"} else None


def _ways(look: Lookup, code: Syntax, node: ast.expr, left: int) -> Iterator[str]:
    """What every source of a value says; "?" where one cannot be read."""
    if left <= 0:
        yield "?"
    elif isinstance(node, ast.Constant):
        return
    elif isinstance(node, ast.Name):
        yield from _of_name(look, code, node, left)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div, ast.Mult)):
        yield from _ways(look, code, node.left, left - 1)
        if isinstance(node.op, ast.Add):
            yield from _ways(look, code, node.right, left - 1)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        yield "max" if _predicted(code, node.left) or _predicted(code, node.comparators[0]) else "?"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield from _of_item(look, code, node, left)
    elif isinstance(node, ast.Call):
        yield from _of_call(look, code, node, left)
    else:
        yield "?"


def _of_name(look: Lookup, code: Syntax, node: ast.Name, left: int) -> Iterator[str]:
    bound = [v for _, v in code.bindings(node)]
    scope = code.scope(node)
    added = [n for n in code.of(ast.AugAssign) if isinstance(n.target, ast.Name) and n.target.id == node.id
             and code.scope(n) is scope]  # fmt: skip
    turned = any(not isinstance(n.op, (ast.Add, ast.Div, ast.Mult)) for n in added)
    turned = turned or any(turns(code, v) for v in bound)
    if turned or not bound:
        yield "?" if turned else by_name(node.id) or "?"
        return
    values = [*bound, *(n.value for n in added if isinstance(n.op, ast.Add))]
    for value in values:
        if node.id in names_in(value) and isinstance(value, ast.BinOp):  # x = x / n
            continue
        if isinstance(value, (ast.List, ast.ListComp)):
            yield from _appended(look, code, node, value, left)
        else:
            yield from _ways(look, code, value, left - 1)


def _appended(
    look: Lookup, code: Syntax, node: ast.Name, value: ast.List | ast.ListComp, left: int
) -> Iterator[str]:
    """What a list is filled with."""
    if isinstance(value, ast.ListComp):
        yield from _ways(look, code, value.elt, left - 1)
        return
    scope = code.scope(node)
    for call in code.calls("append"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == node.id and code.scope(call) is scope and call.args:
            yield from _ways(look, code, call.args[0], left - 1)


def _of_item(look: Lookup, code: Syntax, node: ast.Subscript, left: int) -> Iterator[str]:
    """One of the results of a function, or an entry by its name."""
    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(at, str):
        yield by_name(at) or "?"
        return
    home = look.function(code, node.value.func) if isinstance(node.value, ast.Call) else None
    gives = list(returned(home[1])) if home is not None else []
    if home is None or not isinstance(at, int) or not gives:
        yield "?"
        return
    for one in gives:
        if isinstance(one, ast.Tuple) and at < len(one.elts) and not turns(home[0], one.elts[at]):
            yield from _ways(look, home[0], one.elts[at], left - 1)
        else:
            yield "?"


def _of_call(look: Lookup, code: Syntax, node: ast.Call, left: int) -> Iterator[str]:
    name = last_name(node.func)
    if name in _LOSSES or _CRITERION.match(name) or _is_loss_layer(code, node.func):
        yield "min"
    elif name in _SCORES:
        yield "max"
    elif name == "eq" and isinstance(node.func, ast.Attribute):
        sides = [node.func.value, *node.args]
        yield "max" if any(_predicted(code, s) for s in sides) else "?"
    elif isinstance(node.func, ast.Attribute) and not code.qualified(node.func) and name in (
            "item", "mean", "sum", "float", "cpu", "detach", "double", "numpy", "type"):  # fmt: skip
        yield from _ways(look, code, node.func.value, left)
    elif name in ("float", "mean", "sum", "fmean", "tensor", "stack") and node.args:
        yield from _ways(look, code, node.args[0], left)
    else:
        home = look.function(code, node.func)
        gives = list(returned(home[1])) if home is not None else []
        if home is None or not gives or any(isinstance(g, ast.Tuple) or turns(home[0], g) for g in gives):
            yield "?"
            return
        for one in gives:
            yield from _ways(look, home[0], one, left - 1)


def _is_loss_layer(code: Syntax, func: ast.expr) -> bool:
    """`nn.CrossEntropyLoss()` by whatever name."""
    made = func if isinstance(func, ast.Call) else code.origin(func)
    return isinstance(made, ast.Call) and code.qualified(made.func).startswith("torch.nn.") and last_name(
        made.func).endswith("Loss")  # fmt: skip


def _predicted(code: Syntax, node: ast.expr) -> bool:
    """Whether it is the class with the largest score."""
    made = code.unwrapped(node, lambda n: n.value if isinstance(n, ast.Subscript) else None)
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("argmax", "max", "topk", "round") for n in below(made))

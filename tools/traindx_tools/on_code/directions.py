"""In which direction a loss pushes what a network says: +1 where its minimum asks for lower values, -1 for higher ones.

A loss is followed through names, sums, means, functions that only rise (relu, softplus, sigmoid, log), losses with a
label of ones or zeros, and functions of the project.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traindx_tools.on_code.flows import scales
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.value_sets import values_of

_RISING = frozenset({
    "mean", "sum", "relu", "softplus", "sigmoid", "logsigmoid", "log_sigmoid", "log", "exp", "tanh", "clamp", "clip",
    "clamp_min", "clamp_max", "view", "reshape", "squeeze", "flatten", "float", "min", "max", "minimum", "maximum",
    "leaky_relu", "log_softmax_", "unsqueeze", "to", "expand", "item_", "relu_", "square_", "div", "log1p",
})  # fmt: skip
_BY_LABEL = re.compile(r"binary_cross_entropy|BCE|mse_loss|MSELoss|sigmoid_binary_cross_entropy|l2_loss")
_SCORES = re.compile(r"(real|fake|generated)_?(logits?|scores?|preds?|out|outputs?|validity)$|^d_(real|fake)$"
                     r"|(logits?|scores?|preds?|out|outputs?|validity)_?(real|fake|generated)$", re.I)  # fmt: skip
_NO_NETWORK = re.compile(r"loss|crit$|criterion|penalty|entropy|bce|mse|^l1|^l2|hinge|^len$|^float$", re.IGNORECASE)
_DEEP = 24


@dataclass(frozen=True)
class Context:
    """Where an expression stands, and what the parameters of its function were given."""

    code: Syntax
    given: Mapping[str, tuple[ast.expr, Context]]


@dataclass(frozen=True)
class Push:
    """A network's call, which way a loss pushes it, and whether a label says so.

    Instead of a call it may be a parameter that is called after one: `fake_score`.
    """

    node: ast.expr
    at: Context
    sign: int
    """+1 or -1; 0 where a factor may turn it."""
    by_label: bool

    @property
    def network(self) -> str:
        """The network as it is written, "" where only its output is known."""
        return written(self.node.func) if isinstance(self.node, ast.Call) else ""


class _Search:
    """The sources that are searched, and where the search has been: sums of sums lead to one place many times."""

    def __init__(self, codes: Sequence[Syntax]) -> None:
        self.codes = codes
        self._seen: dict[tuple[int, int, int, bool], Context] = {}

    def is_new(self, node: ast.expr, context: Context, sign: int, labelled: bool) -> bool:
        """Whether it comes here for the first time."""
        key = id(node), id(context), sign, labelled
        if key in self._seen:
            return False
        self._seen[key] = context  # kept, so that its id stays its own
        return True


def pushes(codes: Sequence[Syntax], context: Context, loss: ast.expr, sign: int = 1) -> Iterator[Push]:
    """Every call of a network that a loss rises or falls with."""
    yield from _walk(_Search(codes), context, loss, sign, False, _DEEP)


def resolved(context: Context, node: ast.expr) -> tuple[ast.expr, Context]:
    """A name followed to what was assigned or given."""
    for _ in range(8):
        if isinstance(node, ast.Name) and node.id in context.given and not context.code.bindings(node):
            node, context = context.given[node.id]
            continue
        made = context.code.assigned(node)
        if made is None or made is node:
            break
        node = made
    return node, context


def _walk(
    search: _Search, context: Context, node: ast.expr, sign: int, labelled: bool, left: int
) -> Iterator[Push]:
    if left <= 0:
        return
    node, context = resolved(context, node)
    if not search.is_new(node, context, sign, labelled):
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _walk(search, context, node.operand, -sign, labelled, left - 1)
    elif isinstance(node, ast.BinOp):
        yield from _of_operation(search, context, node, sign, labelled, left)
    elif isinstance(node, ast.Call):
        yield from _of_call(search, context, node, sign, labelled, left)
    elif isinstance(node, ast.Name) and _SCORES.search(node.id):
        yield Push(node, context, sign, labelled)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield from _walk(search, context, node.value, sign, labelled, left - 1)


def _of_operation(
    search: _Search, context: Context, node: ast.BinOp, sign: int, labelled: bool, left: int
) -> Iterator[Push]:
    if isinstance(node.op, (ast.Add, ast.Sub)):
        other = sign if isinstance(node.op, ast.Add) else -sign
        yield from _walk(search, context, node.left, sign, labelled, left - 1)
        yield from _walk(search, context, node.right, other, labelled, left - 1)
    elif isinstance(node.op, ast.Div):
        number = context.code.number(node.right)
        turned = -sign if number is not None and number < 0 else sign
        yield from _walk(search, context, node.left, turned, labelled, left - 1)
    elif isinstance(node.op, ast.Mult):
        for factor, term in ((node.left, node.right), (node.right, node.left)):
            number = context.code.number(factor)
            if number is not None or scales(factor):
                turned = -sign if number is not None and number < 0 else sign
                yield from _walk(search, context, term, turned, labelled, left - 1)
                return
        for term in (node.left, node.right):  # a factor of unknown sign
            yield from _walk(search, context, term, 0, labelled, left - 1)


def _of_call(
    search: _Search, context: Context, call: ast.Call, sign: int, labelled: bool, left: int
) -> Iterator[Push]:
    code, name = context.code, last_name(call.func)
    library = code.qualified(call.func)
    maker = call.func if isinstance(call.func, ast.Call) else code.assigned(call.func)
    kind = last_name(maker.func) if isinstance(maker, ast.Call) else ""
    if _BY_LABEL.search(name) or _BY_LABEL.search(kind):
        yield from _with_label(search, context, call, sign, left)
    elif name in _RISING and (library or (isinstance(call.func, ast.Attribute) and not call.args)):
        inner = call.args if library else [call.func.value] if isinstance(call.func, ast.Attribute) else []
        for one in inner:
            yield from _walk(search, context, one, sign, labelled, left - 1)
    elif name in _RISING and isinstance(call.func, ast.Attribute):
        yield from _walk(search, context, call.func.value, sign, labelled, left - 1)
    elif kind in ("ReLU", "Softplus", "LogSigmoid", "Sigmoid") and call.args:
        yield from _walk(search, context, call.args[0], sign, labelled, left - 1)
    elif not library:
        function = _function(search.codes, code, call)
        if function is None:
            if not _NO_NETWORK.search(name):
                yield Push(call, context, sign, labelled)
            return
        other, body = function
        returned = [n.value for n in below(body) if isinstance(n, ast.Return) and n.value is not None]
        if len(returned) == 1:
            given = _bound(body, call, context)
            yield from _walk(search, Context(other, given), returned[0], sign, labelled, left - 4)


def _with_label(search: _Search, context: Context, call: ast.Call, sign: int, left: int) -> Iterator[Push]:
    scores, label = argument(call, 0, "input", "logits"), argument(call, 1, "target", "labels")
    if scores is None or label is None:
        return
    made, where = resolved(context, label)
    values = values_of(where.code, made)
    if values is None or len(values) != 1:
        return
    value = next(iter(values))
    yield from _walk(search, context, scores, -sign if value > 0.5 else sign, True, left - 1)


def _function(codes: Sequence[Syntax], code: Syntax, call: ast.Call) -> tuple[Syntax, ast.FunctionDef] | None:
    """The one function of the project with this name, or method of self."""
    func = call.func
    plain = isinstance(func, ast.Name) and not code.bindings(func)
    own = isinstance(func, ast.Attribute) and written(func.value) == "self"
    if not plain and not own:
        return None
    found = [(c, f) for c in codes for f in c.functions(last_name(func))]
    return found[0] if len(found) == 1 else None


def _bound(function: ast.FunctionDef, call: ast.Call, context: Context) -> dict[str, tuple[ast.expr, Context]]:
    names = [n for n in parameters(function) if n not in ("self", "cls")]
    found = {name: (value, context) for name, value in zip(names, call.args, strict=False)}
    found.update({k.arg: (k.value, context) for k in call.keywords if k.arg})
    return found

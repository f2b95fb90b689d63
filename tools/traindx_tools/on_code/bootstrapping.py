"""Targets of temporal differences as they are written: r + gamma * value(next)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.frameworks import trains_with_torch
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written

DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)
_CUT = ("detach", "stop_gradient", ".item(", ".data", ".numpy(", "no_grad")
_CUTS = frozenset({"detach", "stop_gradient", "detach_"})
_LOSS = re.compile(r"loss|criterion|mse|huber|smooth|squared|square|l2")
_FIXED = re.compile(r"target|tgt|frozen|teacher|old|ema|slow", re.IGNORECASE)
_REDUCES = frozenset({"max", "amax", "gather", "squeeze", "mean", "sum", "min", "take_along_axis", "unsqueeze", "view",
                      "reshape", "flatten", "argmax", "detach", "float", "minimum", "maximum", "stop_gradient", "to",
                      "where", "clamp", "clip", "range", "len", "zip", "arange", "softmax", "log_softmax", "exp", "cat",
                      "stack", "zeros_like", "ones_like", "zeros", "ones", "tensor", "long", "max_pool"})  # fmt: skip


_INDICES = frozenset({"argmax", "argmin", "argsort", "multinomial", "randint", "categorical", "bincount"})
_LIBRARIES = ("torch.", "jax.", "numpy.", "np.", "random.", "math.", "gym", "optax.")
"""What is called of these is no network of the program: draws, stacks, arithmetic."""


@dataclass(frozen=True)
class Target:
    """A target that stays in the graph."""

    name: str
    statement: ast.stmt
    called: str
    """The call of the trained network in it."""


def discounted(node: ast.AST) -> bool:
    """Whether an expression is a sum with a term that is multiplied by a discount."""
    products = [n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
    sums = [n for n in below(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    return bool(sums) and any(
        isinstance(n, (ast.Name, ast.Attribute)) and DISCOUNT.fullmatch(last_name(n))
        for product in products
        for n in below(product)
    )


def rewarded(node: ast.AST) -> bool:
    """Whether a reward stands in an expression."""
    return any(REWARD.fullmatch(last_name(n)) for n in below(node))


def attached_targets(code: Syntax, library: str) -> Iterator[Target]:
    """Targets that bootstrap from the trained network itself and are used in a loss with their graph."""
    if library == "torch" and not trains_with_torch(code):
        return
    for statement in code.of(ast.Assign):
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or not discounted(statement.value) or not rewarded(statement.value):
            continue
        if suspended(code, statement):
            continue
        function = code.function(statement)
        body: ast.AST = function if function is not None else code.file.tree
        if library == "jax" and function is None:
            continue
        parts = list(_parts(code, statement.value))
        if any(_is_cut(written(p)) for p in parts) or _cut_later(body, target.id) or not _in_loss(body, target.id):
            continue
        own = {id(n) for p in parts for n in below(p)}
        predictions = {_callee(code, n, library) for n in below(body) if isinstance(n, ast.Call) and id(n) not in own}
        for call in (n for p in parts for n in below(p) if isinstance(n, ast.Call)):
            callee = _callee(code, call, library)
            if callee and callee in predictions and not _FIXED.search(callee) and not _chooses(code, call):
                yield Target(target.id, statement, " ".join(written(call).split())[:80])
                break


def _chooses(code: Syntax, call: ast.Call) -> bool:
    """Whether only an index is taken of what is called: the argmax of double Q-learning has no gradient."""
    return any(isinstance(up, ast.Call) and last_name(up.func) in _INDICES for up in code.above(call))


def suspended(code: Syntax, node: ast.AST) -> bool:
    """Whether a statement stands under no_grad, by a `with` or a decorator."""
    for up in code.above(node):
        if isinstance(up, (ast.With, ast.AsyncWith)) and any(_off(i.context_expr) for i in up.items):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(_off(d) for d in up.decorator_list):
            return True
    return False


def _off(node: ast.AST) -> bool:
    text = written(node)
    return "no_grad" in text or "inference_mode" in text


def _parts(code: Syntax, value: ast.expr, depth: int = 3) -> Iterator[ast.expr]:
    """The expression and what its names were computed from in the same function, where gradients were recorded."""
    yield value
    for name in (n for n in below(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        bound = code.bindings(name)
        if depth and len(bound) == 1 and code.scope(bound[0][0]) is code.scope(name):
            if suspended(code, bound[0][0]):
                continue
            yield from _parts(code, bound[0][1], depth - 1)


def _is_cut(text: str) -> bool:
    return any(c in text for c in _CUT)


def _cut_later(body: ast.AST, name: str) -> bool:
    cuts = (n for n in below(body) if isinstance(n, ast.Call) and last_name(n.func) in _CUTS)
    return any(name in names_in(cut) for cut in cuts)


def _in_loss(body: ast.AST, name: str) -> bool:
    """Whether it is given to a loss or compared with a prediction."""
    for node in below(body):
        if isinstance(node, ast.Call) and _LOSS.search(_called(node)):
            given: list[ast.expr] = list(node.args)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            given = [s for s in (node.left, node.right) if isinstance(s, ast.Name)]
        else:
            continue
        if any(name in names_in(g) for g in given):
            return True
    return False


def _called(node: ast.Call) -> str:
    """The name of what is called, in lower case; of the class in `nn.SmoothL1Loss()(a, b)`."""
    return last_name(node.func.func if isinstance(node.func, ast.Call) else node.func).lower()


def _callee(code: Syntax, call: ast.Call, library: str) -> str:
    """What is called, as a network: "q", "self.net"; for flax with its parameters: "net.apply(params"."""
    name = last_name(call.func)
    if name in _REDUCES or not name or name[:1].isupper() or code.qualified(call.func).startswith(_LIBRARIES):
        return ""
    if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, (ast.Name, ast.Attribute)):
        return ""
    if library == "jax":
        return f"{written(call.func)}({written(call.args[0])}" if call.args else ""
    return written(call.func)

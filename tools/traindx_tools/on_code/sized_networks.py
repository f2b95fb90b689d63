"""Networks written by hand over a list of sizes: `zip(sizes[:-1], sizes[1:])` makes the weights, a loop applies them.

What the last layer gives out for each row follows from the last size.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

_MAPS = frozenset({"vmap", "filter_vmap"})
_SAME = frozenset({"jit", "filter_jit", "astype", "block_until_ready", "checkpoint"})
_MOST = 6


@dataclass(frozen=True)
class SizedNetworks:
    """Asks whether an expression is the output of such a network with one output."""

    look: Lookup

    def one_output(self) -> bool:
        """Whether every list of sizes that the project makes weights from ends in 1."""
        known: bool | None = self.look.__dict__.get("_one_output")
        if known is None:
            ends = [end for code in self.look.codes for sizes in _size_lists(code) for end in self._ends(code, sizes)]
            known = self.look.__dict__["_one_output"] = bool(ends) and all(e == 1 for e in ends)
        return known

    def _ends(self, code: Syntax, sizes: ast.expr) -> list[float | None]:
        """The last of a list of sizes, for each caller where it is passed."""
        body = next((a for a in code.above(sizes) if isinstance(a, FunctionNode)), None)
        name = sizes.id if isinstance(sizes, ast.Name) else ""
        if body is not None and name in parameters(body) and not code.bindings(sizes):
            spec = [n for n in parameters(body) if n not in ("self", "cls")]
            place = spec.index(name) if name in spec else -1
            given = [(c, argument(call, place, name)) for c, call in self.look.callers(body, code)]
            given = [(c, g if g is not None else parameters(body)[name]) for c, g in given]
            return [self._last(c, g) for c, g in given] or [self._last(code, parameters(body)[name])]
        return [self._last(code, sizes)]

    def _last(self, code: Syntax, node: ast.expr | None, left: int = _MOST) -> float | None:
        if node is None or left <= 0:
            return None
        where, made = self.look.origin(code, node)
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
            return self._last(where, made.right, left - 1)
        if isinstance(made, (ast.List, ast.Tuple)) and made.elts:
            return self.look.number(where, made.elts[-1])
        return None

    def column(self, code: Syntax, node: ast.expr, left: int = _MOST) -> bool:
        """Whether an expression is such a network's output for a batch, as it is: (N, 1)."""
        made = code.origin(node)
        if left <= 0 or not isinstance(made, ast.Call) or not self.one_output():
            return False
        target, mapped = made.func, False
        for _ in range(_MOST):
            origin = code.origin(target)
            if isinstance(origin, ast.Call) and last_name(origin.func) in _MAPS | _SAME and origin.args:
                mapped = mapped or last_name(origin.func) in _MAPS
                target = origin.args[0]
        found = self.look.function(code, target)
        if found is None or isinstance(found[1], ast.Lambda):
            return False
        where, body = found[0], found[1]
        mapped = mapped or any("vmap" in written(d) for d in body.decorator_list)
        backs = list(returned(body))
        return bool(backs) and all(
            self._applied(where, back, mapped) or self.column(where, back, left - 1) for back in backs)  # fmt: skip

    def _applied(self, code: Syntax, back: ast.expr, mapped: bool) -> bool:
        """Whether what a function returns is the last layer's product, with a bias or without."""
        made = back
        if isinstance(back, ast.Name):
            bound = [(s, v) for s, v in code.bindings(back) if code.function(s) is code.function(back)]
            if not bound:
                return False
            made = bound[-1][1]
            for statement, value in bound:  # the loop over the layers, whose last turn is the last layer
                around = [n for n in code.loops(statement) if isinstance(n, ast.For)]
                if around and not isinstance(value, ast.Call) and bound[-1][0].lineno >= statement.lineno:
                    made = value if _product(value) is not None and _over_layers(around[0]) else made
        elif isinstance(back, ast.Call) and _product(back) is None:
            return False
        product = _product(made)
        if product is None:
            return False
        one, other = product
        last = self._of_last(code, other)
        return last or (mapped and self._of_last(code, one))

    def _of_last(self, code: Syntax, weight: ast.expr) -> bool:
        """Whether a weight is one of the last layer: params[-1]["w"], `*_, (w, b) = params`, the loop's own."""
        base = weight.value if isinstance(weight, ast.Attribute) and weight.attr in ("T", "mT") else weight
        for _ in range(_MOST):
            if isinstance(base, ast.Subscript):
                if written(base.slice) == "-1":
                    return True
                base = base.value
            elif isinstance(base, (ast.Name, ast.Attribute)) and (made := code.assigned(base)) is not None:
                base = made
            else:
                break
        name = base.id if isinstance(base, ast.Name) else ""
        loops = [n for n in code.loops(weight) if isinstance(n, ast.For)]
        if loops and name in names_in(loops[0].target):
            return _over_layers(loops[0])
        return any(_rest_of_list(a, name) for a in code.of(ast.Assign) if code.function(a) is code.function(weight))


def _rest_of_list(assign: ast.Assign, name: str) -> bool:
    target = assign.targets[0]
    starred = isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) > 1 and isinstance(
        target.elts[0], ast.Starred)  # fmt: skip
    return bool(name) and starred and name in names_in(target.elts[-1])  # type: ignore[attr-defined]


def _over_layers(loop: ast.For) -> bool:
    """Whether a loop goes over all the layers: `for w, b in params`, not `params[:-1]`."""
    over = loop.iter
    if isinstance(over, ast.Call) and last_name(over.func) == "enumerate" and over.args:
        over = over.args[0]
    return isinstance(over, (ast.Name, ast.Attribute))


def _product(node: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of the product in `x @ w + b`, `jnp.dot(x, w) + b`, `x.dot(w)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _product(node.left) or _product(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and last_name(node.func) in ("dot", "matmul"):
        if len(node.args) == 2:
            return node.args[0], node.args[1]
        if len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            return node.func.value, node.args[0]
    return None


def _size_lists(code: Syntax) -> list[ast.expr]:
    """The lists whose neighbours are the two sizes of a layer: X of zip(X[:-1], X[1:]) or of X[i], X[i + 1]."""
    found: list[ast.expr] = []
    for call in code.calls("zip"):
        for one in call.args:
            if isinstance(one, ast.Subscript) and written(one.slice) == ":-1" and any(
                    isinstance(o, ast.Subscript) and written(o.slice) == "1:" and written(o.value) == written(one.value)
                    for o in call.args):  # fmt: skip
                found.append(one.value)
    for pair in code.of(ast.Tuple):
        if len(pair.elts) == 2 and all(isinstance(e, ast.Subscript) for e in pair.elts):
            one, other = pair.elts
            if isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript) and written(one.value) == written(
                    other.value) and written(other.slice) == f"{written(one.slice)} + 1":  # fmt: skip
                found.append(one.value)
    return found

"""How many samples each class has, through the forms that keep the order of the classes by size.

`bincount(y)`, `Counter(y).values()`, `df.label.value_counts()`, `np.unique(y, return_counts=True)[1]`, a list of sums
of `y == c`; converted, moved, divided by their total. An inverse, a power, a difference or a function that is not known
ends the chain: nothing is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, method_of, written

_CONVERTS = frozenset({
    "tensor", "as_tensor", "FloatTensor", "DoubleTensor", "Tensor", "array", "asarray", "list", "tuple", "from_numpy",
    "float", "double", "to", "cuda", "cpu", "type", "astype", "clone", "detach", "sort_index", "to_numpy", "tolist",
    "numpy", "values", "clamp", "clamp_min", "clip", "sqrt", "log1p",
})  # fmt: skip
_OF_ONE_NUMBER = frozenset({"sum", "len", "max", "mean", "numel", "float", "int", "size", "min"})
_MOST_STEPS = 12
_OTHERS = re.compile(r"neg|back|normal|zero|inv|not|rest|other|miss|bg|mask", re.IGNORECASE)
"""Names whose sum may be a number of negatives."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts that one source's expressions hold."""

    codes: list[Syntax]
    code: Syntax

    def are(self, node: ast.expr) -> bool:
        """Whether an expression is one count (or frequency) a class."""
        return self._are(self.code, node, _MOST_STEPS)

    def _are(self, code: Syntax, node: ast.expr, left: int) -> bool:
        if left <= 0:
            return False
        if isinstance(node, (ast.Name, ast.Attribute)):
            before = code.assigned(node)
            if before is not None and before is not node:
                return not _changed(code, node) and self._are(code, before, left - 1)
            return isinstance(node, ast.Attribute) and node.attr == "values" and self._are(code, node.value, left - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult, ast.Add)):
            return self._are(code, node.left, left - 1) and _is_one_number(code, node.right)
        if isinstance(node, ast.Subscript):
            return _is_second_of_unique(node)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self._of_comprehension(code, node, left)
        return isinstance(node, ast.Call) and self._of_call(code, node, left)

    def _of_call(self, code: Syntax, node: ast.Call, left: int) -> bool:
        name = last_name(node.func)
        if name in ("bincount", "value_counts"):
            return argument(node, 99, "weights") is None
        if name == "Counter":
            return False  # its keys; the counts are its values
        inner = node.func.value if isinstance(node.func, ast.Attribute) and not code.qualified(node.func) else None
        if name == "values" and inner is not None:
            return _is_counter(code, inner)
        if name in _CONVERTS:
            value = inner if inner is not None else node.args[0] if node.args else None
            return value is not None and self._are(code, value, left - 1)
        return self._of_function(node, name, left)

    def _of_function(self, node: ast.Call, name: str, left: int) -> bool:
        """A function of the project that returns counts wherever it returns."""
        own = [(c, f) for c in self.codes for f in c.functions(name)]
        if len(own) != 1 or not isinstance(node.func, ast.Name):
            return False
        code, function = own[0]
        returned = [r.value for r in code.inside(function, ast.Return) if code.function(r) is function]
        return bool(returned) and all(r is not None and self._are(code, r, left - 1) for r in returned)

    def _of_comprehension(self, code: Syntax, node: ast.ListComp | ast.GeneratorExp, left: int) -> bool:
        """`[y.count(c) for c in ...]`, `[(y == c).sum() for c in ...]`, `[counts[c] for c in range(n)]`."""
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            return False
        one, element = node.generators[0].target.id, node.elt
        while isinstance(element, ast.Call) and last_name(element.func) in ("item", "float", "int"):
            element = element.func.value if isinstance(element.func, ast.Attribute) else element.args[0]
        if isinstance(element, ast.BinOp) and isinstance(element.op, ast.Div) and _is_one_number(code, element.right):
            element = element.left
        if isinstance(element, ast.Subscript):
            by_class = isinstance(element.slice, ast.Name) and element.slice.id == one
            return by_class and self._indexed(code, element.value, left) and not _walks_samples(node)
        if not isinstance(element, ast.Call):
            return isinstance(element, ast.Name) and element.id == one and self._are(
                code, node.generators[0].iter, left - 1)  # fmt: skip
        if last_name(element.func) == "count" and len(element.args) == 1:
            return written(element.args[0]) == one
        return _compared(element) == one

    def _indexed(self, code: Syntax, held: ast.expr, left: int) -> bool:
        return _is_counter(code, held) or self._are(code, held, left - 1)

    def of_each_sample(self, node: ast.expr) -> bool:
        """Whether an expression gives every sample the count of its class."""
        code, left = self.code, _MOST_STEPS
        while left > 0:
            left -= 1
            before = code.assigned(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if before is not None and before is not node:
                if _changed(code, node):
                    return False
                node = before
            elif isinstance(node, ast.Call) and last_name(node.func) in _CONVERTS:
                inner = node.func.value if isinstance(node.func, ast.Attribute) and not code.qualified(
                    node.func) else node.args[0] if node.args else None  # fmt: skip
                if inner is None:
                    return False
                node = inner
            else:
                break
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Slice)):
            return self.are(node.value)
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or not isinstance(node.elt, ast.Subscript):
            return False
        names = {n.id for g in node.generators for n in below(g.target) if isinstance(n, ast.Name)}
        picked = node.elt.slice
        while isinstance(picked, ast.Call) and (picked.args or isinstance(picked.func, ast.Attribute)):
            picked = picked.args[0] if picked.args else picked.func.value  # type: ignore[attr-defined]
        by_label = isinstance(picked, ast.Name) and picked.id in names
        return by_label and self._indexed(code, node.elt.value, _MOST_STEPS)

    def positives_over_negatives(self, node: ast.expr) -> bool:
        """Whether a weight for the positives is their number divided by that of the negatives."""
        code = self.code
        for _ in range(_MOST_STEPS):
            if isinstance(node, (ast.Name, ast.Attribute)):
                before = code.assigned(node)
                if before is None or before is node:
                    return False
                node = before
            elif isinstance(node, ast.Call) and last_name(node.func) in _CONVERTS:
                owner = node.func.value if isinstance(node.func, ast.Attribute) and not code.qualified(
                    node.func) else node.args[0] if node.args else None  # fmt: skip
                if owner is None:
                    return False
                node = owner
            elif isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1:
                node = node.elts[0]
            else:
                break
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            return False
        return _sign(code, node.left) == 1 and _sign(code, node.right) == 0


def _walks_samples(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension runs over something else than a range or the sorted keys of the counts."""
    over = node.generators[0].iter
    return not (isinstance(over, ast.Call) and last_name(over.func) in ("range", "sorted", "unique", "keys", "arange"))


def _is_second_of_unique(node: ast.Subscript) -> bool:
    made = node.value
    return (isinstance(made, ast.Call) and last_name(made.func) == "unique" and isinstance(node.slice, ast.Constant)
            and node.slice.value in (1, -1) and argument(made, 99, "return_counts") is not None
            and not any(k.arg in ("return_index", "return_inverse") for k in made.keywords))  # fmt: skip


def _is_counter(code: Syntax, node: ast.expr) -> bool:
    made = code.origin(node)
    if isinstance(made, ast.Call) and last_name(made.func) in ("dict", "sorted") and made.args:
        made = code.origin(made.args[0])
    return isinstance(made, ast.Call) and last_name(made.func) == "Counter" and bool(made.args)


def _changed(code: Syntax, node: ast.expr) -> bool:
    """Whether an expression's name is changed in place: `counts /= counts.sum()`, `counts[0] = 1`, `w.pow_(-1)`."""
    name = written(node)
    if any(written(a.target).startswith(name) for a in code.of(ast.AugAssign)) or code.item_stores.get(name):
        return True
    return any(isinstance(c.func, ast.Attribute) and written(c.func.value) == name and c.func.attr.endswith("_")
               for c in code.of(ast.Call))  # fmt: skip


def _is_one_number(code: Syntax, node: ast.expr) -> bool:
    """Whether an expression is surely one number: a total, a length, a constant."""
    made = code.origin(node)
    if isinstance(made, ast.Constant):
        return isinstance(made.value, (int, float)) and made.value > 0
    return isinstance(made, ast.Call) and last_name(made.func) in _OF_ONE_NUMBER


def _compared(node: ast.expr) -> str:
    """The text of c in `(y == c).sum()`, `torch.sum(y == c)`, `sum(y == c)`; "" for something else."""
    for inner in _summed(node):
        if isinstance(inner, ast.Compare) and len(inner.ops) == 1 and isinstance(inner.ops[0], ast.Eq):
            return written(inner.comparators[0])
    return ""


def _summed(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and last_name(node.func) in ("sum", "count_nonzero"):
        yield from node.args[:1]
        if isinstance(node.func, ast.Attribute):
            yield node.func.value


def _plain(node: ast.expr) -> ast.expr | None:
    """What float(x), int(x) and x.item() hold."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int"):
        return node.args[0] if node.args else None
    return method_of(node, ("float", "item", "int"))


def _sign(code: Syntax, node: ast.expr, left: int = _MOST_STEPS) -> int | None:
    """1 for a number of positives, 0 for one of negatives, None where it does not say."""
    if left <= 0:
        return None
    made = code.unwrapped(node, _plain)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub):
        other = _sign(code, made.right, left - 1)
        return None if other is None else 1 - other
    said = _compared(made)
    if said:
        return {"1": 1, "0": 0, "1.0": 1, "0.0": 0}.get(said)
    inner = next(_summed(made), None)
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and not code.qualified(made.func):
        inner = made.func.value if last_name(made.func) == "sum" else None
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and written(inner.left) in ("1", "1.0"):
        return 0
    if not isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    source = code.origin(inner)
    if isinstance(source, (ast.Compare, ast.BinOp, ast.UnaryOp)) or _OTHERS.search(written(inner)):
        return None
    return 1

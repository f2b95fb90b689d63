"""How many rows a data set has, and how many batches an iteration over it gives, where the program fixes both.

Objects of the project are followed with the arguments of the very call that made them: `Crops(340, 0)` and
`Crops(200, 1)` have lengths of their own. Options count with their defaults.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, computed, last_name, parameters, written

_DEEP = 14
_WRAPS = frozenset({"enumerate", "tqdm", "iter", "list", "tuple", "sorted", "track", "reversed", "zip", "prepare"})
_FIRST = frozenset({"randn", "rand", "zeros", "ones", "empty", "random", "standard_normal", "full"})
"""Makers whose first argument, or arguments, are the sizes."""
_SIZED = {"normal": 2, "uniform": 2, "integers": 2, "randint": 2, "binomial": 2, "poisson": 1, "choice": 1}
"""Makers with the sizes at a later position, or as `size`."""
_SAME = frozenset({
    "float", "long", "to", "astype", "copy", "clone", "numpy", "cuda", "unsqueeze", "exp", "sin", "cos", "tanh", "abs",
    "from_numpy", "tensor", "array", "asarray", "as_tensor", "float32", "sqrt", "clip", "clamp", "sign", "round", "int",
    "bool", "relu", "contiguous", "requires_grad_", "cumsum", "where",
})  # fmt: skip
"""Functions and methods that keep the first axis."""


@dataclass(frozen=True, eq=False)
class Spot:
    """An expression with what its names stand for: the arguments of the calls that led here."""

    code: Syntax
    node: ast.expr
    bound: Mapping[str, Spot] = field(default_factory=dict)

    def at(self, node: ast.expr) -> Spot:
        """Another expression of the same place."""
        return Spot(self.code, node, self.bound)


@dataclass(frozen=True, eq=False)
class Counter:
    """Numbers and lengths of a project's expressions."""

    look: Lookup

    def number(self, spot: Spot, left: int = _DEEP) -> float | None:
        """The number of an expression."""
        node = spot.node
        if left <= 0:
            return None
        if isinstance(node, ast.Name) and node.id in spot.bound:
            return self.number(spot.bound[node.id], left - 1)
        if isinstance(node, ast.BinOp):
            a, b = self.number(spot.at(node.left), left - 1), self.number(spot.at(node.right), left - 1)
            return None if a is None or b is None else _computed(node.op, a, b)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(spot.at(node.operand), left - 1)
            return None if inner is None else -inner
        if isinstance(node, ast.Call):
            return self._called(spot, node, left)
        if isinstance(node, ast.Subscript) and written(node).endswith(".shape[0]"):
            return self.rows(spot.at(node.value.value), left - 1) if isinstance(node.value, ast.Attribute) else None
        step = self._step(spot)
        if step is not None:
            return self.number(step, left - 1)
        return self.look.number(spot.code, node)

    def _called(self, spot: Spot, node: ast.Call, left: int) -> float | None:
        name = last_name(node.func)
        if name == "len" and node.args:
            found = self.batches(spot.at(node.args[0]), left - 1)
            return self.rows(spot.at(node.args[0]), left - 1) if found is None else found
        if name in ("int", "ceil", "floor") and node.args:
            inner = self.number(spot.at(node.args[0]), left - 1)
            return None if inner is None else float(math.ceil(inner) if name == "ceil" else math.floor(inner))
        if name in ("min", "max") and node.args:
            known = [self.number(spot.at(a), left - 1) for a in node.args]
            return None if None in known else {"min": min, "max": max}[name](k for k in known if k is not None)
        return None

    def rows(self, spot: Spot, left: int = _DEEP) -> float | None:
        """The length of a data set, an array or a list."""
        node = spot.node
        if left <= 0:
            return None
        if isinstance(node, ast.Name) and node.id in spot.bound:
            return self.rows(spot.bound[node.id], left - 1)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.MatMult, ast.Pow)):
                return self.rows(spot.at(node.left), left - 1)
            sides = [self.rows(spot.at(s), left - 1) for s in (node.left, node.right)]
            known = [s for s in sides if s is not None and s > 1]
            return known[0] if known and len(set(known)) == 1 else None
        if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            return self.batches(spot.at(node.generators[0].iter), left - 1)
        if isinstance(node, ast.IfExp):
            both = {self.rows(spot.at(e), left - 1) for e in (node.body, node.orelse)}
            return both.pop() if len(both) == 1 else None
        if isinstance(node, ast.Subscript):
            return self._taken(spot, node, left)
        if isinstance(node, ast.Call):
            return self._made(spot, node, left)
        step = self._step(spot)
        return None if step is None else self.rows(step, left - 1)

    def _made(self, spot: Spot, node: ast.Call, left: int) -> float | None:
        name = last_name(node.func)
        if name in _FIRST or name in _SIZED:
            sizes = argument(node, 99, "size") or argument(node, _SIZED.get(name, 0), "size", "shape")
            if isinstance(sizes, (ast.Tuple, ast.List)):
                sizes = sizes.elts[0] if sizes.elts else None
            return None if sizes is None else self.number(spot.at(sizes), left - 1)
        if name in ("arange", "range"):
            return self._range(spot, node, left)
        if name in ("randperm", "permutation") and node.args:
            count = self.number(spot.at(node.args[0]), left - 1)
            return self.rows(spot.at(node.args[0]), left - 1) if count is None else count
        if name == "linspace":
            steps = argument(node, 2, "steps", "num")
            return None if steps is None else self.number(spot.at(steps), left - 1)
        if name == "TensorDataset" and node.args:
            return self.rows(spot.at(node.args[0]), left - 1)
        if name == "Subset" and len(node.args) == 2:
            return self.rows(spot.at(node.args[1]), left - 1)
        if name in ("list", "tuple", "sorted") and node.args:
            return self.rows(spot.at(node.args[0]), left - 1)
        if name in _SAME:
            plain = bool(spot.code.qualified(node.func)) or isinstance(node.func, ast.Name)
            inner = (node.args[0] if node.args else None) if plain else getattr(node.func, "value", None)
            return None if inner is None else self.rows(spot.at(inner), left - 1)
        kinds = self.look.classes.get(name, [])
        if len(kinds) == 1 and isinstance(node.func, ast.Name):
            return self._of_instance(spot, node, kinds[0], left)
        body = self.look.function(spot.code, node.func)
        if body is None or isinstance(body[1], ast.Lambda):
            return None
        results = list(returned(body[1]))
        if len(results) != 1 or isinstance(results[0], ast.Tuple):
            return None
        return self.rows(Spot(body[0], results[0], self._arguments(spot, node, body[1])), left - 1)

    def _of_instance(self, spot: Spot, made: ast.Call, kind: tuple[Syntax, ast.ClassDef], left: int) -> float | None:
        code, owner = kind
        bodies = {b.name: b for b in owner.body if isinstance(b, ast.FunctionDef)}
        if "__len__" not in bodies:
            return None
        bound = self._arguments(spot, made, bodies["__init__"]) if "__init__" in bodies else {}
        results = list(returned(bodies["__len__"]))
        return self.number(Spot(code, results[0], bound), left - 1) if len(results) == 1 else None

    def _arguments(self, spot: Spot, call: ast.Call, body: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Spot]:
        """What the parameters of a function hold in this call; attributes of an object keep the object's own."""
        names = [n for n in parameters(body) if n not in ("self", "cls")]
        found: dict[str, Spot] = {}
        for i, name in enumerate(names):
            given = argument(call, i, name)
            default = parameters(body)[name]
            if given is not None:
                found[name] = spot.at(given)
            elif default is not None:
                owner = next((c for c, b in self.look.functions.get(body.name, ()) if b is body), spot.code)
                found[name] = Spot(owner, default)
        return found

    def _step(self, spot: Spot) -> Spot | None:
        """One step back; the arguments in force stay in force within the same object or function."""
        code, node = spot.code, spot.node
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        bound = code.bindings(node)
        if len(bound) == 1:
            return spot.at(bound[0][1])
        if isinstance(node, ast.Attribute) and not bound and isinstance(node.value, ast.Name):
            held = self._object(spot.at(node.value))
            if held is not None:
                return self._attribute(held, node.attr)
        step = self.look.one_step(code, node)
        return None if step is None or step[1] is node else Spot(step[0], step[1])

    def _object(self, spot: Spot, left: int = _DEEP) -> tuple[Spot, tuple[Syntax, ast.ClassDef]] | None:
        """The call that made an object of a class of the project."""
        for _ in range(left):
            node = spot.node
            if isinstance(node, ast.Name) and node.id in spot.bound:
                spot = spot.bound[node.id]
                continue
            if isinstance(node, ast.Call):
                kinds = self.look.classes.get(last_name(node.func), [])
                return (spot, kinds[0]) if len(kinds) == 1 else None
            if not isinstance(node, (ast.Name, ast.Attribute)) or (isinstance(node, ast.Name) and node.id == "self"):
                return None
            bound = spot.code.bindings(node)
            step = self.look.one_step(spot.code, node) if len(bound) != 1 else None
            if len(bound) != 1 and step is None:
                return None
            spot = spot.at(bound[0][1]) if len(bound) == 1 else Spot(*step) if step is not None else spot
        return None

    def _attribute(self, held: tuple[Spot, tuple[Syntax, ast.ClassDef]], name: str) -> Spot | None:
        made, (code, owner) = held
        start = next((b for b in owner.body if isinstance(b, ast.FunctionDef) and b.name == "__init__"), None)
        if start is None or not isinstance(made.node, ast.Call):
            return None
        for node in below(start):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                values = code.bindings(node)
                return Spot(code, values[0][1], self._arguments(made, made.node, start)) if len(values) == 1 else None
        return None

    def _range(self, spot: Spot, node: ast.Call, left: int) -> float | None:
        known = [self.number(spot.at(a), left - 1) for a in node.args[:3]]
        if not known or None in known:
            return None
        numbers = [k for k in known if k is not None]
        start, stop, step = (0.0, numbers[0], 1.0) if len(numbers) == 1 else (*numbers, 1.0)[:3]
        steps = (stop - start) / step if step else math.nan
        return float(max(0, math.ceil(steps))) if math.isfinite(steps) else None

    def _taken(self, spot: Spot, node: ast.Subscript, left: int) -> float | None:
        if isinstance(node.value, ast.Call) and last_name(node.value.func) == "random_split":
            sizes = argument(node.value, 1, "lengths")
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if not isinstance(sizes, (ast.List, ast.Tuple)) or not isinstance(at, int) or at >= len(sizes.elts):
                return None
            share = self.number(spot.at(sizes.elts[at]), left - 1)
            whole = self.rows(spot.at(node.value.args[0]), left - 1) if node.value.args else None
            return share if share is None or share > 1 else None if whole is None else math.floor(whole * share)
        rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if isinstance(rows, ast.Slice) and rows.step is None:
            whole = self.rows(spot.at(node.value), left - 1)
            ends = [None if e is None else self.number(spot.at(e), left - 1) for e in (rows.lower, rows.upper)]
            if (rows.lower is not None and ends[0] is None) or (rows.upper is not None and ends[1] is None):
                return None
            if whole is None:
                first, last = ends[0] or 0.0, ends[1]
                return last - first if last is not None and 0 <= first < last else None
            low, high = (None if e is None else int(e) for e in ends)
            return float(len(range(int(whole))[low:high]))
        return self.rows(spot.at(rows), left - 1) if isinstance(rows, (ast.Name, ast.Call)) else None

    def batches(self, spot: Spot, left: int = _DEEP) -> float | None:
        """How many items an iteration gives: a range, a loader, a generator of the project."""
        node = spot.node
        if left <= 0:
            return None
        if isinstance(node, ast.Name) and node.id in spot.bound:
            return self.batches(spot.bound[node.id], left - 1)
        if not isinstance(node, ast.Call):
            step = self._step(spot)
            return None if step is None else self.batches(step, left - 1)
        name = last_name(node.func)
        if name == "range":
            return self._range(spot, node, left)
        if name == "trange":
            return self._range(spot, node, left)
        if name == "islice" and len(node.args) == 2:
            return self.number(spot.at(node.args[1]), left - 1)
        if name in _WRAPS and node.args:
            return self.batches(spot.at(node.args[0]), left - 1)
        if name == "DataLoader":
            return self._loader(spot, node, left)
        body = self.look.function(spot.code, node.func)
        if body is not None and not isinstance(body[1], ast.Lambda):
            return self._generated(spot, node, body[0], body[1], left)
        return None

    def _loader(self, spot: Spot, node: ast.Call, left: int) -> float | None:
        data, size = argument(node, 0, "dataset"), argument(node, 1, "batch_size")
        if data is None or any(argument(node, 99, n) is not None for n in ("batch_sampler", "sampler")):
            return None
        if isinstance(size, ast.Constant) and size.value is None:
            return None
        rows = self.rows(spot.at(data), left - 1)
        each = 1.0 if size is None else self.number(spot.at(size), left - 1)
        drop = argument(node, 99, "drop_last")
        if rows is None or not each or not math.isfinite(rows / each):
            return None
        dropped = isinstance(drop, ast.Constant) and drop.value is True
        return float(math.floor(rows / each) if dropped else math.ceil(rows / each))

    def _generated(self, spot: Spot, call: ast.Call, code: Syntax, body: ast.FunctionDef | ast.AsyncFunctionDef,
                   left: int) -> float | None:  # fmt: skip
        """What a generator with one loop yields, or what a function that makes a loader returns."""
        bound = self._arguments(spot, call, body)
        owner = code.owner(body)
        if owner is not None and isinstance(call.func, ast.Attribute):
            held = self._object(spot.at(call.func.value))
            if held is not None and isinstance(held[0].node, ast.Call):
                start = next((b for b in owner.body if isinstance(b, ast.FunctionDef) and b.name == "__init__"), None)
                bound = {**(self._arguments(held[0], held[0].node, start) if start is not None else {}), **bound}
        yields = [n for n in _own(body) if isinstance(n, ast.Yield)]
        if not yields:
            results = list(returned(body))
            return self.batches(Spot(code, results[0], bound), left - 1) if len(results) == 1 else None
        around = [code.loops(y) for y in yields]
        if len(yields) != 1 or len(around[0]) != 1 or not isinstance(around[0][0], ast.For):
            return None
        conditional = any(isinstance(up, ast.If) for up in code.above(yields[0]) if code.function(up) is body)
        leaves = any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in _own(body))
        return None if conditional or leaves else self.batches(Spot(code, around[0][0].iter, bound), left - 1)


def _own(body: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without the functions inside it."""
    stack = list(ast.iter_child_nodes(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FunctionNode, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def _computed(op: ast.operator, a: float, b: float) -> float | None:
    if isinstance(op, ast.FloorDiv):
        return a // b if b else None
    if isinstance(op, ast.Mod):
        return a % b if b else None
    if isinstance(op, ast.Pow):
        return a**b if abs(b) <= 16 and abs(a) < 1e6 and (a or b >= 0) else None
    return computed(op, a, b)

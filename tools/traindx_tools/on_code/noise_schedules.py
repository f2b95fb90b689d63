"""Coefficients of a diffusion's forward process, followed to the schedule that they are read from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

_CUMULATIVE = frozenset({"cumprod", "accumulate"})
_THROUGH = frozenset({"view", "reshape", "unsqueeze", "expand_dims", "gather", "to", "float", "cuda", "cpu", "double",
                      "index_select", "expand", "expand_as", "take", "detach", "clone", "astype", "type_as", "tensor",
                      "as_tensor", "from_numpy", "asarray", "array", "Parameter", "squeeze", "type", "float32",
                      "broadcast_to", "flip", "take_along_axis", "stop_gradient", "device_put", "Tensor"})  # fmt: skip
_READS = re.compile(r"^_?(extract|gather|get|take|index|expand|broadcast|bcast|at_t|pick|lookup)", re.IGNORECASE)
_NOISE = re.compile(r"noise|(^|_)(eps|epsilon)(_|$|\d)|^[nz]$", re.IGNORECASE)
_DRAWS = frozenset({"randn_like", "randn", "normal", "standard_normal", "normal_"})
_DEEP = 14
_MOST = 60
"""Values that are looked at for one coefficient."""
_MOST_FIELDS = 4
"""Places that may fill one field; a name that more of them fill says nothing."""


@dataclass(frozen=True)
class Coefficient:
    """`a`, `sqrt(a)`, `1 - a` or `sqrt(1 - a)` of a cumulative product that is made at one place."""

    root: bool
    rest: bool
    """Whether it is what is left of 1."""
    schedule: ast.expr


@dataclass(frozen=True)
class Schedules:
    """Finds the schedule behind an expression, across the files of a project."""

    look: Lookup
    _seen: set[int] = field(default_factory=set)

    def coefficient(self, code: Syntax, node: ast.expr) -> Coefficient | None:
        """What an expression is of a cumulative product; None where that is not certain."""
        self._seen.clear()
        return self._of(code, node, _DEEP)

    def _of(self, code: Syntax, node: ast.expr, left: int) -> Coefficient | None:
        if left <= 0 or len(self._seen) > _MOST or id(node) in self._seen:
            return None
        self._seen.add(id(node))
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in _CUMULATIVE:
            return None if "sqrt" in written(node) or "0.5" in written(node) else Coefficient(False, False, node)
        if isinstance(node, ast.Call) and name == "sqrt":
            inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            return self._rooted(code, inner, left)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return self._rooted(code, node.left, left) if code.number(node.right) == 0.5 else None
        if isinstance(node, ast.Call) and name == "pow" and len(node.args) == 1:
            half = code.number(node.args[0]) == 0.5 and isinstance(node.func, ast.Attribute)
            return self._rooted(code, node.func.value, left) if half else None  # type: ignore[attr-defined]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and code.number(node.left) == 1:
            inner_of = self._of(code, node.right, left - 1)
            plain = inner_of is not None and not inner_of.root and not inner_of.rest
            return Coefficient(False, True, inner_of.schedule) if inner_of is not None and plain else None
        return self._same(code, list(self._sources(code, node)), left)

    def _rooted(self, code: Syntax, node: ast.expr | None, left: int) -> Coefficient | None:
        inner = None if node is None else self._of(code, node, left - 1)
        return None if inner is None or inner.root else Coefficient(True, inner.rest, inner.schedule)

    def _same(self, code: Syntax, sources: list[tuple[Syntax, ast.expr]], left: int) -> Coefficient | None:
        """What all of the places agree on that a value may come from."""
        first = self._of(*sources[0], left - 1) if sources else None
        if first is None:
            return None
        return first if all(self._of(c, s, left - 1) == first for c, s in sources[1:]) else None

    def _sources(self, code: Syntax, node: ast.expr) -> Iterator[tuple[Syntax, ast.expr]]:
        """One step back: through reads and reshapes, assignments, arguments and fields."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            body = self.look.function(code, node.func)
            if name in _THROUGH or _READS.match(name):
                method = isinstance(node.func, ast.Attribute) and not code.qualified(node.func) and body is None
                first = node.args[0] if node.args else None
                inner = node.func.value if method and isinstance(node.func, ast.Attribute) else first
                yield from [(code, inner)] if inner is not None and written(inner) != "self" else []
            elif body is not None:
                yield from ((body[0], value) for value in returned(body[1]))
        elif isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, str):
                yield from self._fields(key)
            else:
                item = self._item(code, node.value, key) if isinstance(key, int) else []
                yield from item or [(code, node.value)]
        elif isinstance(node, (ast.Name, ast.Attribute)):
            step = self.look.one_step(code, node)
            if step is not None:
                yield step
            elif isinstance(node, ast.Attribute) and not code.bindings(node):
                yield from self._fields(node.attr)

    def _item(self, code: Syntax, call: ast.expr, place: int) -> list[tuple[Syntax, ast.expr]]:
        """One of the values that a function of the project returns together."""
        body = self.look.function(code, call.func) if isinstance(call, ast.Call) else None
        made = list(returned(body[1])) if body is not None else []
        return [(body[0], m.elts[place]) for m in made if isinstance(m, ast.Tuple) and place < len(m.elts)
                if body is not None]  # fmt: skip

    def _fields(self, name: str) -> Iterator[tuple[Syntax, ast.expr]]:
        """What is put under a name: attributes of self, buffers, entries of dicts, fields by keyword."""
        places = self._named.get(name, [])
        yield from places if len(places) <= _MOST_FIELDS else []

    @property
    def _named(self) -> dict[str, list[tuple[Syntax, ast.expr]]]:
        known: dict[str, list[tuple[Syntax, ast.expr]]] | None = self.look.__dict__.get("_schedule_fields")
        if known is None:
            known = {}
            for code in self.look.codes:
                for name, value in _put(code):
                    known.setdefault(name, []).append((code, value))
            self.look.__dict__["_schedule_fields"] = known
        return known

    def is_noise(self, code: Syntax, node: ast.expr) -> bool:
        """Whether a value is Gaussian noise: drawn here, or given under such a name."""
        return self.is_drawn(code, node) or bool(_NOISE.search(last_name(node)))

    def is_drawn(self, code: Syntax, node: ast.expr) -> bool:
        """Whether a value is drawn from a normal distribution, as far as the assignments show."""
        made = self.look.origin(code, node)[1]
        return isinstance(made, ast.Call) and last_name(made.func) in _DRAWS


def _put(code: Syntax) -> Iterator[tuple[str, ast.expr]]:
    for node in code.of(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and written(target.value) == "self":
                yield target.attr, node.value
    for call in code.calls("register_buffer"):
        name, value = argument(call, 0, "name"), argument(call, 1, "tensor")
        if isinstance(name, ast.Constant) and value is not None:
            yield str(name.value), value
    for call in code.of(ast.Call):
        if last_name(call.func)[:1].isupper() or last_name(call.func) in ("dict", "replace"):
            yield from ((k.arg, k.value) for k in call.keywords if k.arg is not None)
    for made in code.of(ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    for store in code.of(ast.Subscript):
        around, key = code.parent(store), store.slice
        if isinstance(store.ctx, ast.Store) and isinstance(key, ast.Constant) and isinstance(around, ast.Assign):
            yield str(key.value), around.value


def sides(code: Syntax, node: ast.BinOp) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(factor, other factor) of both terms of a sum of two products, each product in both orders."""
    for side in (node.left, node.right):
        made = side if not isinstance(side, ast.Name) else code.assigned(side) or side
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
            yield made.left, made.right
            yield made.right, made.left

"""Tables from characters or tokens to numbers, as programs write them, and which entry has which number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.values import whole

DATA = "\0"
"""Stands for any number of entries that come from the data: `sorted(set(text))`."""
_DEEP = 8


@dataclass(frozen=True)
class Table:
    """A numbering: its entries in order, and the number of the first one."""

    code: Syntax
    node: ast.expr
    entries: tuple[str, ...]
    start: int
    name: str

    def at(self, number: int) -> str | None:
        """The entry with a number; DATA for any that comes from the data; None where there is none or none is known."""
        for i, entry in enumerate(self.entries):
            if entry == DATA:
                return DATA if number - self.start == i else None
            if i == number - self.start:
                return entry
        return None

    @property
    def size(self) -> int | None:
        """How many entries there are, where all are known."""
        return None if DATA in self.entries else len(self.entries)


def tables(look: Lookup) -> Iterator[Table]:
    """Every numbering of texts in a project, as it is used: `table[c] + 1` starts at 1."""
    for code in look.codes:
        for comprehension in code.of(ast.DictComp):
            yield from _comprehension(look, code, comprehension)
        for call in code.calls("dict"):
            yield from _zipped(look, code, call)
        for call in code.calls("index"):
            if isinstance(call.func, ast.Attribute) and len(call.args) == 1:
                yield from _table(look, code, call, call.func.value, _added(code, call))
        for literal in code.of(ast.Dict):
            yield from _literal(look, code, literal)
        for difference in code.of(ast.BinOp):
            yield from _from_ord(code, difference)


def entries(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> list[str] | None:
    """The entries of a list or text, with DATA for those that come from the data."""
    known = look.items(code, node)
    if known is not None or left <= 0:
        return known
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        one, two = entries(look, code, node.left, left - 1), entries(look, code, node.right, left - 1)
        return None if one is None or two is None else one + two
    if isinstance(node, (ast.List, ast.Tuple)):
        found: list[str] = []
        for part in node.elts:
            inner = entries(look, code, part.value, left - 1) if isinstance(part, ast.Starred) else look.items(
                code, ast.List([part], ast.Load()))  # fmt: skip
            if inner is None:
                return None
            found += inner
        return found
    if isinstance(node, ast.Call) and last_name(node.func) in ("sorted", "list", "tuple") and node.args:
        inside = node.args[0]
        if isinstance(inside, (ast.Set, ast.SetComp)) or last_name(getattr(inside, "func", None)) == "set":
            return [DATA]
        return entries(look, code, inside, left - 1)
    step = look.one_step(code, node)
    return None if step is None else entries(look, *step, left - 1)


def _table(look: Lookup, code: Syntax, node: ast.expr, source: ast.expr, start: float | None) -> Iterator[Table]:
    found, first = entries(look, code, source), whole(start)
    if found and first is not None and (found[0] == DATA or len(found) > 1):
        yield Table(code, node, tuple(found), first, written(source)[:60])


def _comprehension(look: Lookup, code: Syntax, node: ast.DictComp) -> Iterator[Table]:
    """`{c: i for i, c in enumerate(chars, 1)}`, `{c: i + 1 for ...}`, `{chars[i]: i for i in range(len(chars))}`."""
    if len(node.generators) != 1:
        return
    made = node.generators[0]
    call, target = made.iter, made.target
    if not isinstance(call, ast.Call) or made.ifs:
        return
    if last_name(call.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2 and call.args:
        counter, entry = target.elts
        offset = _offset(node.value, written(counter))
        begin = look.number(code, argument(call, 1, "start")) if argument(call, 1, "start") is not None else 0.0
        if written(node.key) == written(entry) and offset is not None and begin is not None:
            yield from _table(look, code, node, call.args[0], begin + offset + _used(look, code, node))
    elif last_name(call.func) == "range" and isinstance(node.key, ast.Subscript) and written(
            node.key.slice) == written(target):  # fmt: skip
        offset = _offset(node.value, written(target))
        if offset is not None:
            yield from _table(look, code, node, node.key.value, offset + _used(look, code, node))


def _zipped(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[Table]:
    """`dict(zip(chars, range(len(chars))))`, `dict((c, i) for i, c in enumerate(chars))`."""
    first = call.args[0] if len(call.args) == 1 else None
    if isinstance(first, ast.Call) and last_name(first.func) == "zip" and len(first.args) == 2:
        numbers = first.args[1]
        begin: float | None = 0.0
        if isinstance(numbers, ast.Call) and last_name(numbers.func) == "range":
            begin = look.number(code, numbers.args[0]) if len(numbers.args) > 1 else 0.0
        elif not (isinstance(numbers, ast.Call) and last_name(numbers.func) == "count"):
            return
        if begin is not None:
            yield from _table(look, code, call, first.args[0], begin + _used(look, code, call))
    elif isinstance(first, ast.GeneratorExp) and isinstance(first.elt, ast.Tuple) and len(first.elt.elts) == 2:
        made = ast.DictComp(first.elt.elts[0], first.elt.elts[1], first.generators)
        for table in _comprehension(look, code, ast.copy_location(made, call)):
            yield Table(code, call, table.entries, table.start + _used(look, code, call), table.name)


def _literal(look: Lookup, code: Syntax, node: ast.Dict) -> Iterator[Table]:
    """`{"a": 0, "b": 1}`."""
    keys = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    values = [v.value for v in node.values if isinstance(v, ast.Constant) and type(v.value) is int]
    if len(keys) < 3 or len(keys) != len(values) or len(keys) != len(node.keys) or len(set(values)) != len(values):
        return
    order = sorted(zip(values, keys, strict=True))
    if order[0][0] + len(order) - 1 == order[-1][0]:
        start = order[0][0] + _used(look, code, node)
        yield Table(code, node, tuple(k for _, k in order), start, "the table")


def _from_ord(code: Syntax, node: ast.BinOp) -> Iterator[Table]:
    """`ord(c) - ord("a")`, `ord(c) - 97`."""
    if not isinstance(node.op, ast.Sub) or not isinstance(node.left, ast.Call) or last_name(node.left.func) != "ord":
        return
    if not node.left.args or not isinstance(node.left.args[0], ast.Name):
        return  # one letter of an entry, as of a multiple choice
    base: object = getattr(node.right, "value", None)
    if isinstance(node.right, ast.Call) and last_name(node.right.func) == "ord" and node.right.args:
        base = getattr(node.right.args[0], "value", None)
    first = chr(base) if type(base) is int and 32 <= base < 0x10000 else base
    if isinstance(first, str) and len(first) == 1:
        entry = tuple(chr(ord(first) + i) for i in range(10 if first == "0" else 26))
        yield Table(code, node, entry, int(_added(code, node)), written(node))


def _offset(value: ast.expr, counter: str) -> float | None:
    """0 for `i`, 1 for `i + 1`."""
    if written(value) == counter:
        return 0.0
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if written(one) == counter and isinstance(other, ast.Constant) and type(other.value) is int:
                return float(other.value)
    return None


def _added(code: Syntax, node: ast.AST) -> float:
    """What is added to a number that was looked up."""
    up = code.parent(node)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add):
        other = up.right if up.left is node else up.left
        if isinstance(other, ast.Constant) and type(other.value) is int:
            return float(other.value)
    return 0.0


def _used(look: Lookup, code: Syntax, node: ast.expr) -> int:
    """What is added wherever the table that is made here is read: `table[c] + 1`."""
    statement = code.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = last_name(target)
    if not name:
        return 0
    return int(max(_most_added(look).get(name, 0.0), 0.0))


def _most_added(look: Lookup) -> dict[str, float]:
    """The most that is added where an entry of a table is read, by the table's name; worked out once."""
    known: dict[str, float] | None = look.__dict__.get("_most_added")
    if known is None:
        known = look.__dict__["_most_added"] = {}
        for code in look.codes:
            reads: list[tuple[str, ast.expr]] = [
                (last_name(s.value), s) for s in code.of(ast.Subscript) if isinstance(s.ctx, ast.Load)]
            reads += [(last_name(c.func.value), c) for c in code.calls("get") if isinstance(c.func, ast.Attribute)]
            for name, node in reads:
                known[name] = max(known.get(name, 0.0), _added(code, node))
    return known

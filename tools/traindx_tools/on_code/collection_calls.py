"""What calls of Python's `collections` mean: deques, which may be bounded, and records; and `setdefault`."""

from __future__ import annotations

import ast

from traindx_tools.on_code import containers
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import function, method
from traindx_tools.on_code.values import NONE, Bag, Const, Table, Thing, Value


@function("collections.deque")
def _deque(caller: Interpreter, call: Call) -> Value:
    items = list(call.first.items) if call.args and isinstance(call.first, Bag) else []
    bound = call.get(1, "maxlen")
    return Bag("deque", items, open=True, site=call.site, born_in=caller.loops, bound=bound if bound != NONE else None)


@function("collections.namedtuple", "typing.NamedTuple")
def _namedtuple(caller: Interpreter, call: Call) -> Value | None:
    """The class of records with these fields."""
    fields = call.get(1, "field_names")
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = fields.value.replace(",", " ").split()
    elif isinstance(fields, Bag) and not fields.open:
        names = [str(i.value) for i in fields.items if isinstance(i, Const)]
    else:
        return None
    return Thing("collections.namedtuple", (), {}, call.site, call.node, {"fields": names})


@method("setdefault")
def _setdefault(caller: Interpreter, call: Call) -> Value | None:
    """The entry of a dict; one that is made here lives as long as the dict does."""
    table, key, made = call.receiver, call.get(0, "key"), call.get(1, "default")
    if not isinstance(table, Table) or key is None:
        return None
    known = isinstance(key, Const) and containers.hashable(key.value) and key.value in table.items
    if known or (not isinstance(key, Const) and table.rest is not None):
        return containers.item(table, key, ast.Constant(0))
    if isinstance(made, (Bag, Table)):
        made.born_in = table.born_in
    containers.put(table, key, made if made is not None else NONE)
    return made if made is not None else NONE

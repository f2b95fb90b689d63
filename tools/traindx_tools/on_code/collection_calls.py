"""What calls of Python's `collections` mean: deques, which may be bounded, and records."""

from __future__ import annotations

from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import function
from traindx_tools.on_code.values import NONE, Bag, Const, Thing, Value


@function("collections.deque")
def _deque(caller: Interpreter, call: Call) -> Value:
    items = list(call.first.items) if call.args and isinstance(call.first, Bag) else []
    bound = call.get(1, "maxlen")
    return Bag("deque", items, open=True, site=caller.site(call.node, call.frame), born_in=caller.loops,
               bound=bound if bound != NONE else None)


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
    return Thing("collections.namedtuple", (), {}, caller.site(call.node, call.frame), call.node, {"fields": names})

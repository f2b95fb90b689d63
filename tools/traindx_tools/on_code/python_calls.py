"""What calls of Python's own library mean: builtins, itertools, argparse, methods of lists and dicts."""

from __future__ import annotations

import ast
from typing import Any

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import arithmetic, configuration_values, containers
from traindx_tools.on_code.gradient_tests import number_of
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import (
    function,
    method,
    replace_parameters,
)
from traindx_tools.on_code.tensors import copied
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    Operation,
    Parameters,
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    whole,
)


@function("builtins.len")
def _len(caller: Interpreter, call: Call) -> Value:
    value = call.first
    if isinstance(value, Bag) and not value.open and (value.items or value.born_in == caller.loops):
        return Const(len(value.items))  # an empty list from before the loop is asked because it grows
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(len(value.value))
    prepared = isinstance(value, Thing) and bool(value.state.get("prepared"))
    return Operation("len prepared" if prepared else "len", (value,))


@function("builtins.int", "builtins.round", "builtins.float", "math.ceil", "math.floor", "builtins.abs", "numpy.ceil")
def _number(caller: Interpreter, call: Call) -> Value:
    value = call.first
    if isinstance(value, Const) and isinstance(value.value, (int, float, str)) and not call.name.endswith("abs"):
        try:
            convert: Any = float if call.name == "builtins.float" else int if call.name == "builtins.int" else None
            if convert is not None:
                return Const(convert(value.value), value.fixed)
        except (ValueError, OverflowError):
            return UNKNOWN
        return arithmetic.operation("round", (value,)) if isinstance(value.value, float) else value
    if isinstance(value, Tensor):
        return number_of(value)
    return arithmetic.operation("round", (value,))


@function("os.environ.get", "os.getenv")
def _environment(caller: Interpreter, call: Call) -> Value:
    """A variable of the environment, by its name: `LOCAL_RANK` tells one process from another."""
    name = call.first
    return Symbol("item", repr(name.value)) if isinstance(name, Const) and isinstance(name.value, str) else UNKNOWN


@function("builtins.max", "builtins.min")
def _extreme(caller: Interpreter, call: Call) -> Value | None:
    if any(isinstance(a, Tensor) for a in call.args):
        return None
    numbers = [a for a in call.args if isinstance(a, Const) and isinstance(a.value, (int, float))]
    if len(numbers) == len(call.args) > 1:
        pick = max if call.name.endswith("max") else min
        return Const(pick(n.value for n in numbers), all(n.fixed for n in numbers))
    return arithmetic.operation("extreme", call.args) if len(call.args) > 1 else UNKNOWN


@function("builtins.sum")
def _sum(caller: Interpreter, call: Call) -> Value:
    return caller.element(call.first, call.node, call.frame)


@function("builtins.range")
def _range(caller: Interpreter, call: Call) -> Value:
    count: Value = call.args[0] if call.args else UNKNOWN
    if len(call.args) >= 2:
        start, stop = call.args[0], call.args[1]
        one_based = (start == Const(1) and isinstance(stop, Operation) and stop.op == "+"
            and stop.operands[1] == Const(1))
        if one_based and isinstance(stop, Operation):
            count = stop.operands[0]
        elif start == Const(0) or not isinstance(start, Const):
            count = stop
        else:
            count = arithmetic.binary("-", stop, start, call.site, None)
        if len(call.args) == 3 and call.args[2] != Const(1):
            count = Operation("round", (arithmetic.operation("/", (count, call.args[2])),), detail="ceil")
    return Thing("range", call.args, {}, call.site, call.node, {"count": count})


@function("builtins.enumerate")
def _enumerate(caller: Interpreter, call: Call) -> Value:
    index: Value = Symbol("index", "index", call.first, 1)
    start = whole(number(call.get(1, "start")))
    if start:
        index = arithmetic.operation("+", (index, Const(start)))
    pair = Bag("tuple", [index, caller.element(call.first, call.node, call.frame)])
    return Thing("enumerate", (call.first,), {}, call.site, call.node, {"element": pair})


@function("builtins.zip", "itertools.product")
def _zip(caller: Interpreter, call: Call) -> Value:
    rows, row = call.first, call.kwargs.get("*") if len(call.args) == 1 else None
    if call.name.endswith("zip") and isinstance(row, Bag) and not row.open and isinstance(rows, Bag):
        return Bag("list", [Bag("tuple", [one], open=True, size=rows.size or arithmetic.operation("len", (rows,)))
                            for one in row.items])  # rows to columns
    pair = Bag("tuple", [caller.element(a, call.node, call.frame) for a in call.args])
    return Thing("enumerate", call.args[:1], {}, call.site, call.node, {"element": pair})


@function(*words("followed.toml", "elements"))
def _through(caller: Interpreter, call: Call) -> Value:
    value: Value = call.first
    if call.name.endswith("trange"):
        value = _range(caller, call) or UNKNOWN
    if isinstance(value, Tensor):
        return copied(value)
    if isinstance(value, Bag) and call.name in ("builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted"):
        return Bag(call.name.rpartition(".")[2], list(value.items), value.open, value.site, caller.loops)
    if not call.args and call.name in ("builtins.list", "builtins.tuple", "builtins.set"):
        return Bag("list", [], site=call.site, born_in=caller.loops)
    if isinstance(value, Parameters) and call.name.startswith("builtins.") and not call.name.endswith("iter"):
        caller.element(value, call.node, call.frame)
        return Parameters(value.modules, value.only_trainable, value.partial, value.named)
    return value


@function("random.sample", "random.choices")
def _some(caller: Interpreter, call: Call) -> Value | None:
    """A few of a list, in another order."""
    of, count = call.first, call.get(1, "k")
    if not isinstance(of, Bag) or not of.items:
        return None
    return Bag("list", list(of.items), open=True, site=call.site, size=count)


@method("gather_for_metrics")
def _gathered(caller: Interpreter, call: Call) -> Value | None:
    """What all processes hold, with the rows that were there twice left out."""
    return call.first if isinstance(call.first, (Bag, Tensor, Table)) else None


@function("builtins.next")
def _next(caller: Interpreter, call: Call) -> Value:
    value = call.first
    if isinstance(value, Parameters):
        value = Parameters(value.modules, named=value.named)  # one of them is taken, the others are left
    if isinstance(value, Symbol) and value.role == "parameters":
        return value
    return caller.element(value, call.node, call.frame)


@function(*words("followed.toml", "tables"))
def _dict(caller: Interpreter, call: Call) -> Value:
    table = Table({}, site=call.site, born_in=caller.loops)
    for arg in call.args:
        containers.merge_tables(table, arg)
    table.items.update(call.kwargs)
    return table


@function("collections.defaultdict")
def _defaultdict(caller: Interpreter, call: Call) -> Value:
    site = call.site
    made: Value = Const(0)
    if isinstance(call.first, Ref) and call.first.name.endswith("list"):
        made = Bag("list", [], site=site, born_in=caller.loops)
    elif isinstance(call.first, Klass):
        made = caller.call(call.first, [], {}, call.node, call.frame)
    return Table({}, open=True, rest=made, site=site, born_in=caller.loops)


@function("builtins.filter")
def _filter(caller: Interpreter, call: Call) -> Value:
    chosen = call.get(1, "iterable")
    if isinstance(chosen, Parameters):
        text = ast.unparse(call.node)
        return replace_parameters(chosen, only_trainable=".requires_grad" in text, partial=".requires_grad" not in text)
    return chosen if chosen is not None else UNKNOWN


@function("itertools.chain", "itertools.chain.from_iterable")
def _chain(caller: Interpreter, call: Call) -> Value:
    args = call.args[0].items if len(call.args) == 1 and isinstance(call.args[0], Bag) else call.args
    groups = [a for a in args if isinstance(a, Parameters)]
    if groups and len(groups) == len(args):
        return Parameters(tuple(m for p in groups for m in p.modules), all(p.only_trainable for p in groups),
                          any(p.partial for p in groups), lazy=True, loops=len(caller.loops))  # fmt: skip
    return Bag("generator", [caller.element(a, call.node, call.frame) for a in args], open=True)


@function("builtins.map")
def _map(caller: Interpreter, call: Call) -> Value:
    elements = [caller.element(a, call.node, call.frame) for a in call.args[1:]]
    return Bag("generator", [caller.call(call.first, elements, {}, call.node, call.frame)], open=True)


@function("functools.partial")
def _partial(caller: Interpreter, call: Call) -> Value:
    return Thing("functools.partial", call.args, call.kwargs, call.site, call.node)


@function("builtins.getattr")
def _getattr(caller: Interpreter, call: Call) -> Value:
    name = call.get(1, "name")
    if isinstance(name, Const) and isinstance(name.value, str):
        return caller.attribute(call.first, name.value, call.node, call.frame)
    return UNKNOWN


@function("builtins.setattr")
def _setattr(caller: Interpreter, call: Call) -> Value:
    name, value = call.get(1, "name"), call.get(2, "value")
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        caller.set_attribute(call.first, name.value, value, call.node, call.frame)
    elif value is not None:
        caller.event("store", "attribute.?", call.node, call.frame, receiver=call.first, args=(value,))
    return NONE


@function("builtins.isinstance")
def _isinstance(caller: Interpreter, call: Call) -> Value:
    kind = call.get(1, "class")
    if isinstance(call.first, Thing) and isinstance(kind, Ref):
        if kind.name == call.first.type:
            return Const(True)
        if kind.name.startswith("torch.nn.") and call.first.type.startswith("torch.nn."):
            return Symbol("call", "isinstance")
    if isinstance(call.first, Instance) and isinstance(kind, Klass):
        return Const(any(i is kind.info for i in call.first.klass.info.lineage()))
    return Symbol("call", "isinstance")


@function("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "accelerate.debug_launcher")
def _spawn(caller: Interpreter, call: Call) -> Value:
    """The function that is started in every process; its first argument is the process's number."""
    given = call.kwargs.get("args") or (call.args[1] if len(call.args) > 1 else None)
    args = list(given.items) if isinstance(given, Bag) and not given.open else []
    if isinstance(call.first, Function):
        first: list[Value] = [] if call.name.endswith("debug_launcher") else [Symbol("rank", "rank")]
        caller.call(call.first, [*first, *args], {}, call.node, call.frame)
    return NONE


@function("builtins.open", "pathlib.Path")
def _open(caller: Interpreter, call: Call) -> Value:
    return Thing("file", call.args[:1], {}, call.site, call.node)


@function(*words("followed.toml", "configurations"))
def _configuration(caller: Interpreter, call: Call) -> Value | None:
    """A configuration file that lies beside the code is read; its values are defaults that a user may change."""
    source = call.first
    source = source.args[0] if isinstance(source, Thing) and source.type == "file" and source.args else source
    if not (isinstance(source, Const) and isinstance(source.value, str)):
        return None
    return configuration_values.read(source.value, call.frame.file.path, call.site)


@method("add_argument")
def _add_argument(caller: Interpreter, call: Call) -> Value | None:
    if not isinstance(call.receiver, Thing):
        return None
    names = [a.value for a in call.args if isinstance(a, Const) and isinstance(a.value, str)]
    dest = call.kwargs.get("dest")
    longest = max(names, key=len, default="")
    key = dest.value if isinstance(dest, Const) else longest.lstrip("-").replace("-", "_")
    default = call.kwargs.get("default")
    action = call.kwargs.get("action")
    if default is None and isinstance(action, Const):
        default = Const({"store_true": False, "store_false": True}.get(str(action.value)))
    value: Value = Symbol("option", str(key))
    if isinstance(default, Const) and default.value is not None:
        value = Const(default.value, fixed=False)
    call.receiver.state.setdefault("options", {})[str(key)] = value
    return UNKNOWN


@method("add_argument_group", "add_mutually_exclusive_group")
def _group(caller: Interpreter, call: Call) -> Value | None:
    return call.receiver


@method("parse_args", "parse_known_args")
def _parse_args(caller: Interpreter, call: Call) -> Value | None:
    if not (isinstance(call.receiver, Thing) and "options" in call.receiver.state):
        return None
    parsed = Table(dict(call.receiver.state["options"]), open=True, site=call.receiver.site)
    return Bag("tuple", [parsed, UNKNOWN]) if call.name.endswith("known_args") else parsed


@method("get")
def _get(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Table) and call.args:
        found = containers.item(call.receiver, call.args[0], ast.Constant(0))
        known = isinstance(call.args[0], Const) and call.args[0].value in call.receiver.items
        return found if known or len(call.args) < 2 else call.args[1]
    return None


@method("items")
def _items(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Table):
        values = [*call.receiver.items.values(), *([call.receiver.rest] if call.receiver.rest else [])]
        keys = list(call.receiver.items)
        if not call.receiver.open and call.receiver.rest is None and 2 <= len(keys) <= containers.MOST_APART:
            return Bag("list", [Bag("tuple", [Const(k), v]) for k, v in call.receiver.items.items()])
        key: Value = Const(keys[0]) if len(keys) == 1 and not call.receiver.open else Symbol("key", "key")
        return Bag("list", [Bag("tuple", [key, containers.joined(values)])], open=True)
    return None


@method("values", "copy")
def _values(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Table):
        if call.name.endswith("copy"):
            return Table(dict(call.receiver.items), call.receiver.open, call.receiver.rest)
        return Bag("list", [*call.receiver.items.values(), *([call.receiver.rest] if call.receiver.rest else [])],
            call.receiver.open)
    return call.receiver if isinstance(call.receiver, Bag) else None


@method("append", "add", "appendleft")
def _append(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        if caller.loops != call.receiver.born_in:
            call.receiver.open = True
            call.receiver.size = caller.loops[-1].count if caller.loops else None
        if len(call.receiver.items) < 12:
            call.receiver.items.append(call.first)
            call.receiver.settle()
            caller.note_cut(call.receiver, call.node, call.frame)
        return NONE
    if isinstance(call.receiver, Thing) and call.receiver.short in ("ModuleList", "Sequential") and call.args:
        collected = containers.members(call.receiver)
        items = [*(collected.items if collected else []), call.first][:30]
        call.receiver.args = (Bag("list", items, open=bool(caller.loops)),)
        call.receiver.settle()
        return call.receiver
    return None


@method("extend", "update")
def _extend(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        more = call.first
        call.receiver.open = call.receiver.open or not isinstance(more, Bag) or more.open
        found = more.items if isinstance(more, Bag) else [caller.element(more, call.node, call.frame)]
        call.receiver.items.extend(found[: max(0, 20 - len(call.receiver.items))])
        call.receiver.settle()
        return NONE
    if isinstance(call.receiver, Parameters) and isinstance(call.first, Parameters):
        group, added = call.receiver, call.first
        group.modules = (*group.modules, *added.modules)
        sometimes = any(b.kind in ("branch", "loop") for b in caller.blocks)
        group.partial = group.partial or added.partial or sometimes
        group.only_trainable = group.only_trainable or added.only_trainable
        return NONE
    if isinstance(call.receiver, Table):
        if call.args:
            containers.merge_tables(call.receiver, call.first)
        call.receiver.items.update(call.kwargs)
        call.receiver.settle()
        return NONE
    return None


@method("clear", "pop", "popleft")
def _clear(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        call.receiver.cleared = True
        return containers.joined(call.receiver.items)
    return None

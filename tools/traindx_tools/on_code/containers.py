"""Lists, dicts, indexing and attributes of abstract values."""

from __future__ import annotations

import ast
import builtins
import math
import string
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import axes
from traindx_tools.on_code.arrays import AXES, COLUMNS, TRANSFERS
from traindx_tools.on_code.nesting import Nested
from traindx_tools.on_code.tensors import copied
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Instance,
    Method,
    Operation,
    Parameters,
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    integer,
    join,
    parts,
)

BUILTINS = frozenset(dir(builtins))
_CONSTANTS: dict[str, Any] = {"math.pi": math.pi, "math.e": math.e, "numpy.pi": math.pi, "torch.pi": math.pi,
    "math.inf": math.inf, "numpy.inf": math.inf, "torch.inf": math.inf, "jax.numpy.pi": math.pi,
    "jax.numpy.inf": math.inf, **{f"string.{name}": getattr(string, name)
    for name in ("ascii_lowercase", "ascii_uppercase", "ascii_letters", "digits", "punctuation")}}
_TRANSPOSES = frozenset({"T", "mT", "H", "mH"})


def hashable(value: Any) -> bool:
    """Whether a constant can be a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def constant_of(name: str) -> Value:
    """A name of an installed package; the few that are numbers become constants."""
    return Const(_CONSTANTS[name]) if name in _CONSTANTS else Ref(name)


def put(table: Table, key: Value, value: Value) -> None:
    """Store an entry; an unknown key goes to `rest`."""
    if isinstance(key, Const) and hashable(key.value):
        table.items[key.value] = value
    else:
        table.rest = value if table.rest is None else join(table.rest, value)
        table.open = True
    if isinstance(value, Nested):
        table.settle()


def merge_tables(table: Table, other: Value) -> None:
    """`{**other}`."""
    if isinstance(other, Table):
        table.items.update(other.items)
        table.open = table.open or other.open
        table.rest = other.rest if table.rest is None else table.rest
        table.settle()
    else:
        table.open = True


MOST_APART = 4
"""Objects in a list up to which a loop over them is followed for each."""


def each_apart(value: Value) -> list[Value] | None:
    """What stands in a list of a few different objects, or of their pairs with a key; None for all else."""
    items = value.items if isinstance(value, Bag) and not value.open and value.kind in ("list", "tuple") else []
    pairs = [i.items[-1] for i in items if isinstance(i, Bag) and len(i.items) == 2 and isinstance(i.items[0], Const)]
    held: list[Value] = pairs if len(pairs) == len(items) else items
    kinds = (Thing, Instance, Tensor, Symbol, Operation) if held is pairs else (Thing, Instance)
    apart = len({id(v) for v in held}) == len(held) and all(isinstance(v, kinds) for v in held)
    return list(items) if 2 <= len(items) <= MOST_APART and apart else None


def joined(values: list[Value]) -> Value:
    """One value that stands for all of them."""
    if not values:
        return UNKNOWN
    result = values[0]
    for value in values[1:12]:
        result = join(result, value)
    return result


def item(base: Value, index: Value, node: ast.expr) -> Value:
    """`base[index]`."""
    if isinstance(base, Bag):
        return _bag_item(base, index)
    if isinstance(base, Table):
        if isinstance(index, Const) and hashable(index.value) and index.value in base.items:
            return base.items[index.value]
        if base.rest is not None:
            return base.rest
        if isinstance(index, Const) or not base.items:
            return Symbol("item", str(getattr(index, "value", "?"))[:40])
        return joined(list(base.items.values()))
    if isinstance(base, Tensor):
        return _indexed(base, index, node)
    if isinstance(base, Symbol):
        return base.child("item", _key(index))
    if isinstance(base, Ref) and base.name == "os.environ":
        return Symbol("item", _key(index))
    if isinstance(base, Operation):
        if base.op in ("compare", "~") and _keeps_all(index):
            return base
        known = axes.of(base)
        return Symbol("item", _key(index)) if known is not None and known.dims else UNKNOWN
    if isinstance(base, Thing):
        return _thing_item(base, index)
    if isinstance(base, Const) and isinstance(index, Const):
        try:
            return Const(base.value[index.value])
        except (TypeError, IndexError, KeyError):
            return UNKNOWN
    return UNKNOWN


def _keeps_all(index: Value) -> bool:
    """Whether an index only adds axes or takes ranges: `[:, None]`."""
    entries = index.items if isinstance(index, Bag) and index.kind == "tuple" else [index]
    return all(isinstance(e, Bag) or e in (Const(None), Const(...)) for e in entries)


def _key(index: Value) -> str:
    entries = index.items if isinstance(index, Bag) and index.kind == "tuple" else [index]
    if any(isinstance(e, Bag) or e == Const(None) for e in entries):
        return "+".join(sorted(_shift(entries))) or "slice"
    return (repr(index.value)[:40] if isinstance(index, Const)
        else f"{type(index).__name__}:{getattr(index, 'name', '')}")


def _bag_item(base: Bag, index: Value) -> Value:
    at = integer(index)
    if at is not None and not base.open and -len(base.items) <= at < len(base.items):
        return base.items[at]
    if isinstance(index, Bag) and index.kind == "slice":
        low, high = integer(index.items[0]), integer(index.items[1])
        plain = not base.open and index.items[2] == Const(None)
        if plain and all(i == Const(None) or integer(i) is not None for i in index.items[:2]):
            return Bag(base.kind, base.items[low:high], False, base.site, base.born_in)
        if base.kind == "keys" and not (index.items[0] == Const(None) or (isinstance(low, int) and low >= 0)):
            return UNKNOWN  # which keys it takes moves from call to call
        # what was gathered in a loop ends with the last examples: `layers[:-1]` ends before them
        cut = high if isinstance(high, int) and high < 0 and index.items[2] == Const(None) else None
        return Bag(base.kind, base.items[low if base.kind == "keys" else None:cut], True, base.site, base.born_in)
    return joined(base.items)


def _thing_item(base: Thing, index: Value) -> Value:
    if base.type == "range" and isinstance(index, Bag):
        return base
    if base.type == "collections.Counter":
        return Symbol("count", "by number" if getattr(index, "role", "") == "index" else "by value", base, 1)
    known = members(base)
    at = integer(index)
    if known is not None and at is not None and not known.open and -len(known.items) <= at < len(known.items):
        return known.items[at]
    if base.short == "ModuleDict" and base.args and isinstance(base.args[0], Table):
        table = base.args[0]
        if isinstance(index, Const) and hashable(index.value) and index.value in table.items:
            return table.items[index.value]
        return joined([*table.items.values(), *([table.rest] if table.rest else [])])
    if known is not None and not (isinstance(index, Bag) and index.kind == "slice"):
        return joined(known.items)
    if known is None:
        return Symbol("item", _key(index), base, 1)
    taken = _bag_item(known, index)
    if not isinstance(taken, Bag) or taken.open:
        return base
    args = tuple(taken.items) if base.short == "Sequential" else (taken,)
    return replace(base, args=args, state={k: v for k, v in base.state.items() if k != "attrs"})


def members(thing: Thing) -> Bag | None:
    """The layers of a Sequential or ModuleList, in order."""
    if thing.short == "Sequential":
        if len(thing.args) == 1 and isinstance(thing.args[0], Table):
            return Bag("list", list(thing.args[0].items.values()))
        flat: list[Value] = []
        is_open = False
        for arg in thing.args:
            if isinstance(arg, Bag):
                flat.extend(arg.items)
                is_open = is_open or arg.open
            else:
                flat.append(arg)
        return Bag("list", flat, is_open)
    if thing.short == "ModuleList":
        first = thing.args[0] if thing.args else Bag("list", [])
        return first if isinstance(first, Bag) else Bag("list", [], open=True)
    return None


def _indexed(base: Tensor, index: Value, node: ast.expr) -> Tensor:
    entries = index.items if isinstance(index, Bag) and index.kind == "tuple" else [index]
    kept = base.tags - COLUMNS if any(e == Const(None) for e in entries) else base.tags
    first = entries[0] if entries else None
    if not (isinstance(first, Bag) and first.kind == "slice" and len(entries) == 2):
        kept -= AXES
    if not all(isinstance(e, Bag) and e.kind == "slice" for e in entries):
        kept -= {"sequence"}
    if any((isinstance(e, Bag) and e.kind == "slice") or e == Const(None) for e in entries):
        found = _shift(entries)
        again = "without_first" in base.tags & found
        twice = frozenset({"first_dropped_twice"} if again else ())
        kept = kept | found | twice | _sharded(base, entries)
    if not all(isinstance(e, Bag) or e == Const(None) for e in entries):
        kept = copied(replace(base, tags=kept)).tags - {"padded"}
    chosen = any(getattr(e, "op", "") == "compare" or getattr(e, "dtype", "") == "bool" for e in entries)
    base = replace(base, low=None, high=None) if chosen else base  # what is left may not reach them
    return replace(base, tags=kept | {"moved"})


def _shift(entries: list[Value]) -> frozenset[str]:
    """`x[..., :-1, :]` drops the last position, `x[..., 1:]` the first: what shifting labels looks like."""
    new = [i for i, e in enumerate(entries) if e == Const(None)]
    found = {f"axis {new[0]}"} if new and _keeps_all(Bag("tuple", entries)) else set()
    for entry in entries:
        if isinstance(entry, Bag) and entry.kind == "slice":
            low, high = integer(entry.items[0]), integer(entry.items[1])
            if low is None and high == -1 and entry.items[0] == Const(None):
                found.add("without_last")
            start = entry.items[0]
            later = isinstance(start, Operation) and start.op == "+" and start.operands[1] == Const(1)
            if (low == 1 and entry.items[1] == Const(None)) or (later and entry is entries[0]):
                found.add("without_first")
    return frozenset(found)


def _sharded(base: Tensor, entries: list[Value]) -> frozenset[str]:
    """`x[rank::world_size]`: an uneven share unless the length, or the end, is known to be divisible."""
    first = entries[0]
    if not (isinstance(first, Bag) and first.kind == "slice" and depends_on_rank(first.items[0])):
        return frozenset()
    if _multiple(first.items[1], first.items[2]):
        return frozenset()
    length = base.shape.dims[0] if base.shape is not None and base.shape.exact and base.shape.dims else None
    step = integer(first.items[2])
    if length is not None and step:
        return frozenset({"uneven share"}) if length % step else frozenset()
    return frozenset({"share"})


def _multiple(end: Value, of: Value) -> bool:
    """Whether a number is `n // of * of`, `n - n % of`, or a constant that can be divided."""
    size, step = integer(end), integer(of)
    if size is not None and step:
        return size % step == 0
    if not isinstance(end, Operation) or len(end.operands) != 2 or of == Const(None):
        return False
    left, right = end.operands
    if end.op == "-" and isinstance(right, Operation):
        return right.op == "%" and right.operands == (left, of)
    whole, factor = (right, left) if left == of else (left, right)
    return (end.op == "*" and factor == of and isinstance(whole, Operation) and whole.op == "//"
            and whole.operands[1] == of)  # fmt: skip


def depends_on_rank(value: Value) -> bool:
    """Whether a value differs between the processes of a distributed run; `seed + rank - rank` does not."""
    return any(share and _of_rank(term) for term, share in _terms(value))


def _of_rank(value: Value) -> bool:
    return any(isinstance(p, Symbol) and (p.role == "rank" or p.name.split("@")[0] in RANK_SOURCES)
        for p in parts(value))


def _terms(value: Value) -> list[tuple[Value, int]]:
    """The terms of a sum, each with how often it is added (less than 0: taken away)."""
    found: list[tuple[Value, int]] = []
    stack = [(value, 1)]
    for one, share in stack:
        if isinstance(one, Operation) and one.op in ("+", "-") and len(one.operands) == 2 and len(stack) < 60:
            stack += [(one.operands[0], share), (one.operands[1], share if one.op == "+" else -share)]
            continue
        at = next((i for i, (term, _) in enumerate(found) if term == one), None)
        if at is None:
            found.append((one, share))
        else:
            found[at] = one, found[at][1] + share
    return found


RANK_SOURCES = frozenset({"torch.distributed.get_rank", "get_rank", "'RANK'", "'LOCAL_RANK'", "process_index",
    "local_process_index", "is_main_process", "is_local_main_process", "global_rank", "jax.process_index",
    "is_global_zero", "local_rank", "is_world_process_zero", "is_last_process"})
"""Names of calls, environment variables and attributes that tell one process from another."""


def attribute(base: Value, name: str) -> Value:
    """`base.name` for tensors, containers and constants."""
    if isinstance(base, Tensor):
        return _tensor_attribute(base, name)
    if isinstance(base, Table):
        if name in base.items:
            return base.items[name]
        if base.open and name not in _TABLE_METHODS:
            return Symbol("attribute", name)
    if isinstance(base, Bag) and base.kind == "minmax" and name in ("values", "indices"):
        return base.items[name == "indices"]
    if isinstance(base, Operation):
        return Symbol("attribute", name)
    given = base.argument(0, "dataset") if isinstance(base, Thing) and base.short == "DataLoader" else None
    if name == "dataset" and given is not None:
        return given
    return Method(base, name)


_TABLE_METHODS = frozenset({"get", "items", "values", "keys", "update", "pop", "setdefault", "copy", "clear", "append"})


def _tensor_attribute(base: Tensor, name: str) -> Value:
    if name in _TRANSPOSES:
        return replace(base, tags=base.tags - COLUMNS | {"moved"})
    if name == "data":
        return replace(base, grad=False, parents=frozenset())
    if name == "grad":
        return Tensor(grad=False, axes=base.axes, models=base.models, tags=frozenset({"gradient"}))
    if name == "shape":
        return Symbol("attribute" if "moved" in base.tags else "shape", str(base.site))
    if name in ("values", "real", "imag", "mT"):
        return base
    if name in ("device", "dtype", "ndim", "size", "requires_grad", "is_cuda", "grad_fn", "is_leaf", "layout", "at"):
        return Method(base, name) if name in ("size", "at") else Symbol("attribute", name)
    if name in ("logits", "loss") and name not in TRANSFERS:
        return Symbol("attribute", name)
    return Method(base, name)


def chosen_parameters(first: Value | None, element: Value, conditions: list[ast.expr],
                      node: ast.AST) -> Parameters | None:
    """`[p for p in model.parameters() if p.requires_grad]` as Parameters; None if it is something else."""
    if not isinstance(first, Parameters) or isinstance(node, (ast.SetComp, ast.DictComp)):
        return None
    one = element.items[-1] if isinstance(element, Bag) and element.items else element
    if not isinstance(one, Thing) or id(one.state.get("of")) != id(first):
        return None
    texts = [ast.unparse(c) for c in conditions]
    trainable = first.only_trainable or any(t.endswith(".requires_grad") for t in texts)
    others = [t for t in texts if not t.endswith(".requires_grad")]
    return Parameters(first.modules, trainable, first.partial or bool(others), first.named and isinstance(element, Bag),
                      isinstance(node, ast.GeneratorExp), None, first.loops)


def ordered_by(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> str | None:
    """The outer loop's variable where rows `(features, variable)` are made one class after the other."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) < 2:
        return None
    outer = node.generators[0].target
    if not isinstance(outer, ast.Name) or not isinstance(node.elt, (ast.Tuple, ast.List)):
        return None
    return outer.id if any(isinstance(e, ast.Name) and e.id == outer.id for e in node.elt.elts) else None

"""How many rows a value has, how many turns a pass over it takes, and the number that arithmetic over such lengths
gives.

Options count with their defaults: what a program does when nobody says otherwise.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from traindx_tools.on_code.values import Bag, Const, Operation, Tensor, Thing, Value, number, truth

_DEEP = 12
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.truediv, "//": operator.floordiv}


def amount(value: Value | None, left: int = _DEEP) -> float | None:
    """The number that a value is, through lengths that are known."""
    if not isinstance(value, Operation) or not left:
        return number(value)
    if value.op.startswith("len"):
        found = passes(value.operands[0], left - 1)
        return rows(value.operands[0], left - 1) if found is None else found
    known = [amount(o, left - 1) for o in value.operands]
    if value.op == "round" and len(known) == 1 and known[0] is not None:
        return float(math.ceil(known[0]) if value.detail == "ceil" else math.floor(known[0]))
    one, other = known if len(known) == 2 else (None, None)
    compute = _ARITHMETIC.get(value.op)
    if compute is None or one is None or other is None or (value.op in ("/", "//") and other == 0):
        return None
    return compute(one, other)


def rows(value: Value | None, left: int = _DEEP) -> float | None:
    """The length of a data set, an array or a list."""
    if isinstance(value, Tensor):
        shape = value.shape
        return float(shape.dims[0]) if shape is not None and shape.exact and shape.dims and shape.dims[0] else None
    if isinstance(value, Bag):
        return float(len(value.items)) if not value.open else amount(value.size, left - 1) if left else None
    if not isinstance(value, Thing) or not value.args or not left:
        return None
    if value.short in ("TensorDataset", "enumerate"):
        return rows(value.args[0], left - 1)
    if value.short == "Subset" and len(value.args) == 2:
        return rows(value.args[1], left - 1)
    return amount(value.state.get("count"), left - 1) if value.type == "range" else None


def passes(loader: Value | None, left: int = _DEEP) -> float | None:
    """How many batches one pass over a loader gives."""
    if not isinstance(loader, Thing) or loader.short != "DataLoader":
        return None
    data, size = loader.argument(0, "dataset"), amount(loader.argument(1, "batch_size") or Const(1), left)
    count = rows(data, left)
    if count is None or not size or {"sampler", "batch_sampler"} & set(loader.kwargs):
        return None
    full = truth(loader.kwargs.get("drop_last")) is True
    return float(math.floor(count / size) if full else math.ceil(count / size))


def turns(subject: Value | None, count: Value | None) -> float | None:
    """How often a loop over this runs."""
    if count is not None:
        return amount(count)
    if isinstance(subject, Thing) and subject.type == "enumerate" and subject.args:
        subject = subject.args[0]
    found = passes(subject)
    return rows(subject) if found is None and isinstance(subject, (Bag, Tensor, Thing)) else found


def whole_data(dataset: Value | None) -> Value | None:
    """The data set that a part was cut from."""
    for _ in range(6):
        if not isinstance(dataset, Thing) or dataset.short != "Subset" or not dataset.args:
            break
        dataset = dataset.args[0]
    return dataset

"""The modules and parameters inside a model, by the paths of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.on_code.values import LAYERS, Bag, Instance, Table, Thing, Value

DEEPEST, MOST_PARTS = 8, 400

LEARNS = ("Linear", "LazyLinear", "Bilinear", "Conv", "LazyConv", "Embedding", "LSTM", "GRU", "RNN", "Transformer",
          "MultiheadAttention", "Parameter")  # fmt: skip
"""Classes of torch.nn with weights, by how their names begin."""


def learns(part: Value) -> bool:
    """Whether a module is a layer of torch.nn with weights."""
    return isinstance(part, Thing) and part.type.startswith("torch.nn.") and part.short.startswith(LEARNS)


def named_parts(whole: Instance | Thing) -> list[tuple[str, Value]]:
    """(path, module or parameter) of everything inside a model that is known, the outer ones first."""
    found: list[tuple[str, Value]] = []
    seen: set[int] = {id(whole)}
    queue: list[tuple[str, Value]] = list(_children(whole))
    for path, value in queue:
        if id(value) in seen or path.count(".") > DEEPEST or len(found) >= MOST_PARTS:
            continue
        if not (value.klass.info.is_module if isinstance(value, Instance) else
                isinstance(value, Thing) and value.type.startswith("torch.nn.")):
            continue
        seen.add(id(value))
        found.append((path, value))
        queue += [(f"{path}.{name}", child) for name, child in _children(value)]
    return found


def _children(layer: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(layer, Instance):
        for name, child in layer.attrs.items():  # what a Sequential is built of has its own numbers as names
            yield from _children(child) if name == LAYERS else ((name, child),)
        return
    if not isinstance(layer, Thing):
        return
    given: Sequence[Value] = layer.args
    if len(given) == 1 and isinstance(given[0], Table):
        yield from ((str(k), v) for k, v in given[0].items.items())
        return
    if len(given) == 1 and isinstance(given[0], Bag):
        given = given[0].items
    yield from ((str(i), v) for i, v in enumerate(given) if isinstance(v, (Thing, Instance)))
    yield from layer.state.get("attrs", {}).items()

"""What iterating over a value gives: batches of a loader, rows of a tensor, items of a list."""

from __future__ import annotations

import ast
from dataclasses import replace

from traindx_tools.on_code import axes, containers
from traindx_tools.on_code.axes import place
from traindx_tools.on_code.axis_calls import given_to
from traindx_tools.on_code.call import Caller
from traindx_tools.on_code.descriptions import Axes, Axis, Rest
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Operation,
    Parameters,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
)


class Iteration(Caller):
    """Adds `element` to the interpreter."""

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """One item standing for all."""
        if isinstance(value, Bag):
            return containers.joined(value.items) if value.items else UNKNOWN
        if isinstance(value, Tensor):
            return replace(value, axes=_row(value.axes))
        if isinstance(value, Thing):
            return self._of_thing(value, node, frame)
        if isinstance(value, Instance):
            return self._of_instance(value, node, frame)
        if isinstance(value, Parameters):
            value.spend(self.site(node, frame), not any(b.kind == "branch" for b in self.blocks))
            return self._parameter(value, node, frame)
        if isinstance(value, Table):
            keys = list(value.items)
            return Const(keys[0]) if len(keys) == 1 and not value.open else Symbol("key", "key")
        if isinstance(value, Symbol):
            return given_to(value.child("iteration", "item"), _row(value.axes))
        return UNKNOWN

    def _of_thing(self, value: Thing, node: ast.AST, frame: Frame) -> Value:
        if "element" in value.state:
            return value.state["element"]  # type: ignore[no-any-return]
        if value.type == "range":
            return Symbol("index", "index", value, 1)
        held = containers.members(value)
        if held is not None:
            return containers.joined(held.items)
        if value.short == "DataLoader":
            return self._batch(value, node, frame)
        if value.short in ("TensorDataset", "Subset", "ConcatDataset"):
            return self.sample(value, node, frame)
        return Symbol("iteration", "item", value, 1)

    def _of_instance(self, value: Instance, node: ast.AST, frame: Frame) -> Value:
        info = value.klass.info
        method = info.method("__iter__")
        if method is not None:
            made = self.call(self.bound(method, value), [], {}, node, frame)
            return (value if made is value else self.element(made, node, frame) if not isinstance(made, Instance)
                else UNKNOWN)
        method = info.method("__getitem__")
        if method is not None:
            return self.call(self.bound(method, value), [Symbol("index", "index")], {}, node, frame)
        return Symbol("iteration", "item", value, 1)

    def _parameter(self, value: Parameters, node: ast.AST, frame: Frame) -> Value:
        one = Thing("torch.nn.Parameter", (), {}, self.site(node, frame), node, {"of": value})
        return Bag("tuple", [Symbol("key", "name"), one]) if value.named else one

    # data sets

    def _batch(self, loader: Thing, node: ast.AST, frame: Frame) -> Value:
        dataset = loader.argument(0, "dataset")
        if dataset is None:
            return Symbol("iteration", "batch", loader, 1)
        sample = self.sample(dataset, node, frame)
        collate = loader.kwargs.get("collate_fn")
        if isinstance(collate, Function):
            return _marked(self.call(collate, [Bag("list", [sample], open=True)], {}, node, frame))
        if collate is not None and collate != Const(None):
            return Symbol("iteration", "collated", loader, 1)
        if loader.kwargs.get("batch_size") == Const(None):
            return sample
        return _marked(_batched(sample, Axis(f"batch of {id(loader)}", "batch")))

    def sample(self, dataset: Value, node: ast.AST, frame: Frame) -> Value:
        """One item of a data set."""
        if isinstance(dataset, Thing) and dataset.short == "TensorDataset" and "*" not in dataset.kwargs:
            return Bag("tuple", [self.element(t, node, frame) for t in dataset.args])
        if isinstance(dataset, Thing) and dataset.short in ("Subset", "ConcatDataset") and dataset.args:
            inner = dataset.args[0]
            return self.sample(containers.joined(inner.items) if isinstance(inner, Bag) else inner, node, frame)
        if isinstance(dataset, Instance):
            info = dataset.klass.info
            method = info.method("__getitem__") or info.method("__iter__")
            if method is None:
                return UNKNOWN
            made = self.call(self.bound(method, dataset), [Symbol("index", "index")]
                if method.info.name == "__getitem__" else [], {}, node, frame)
            return made if method.info.name == "__getitem__" else self.element(made, node, frame)
        if isinstance(dataset, (Bag, Tensor)):
            return self.element(dataset, node, frame)
        return Symbol("iteration", "sample", dataset if isinstance(dataset, (Symbol, Thing)) else None, 1)


def _batched(sample: Value, rows: Axis) -> Value:
    """What torch's default collation makes of many samples."""
    known = axes.of(sample)
    many = Axes((rows, *(known.dims if known is not None else (Rest(f"sample {id(sample)}"),))))
    if isinstance(sample, Tensor):
        return replace(sample, axes=many)
    if isinstance(sample, Bag):
        return Bag("tuple", [_batched(v, rows) for v in sample.items], sample.open)
    if isinstance(sample, Table):
        return Table({k: _batched(v, rows) for k, v in sample.items.items()}, sample.open,
                     _batched(sample.rest, rows) if sample.rest is not None else None)
    if isinstance(sample, (Const, Operation)) and not (isinstance(sample, Const) and isinstance(sample.value, str)):
        return Tensor(grad=False, axes=Axes((rows,)))
    return given_to(sample.child("iteration", "batch"), many) if isinstance(sample, Symbol) else UNKNOWN


def _row(axes: Axes | None) -> Axes | None:
    """Without the axis that is gone through."""
    found = place(axes, 0)
    return Axes(tuple(found[0][1:])) if found is not None else None


def _marked(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.tagged("batch")
    if isinstance(value, Bag):
        return Bag(value.kind, [_marked(v) for v in value.items], value.open)
    if isinstance(value, Table):
        rest = _marked(value.rest) if value.rest is not None else None
        return Table({k: _marked(v) for k, v in value.items.items()}, value.open, rest)
    return value

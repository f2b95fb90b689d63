"""The layers inside a model by the paths of their names, and what calling one of torch.nn gives: shape, kind, graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code import arrays
from traindx_tools.on_code.tensors import lineage
from traindx_tools.on_code.values import (
    LAYERS,
    Bag,
    Instance,
    Operation,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    integer,
    parts,
    truth,
)

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


_AS_FUNCTION: Mapping[str, str] = table("names.toml")["layer_functions"]
"""Layers without parameters and the function that each applies."""
_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "SyncBatchNorm")
_SEQUENTIAL = ("LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoder")
"""Layers whose output has an axis of steps besides that of samples."""
_TUPLES = {"LSTM": 2, "GRU": 2, "RNN": 2, "MultiheadAttention": 2}
_WITH_PARAMETERS = ("Linear", "LazyLinear", "Bilinear", "Conv", "Embedding", "BatchNorm", "LayerNorm", "LSTM", "GRU",
                    "RNN", "Transformer", "Multihead", "Sequential", "Parameter", "ModuleList", "ModuleDict")
MODE_DEPENDENT = ("Dropout", "BatchNorm", "AlphaDropout", "InstanceNorm", "SyncBatchNorm", "FeatureAlphaDropout")
"""Layers that behave otherwise in eval mode (InstanceNorm where it tracks statistics)."""


def with_parameters(short: str) -> bool:
    """Whether a layer of torch.nn of this name has, or may hold, parameters."""
    return short.startswith(_WITH_PARAMETERS)


def output(layer: Thing, args: list[Value], site: Site, grad: bool | None) -> Value | None:
    """The output of a layer of torch.nn or flax, or None where the type says nothing."""
    if layer.type.startswith(("flax.linen.", "flax.nnx.")):
        return _flax(layer, args, site)
    if layer.type in ("equinox.nn.MLP", "equinox.nn.Linear"):
        if integer(layer.argument(1, "out_size" if layer.short == "MLP" else "out_features")) is None:
            return None
        return Tensor(kind="linear", kind_site=site, site=site).tagged("layer")
    if not layer.type.startswith("torch.nn."):
        return None
    given = args[0] if args else None
    x = given if isinstance(given, Tensor) else Tensor(grad=None if isinstance(given, (Symbol, Operation)) else False)
    attached = _attached(layer, x, grad)
    short = layer.short
    if short in _AS_FUNCTION:
        made = arrays.transferred(_AS_FUNCTION[short], x, (), {}, site, grad)
        return replace(made, tags=made.tags | (x.tags & {"layer", *arrays.AXES}))
    if short == "Flatten":
        return arrays.transferred("flatten", x, _flatten_args(layer), {}, site, grad)
    axis = _axis(layer, x, _from_loader(given))
    axes = (frozenset({axis}) if axis else frozenset()) | (x.tags & {"sequence"})
    if axis and short.startswith(_SEQUENTIAL) and (x.shape is None or x.shape.rank in (None, 3)):
        axes |= {"sequence"}
    base = Tensor(tags=axes, grad=attached, dtype=x.dtype if x.dtype not in ("int", "bool") else None, site=site,
        models=x.models | {id(layer)}, parents=lineage(x) if attached else frozenset())
    if short in ("Linear", "LazyLinear", "Bilinear"):
        return replace(base, kind="linear", kind_site=site, tags=axes | {"layer"})
    if short.startswith("Conv"):
        return replace(base, kind="linear", kind_site=site, tags=axes | {"layer"})
    if short in _TUPLES:
        return Bag("tuple", [base, Symbol("state", short)])
    return base


def _flax(layer: Thing, args: list[Value], site: Site) -> Value | None:
    if layer.short in ("Dense", "DenseGeneral", "Linear"):
        return Tensor(kind="linear", kind_site=site, site=site).tagged("layer")
    if layer.short in ("Conv", "ConvTranspose", "Embed", "LayerNorm", "BatchNorm", "GroupNorm", "RMSNorm", "Dropout"):
        return Tensor(site=site)
    return None


_AXES_MOVED = frozenset({"permute", "transpose", "t", "T", "mT", "swapaxes", "swapdims", "movedim", "moveaxis"})


def _from_loader(value: Value | None) -> bool:
    """Whether a value is a batch that torch's default collation put together, with its axes where they were."""
    symbols = [p for p in parts(value) if isinstance(p, Symbol)] if isinstance(value, Symbol) else []
    moved = any(p.role in ("attribute", "call") and p.name.partition("@")[0] in _AXES_MOVED for p in symbols)
    return not moved and any(p.role == "iteration" and p.name == "batch" for p in symbols)


def _axis(layer: Thing, x: Tensor, from_loader: bool) -> str | None:
    """What stands on axis 0 of a layer's output, where the layer or its input says so."""
    short = layer.short
    recurrent = short in ("LSTM", "GRU", "RNN")
    if recurrent or short in ("MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer"):
        owner = layer.args[0] if short == "TransformerEncoder" and layer.args else layer
        first = owner.argument(4 if recurrent else 99, "batch_first") if isinstance(owner, Thing) else None
        if truth(first) is True:
            return "batch_first"
        return "time_first" if recurrent and first is None and layer.args else None
    if short.startswith("Conv") or (short == "Embedding" and ("batch" in x.tags or from_loader)):
        return "batch_first"
    return next((a for a in ("batch_first", "time_first") if a in x.tags), None)


def _attached(layer: Thing, x: Tensor, grad: bool | None) -> bool | None:
    if grad is False:
        return False
    if layer.state.get("frozen"):
        return x.grad
    without = layer.short in ("Flatten", "Identity") or layer.short.startswith(("Dropout", "MaxPool", "AvgPool",
        "Adaptive", "Upsample", "PixelShuffle", "ZeroPad"))
    return x.grad if without else (True if grad else None)


def _flatten_args(layer: Thing) -> tuple[Value, ...]:
    from traindx_tools.on_code.values import Const

    return layer.args if layer.args else (Const(1), Const(-1))

"""How many parameters the layers of a model hold, counted from their constructors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from traindx_tools.on_code import containers
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Instance,
    Table,
    Tensor,
    Thing,
    Value,
    integer,
    number,
    truth,
    unwrap,
    whole,
)
from traindx_tools.program.parts import Sized, SizedModel

MAX_PARTS = 2000
_Count = Callable[..., "int | None"]


def sized_models(project: Project) -> Iterator[SizedModel]:
    """Each outermost model of which the size of every layer is known."""
    inner = {id(a) for owner in project.instances for a in owner.attrs.values() if a is not owner}
    for model in project.instances:
        if model.klass.info.is_module and id(model) not in inner:
            found: list[Sized | None] = []
            for part in _parts(project, unwrap(model), "", 1, set()):
                found.append(part)
                if part is None or len(found) > MAX_PARTS:
                    break
            if found and None not in found and len(found) <= MAX_PARTS:
                yield SizedModel(model.klass.info.name, tuple(p for p in found if p is not None))


def _parts(project: Project, value: Value, path: str, times: int, seen: set[int]) -> Iterator[Sized | None]:
    """The layers with parameters, None for one whose size is not known."""
    if not isinstance(value, (Instance, Thing)) or id(value) in seen:
        return  # a plain list: torch does not register what is in it
    seen.add(id(value))
    inner: list[tuple[str, Value]] = []
    if isinstance(value, Instance) and value.klass.info.is_module:
        if value.klass.info.derives("PreTrainedModel"):
            yield None
        inner = list(value.attrs.items())
    elif isinstance(value, Thing) and value.short in ("Sequential", "ModuleList", "ModuleDict"):
        layers = containers.members(value)
        first = value.args[0] if value.args else None
        if layers is None and isinstance(first, Table) and not first.open:
            layers = Bag("list", list(first.items.values()))
        count = whole(number(layers.size)) if layers is not None and layers.open and len(layers.items) == 1 else 1
        if layers is None or count is None or (layers.open and len(layers.items) != 1):
            yield None
            return
        inner, times = [(str(i), v) for i, v in enumerate(layers.items)], times * count
    elif isinstance(value, Thing) and value.type.startswith("torch.nn."):
        yield from _layer(project, value, path, times)
    for name, part in inner:
        yield from _parts(project, part, f"{path}.{name}".lstrip("."), times, seen)


def _layer(project: Project, layer: Thing, path: str, times: int) -> Iterator[Sized | None]:
    row = next((r for r in _COUNTS if layer.short.startswith(r[0])), None)
    if row is None or "weight" in layer.state.get("attrs", {}):
        return  # it has none, or is tied to another layer's weight
    sizes = [integer(layer.argument(*place)) for place in row[1]]
    own = None if None in sizes else row[2](layer, *sizes)
    kind = "Embedding" if layer.short.startswith("Embedding") else layer.short
    yield None if own is None else Sized(path, kind, project.spot(layer.site), tuple(s or 0 for s in sizes),
                                         own * times)


def _bias(layer: Thing, position: int = 99) -> bool:
    return truth(layer.argument(position, "bias")) is not False


def _convolution(layer: Thing, given: int, made: int) -> int | None:
    kernel, groups = layer.argument(2, "kernel_size"), integer(layer.kwargs.get("groups", Const(1)))
    rank = next((int(c) for c in layer.short if c.isdigit()), 2)
    size = [integer(k) for k in kernel.items] if isinstance(kernel, Bag) else [integer(kernel)] * rank
    if None in size or not groups:
        return None
    return given * made // groups * prod(s or 1 for s in size) + made * _bias(layer)


def _recurrent(layer: Thing, width: int, hidden: int) -> int | None:
    told = layer.argument(2, "num_layers")
    layers = 1 if told is None else integer(told)
    gates, ways = {"LSTM": 4, "GRU": 3}.get(layer.short, 1), 2 if truth(layer.kwargs.get("bidirectional")) else 1
    return None if layers is None else sum(
        ways * gates * (hidden * ((width if i == 0 else hidden * ways) + hidden) + 2 * hidden) for i in range(layers))


def _block(layer: Thing, d: int) -> int | None:
    """A layer of a transformer, or several of them."""
    if not layer.short.endswith("Layer"):
        inner = layer.argument(0, "encoder_layer") or layer.argument(0, "decoder_layer")
        own = _block(inner, integer(inner.argument(0, "d_model")) or 0) if isinstance(inner, Thing) else None
        return None if own is None else own * d
    attentions, told = 2 if "Decoder" in layer.short else 1, layer.argument(2, "dim_feedforward")
    wide = 2048 if told is None else integer(told)
    return None if wide is None or not d else attentions * 4 * d * (d + 1) + 2 * d * wide + wide + d + 2 * d * (
        attentions + 1)


def _parameter(layer: Thing) -> int | None:
    shape = layer.args[0].shape if layer.args and isinstance(layer.args[0], Tensor) else None
    return prod(d or 0 for d in shape.dims) if shape is not None and shape.exact and None not in shape.dims else None


_COUNTS: tuple[tuple[str, tuple[tuple[int, str], ...], _Count], ...] = (
    ("Linear", ((0, "in_features"), (1, "out_features")), lambda layer, a, b: a * b + b * _bias(layer, 2)),
    ("Embedding", ((0, "num_embeddings"), (1, "embedding_dim")), lambda layer, a, b: a * b),
    ("Conv", ((0, "in_channels"), (1, "out_channels")), _convolution),
    ("LayerNorm", ((0, "normalized_shape"),), lambda layer, a: 2 * a),
    ("RMSNorm", ((0, "normalized_shape"),), lambda layer, a: 2 * a),
    ("BatchNorm", ((0, "num_features"),), lambda layer, a: 2 * a),
    ("GroupNorm", ((1, "num_channels"),), lambda layer, a: 2 * a),
    *((name, ((0, "input_size"), (1, "hidden_size")), _recurrent) for name in ("LSTM", "GRU", "RNN")),
    ("MultiheadAttention", ((0, "embed_dim"),), lambda layer, a: 4 * a * (a + 1)),
    ("TransformerEncoderLayer", ((0, "d_model"),), _block),
    ("TransformerDecoderLayer", ((0, "d_model"),), _block),
    ("TransformerEncoder", ((1, "num_layers"),), _block),
    ("TransformerDecoder", ((1, "num_layers"),), _block),
    ("Parameter", (), _parameter),
)
"""Layers with parameters by the beginning of their name, the numbers that they are made with, and the count; all others
hold none."""

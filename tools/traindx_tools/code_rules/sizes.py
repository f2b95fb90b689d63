"""How many parameters the layers of a model hold, counted from their constructors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from traindx_tools.on_code import containers
from traindx_tools.on_code.shapes import literal
from traindx_tools.on_code.values import (
    Bag,
    Const,
    Instance,
    Site,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    truth,
    unwrap,
    whole,
)

MAX_PARTS = 2000


@dataclass(frozen=True)
class Part:
    """Layers made at one place: what they are called in the model, how many parameters they hold together."""

    path: str
    kind: str
    site: Site
    sizes: str
    parameters: int


def parts_of(model: Value) -> list[Part] | None:
    """The layers of a model with their sizes; None where the size of one that holds parameters is not known."""
    found: list[Part] = []
    for part in _parts(unwrap(model), "", 1, set()):
        if part is None or len(found) > MAX_PARTS:
            return None
        found.append(part)
    return found


def _parts(value: Value, path: str, times: int, seen: set[int]) -> Iterator[Part | None]:
    if isinstance(value, (Instance, Thing, Bag, Table)):
        if id(value) in seen:
            return
        seen.add(id(value))
    if isinstance(value, Instance) and value.klass.info.is_module:
        yield from _of_instance(value, path, times, seen)
    elif isinstance(value, Thing) and value.short in ("Sequential", "ModuleList", "ModuleDict"):
        yield from _of_container(value, path, times, seen)
    elif isinstance(value, Thing) and value.type.startswith("torch.nn."):
        made = _layer(value, path, times)
        if made != _NOTHING:
            yield made


def _of_instance(value: Instance, path: str, times: int, seen: set[int]) -> Iterator[Part | None]:
    if value.klass.info.derives("PreTrainedModel"):
        yield None
    for name, attribute in value.attrs.items():
        if isinstance(attribute, (Bag, Table)):
            continue  # a plain list: torch does not register what is in it
        yield from _parts(attribute, f"{path}.{name}".lstrip("."), times, seen)


def _of_container(value: Thing, path: str, times: int, seen: set[int]) -> Iterator[Part | None]:
    layers = containers.members(value)
    if layers is None:
        first = value.args[0] if value.args else None
        layers = Bag("list", list(first.items.values())) if isinstance(first, Table) and not first.open else None
    if layers is None:
        yield None
        return
    if layers.open:
        count = whole(number(layers.size))
        if count is None or len(layers.items) != 1:
            yield None
            return
        times *= count
    for i, item in enumerate(layers.items):
        yield from _parts(item, f"{path}.{i}".lstrip("."), times, seen)


_NOTHING = Part("", "", Site("", 0), "", 0)
_Count = Callable[[Thing], "tuple[int, str] | None"]


def _layer(layer: Thing, path: str, times: int) -> Part | None:
    counted = next((c for prefix, c in _COUNTS if layer.short.startswith(prefix)), None)
    if counted is None:
        return _NOTHING
    found = counted(layer)
    if found is None:
        return None
    own, sizes = found
    if "weight" in layer.state.get("attrs", {}):
        return _NOTHING  # tied to another layer's weight
    return Part(path, _kind(layer.short), layer.site, sizes, own * times)


def _kind(short: str) -> str:
    return "Embedding" if short.startswith("Embedding") else short


def _ints(layer: Thing, *names: tuple[int, str]) -> list[int] | None:
    found = [literal(layer.argument(i, n)) for i, n in names]
    return None if None in found else [f for f in found if f is not None]


def _bias(layer: Thing, position: int = 99) -> bool:
    return truth(layer.argument(position, "bias")) is not False


def _linear(layer: Thing) -> tuple[int, str] | None:
    got = _ints(layer, (0, "in_features"), (1, "out_features"))
    return None if got is None else (got[0] * got[1] + got[1] * _bias(layer, 2), f"{got[0]} x {got[1]}")


def _embedding(layer: Thing) -> tuple[int, str] | None:
    got = _ints(layer, (0, "num_embeddings"), (1, "embedding_dim"))
    return None if got is None else (got[0] * got[1], f"{got[0]} x {got[1]}")


def _convolution(layer: Thing) -> tuple[int, str] | None:
    got = _ints(layer, (0, "in_channels"), (1, "out_channels"))
    rank = next((int(c) for c in layer.short if c.isdigit()), 2)
    kernel = layer.argument(2, "kernel_size")
    size = [literal(k) for k in kernel.items] if isinstance(kernel, Bag) else [literal(kernel)] * rank
    groups = literal(layer.kwargs.get("groups", Const(1)))
    if got is None or None in size or not groups:
        return None
    return got[0] * got[1] // groups * prod(s or 1 for s in size) + got[1] * _bias(layer), f"{got[0]} x {got[1]}"


def _norm(layer: Thing) -> tuple[int, str] | None:
    first = layer.args[0] if layer.args else layer.kwargs.get("normalized_shape") or layer.kwargs.get("num_features")
    size = literal(first)
    if layer.short.startswith("GroupNorm"):
        size = literal(layer.argument(1, "num_channels"))
    return None if size is None else (2 * size, str(size))


def _recurrent(layer: Thing) -> tuple[int, str] | None:
    got = _ints(layer, (0, "input_size"), (1, "hidden_size"))
    layers = literal(layer.argument(2, "num_layers")) if layer.argument(2, "num_layers") is not None else 1
    if got is None or layers is None:
        return None
    gates = {"LSTM": 4, "GRU": 3}.get(layer.short, 1)
    ways = 2 if truth(layer.kwargs.get("bidirectional")) else 1
    width, hidden = got
    total = sum(
        ways * gates * (hidden * ((width if i == 0 else hidden * ways) + hidden) + 2 * hidden) for i in range(layers)
    )
    return total, f"{width} x {hidden}, {layers} layers"


def _attention(layer: Thing) -> tuple[int, str] | None:
    got = _ints(layer, (0, "embed_dim"))
    return None if got is None else (4 * got[0] * (got[0] + 1), str(got[0]))


def _block(layer: Thing, attentions: int) -> int | None:
    got = _ints(layer, (0, "d_model"))
    wide = layer.argument(2, "dim_feedforward")
    inner = 2048 if wide is None else literal(wide)
    if got is None or inner is None:
        return None
    d = got[0]
    return attentions * 4 * d * (d + 1) + 2 * d * inner + inner + d + 2 * d * (attentions + 1)


def _encoder(layer: Thing) -> tuple[int, str] | None:
    attentions = 2 if "Decoder" in layer.short else 1
    if layer.short.endswith("Layer"):
        own = _block(layer, attentions)
        return None if own is None else (own, str(literal(layer.argument(0, "d_model"))))
    inner, count = layer.argument(0, "encoder_layer"), literal(layer.argument(1, "num_layers"))
    own = _block(inner, attentions) if isinstance(inner, Thing) else None
    return None if own is None or count is None else (own * count, f"{count} layers")


def _parameter(layer: Thing) -> tuple[int, str] | None:
    first = layer.args[0] if layer.args else None
    if not isinstance(first, Tensor) or first.shape is None or not first.shape.exact or None in first.shape.dims:
        return None
    return prod(d or 0 for d in first.shape.dims), str(first.shape)


_COUNTS: tuple[tuple[str, _Count], ...] = (
    ("Linear", _linear),
    ("EmbeddingBag", _embedding),
    ("Embedding", _embedding),
    ("ConvTranspose", _convolution),
    ("Conv", _convolution),
    ("LayerNorm", _norm),
    ("RMSNorm", _norm),
    ("BatchNorm", _norm),
    ("GroupNorm", _norm),
    ("LSTM", _recurrent),
    ("GRU", _recurrent),
    ("RNN", _recurrent),
    ("MultiheadAttention", _attention),
    ("TransformerEncoder", _encoder),
    ("TransformerDecoder", _encoder),
    ("Parameter", _parameter),
)
"""Layers with parameters by the beginning of their name; all others hold none."""

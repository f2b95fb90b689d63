"""Dense and convolutional layers with their biases in the order in which inputs pass them, of any format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats

Array = NDArray[np.float64]
MOST_BYTES = 2**26
"""Of one weight that is loaded."""
_WEIGHT = re.compile(r"(?P<head>(?:.*[./_])?)(?P<word>weights?|kernel|[Ww])(?P<tail>_?\d*)")
_BIASES = {"w": ("b",), "W": ("b", "B")}
_NUMBER = re.compile(r"\d+")
_OUTPUTS_LAST = frozenset({"hdf5", "keras", "msgpack", "orbax"})
_VECTORS = re.compile(r"(?i)(?:^|[._/])(?:weight|bias|scale|gamma|beta|mean|var|running_\w+|moving_\w+)$")


@dataclass(frozen=True, eq=False)
class Layer:
    """A weight and its bias. `last`: whether the last axis is that of the outputs, as in Keras and flax."""

    weight: Stats
    bias: Stats
    last: bool
    normed: bool = False
    """Whether a normalisation of its size follows, or may follow."""

    @property
    def outputs(self) -> int:
        return self.bias.size

    @property
    def inputs(self) -> int:
        """Channels or values that come in."""
        shape = self.weight.tensor.shape
        return shape[-2] if self.last else shape[1]

    @property
    def dense(self) -> bool:
        return len(self.weight.tensor.shape) == 2

    @cached_property
    def matrix(self) -> Array:
        """(outputs, inputs, places of the kernel)."""
        values = self.weight.tensor.load(MOST_BYTES).astype(np.float64)
        if self.last:
            values = np.moveaxis(values.reshape(-1, *values.shape[-2:]), 0, -1).swapaxes(0, 1)
        return values.reshape(self.outputs, self.inputs, -1)

    @cached_property
    def shifts(self) -> Array:
        """The biases."""
        return self.bias.tensor.load().astype(np.float64).reshape(-1)


def layers_of(seen: Seen, smallest: int = 2) -> list[Layer]:
    """The layers of a part whose bias is as long as one end of their weight; recurrent ones are none.

    `smallest`: outputs of a layer, at least.
    """
    pairs = [(s, b) for s in seen.floats if _is_weight(s) and (b := _bias(seen, s, smallest)) is not None
             and b.size in (s.tensor.shape[0], s.tensor.shape[-1])]
    sides = {id(s): _side(seen, s, b) for s, b in pairs}
    usual = Counter(side for side in sides.values() if side is not None).most_common(1)
    found = [Layer(s, b, side) for s, b in pairs
             if (side := sides[id(s)] if sides[id(s)] is not None or not usual else usual[0][0]) is not None]
    return _with_norms(seen, _in_order(found))


def _is_weight(stats: Stats) -> bool:
    shape = stats.tensor.shape
    return (2 <= len(shape) <= 5 and min(shape) >= 1 and stats.tensor.nbytes <= MOST_BYTES
            and stats.finite == stats.size and max(shape) > 1)


def _bias(seen: Seen, stats: Stats, smallest: int) -> Stats | None:
    """The vector that is called as the weight is but for one word; None beside a second weight, as of recurrences."""
    found = _WEIGHT.fullmatch(stats.name)
    if found is None:
        return None
    head, word, tail = found["head"], found["word"], found["tail"]
    if word == "kernel" and f"{head}kernel_1" in seen.part.tensors:
        return None
    for called in _BIASES.get(word, ("bias", "biases")):
        bias = seen.stats.get(f"{head}{called}{tail}")
        if bias is not None and bias.tensor.floating and bias.size >= smallest and bias.finite == bias.size and (
                max(bias.tensor.shape, default=1) == bias.size):
            return bias
    return None


def _side(seen: Seen, stats: Stats, bias: Stats) -> bool | None:
    """Whether outputs are the last axis; None where both ends are as long and neither name nor format tells."""
    shape = stats.tensor.shape
    ends = shape[0] == bias.size, shape[-1] == bias.size
    if ends == (True, True):
        return (True if "kernel" in stats.name or seen.checkpoint.format in _OUTPUTS_LAST
                else False if "weight" in stats.name else None)
    return ends[1]


def _in_order(found: Sequence[Layer]) -> list[Layer]:
    """The file's order; neighbours that differ in one number by it (`Dense_10` is sorted before `Dense_2`)."""
    out: list[Layer] = []
    for _, same in groupby(found, key=lambda one: _NUMBER.sub("*", one.weight.name)):
        out += sorted(same, key=lambda one: [int(n) for n in _NUMBER.findall(one.weight.name)])
    return out


def _with_norms(seen: Seen, layers: Sequence[Layer]) -> list[Layer]:
    """Each norm belongs to the layer right before it; one that stands elsewhere may belong to any of its size."""
    own, free = _norms(seen, {one.weight.name: one for one in layers})
    return [Layer(one.weight, one.bias, one.last, one.weight.name in own or one.outputs in free) for one in layers]


def _norms(seen: Seen, by_name: Mapping[str, Layer]) -> tuple[set[str], set[int]]:
    biases = {one.bias.name: one for one in by_name.values()}
    own: set[str] = set()
    free: set[int] = set()
    before: Layer | None = None
    for module, size in _runs(seen, by_name, biases):
        if isinstance(module, Layer):
            before = module
        elif before is not None and before.outputs == size:
            own.add(before.weight.name)
        else:
            free.add(size)
    return own, free


def _runs(seen: Seen, by_name: Mapping[str, Layer], biases: Mapping[str, Layer]) -> Iterator[tuple[Layer | str, int]]:
    """Layers and norms as the file has them, each norm once."""
    told: set[str] = set()
    for name, tensor in seen.part.tensors.items():
        module = re.split(r"[./](?=[^./]*$)", name)[0]
        if (layer := by_name.get(name) or biases.get(name)) is not None:
            yield layer, layer.outputs
        elif tensor.floating and len(tensor.shape) == 1 and tensor.size > 1 and module not in told and _VECTORS.search(
                name):
            told.add(module)
            yield module, tensor.size

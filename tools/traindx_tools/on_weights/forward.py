"""A network of dense layers, with batch normalisation or without, computed again on rows of data.

What a file does not say (the activation, whether a normalisation stands before it or behind) is tried in all usual
ways; the labels beside the rows say which of them the network was trained as.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.dense_chain import Layer, layers_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor

Array = NDArray[np.float64]
MOST_VALUES = 2**20
"""Weights of a network that is computed: a pass over a thousand rows takes a tenth of a second."""
_EPS = 1e-5
_NUMBER = re.compile(r"\d+")
_SCALES, _SHIFTS = ("weight", "scale", "gamma"), ("bias", "beta", "offset")
_MEANS = {"running_var": "running_mean", "var": "mean", "variance": "mean", "moving_variance": "moving_mean"}
_COUNTS = re.compile(r"(?i)(?:num_batches_tracked|count|step|seed\w*)$")

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-np.clip(x, -60, 60))),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * np.clip(x, -1e3, 1e3) ** 3))),
    "leaky relu": lambda x: np.maximum(x, 0.01 * x),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}
RECTIFIERS = frozenset({"relu", "silu", "gelu"})


@dataclass(frozen=True, eq=False)
class Norm:
    """A batch normalisation."""

    module: str
    mean: Array
    variance: Array
    scale: Array
    shift: Array

    def __call__(self, x: Array, own: bool) -> Array:
        """Normalised by the stored statistics, or by those of these rows (`own`)."""
        mean, variance = (x.mean(axis=0), x.var(axis=0)) if own else (self.mean, self.variance)
        return (x - mean) / np.sqrt(np.maximum(variance, 0) + _EPS) * self.scale + self.shift


@dataclass(frozen=True)
class Way:
    """One way of computing the network. `own`: norms that take the statistics of the rows, by their place."""

    activation: str
    behind: bool = False
    """Whether norms stand behind the activation."""
    own: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Pass:
    """What came out, what entered each activation, and each norm, by its place."""

    out: Array
    before: Sequence[Array]
    normed: Mapping[int, Array]


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in order; `norms`: that of the input at 0, if there is one, and those of hidden layers at 1 and on."""

    layers: Sequence[Layer]
    norms: Mapping[int, Norm]

    @property
    def inputs(self) -> int:
        return self.layers[0].inputs

    @property
    def outputs(self) -> int:
        return self.layers[-1].outputs

    def ways(self, own: frozenset[int] = frozenset()) -> Iterator[Way]:
        """All usual ways."""
        for activation in ACTIVATIONS:
            for behind in (False, True) if any(self.norms) else (False,):
                yield Way(activation, behind, own)

    def __call__(self, x: Array, way: Way) -> Pass:
        before: list[Array] = []
        normed: dict[int, Array] = {}

        def norm(at: int, values: Array) -> Array:
            if at not in self.norms:
                return values
            normed[at] = values
            return self.norms[at](values, at in way.own)

        with np.errstate(all="ignore"):
            x = norm(0, x)
            for at, layer in enumerate(self.layers, 1):
                x = x @ layer.matrix[:, :, 0].T + layer.shifts
                if at == len(self.layers):
                    break
                x = x if way.behind else norm(at, x)
                before.append(x)
                x = ACTIVATIONS[way.activation](x)
                x = norm(at, x) if way.behind else x
        return Pass(x, before, normed)


def network_of(seen: Seen) -> Network | None:
    """The network, where the weights of a file are one chain of dense layers and nothing else; None otherwise."""
    layers = _chained([one for one in layers_of(seen, 1) if one.dense])
    if not layers or sum(one.weight.size for one in layers) > MOST_VALUES:
        return None
    norms = list(_norms(seen))
    placed = _placed(layers, norms)
    used = {t for one in layers for t in (one.weight.name, one.bias.name)}
    used |= {f"{n.module}.{end}" for n in norms for end in (*_SCALES, *_SHIFTS, *_MEANS, *_MEANS.values())}
    left = [n for n, t in seen.part.tensors.items() if not (n in used or _COUNTS.search(n) or _is_mask(seen, t))]
    return None if placed is None or left else Network(layers, placed)


def _is_mask(seen: Seen, tensor: Tensor) -> bool:
    """Of pruned weights, which are zero there already."""
    stats = seen.stats.get(tensor.name)
    if stats is None:
        return tensor.dtype == "bool"
    return stats.low >= 0 and stats.high == 1 and bool(np.isin(stats.sample, (0, 1)).all()) and len(tensor.shape) == 2


def _chained(layers: Sequence[Layer]) -> Sequence[Layer]:
    """The layers in an order in which each takes what the one before gives: that of the file, or with one of them put
    at the end or at the beginning (`head` stands before `torso`); none where that is not to be had.
    """
    orders = [list(layers)]
    orders += [[*(x for x in layers if x is not one), one] for one in layers]
    orders += [[one, *(x for x in layers if x is not one)] for one in layers]
    return next((o for o in orders if len(o) >= 2 and all(a.outputs == b.inputs for a, b in pairwise(o))), ())


def _norms(seen: Seen) -> Iterator[Norm]:
    """Those of the part, else those of a part of statistics beside it, as flax has them; each in order of its name."""
    every = {n: t for p in seen.checkpoint.parts if not p.auxiliary and not p.copy and (
        p is seen.part or "stat" in p.key) for n, t in p.tensors.items()}
    found = []
    for name in every:
        head, _, last = name.rpartition(".")
        mean = _MEANS.get(last)
        if mean is not None and f"{head}.{mean}" in every:
            values = [_values(every[n]) for n in (f"{head}.{mean}", name)]
            size = len(values[0])
            beside = [next((_values(every[f"{head}.{n}"]) for n in names if f"{head}.{n}" in every), default)
                      for names, default in ((_SCALES, np.ones(size)), (_SHIFTS, np.zeros(size)))]
            if {len(v) for v in (*values, *beside)} == {size} and all(np.isfinite(v).all() for v in values):
                found.append(Norm(head, values[0], values[1], beside[0], beside[1]))
    yield from sorted(found, key=lambda n: [int(d) for d in _NUMBER.findall(n.module)])


def _values(tensor: Tensor) -> Array:
    return tensor.load().astype(np.float64).reshape(-1)


def _placed(layers: Sequence[Layer], norms: Sequence[Norm]) -> Mapping[int, Norm] | None:
    """Norms by place: none, that of the input, that of each hidden layer, or both; None for other numbers."""
    hidden = [one.outputs for one in layers[:-1]]
    sizes = [len(n.mean) for n in norms]
    for first in (0, 1):
        own = [layers[0].inputs] * first
        if sizes == own:
            return dict(enumerate(norms))
        if sizes == own + hidden:
            return {at + 1 - first: n for at, n in enumerate(norms)}
    return None

"""How far the units of a chain of layers can come from their bias, for inputs of a known scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.dense_chain import Layer

Array = NDArray[np.float64]
DEVIATIONS = 5.0
"""Of the sum of independent inputs: less than one in a million of a normal one is further."""
COMMON = 3.0
"""Of what all inputs do alike, as neighbouring pixels do: the sum of the weights carries it."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Of each unit of a layer: its mean before the rectifier, and how far it comes from that."""

    layer: Layer
    mean: Array
    far: Array
    first: bool
    """Whether it reads the inputs, whose scale is taken as 1."""

    @property
    def closed(self) -> NDArray[np.bool_]:
        """Units that are below zero for all inputs."""
        return self.mean + self.far < 0

    @property
    def always(self) -> NDArray[np.bool_]:
        """Units that are above zero for all inputs."""
        return self.mean - self.far > 0


def hidden(layers: Sequence[Layer]) -> list[Reach]:
    """The reach of every layer that another one reads, behind a rectifier each."""
    out: list[Reach] = []
    state: tuple[Array, Array] | None = None
    earlier: set[int] = set()
    for at, layer in enumerate(layers):
        before = layers[at - 1] if at else None
        if before is None or not _reads(layer, before):
            state = None
        begins = state is None
        if begins and layer.inputs in earlier:
            earlier.add(layer.outputs)
            continue  # one of several heads over a layer: its outputs may be scales or probabilities
        mean_in, spread_in = _inputs(layer, state)
        reach = _reach(layer, mean_in, spread_in, begins)
        if at + 1 < len(layers) and _reads(layers[at + 1], layer) and not layer.normed:
            out.append(reach)
        state = (np.zeros(layer.outputs), np.ones(layer.outputs)) if layer.normed else _rectified(reach, spread_in)
        earlier.add(layer.outputs)
    return out


def _reads(layer: Layer, before: Layer) -> bool:
    """Whether the inputs are as many as the outputs before, each once or once for each place of an image."""
    flat = layer.dense and not before.dense and layer.inputs % before.outputs == 0
    return layer.inputs == before.outputs or flat


def _inputs(layer: Layer, state: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Mean and deviation of each input. Of an image laid flat the order is not known: the largest of all channels."""
    if state is None:
        return np.zeros(layer.inputs), np.ones(layer.inputs)
    mean, spread = state
    if len(mean) != layer.inputs:
        return np.zeros(layer.inputs), np.full(layer.inputs, float(np.sqrt(mean**2 + spread**2).max()))
    return mean, spread


def _reach(layer: Layer, mean: Array, spread: Array, first: bool) -> Reach:
    weights = layer.matrix
    own = np.sqrt(np.einsum("oik,i->o", weights**2, spread**2))
    common = np.abs(np.einsum("oik,i->o", weights, spread))
    return Reach(layer, np.einsum("oik,i->o", weights, mean) + layer.shifts,
                 np.hypot(DEVIATIONS * own, COMMON * common), first)


def _rectified(reach: Reach, spread: Array) -> tuple[Array, Array]:
    """Mean and deviation behind the rectifier, of a normal distribution before it."""
    own = np.sqrt(np.einsum("oik,i->o", reach.layer.matrix**2, spread**2)) + 1e-12
    z = np.clip(reach.mean / own, -30, 30)
    density = np.exp(-z**2 / 2) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])
    mean = own * (z * below + density)
    square = own**2 * ((z**2 + 1) * below + z * density)
    return np.maximum(mean, 0), np.sqrt(np.maximum(square - mean**2, 0))

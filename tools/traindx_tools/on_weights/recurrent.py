"""A network of one recurrent layer and one dense layer behind its last state, computed from its tensors.

Known by shapes: inputs to gates, state to gates, biases, and a matrix from the state to the outputs; in the form of
Keras (inputs first) and of torch (outputs first). Three gates are a GRU whose reset is behind the product, four an
LSTM. Each library has its own order of the gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor

Array = NDArray[np.float64]
ORDERS = {("keras", 3): "zrh", ("torch", 3): "rzh", ("keras", 4): "ifgo", ("torch", 4): "ifgo"}
"""z update, r reset, h what is new; i input, f forget, g what is new, o output (keras.layers.GRU, torch.nn.GRU)."""
CALLED = {"z": "update", "r": "reset", "h": "new", "i": "input", "f": "forget", "g": "new", "o": "output"}
_MOST_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Recurrent:
    """`inner` (inputs, gates x units), `outer` (units, gates x units), biases (2, gates x units); the dense layer."""

    name: str
    library: str
    inner: Array
    outer: Array
    biases: Array
    head: Array
    offset: Array

    @property
    def gates(self) -> int:
        """Three of a GRU, four of an LSTM."""
        return int(self.outer.shape[1] // len(self.outer))

    @property
    def order(self) -> str:
        """The order in which the library of the file reads the gates."""
        return ORDERS[self.library, self.gates]

    def __call__(self, inputs: Array, order: Sequence[str]) -> Array:
        """Outputs (rows, outputs) of sequences (rows, steps, inputs), the gates stored in this order."""
        units = len(self.outer)
        at = {gate: slice(k * units, (k + 1) * units) for k, gate in enumerate(order)}
        step = self._gru if self.gates == 3 else self._lstm
        state = np.zeros((len(inputs), units))
        cell = np.zeros_like(state)
        for now in range(inputs.shape[1]):
            given = inputs[:, now] @ self.inner + self.biases[0]
            kept = state @ self.outer + self.biases[1]
            state, cell = step({g: given[:, s] for g, s in at.items()}, {g: kept[:, s] for g, s in at.items()}, state,
                               cell)
        return np.asarray(state @ self.head + self.offset)

    @staticmethod
    def _gru(given: dict[str, Array], kept: dict[str, Array], state: Array, cell: Array) -> tuple[Array, Array]:
        update, reset = (_sigmoid(given[g] + kept[g]) for g in "zr")
        new = np.tanh(given["h"] + reset * kept["h"])
        return (1 - update) * new + update * state, cell

    @staticmethod
    def _lstm(given: dict[str, Array], kept: dict[str, Array], state: Array, cell: Array) -> tuple[Array, Array]:
        taken, forgotten, shown = (_sigmoid(given[g] + kept[g]) for g in "ifo")
        cell = forgotten * cell + taken * np.tanh(given["g"] + kept["g"])
        return shown * np.tanh(cell), cell


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(x, -60.0, 60.0))))


def recurrent_of(seen: Seen) -> Recurrent | None:
    """The network of a file that holds nothing else; None where its shapes are those of another one."""
    tensors = [t for t in seen.part.tensors.values() if t.floating]
    if not 5 <= len(tensors) <= 6 or sum(t.nbytes for t in tensors) > _MOST_BYTES:
        return None
    for inner in tensors:
        for outer in tensors:
            for library in ("keras", "torch"):
                if outer is not inner and (made := _made(library, inner, outer, tensors)) is not None:
                    return made
    return None


def _made(library: str, inner: Tensor, outer: Tensor, tensors: Sequence[Tensor]) -> Recurrent | None:
    keras = library == "keras"
    if len(inner.shape) != 2 or len(outer.shape) != 2:
        return None
    units, wide = outer.shape if keras else outer.shape[::-1]
    if wide not in (3 * units, 4 * units) or inner.shape[1 if keras else 0] != wide or not _in_order(inner, outer,
                                                                                                    tensors):
        return None
    rest = [t for t in tensors if t is not inner and t is not outer]
    biases = [t for t in rest if t.shape in ((wide,), (2, wide))]
    heads = [t for t in rest if len(t.shape) == 2 and t not in biases and t.shape[0 if keras else 1] == units]
    ends = [t for t in rest if t not in biases and len(t.shape) == 1]
    if len(heads) != 1 or len(ends) != 1 or len(biases) + 2 != len(rest) or (
            ends[0].shape[0] != heads[0].shape[1 if keras else 0]):
        return None
    both = np.concatenate([_values(t).reshape(-1, wide) for t in biases]) if biases else np.zeros((2, wide))
    both = both if len(both) == 2 else np.concatenate([both, np.zeros_like(both)])
    if len(both) != 2 or (wide == 3 * units and keras and biases[0].shape != (2, wide)):
        return None  # of a GRU with one bias the reset is before the product
    turned = [_values(t) if keras else _values(t).T for t in (inner, outer, heads[0])]
    if not all(np.isfinite(v).all() for v in (*turned, both)):
        return None
    return Recurrent(_module(inner, outer), library, turned[0], turned[1], both, turned[2], _values(ends[0]))


def _in_order(inner: Tensor, outer: Tensor, tensors: Sequence[Tensor]) -> bool:
    """Whether one of two matrices is told from the other: by its shape, or it comes first in the file."""
    return inner.shape != outer.shape or tensors.index(inner) < tensors.index(outer)


def _module(inner: Tensor, outer: Tensor) -> str:
    """What both names begin with."""
    common = next((i for i, (a, b) in enumerate(zip(inner.name, outer.name, strict=False)) if a != b),
                  min(len(inner.name), len(outer.name)))
    head = max(inner.name[:common].rfind("."), inner.name[:common].rfind("/"))
    return inner.name[:head] if head > 0 else inner.name


def _values(tensor: Tensor) -> Array:
    return np.asarray(tensor.load(), np.float64)

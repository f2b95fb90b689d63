"""Which weight makes the input of each normalisation, and whether the variances follow it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.norm_movement import values_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats

_MOST = 2**26
_NUMBER = re.compile(r"\d+")


def weights_before(seen: Seen, variances: list[Stats]) -> dict[str, NDArray[np.float64]]:
    """The squared norms of the rows of the weight that makes each layer's input.

    It stands before the layer in the order of the code and may stand behind it in that of the alphabet, and its outputs
    are its rows, as torch stores them, or its last axis, as flax and Keras do: right is what most variances follow.
    Where norms stand in a list of their own, or in another part of the file, the numbers in their names are asked.
    """
    if not variances:
        return {}
    names = {v.name for v in variances}
    sides = [_nearest(seen, names, backwards, last) for last in (False, True) for backwards in (False, True)]
    sides += [_numbered(seen, variances, last) for last in (False, True)]
    return max(sides, key=lambda found: sum(follows(found[v.name], values_of(v)) > 0.5 for v in variances
                                            if v.name in found))


def _nearest(seen: Seen, names: set[str], backwards: bool, last_axis: bool) -> dict[str, NDArray[np.float64]]:
    found: dict[str, NDArray[np.float64]] = {}
    last: Stats | None = None
    for stats in reversed(seen.floats) if backwards else seen.floats:
        if stats.name in names and last is not None:
            squares = _of_outputs(last, stats.size, last_axis)
            if squares is not None:
                found[stats.name] = squares
        elif stats.tensor.matrix:
            last = stats
    return found


def _of_outputs(weight: Stats, channels: int, last_axis: bool) -> NDArray[np.float64] | None:
    """Squared norms of what makes each channel, None where the weight has another number of outputs."""
    if not last_axis:
        return weight.row_squares if len(weight.row_squares) == channels else None
    if weight.tensor.shape[-1] != channels or weight.tensor.nbytes > _MOST or weight.nan or weight.inf:
        return None
    values = weight.tensor.load().astype(np.float64).reshape(-1, channels)
    return np.asarray((values**2).sum(axis=0))


def _numbered(seen: Seen, variances: Sequence[Stats], last_axis: bool) -> dict[str, NDArray[np.float64]]:
    """The first weight with the same numbers in its module's name, and as many outputs, of all parts of the model."""
    by_number: dict[tuple[str, ...], list[Stats]] = {}
    for stats in _weights(seen):
        by_number.setdefault(_numbers(stats.name), []).append(stats)
    found: dict[str, NDArray[np.float64]] = {}
    for variance in variances:
        numbers = _numbers(variance.name)
        made = (_of_outputs(w, variance.size, last_axis) for w in by_number.get(numbers, ()) if numbers)
        squares = next((s for s in made if s is not None), None)
        if squares is not None:
            found[variance.name] = squares
    return found


def _weights(seen: Seen) -> Sequence[Stats]:
    """The matrices of the part; those of the main one for a part of statistics alone, as flax keeps it."""
    own = [s for s in seen.floats if s.tensor.matrix]
    if own:
        return own
    beside: Mapping[str, object] = seen.checkpoint.weights.tensors
    return [s for t in beside.values() if (s := seen.measured.get(id(t))) is not None and s.tensor.matrix]


def scale_and_shift(seen: Seen, module: str) -> list[Stats]:
    """Of a normalisation, wherever the file keeps them: beside the statistics, or in the part of the weights."""
    beside = seen.checkpoint.weights.tensors
    found = []
    for words in (("weight", "scale", "gamma"), ("bias", "beta")):
        names = [f"{module}{mark}{word}" for word in words for mark in "./"]
        own = [s for n in names if (s := seen.stats.get(n) or seen.measured.get(id(beside.get(n)))) is not None]
        found += own[:1]
    return found


def _numbers(name: str) -> tuple[str, ...]:
    """The numbers of a tensor's module."""
    return tuple(_NUMBER.findall(re.split(r"[./](?=[^./]*$)", name)[0]))


def follows(squares: NDArray[np.float64], values: NDArray[np.float64] | None) -> float:
    """Correlation of the logarithms; nan where there are too few channels or none differ."""
    if values is None or len(values) < 16 or (values <= 0).any() or (squares <= 0).any():
        return float("nan")
    x, y = np.log10(squares), np.log10(values)
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 1e-6 and y.std() > 1e-6 else float("nan")

"""What a first convolution can give of inputs that are normalised as the configuration says, and its normalisation."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats

_FILES = ("preprocessor_config.json",)
_MEAN = re.compile(r"(?i)^(?:image_|pixel_|norm(?:alize)?_|input_|img_)?mean$")
_MOST = 2**20


@dataclass(frozen=True)
class FirstLayer:
    """A first convolution and the normalisation behind it. `most`: the largest magnitude of an input of its."""

    kernel: Stats
    outputs_last: bool
    module: str
    mean: Stats
    variance: Stats
    most: float

    def squares(self) -> NDArray[np.float64]:
        """The sum of the squares of the weights of each output: its variance for inputs of variance 1 without relation.

        Of related inputs some outputs have less and others more; their mean over many directions is the same.
        """
        values = self.kernel.tensor.load().astype(np.float64) ** 2
        axes = tuple(range(values.ndim - 1)) if self.outputs_last else tuple(range(1, values.ndim))
        return np.asarray(values.sum(axis=axes))

    def reach(self) -> NDArray[np.float64]:
        """The largest magnitude that each output can have, but for a bias: that of the input times all weights."""
        values = np.abs(self.kernel.tensor.load().astype(np.float64))
        axes = tuple(range(values.ndim - 1)) if self.outputs_last else tuple(range(1, values.ndim))
        return np.asarray(values.sum(axis=axes) * self.most)


def first_layer(seen: Seen) -> FirstLayer | None:
    """The convolution whose inputs are as many channels as the configuration normalises, where it is the only one."""
    told = _largest_input(seen)
    return _first_layer(seen, *told) if told is not None else None


def standardised_layer(seen: Seen) -> FirstLayer | None:
    """The same where the configuration gives each channel a mean and a deviation in any unit; `most` is nan then."""
    found = {len(m) for m, _ in _pairs(seen.config, 0)}
    return _first_layer(seen, found.pop(), math.nan) if len(found) == 1 else None


def _first_layer(seen: Seen, channels: int, largest: float) -> FirstLayer | None:
    every = (*seen.floats, *_beside(seen))
    kernels = [(s, last) for s in every if len(s.tensor.shape) >= 3 and s.tensor.nbytes <= _MOST
               and s.finite == s.size and s.tensor.shape[0] > 1
               and ((last := s.tensor.shape[1] != channels and "kernel" in s.name and s.tensor.shape[-2] == channels)
                    or s.tensor.shape[1] == channels)]
    if len(kernels) != 1:
        return None
    kernel, last = kernels[0]
    outputs = kernel.tensor.shape[-1 if last else 0]
    behind = [n for n in seen.normalisations() if n[2].size == outputs]
    if not behind:
        return None
    module, mean, variance = max(behind, key=lambda n: (_shared(n[0], kernel.name), -len(re.split(r"[./]", n[0])),
                                                        -_number(n[0])))
    if len(behind) > 1 and not _near(module, kernel.name):
        return None
    return FirstLayer(kernel, last, module, mean, variance, largest)


def _beside(seen: Seen) -> Iterator[Stats]:
    """The weights, for a part of statistics alone, as flax keeps it."""
    if not any(s.tensor.matrix for s in seen.floats):
        yield from (stats for tensor in seen.checkpoint.weights.tensors.values()
                    if (stats := seen.measured.get(id(tensor))) is not None and tensor.floating)


def _shared(one: str, other: str) -> int:
    """Pieces of two names that are the same from the beginning."""
    pairs = zip(re.split(r"[./]", one), re.split(r"[./]", other), strict=False)
    return sum(1 for _ in takewhile(lambda p: p[0] == p[1], pairs))


def _near(module: str, kernel: str) -> bool:
    """Whether a normalisation stands beside a kernel: in one module, or both at the top."""
    pieces, own = re.split(r"[./]", module)[:-1], re.split(r"[./]", kernel)[:-2]
    return pieces == own


def _number(module: str) -> int:
    found = re.findall(r"\d+", module)
    return int(found[-1]) if found else 0


def _largest_input(seen: Seen) -> tuple[int, float] | None:
    """How many channels are normalised, and the largest magnitude of (x - mean) / std for x from 0 to 1."""
    folder = os.path.dirname(seen.path)
    tables = [seen.config, *(_read(os.path.join(folder, f)) for f in _FILES)]
    found = [n for table in tables for n in _normalisations(table, 0)] or _in_the_file(seen)
    channels = {len(means) for means, _ in found}
    if len(channels) != 1:
        return None
    return channels.pop(), max(max(abs(m), abs(1 - m)) / s for means, stds in found
                               for m, s in zip(means, stds, strict=True))


def _in_the_file(seen: Seen) -> list[tuple[list[float], list[float]]]:
    """What the checkpoint itself keeps beside the weights, unless it may be of the outputs: as many as there are."""
    table: dict[str, dict[str, Any]] = {}
    for key, value in seen.checkpoint.values.items():
        head, _, last = key.rpartition(".")
        table.setdefault(head or "-", {})[last] = value
    ends = [s.tensor.shape for s in seen.floats if len(s.tensor.shape) > 1][-1:]
    return [(m, d) for m, d in _normalisations(table, 0) if ends and len(m) not in (ends[0][0], ends[0][-1])]


def _read(path: str) -> Mapping[str, Any]:
    try:
        if os.path.getsize(path) > _MOST:
            return {}
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _normalisations(table: Mapping[str, Any], depth: int) -> Iterator[tuple[list[float], list[float]]]:
    """Those of values from 0 to 1: means of 0 to 255 are of raw pixels, and said so."""
    yield from ((means, stds) for means, stds in _pairs(table, depth)
                if all(0 <= m <= 1 and 0.01 <= s <= 1 for m, s in zip(means, stds, strict=True)))


def _pairs(table: Mapping[str, Any], depth: int) -> Iterator[tuple[list[float], list[float]]]:
    """A mean and a deviation of each channel."""
    for key, value in table.items():
        if isinstance(value, Mapping) and depth < 4:
            yield from _pairs(value, depth + 1)
        elif isinstance(key, str) and _MEAN.match(key):
            means, stds = _numbers(value), _numbers(table.get(f"{key[:-4]}std"))
            if means and len(means) == len(stds) and min(stds) > 0:
                yield means, stds


def _numbers(value: object) -> list[float]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [float(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]

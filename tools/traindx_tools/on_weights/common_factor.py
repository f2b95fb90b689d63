"""By which factor a tensor is another one, and what such a factor is known from.

The factor is that of least squares over the samples of both, which lie at the same places: c = <x, y> / <x, x>, and
what it leaves is |y - c x| / |y|. Training never leaves the rounding of the type alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor

_ROUNDING = {"float64": 1e-6, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 0.1,
             "float8_e5m2": 0.2}  # fmt: skip
"""What rounding once to the type leaves at most, with a margin of two or more (half a unit in the last place)."""
_FEWEST = 16
"""Values that are not zero, below which a factor says little."""
_BETAS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999)
"""Rates of averages that are published (Adam, EMA of GANs, diffusion and self-supervised models)."""
_MOST_PARTS = 4096
_STEP = re.compile(r"(?i)step|iter|update|num_batches|global")
_NUMBER = re.compile(r"(?<![\d.])\d{1,9}(?![\d.]*\d)")


@dataclass(frozen=True)
class Ratio:
    """`factor`: second over first; `rest`: what it does not explain, relative; `rounding`: what the types explain."""

    name: str
    factor: float
    rest: float
    rounding: float
    telling: bool
    """Whether it has enough different values to say something."""
    matrix: bool

    @property
    def exact(self) -> bool:
        """Whether one tensor is the other times a factor that is not 1, but for rounding."""
        return self.telling and self.rest <= self.rounding and abs(self.factor - 1) > 4 * self.rounding

    @property
    def still(self) -> bool:
        return self.factor == 1 and self.rest == 0


def ratios(pairs: Iterable[tuple[Stats, Stats]]) -> Iterator[Ratio]:
    """Of each pair of tensors of real numbers of one shape that are finite and not zero."""
    for one, other in pairs:
        x, y = one.sample.astype(np.float64), other.sample.astype(np.float64)
        if one.tensor.shape != other.tensor.shape or x.shape != y.shape or one.nan + one.inf + other.nan + other.inf:
            continue
        before, after, product = float(x @ x), float(y @ y), float(x @ y)
        if not (0 < before < math.inf and 0 < after < math.inf and math.isfinite(product)):
            continue
        if np.array_equal(x, y):
            factor, rest = 1.0, 0.0
        else:
            factor = product / before
            rest = float(np.linalg.norm(y - factor * x)) / math.sqrt(after)
        if one.tensor.dtype not in _ROUNDING or other.tensor.dtype not in _ROUNDING:
            continue  # whole numbers: quantised weights, masks
        rounding = max(_ROUNDING[t] for s in (one, other) for t in (s.tensor.dtype, s.rounded_to) if t)
        telling = not one.constant and int(np.count_nonzero(x)) >= _FEWEST
        yield Ratio(one.name, factor, rest, rounding, telling, one.tensor.matrix)


def steps_of(checkpoints: Iterable[Checkpoint]) -> list[int]:
    """Numbers of steps that files tell: in their values, their optimizers and their names."""
    found: set[int] = set()
    for checkpoint in checkpoints:
        for key, value in checkpoint.values.items():
            if isinstance(value, str) and value.isdecimal() and len(value) < 12:  # the metadata of safetensors is text
                value = int(value)
            if _STEP.search(key) and isinstance(value, (int, float)) and not isinstance(value, bool):
                found.add(int(value) if math.isfinite(value) else 0)
        for optimizer in checkpoint.optimizers:
            state = next(iter(optimizer.state.values()), None)
            step = state.get("step") if state is not None and hasattr(state, "get") else None
            if isinstance(step, Tensor) and step.size == 1:
                step = float(np.asarray(step.load()).reshape(-1)[0])
            if isinstance(step, (int, float)) and math.isfinite(step):
                found.add(int(step))
        found |= {int(n) for n in _NUMBER.findall(re.split(r"[/\\]", checkpoint.path)[-1])}
    return sorted(n for n in found if n > 0)


def known_factor(factor: float, spread: float, steps: Sequence[int]) -> str:
    """What a factor is known from, "" for none. `spread`: relative, of the factors that it is the middle of."""
    near = max(2e-4, 3 * spread)
    size = abs(factor)
    for value, sides in ((size, "an average that was not corrected for its start"),
                         (1 / size, "divided by the correction of an average for its start")):
        for beta in _BETAS:
            for steps_made in steps:
                for n in (steps_made, steps_made - 1, steps_made + 1):
                    # what is left of the correction must be seen beside the spread
                    if n > 0 and beta**n > 5 * near and math.isclose(value, 1 - beta**n, rel_tol=near):
                        return f"1 - {beta}^{n}, {sides}"
    for value, inverse in ((size, False), (1 / size, True)):
        found = _whole(value, near)
        if found:
            return f"1/{found}: {_divided(found)}" if inverse else f"{found}: {_times(found)}"
    return "-1: the sign is turned" if math.isclose(factor, -1, rel_tol=near) else ""


def _whole(value: float, near: float) -> int:
    """A whole number from two on that the value is, certain enough to be told from its neighbours."""
    nearest = round(value) if value < 2**40 else 0
    power = nearest > 0 and nearest & (nearest - 1) == 0
    if nearest < 2 or not math.isclose(value, nearest, rel_tol=near) or (5 * near * nearest > 1 and not power):
        return 0
    return nearest if power or nearest <= _MOST_PARTS else 0


def _divided(count: int) -> str:
    if count == 255:
        return "pixels of 0 to 255 against 0 to 1"
    return "a mean over so many ranks, files or accumulated batches that was taken once too often"


def _times(count: int) -> str:
    if count == 255:
        return "pixels of 0 to 255 against 0 to 1"
    if count >= 1024 and count & (count - 1) == 0:
        return "a loss scale that was not taken out"
    return "a sum over so many ranks, files or accumulated batches where a mean is meant, or a scale folded in"

"""What the rules on activations judge: what each layer takes, over the sampled steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Location

Floats = NDArray[np.float64]
SOURCE = "torch probe: activations"


@dataclass(frozen=True, eq=False)
class LayerCourse:
    """What one linear layer or convolution takes, in T sampled training steps, in the order of calls."""

    path: str
    after: str
    """The layer with parameters that was called before it; empty for the first."""
    function: str
    """What made the input: "relu", "tanh", "sigmoid" or ""."""
    dtype: str
    steps: tuple[int, ...]
    rms: Floats
    largest: Floats
    spread: Floats
    """Norm of the differences from the mean row over the norm: 0 where every row is the same."""
    saturated: Floats
    units: int
    dead: int
    """Units that were 0 in every sampled row of every sampled step."""
    rows: int
    """Rows that were looked at, over all steps."""
    fewest_rows: int
    """Rows of the smallest sample."""
    rank: int = 0
    kind: str = "layer"
    """"layer": what a layer takes; "half": what a layer returns in float16; "output": what the model returns."""

    def at(self, first: int = 0) -> Location:
        """The layer and its steps."""
        return Location(module=self.path, step=float(self.steps[first]), end_step=float(self.steps[-1]), rank=self.rank)

    def late(self, values: Floats) -> float:
        """Median over the second half."""
        return float(np.median(values[len(values) // 2:]))


@dataclass(frozen=True, eq=False)
class AttentionCourse:
    """Attention weights of one place: entropy over ln(keys), and the mean largest weight, over T sampled steps."""

    path: str
    steps: tuple[int, ...]
    entropy: Floats
    largest: Floats
    keys: int
    rank: int = 0


@dataclass(frozen=True, eq=False)
class NormCourse:
    """A BatchNorm in train mode: how far its running statistics are from the batch's, over T sampled steps."""

    path: str
    steps: tuple[int, ...]
    distance: Floats
    """Median over the channels, in standard deviations of the batch."""
    log_ratio: Floats
    """Median over the channels of |ln(running variance / batch variance)|."""
    momentum: float | None
    values: int
    """Values a channel in a batch."""
    rank: int = 0
    evaluated: bool = False
    """Seen in eval mode, where the running statistics are what normalises; else in train mode."""
    same_input: bool = False
    """Nothing that is called before it acts otherwise in eval mode: the same batch reaches it in both modes."""
    given: bool = False
    """In eval mode wherever it is called: no batch of this run went into its statistics."""


@dataclass(frozen=True)
class Courses:
    """All of a run."""

    layers: tuple[LayerCourse, ...] = ()
    attention: tuple[AttentionCourse, ...] = ()
    norms: tuple[NormCourse, ...] = ()
    extra: dict[str, float] = field(default_factory=dict)


def listed(names: list[str], most: int = 3) -> str:
    """Names for a sentence, the first few written out."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

"""What the movement rules judge: a parameter over the measured steps, from a sample of its values."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.finding import Location

SOURCE = "torch probe: updates"


@dataclass(frozen=True)
class Movement:
    """One parameter that an optimizer holds, over `steps` measured steps."""

    path: str
    dtype: str
    numel: int
    ndim: int
    trainable: bool
    steps: int
    """Measured steps in which it had a gradient and a learning rate above 0."""
    first_step: int
    last_step: int
    pushed: int
    """Sampled values whose gradient was not zero in some measured step."""
    still: float
    """Share of the pushed values that are bit by bit the same at the end as at the start."""
    step_still: float
    """Median share of pushed values that one step leaves as they were."""
    undone: float
    """Share of the steps with a neighbour after which the values went back to where they were before the step."""
    ratio: float
    """Median of the update's norm over the weights' norm; nan for weights that start at zero."""
    largest_ratio: float
    growth: float
    """Norm of the weights at the end over the start; 0 for weights that start at zero."""
    magnitude: float
    """Median size of the pushed values."""
    moved: bool
    """Whether any sampled value changed between the first and the last measured step."""
    lr: float
    """Largest learning rate seen."""
    rank: int = 0

    @property
    def half(self) -> bool:
        """Stored in 16 bits or fewer."""
        return self.dtype in ("bfloat16", "float16") or self.dtype.startswith("float8")

    @property
    def resolution(self) -> float:
        """The smallest change that a value of the median size can take: half a unit in the last place."""
        bits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}.get(self.dtype, 24)
        return self.magnitude * 2.0**-bits

    def at(self) -> Location:
        """The parameter and the steps that were measured."""
        return Location(module=self.path, step=float(self.first_step), end_step=float(self.last_step), rank=self.rank)


def listed(paths: list[str], most: int = 4) -> str:
    """Names for a sentence, the first few written out."""
    return ", ".join(paths[:most]) + (f" and {len(paths) - most} more" if len(paths) > most else "")

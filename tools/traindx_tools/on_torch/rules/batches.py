"""What the rules on batches judge: plain numbers of the inputs and targets of the measured steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.finding import Location

SOURCE = "torch probe: batches"


@dataclass(frozen=True)
class TensorSeen:
    """One tensor of one measured step: where it stood, what it holds."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    step: int
    low: float
    high: float
    mean: float
    std: float
    nan: float = 0.0
    inf: float = 0.0
    minus_inf: float = 0.0
    same_rows: bool = False
    """All rows (first dimension, four or more) are equal."""
    normed: bool = False
    """A normalisation follows the layer at once: the scale of its input does not matter."""
    module: str | None = None
    """The module that it was given to, where that is known."""

    @property
    def is_float(self) -> bool:
        """A floating dtype."""
        return "float" in self.dtype


@dataclass(frozen=True)
class LabelsSeen:
    """Class labels of one measured step, from a sample of at most 2048."""

    step: int
    classes: int
    counts: dict[int, int] = field(default_factory=dict)
    """Valid labels by class in the sample."""
    ignored: float = 0.0
    """Share of all labels that carry the ignored index."""
    per_sample: bool = False
    """One label a row of the input: a classification, not a sequence or a picture of labels."""

    @property
    def valid(self) -> int:
        """Valid labels in the sample."""
        return sum(self.counts.values())


def at(step: int, rank: int, module: str | None = None, last: int | None = None) -> Location:
    """A step, or a range of them."""
    return Location(step=float(step), end_step=None if last is None else float(last), module=module, rank=rank)

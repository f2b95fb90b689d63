"""What the rules on rows judge: all that was seen of the rows of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.finding import Location
from traindx_tools.rows.book import Book, RowsSeen
from traindx_tools.rows.groupings import Grouping
from traindx_tools.rows.jumps import StepSeen
from traindx_tools.rows.positions import TargetShift
from traindx_tools.rows.profile import Profile
from traindx_tools.rows.relabelled import Answered

SOURCE = "torch probe: rows"


@dataclass(frozen=True, eq=False)
class ModelRows:
    """One model. `dataset`: the class of the one dataset that it is trained on, where that is known."""

    model: str
    dataset: str
    trained: Book
    evaluated: Book
    profiles: Mapping[tuple[str, str], tuple[Profile, ...]]
    """By role ("trained", "evaluated") and name of the argument."""
    groups: tuple[Grouping, ...] = ()
    steps: tuple[StepSeen, ...] = ()
    shifts: Mapping[int | None, int] = field(default_factory=dict)
    """Batches by the shift of their targets against their tokens; None where none fits."""
    shift: Mapping[int, TargetShift] = field(default_factory=dict)
    step: int = 0
    rank: int = 0
    answered: Answered = field(default_factory=Answered)
    """Labels and answers of evaluations."""

    @cached_property
    def trained_rows(self) -> RowsSeen | None:
        """The kept rows that were trained on."""
        return self.trained.seen()

    @cached_property
    def evaluated_rows(self) -> RowsSeen | None:
        """The kept rows that were evaluated."""
        return self.evaluated.seen()

    @property
    def where(self) -> Location:
        """The model, after these steps."""
        return Location(module=self.model, step=float(self.step), rank=self.rank)

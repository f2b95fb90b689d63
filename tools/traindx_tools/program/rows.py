"""Where the rows of a value come from, and what a program uses them for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class Step:
    """What happens to all rows. `kind`: "cut", "copied", "fitted" (`by`: the rows that it was fitted on), "windows",
    "labels"."""

    kind: str
    by: Any = None
    part: Hashable = None
    parted: bool = field(default=False, compare=False)
    """Of a cut: the other part is taken somewhere, too."""
    at: Spot | None = field(default=None, compare=False)
    handed: Spot | None = field(default=None, compare=False)
    """The call that hands rows to the function in which it happens."""


@dataclass(frozen=True)
class Rows:
    """Rows of one source. `whole`: all that the steps leave, not a batch or a single one of them; `what`: "" for the
    rows, "statistic", "numbering" or "ranking" for what was computed over them, at `made`; `column`: what of each row,
    where it has a name."""

    source: Hashable
    steps: tuple[Step, ...] = ()
    whole: bool = True
    what: str = ""
    column: str = ""
    place: tuple[int, ...] = ()
    """In what was unpacked, of which it is not known what its parts are."""
    made: Spot | None = field(default=None, compare=False)
    handed: Spot | None = field(default=None, compare=False)

    def then(self, *steps: Step) -> Rows:
        """The same rows one step further."""
        return replace(self, steps=(*self.steps, *(s for s in steps if s not in self.steps)))

    @property
    def bare(self) -> tuple[Hashable, tuple[Step, ...]]:
        """Which rows they are, whatever of them."""
        return self.source, self.steps

    @property
    def cuts(self) -> tuple[Step, ...]:
        """The steps that take a part."""
        return tuple(s for s in self.steps if s.kind == "cut")


@dataclass(frozen=True)
class RowUse:
    """One use of rows. `role`: "trained" (they reach a loss that is stepped), "evaluated" (a model is asked), "chosen"
    (a figure over them decides what is kept, or when to stop), "told" (a figure over them is printed), "parted" (they
    are split at random), "compared" (a loss compares a prediction with them)."""

    role: str
    rows: frozenset[Rows]
    at: Spot
    text: str = ""
    says: str = ""
    """"train", "val" or "test", where what is told, or the name of the source, says one of them."""
    late: bool = False
    """Behind the training, not in each turn of it."""

    @property
    def meets(self) -> bool:
        """Whether rows and a part of these same rows both reach it: a variable of two meanings, of which one is."""
        return any(a.source == b.source and a.steps == b.steps[:len(a.steps)] != b.steps
                   for a in self.rows for b in self.rows)

"""Passes over the items of a dataset in a fixed order, and whether each is left before its end.

A loader that keeps the order of its dataset and is left after so many batches gives the same items in each pass, and
never those behind them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PASSES = 3
"""Passes that have ended."""
BATCHES = 16
"""Batches of a pass: fewer are a trial on a few of them."""
LEFT = (0.1, 0.95)
"""Share of the items that is left out: fewer are dropped with the last batch, more is a trial."""


@dataclass
class Pass:
    """One pass: how many items it gave, whether they were the first ones, and which steps were made meanwhile."""

    items: int = 0
    batches: int = 0
    first_step: int = 0
    last_step: int = 0
    from_the_start: bool = True


@dataclass(frozen=True)
class LeftEarly:
    """Every pass ends behind the same item. `items`: those of the dataset; `given`: those of a pass."""

    items: int
    given: int
    batches: int
    passes: int

    @property
    def share(self) -> float:
        """Of the items, those that no pass reaches."""
        return 1 - self.given / self.items


@dataclass(eq=False)
class Passes:
    """The passes over one dataset by loaders that keep its order."""

    items: int
    _passes: dict[int, Pass] = field(default_factory=dict)

    def take(self, number: int, first: int, count: int, step: int) -> None:
        """A batch of a pass: the number of its first item, how many follow one another from there, and the step."""
        one = self._passes.setdefault(number, Pass(first_step=step))
        one.from_the_start &= first == one.items
        one.items += count
        one.batches += 1
        one.last_step = step

    def left_early(self) -> LeftEarly | None:
        """What all passes but the last one have in common; None where one of them went on, or did not train."""
        ended = list(self._passes.values())[:-1]
        if len(ended) < PASSES or not all(p.from_the_start and p.last_step > p.first_step for p in ended):
            return None
        given = {p.items for p in ended}
        last = list(self._passes.values())[-1]
        if len(given) != 1 or last.items > ended[0].items or ended[0].batches < BATCHES:
            return None
        found = LeftEarly(self.items, ended[0].items, ended[0].batches, len(ended))
        return found if LEFT[0] <= found.share <= LEFT[1] else None

"""The first of an ordered list that fails, as `git bisect` finds it: what cannot be tested is passed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traindx_tools.experiments.isolating.minimise import nearest
from traindx_tools.experiments.isolating.outcomes import Shown


@dataclass(frozen=True)
class Turn:
    """Between `last_good` and `first_bad` (places in the list) the symptom came; those between could not be tested."""

    last_good: int
    first_bad: int
    untested: tuple[int, ...] = ()

    @property
    def exact(self) -> bool:
        """The one that brought it is known."""
        return self.first_bad == self.last_good + 1


def first_bad(count: int, shown: Callable[[int], Shown]) -> Turn:
    """The turn in places 0 to `count` - 1, of which the first passes and the last fails.

    Where the symptom comes and goes several times, one of the places where it came: both sides of it were run.
    """
    good, bad = 0, count - 1
    unresolved: set[int] = set()
    while (at := nearest(good, bad, unresolved)) is not None:
        verdict = shown(at)
        if verdict is Shown.FAIL:
            bad = at
        elif verdict is Shown.PASS:
            good = at
        else:
            unresolved.add(at)
    return Turn(good, bad, tuple(sorted(p for p in unresolved if good < p < bad)))

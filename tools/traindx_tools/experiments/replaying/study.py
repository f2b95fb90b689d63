"""All that was tried of one step, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindx_tools.experiments.replaying.changes import CHANGES, NOWHERE, PLACING, ROWS, ZEROED
from traindx_tools.experiments.replaying.judging import Measured, Tried
from traindx_tools.experiments.replaying.rows import Rows
from traindx_tools.experiments.replaying.symptom import Symptom

UPDATE, PASS = "update", "pass"


@dataclass(frozen=True)
class Study:
    """One step. `at`: the symptom came with the last update ("update"), or is there without it ("pass")."""

    symptom: Symptom
    control: Measured
    at: str
    tried: tuple[Tried, ...]
    exact: bool
    """The step gave the very numbers again, and not only within the resolution of its dtype."""
    rank: int = 0
    rows: Rows | None = None
    """What was found of rows, where the batch has some."""
    row_numbers: tuple[int, ...] = ()
    """The rows that carry the symptom as numbers in the dataset, where the sampler says them."""
    seconds: float = 0.0
    runs: int = 0
    difference: float = 0.0
    """Of the loss when the step is run as it is from the program's own, relative to it."""
    recovered: bool = False
    """A jump after which the losses were usual again within a few steps."""

    def of(self, word: str) -> tuple[Tried, ...]:
        """Those that came to this."""
        return tuple(t for t in self.tried if t.word == word)

    @property
    def removing(self) -> tuple[str, ...]:
        """Changes with which the symptom goes, without those that only tell where it comes from."""
        return tuple(t.change for t in self.of("removes") if t.change not in PLACING)

    @property
    def of_the_batch(self) -> bool:
        """Inputs of zeros do not show it: what the model is given takes part."""
        return any(t.change == ZEROED for t in self.of("removes"))

    @property
    def telling(self) -> tuple[str, ...]:
        """Of these the ones that undo one thing; all of them where there is none such.

        A tenth of the rate or double precision hide what they do not cause. A state that is too large or a draw
        of dropout cannot be told from a rate that is too high by one step: they stay beside each other.
        """
        narrow = tuple(c for c in self.removing if not CHANGES[c].broad)
        return narrow or self.removing

    @property
    def specific(self) -> bool:
        """Something that undoes one thing takes the symptom away."""
        return any(not CHANGES[c].broad for c in self.removing)

    @property
    def absent(self) -> tuple[str, ...]:
        """Changes of one thing that has no part in this step: it is not there, or the step is the same without it."""
        return tuple(t.change for t in self.tried if not CHANGES[t.change].broad and t.change != ROWS
                     and (t.word == "no-effect" or t.why == NOWHERE.get(t.change)))

    @property
    def carries(self) -> bool:
        """A few rows carry the symptom."""
        return self.rows is not None and self.rows.carry and ROWS in self.removing

    @property
    def same(self) -> str:
        """In words: how near the step as it is comes to the program's own numbers."""
        if self.exact:
            return "the same bit for bit"
        return f"the same within {self.difference:.1g} of its loss" if self.difference else \
            "the same loss bit for bit, and the update within rounding"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a file."""
        rows: Mapping[str, Any] | None = vars(self.rows).copy() if self.rows is not None else None
        symptom = {k: str(v) if isinstance(v, float) else v for k, v in vars(self.symptom).items()}
        return {"traindx": "step-replay", "symptom": symptom, "at": self.at, "exact": self.exact, "rank": self.rank,
                "control": Tried("control", "", "no-effect", "", self.control).to_json()["measured"],
                "tried": [t.to_json() for t in self.tried], "rows": rows, "row_numbers": list(self.row_numbers),
                "seconds": round(self.seconds, 3), "runs": self.runs, "recovered": self.recovered,
                "difference": self.difference}

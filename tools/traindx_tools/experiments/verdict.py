"""What an experiment came to: one of four words, and everything that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Word = Literal["removes", "moves", "no-effect", "inconclusive"]
SAID: Mapping[str, str] = {"removes": "removes the symptom", "moves": "moves the symptom",
                           "no-effect": "has no effect on the symptom", "inconclusive": "inconclusive"}


@dataclass(frozen=True)
class Verdict:
    """`word`, and why in one sentence with the measured values."""

    word: Word
    why: str
    better: bool | None = None
    """Of an effect: whether it goes the right way."""
    controls: tuple[float, ...] = ()
    changes: tuple[float, ...] = ()
    """The number of each run, or the step of the event's onset; infinite where it did not come."""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    """Standard deviation between runs."""
    at: float | None = None
    """The step (the second, the record) up to which they were compared."""
    unit: str = "step"
    lacks: str = ""
    """Of an inconclusive one: what would decide it ("budget", "repeats"; "symptom": the control is well by the bound
    of the outcome), "" where nothing of the kind does."""
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_effect(self) -> bool:
        """The change did something to the symptom."""
        return self.word in ("removes", "moves")

    @property
    def decided(self) -> bool:
        """One of the three words that say something."""
        return self.word != "inconclusive"

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite as text."""
        return {k: _plain(v) for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_json`. Raises KeyError or TypeError on anything else."""
        def told(value: Any) -> Any:
            return float(value) if value in ("inf", "-inf", "nan") else value

        return cls(**{**data, "controls": tuple(map(told, data["controls"])),
                      "changes": tuple(map(told, data["changes"])),
                      **{k: told(data[k]) for k in ("effect", "low", "high", "spread", "at")}})


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value

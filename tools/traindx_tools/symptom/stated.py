"""What a person says that they saw: one symptom as a value, and everything else that their words hold."""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_UNDERSTOOD = ""
"""The direction of a statement that no table reads."""


@dataclass(frozen=True)
class Subject:
    """What was observed. `key` is a row of the lexicon ("loss", "memory"), "" for a name that no table knows."""

    key: str
    family: str
    """How its values are to be read: "loss" (lower is better), "score" (higher is better), "output", "run" ..."""
    words: str
    """As the person wrote it."""
    group: str | None = None
    """"train", "validation" or "test" where the words say one."""
    rank: int | None = None


@dataclass(frozen=True)
class Place:
    """Where in the run. `kind`: see `places.py`; "" where the words name no place.

    `low` and `high` are in `unit` ("step", "epoch", "second"); None where the words give no number.
    """

    kind: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = "step"
    words: str = ""


@dataclass(frozen=True)
class Against:
    """What it is compared with. `kind`: "value", "chance", "others", "before", "run", "split", "inputs", "belief"."""

    kind: str = ""
    words: str = ""


@dataclass(frozen=True)
class StatedSymptom:
    """One observation in a person's words."""

    said: str
    """The clause, at most 200 characters, without control characters. It is data and never obeyed."""
    direction: str
    """What the subject does: a name of `predicates.DIRECTIONS`; NOT_UNDERSTOOD where no table reads it."""
    subject: Subject | None = None
    place: Place = Place()
    value: float | None = None
    """The value that is named with it, as written; percentages as fractions."""
    relation: str = ""
    """How the subject stands to the value: "at", "above", "below" or ""."""
    against: Against = Against()
    asked: bool = False
    """A worry: asked or believed, not observed."""
    kinds: frozenset[str] = frozenset()
    """What of `catalog.SYMPTOMS` it is."""
    target: float | None = None
    """The value that it should have, as written; percentages as fractions."""

    @property
    def understood(self) -> bool:
        """Whether a table reads it."""
        return self.direction != NOT_UNDERSTOOD


@dataclass(frozen=True)
class Account:
    """A text, read: what was seen, what is said to be in order, and what is no observation."""

    symptoms: tuple[StatedSymptom, ...] = ()
    in_order: tuple[StatedSymptom, ...] = ()
    """What the person says is as it should be, or did not happen ("no NaN", "the loss is fine")."""
    theories: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Statements in which no table found an observation."""
    names: frozenset[str] = field(default_factory=frozenset)
    """The run's own metric names that the text was read with."""

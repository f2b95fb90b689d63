"""What a predicate says of its subject: a loss that falls is in order, one that rises is a symptom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from traindx_tools.symptom.predicates import LEVEL, NORMAL, NOTHING, UNPLACED, Predicate
from traindx_tools.symptom.stated import Subject

HIGH_SCORE = 0.8
"""A score from which "the accuracy is V" is said of something that works."""
LOW_LOSS = 0.05
"""A loss below which "the loss is V" is said of something that works."""


@dataclass(frozen=True)
class Read:
    """One predicate of a clause with what belongs to it."""

    predicate: Predicate
    subject: Subject | None
    direction: str
    value: float | None
    relation: str
    phrase: str
    after: bool = False
    """Whether the subject stands before the predicate."""
    about: bool = False
    """Whether the value is named loosely: "close to zero"."""
    near: str = ""
    """The words around the predicate, where its place is looked for first."""
    lead: str = ""
    """The words before the first predicate of the clause: a place there is that of all of them."""
    level: bool = False
    """Whether a level that nothing is learned at stands behind it: "the variance of the target"."""


GOOD_WAY: Mapping[str, frozenset[str]] = {
    "rises": frozenset({"score", "reward", "speed"}),
    "falls": frozenset({"loss", "time", "term"}),
    "high": frozenset({"score", "reward", "speed"}),
    "low": frozenset({"loss", "time", "adversary", "gradient", "memory"}),
    "still": frozenset({"memory"}),
}


SLOWLY = re.compile(
    r"\b(?:slow(?:ly|er)?|sluggish(?:ly)?|barely|hardly|scarcely|little|not (?:fast|quickly) enough)\b", re.IGNORECASE
)
"""How the right move is not as it should be: "decreases very slowly"."""


_FIRM = frozenset({"always", "first", "start", "end", "each"})
"""Places that make a value more than a setting: "lr is 0.001 all the time"."""


_SIDES: Mapping[str, str] = {"above": "more", "below": "less"}
"""Of two splits: "stays above the validation loss" compares, and says nothing of a level."""


def meant(read: Read, against: str, place: str) -> str:
    """The direction that is meant; `against` and `place`: the kinds of what it is compared with and where it is.

    A loss that falls is in order, one that "is 0.5" is only an observation of sorts.
    """
    family = read.subject.family if read.subject is not None else "run"
    if read.predicate.only and read.subject is None and not read.predicate.alone:
        return read.predicate.direction if read.predicate.direction == NOTHING else UNPLACED
    if family == "lr" and read.direction == "is" and read.value and not read.about and place not in _FIRM:
        return NOTHING  # "learning_rate is 1e-3": a setting
    if against == "split" and read.direction in ("low", "high"):
        return _compared(replace(read, direction="less" if read.direction == "low" else "more"), family, against)
    if against == "split" and read.direction in ("is", "stays") and read.value is None and read.relation in _SIDES:
        return _compared(replace(read, direction=_SIDES[read.relation]), family, against)
    if read.direction in ("less", "more", "better", "worse"):
        return _compared(read, family, against)
    if read.direction in GOOD_WAY and family in GOOD_WAY[read.direction]:
        return _good_move(read, family)
    if read.direction in ("low", "high") and family == "lr" and not read.after:
        return NOTHING  # "a lower learning rate only moves the moment"
    if read.direction == "other" or (family == "setting" and not read.predicate.alone):
        return NOTHING
    if read.direction in ("is", "stays") and read.value is None:
        if against == "chance":
            return "poor"
        return "stays" if read.direction == "stays" and read.relation in ("above", "below") else NOTHING
    if read.direction == "is" and family in ("score", "reward") and read.phrase.split()[0] in _DOWNWARDS:
        return "falls"  # "it drops to 0.80", however good 0.80 would be
    return _of_value(read, family) if read.direction == "is" else read.direction


_DOWNWARDS = frozenset({"drop", "fall", "sink", "decrease", "decline", "collapse", "plunge"})


def _good_move(read: Read, family: str) -> str:
    """A move in the right direction is in order, unless the words around it say that it is slow, or too much."""
    if read.direction not in ("rises", "falls") or family not in ("loss", "score", "reward", "term"):
        return NORMAL
    if SLOWLY.search(read.near):
        return "slow-learning"
    return UNPLACED if re.search(r"\btoo\b", read.near, re.IGNORECASE) else NORMAL


def _compared(read: Read, family: str, against: str) -> str:
    """What a comparison says: between splits a gap or the reverse of one, else better or worse than it should be."""
    upwards = family in ("score", "reward", "speed")
    better = read.direction == "better" or (read.direction == ("more" if upwards else "less"))
    if against == "split":
        of_train = read.subject is not None and read.subject.group == "train"
        return "inverted" if better != of_train else "gap"
    if read.direction in ("better", "worse") or against in ("chance", "others", "before", "run"):
        return NORMAL if better else "poor"
    if read.value is None and family not in ("loss", "score", "gradient", "term", "own"):
        return NOTHING
    return NORMAL if better else "low" if upwards else "high"


def _of_value(read: Read, family: str) -> str:
    """What "is V" says: a high score and a loss near nothing are no complaint by themselves."""
    value = read.value if read.value is not None else 0.0
    if family in ("score", "reward"):
        return LEVEL if (value / 100 if 1 < value <= 100 else value) >= HIGH_SCORE else "is"
    if family in ("loss", "adversary"):
        return LEVEL if 0 < value < LOW_LOSS or (value == 0 and read.about) else "is"
    return "is"

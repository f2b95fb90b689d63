"""The value that is named behind a predicate: "stays at 0.6931", "never below 12 %", "is ln(10)"."""

from __future__ import annotations

import math
from collections.abc import Sequence

from traindx_tools.symptom.mentions import PREPOSITIONS
from traindx_tools.symptom.words import Token

RELATIONS = {
    "at": "at",
    "near": "at",
    "around": "at",
    "about": "at",
    "to": "at",
    "of": "at",
    "=": "at",
    "~": "at",
    "is": "at",
    "be": "at",
    "below": "below",
    "under": "below",
    "above": "above",
    "over": "above",
    "<": "below",
    ">": "above",
    "than": "at",
}
"""What stands before a value, and how the subject stands to it."""
_UNITS = frozenset(
    {"steps/s", "samples/s", "tokens/s", "nats", "bits", "points", "less", "across", "always", "plus", "this",
     "does", "was", "has", "misses", "fails", "falls", "reaches", "stays"}
)
_TIME = frozenset(
    [
        "step",
        "epoch",
        "iteration",
        "iter",
        "update",
        "batch",
        "episode",
        "hour",
        "second",
        "minute",
        "day",
        "month",
        "process",
        "rank",
        "gpu",
        "worker",
        "time",
        "code",
        "fold",
        "token",
    ]
)


def value_after(words: Sequence[Token], start: int, end: int) -> tuple[float | None, str]:
    """The number that follows, and how the subject stands to it; numbers of steps and of processes are none."""
    relation = ""
    for i in range(start, min(end, len(words))):
        w = words[i]
        if w.base in ("ln", "log"):
            inside = next((t.number for t in words[i + 1 : i + 4] if t.number is not None), None)
            return (math.log(inside) if inside is not None and inside > 0 else None), relation or "at"
        if w.kind == "mark" and w.base in ",()":
            return None, relation
        if w.base in RELATIONS:
            relation = RELATIONS[w.base]
        if w.number is not None or w.kind == "number":
            far = i + 2 < len(words) and words[i + 1].kind == "word" and words[i + 1].base not in PREPOSITIONS
            around = [t.base for t in words[max(i - 1, 0) : i + (3 if far else 2)] if t.kind == "word"]
            following = words[i + 1] if i + 1 < len(words) else None
            counted = following is not None and following.kind == "word" and _counts(following)
            if w.number is not None and not counted and not _TIME.intersection(around):
                return w.number, relation or "at"
            return None, relation
    return None, relation


def _counts(following: Token) -> bool:
    """Whether a number counts things: "2 codes", "28 px" are no values of a metric."""
    word = following.text.lower()
    return word in ("px", "k") or (len(word) > 3 and word.endswith("s") and word not in _UNITS)

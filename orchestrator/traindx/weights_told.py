"""The lines of "for" and "against" of a hypothesis, taken apart: the weight, the finding, how it was seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_WEIGHED = re.compile(r"\[(?P<id>[A-Z]\d{3}-\d+)\] (?P<weight>[+-]\d+\.\d+) "
                      r"\((?P<strength>\w+), (?P<bearing>\w+)\): (?P<text>.*)", re.S)


@dataclass(frozen=True)
class Weight:
    """What one finding does to a hypothesis. `weight` is in log-odds, "" where the text carries none."""

    text: str
    id: str = ""
    weight: str = ""
    strength: str = ""
    bearing: str = ""


def weight_of(text: str) -> Weight:
    """A line of "for" or "against", taken apart; a line of another form is kept as it is."""
    found = _WEIGHED.fullmatch(text)
    return Weight(**found.groupdict()) if found else Weight(text)


def weights_of(texts: Sequence[str]) -> list[Weight]:
    """The lines of one side, each finding once: a failure mode may count a finding under several of its conditions."""
    told: dict[str, Weight] = {}
    for new in map(weight_of, texts):
        old = told.get(new.id or new.text)
        if old is not None and old.weight and new.weight:
            new = replace(old, weight=f"{float(old.weight) + float(new.weight):+.1f}")
        told[new.id or new.text] = new
    return list(told.values())

"""What a fix promises: which metric should move and which way, read from the sentence that its option shows.

"loss falls below ln(classes); grad_norm finite" promises that `loss` goes down and that `grad_norm` is finite. A part
that names no metric of a log, or no way that a comparison of two runs can see ("equal to the float32 run"), promises
nothing that could be checked here: a verification then says that the effect was not shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Way = Literal["down", "up", "finite", "moves"]


@dataclass(frozen=True)
class Promise:
    """`metric` is the canonical name of a series ("loss", "grad_norm"); `group` narrows it to "validation"."""

    metric: str
    way: Way
    group: str = ""

    def __str__(self) -> str:
        return f"{self.group} {self.metric}".strip() + f" {_SAID[self.way]}"


_SAID: dict[Way, str] = {"down": "goes down", "up": "goes up", "finite": "is finite", "moves": "moves"}

_METRICS: tuple[tuple[str, str], ...] = (
    (r"grad(?:ient)?[_ ]norms?", "grad_norm"),
    (r"learning rate|\blr\b", "learning_rate"),
    (r"(?:balanced )?accuracy", "accuracy"),
    (r"perplexity", "perplexity"),
    (r"throughput", "throughput"),
    (r"data_time", "data_time"),
    (r"step[_ ]times?", "step_time"),
    (r"skipped steps", "skipped_steps"),
    (r"\bR2\b", "r2"),
    (r"\breward\b", "reward"),
    (r"entropy", "entropy"),
    (r"\bKL\b", "kl"),
    (r"\bmemory\b|\bRSS\b", "memory"),
    (r"\bloss[_ ]scale\b", "loss_scale"),
    (r"\bloss(?:es)?\b", "loss"),
)
"""Words of a promise and the series that they mean; of those at one place the first counts."""

_WAYS: tuple[tuple[Way, str], ...] = (
    ("finite", r"\bfinite\b|\bno nan\b"),
    ("down", r"\bfalls?\b|\bfalling\b|\bdecreases?\b|\bdecrease of\b|\bdrops?\b|\blower\b|\bsmaller\b|\bbelow\b|"
             r"\bleaves the chance level\b|\bfaster decrease\b"),
    ("up", r"\brises?\b|\bgrows?\b|\bincreases?\b|\bhigher\b|\babove\b"),
    ("moves", r"\bmoves?\b|\bchanges?\b|\bleaves 0\b|\bis not 0\b"),
)
_NOT_THE_END = re.compile(
    r"\b(?:first|second) (?:loss|step|batch|layer)|\binitial\b|\bstarts? at\b|\bbefore the first\b|\bequal|\bgap\b|"
    r"\bwithin (?:rounding|a factor|\d[\d.]* ?(?:%|times))|\bno longer\b|\bdoes not\b|\bunchanged\b|"
    r"\bof a perfect\b|\bgrowth\b|\bits start\b|\bstays? (?:above|below)\b|\bstops?\b|\binstead\b|\bmetric\b|"
    r"\bno (?:rise|spike|jump|step)\b", re.IGNORECASE)
"""A part with one of these says something else than where the metric stands at the end of the run."""

_HELD_OUT = re.compile(r"\bvalidation\b|\beval(?:uation)?\b|\bheld-out\b|\btest\b", re.IGNORECASE)


def promises_of(text: str) -> tuple[Promise, ...]:
    """The promises in the sentence of a fix's `metric`, each once, in their order; empty where nothing is checkable."""
    found = [p for part in re.split(r"[;,:]", text) for p in _in_part(part)]
    return tuple(dict.fromkeys(found))


def _in_part(part: str) -> tuple[Promise, ...]:
    """A part may name several metrics with one way ("loss and grad_norm stay finite") or each with its own."""
    out: list[Promise] = []
    waiting: list[tuple[str, str]] = []
    for piece in re.split(r"\band\b", part):
        if _NOT_THE_END.search(piece):
            waiting = []
            continue
        named = _metric(piece)
        waiting += [named] if named is not None else []
        way = _way(piece)
        if way is not None:
            out += [Promise(metric, way, group) for metric, group in waiting]
            waiting = []
    return tuple(out)


def _metric(piece: str) -> tuple[str, str] | None:
    found = [(m.start(), number) for number, (words, _) in enumerate(_METRICS)
             for m in [re.search(words, piece, re.IGNORECASE)] if m]
    return (_METRICS[min(found)[1]][1], "validation" if _HELD_OUT.search(piece) else "") if found else None


def _way(piece: str) -> Way | None:
    """The first way that is said: "falls below 1" is down, "rises above 0" is up."""
    places = [(m.start(), way) for way, words in _WAYS if (m := re.search(words, piece, re.IGNORECASE))]
    return min(places)[1] if places else None

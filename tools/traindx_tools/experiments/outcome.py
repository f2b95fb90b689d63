"""An outcome: what a symptom is as something that can be measured in any run of a program, without a person looking.

Events are there or not, at a step: a value that is not finite, an error, an exit code, a run that stands still.
Numbers are larger or smaller: where a curve ends, how far it fell, how far it rose above its best, the gap between two
curves, seconds per step, growth of the memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from traindx_tools.errors import BadUsage

Event = Literal["nonfinite", "error", "exit", "hang"]
Number = Literal["level", "fall", "rise", "spike", "gap", "step-time", "memory-growth"]
Kind = Event | Number

EVENTS: Mapping[str, str] = {
    "nonfinite": "a loss or gradient that is not finite",
    "error": "an error (with the text after the colon in it, where one is given)",
    "exit": "an exit code other than 0",
    "hang": "no output and no step for a while (30 s, or the seconds after the colon)",
}
NUMBERS: Mapping[str, str] = {
    "level": "where a curve ends: level:validation accuracy>0.9; the bound after < or > says when it is well",
    "fall": "how far a loss fell from its start, a score rose: gone from a tenth on",
    "rise": "how far a curve went from its best back the wrong way: gone below a tenth of its start",
    "spike": "how far a curve jumps at most the wrong way from the values before",
    "gap": "held-out minus training, of the last values",
    "step-time": "seconds a step",
    "memory-growth": "bytes that the processes hold more after each step",
}
TRENDS = ("fall", "rise", "spike")
"""Numbers that are shares of a start, or of a middle: that of the control, where runs are compared."""
QUIET_SECONDS = 30.0
"""Without output and steps: then a run counts as standing still. A checkpoint or an evaluation may be as quiet."""
FELL = 0.1
"""Share of its start by which a loss falls at least in a run that learns."""

_HIGHER = frozenset({"accuracy", "accuracy_top5", "f1", "auc", "r2", "iou", "map", "dice", "recall", "precision",
                     "bleu", "reward", "throughput", "tokens_per_second", "mfu", "psnr", "ssim", "hits", "rougel",
                     "codebook_perplexity", "codebook_used", "c_index", "concordance", "ndcg", "mrr", "hr", "hit_rate",
                     "auprc", "kappa", "mcc", "success_rate", "rouge"})  # fmt: skip
_AT_MOST_ONE = frozenset({"accuracy", "accuracy_top5", "f1", "auc", "r2", "iou", "map", "dice", "recall", "precision",
                          "hits", "c_index", "concordance", "ndcg", "mrr", "hr", "hit_rate", "auprc", "kappa", "mcc",
                          "success_rate", "ssim"})  # fmt: skip
_BOUND = re.compile(r"\s*([<>])\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*$")
_NAMED = re.compile(r"\s*([a-z-]+)\s*(?:(?::|(?=[<>]))\s*(.*\S))?\s*", re.DOTALL)


@dataclass(frozen=True)
class Outcome:
    """What is measured. As text: `KIND`, `KIND:METRIC`, `level:METRIC<BOUND`, `gap:METRIC,OTHER`, `error:TEXT`."""

    kind: Kind
    metric: str = ""
    """The curve; "" for the training loss. Of `error` a part of its text, of `hang` the seconds."""
    other: str = ""
    """Of a gap: the held-out curve."""
    bound: float | None = None
    """The value from which on it is well; None where nothing says so."""
    higher: bool | None = None
    """Whether larger values are better, None: what is usual for the metric."""

    @property
    def is_event(self) -> bool:
        """There or not, instead of a number."""
        return self.kind in EVENTS

    @property
    def up(self) -> bool:
        """Whether a larger number is better."""
        if self.kind in ("rise", "spike", "gap", "step-time", "memory-growth"):
            return False
        if self.kind == "fall":
            return True
        return self.higher if self.higher is not None else better_high(self.metric)

    @property
    def quiet_seconds(self) -> float:
        """Of `hang`: how long it has to be quiet."""
        return float(self.metric) if self.metric else QUIET_SECONDS

    def __str__(self) -> str:
        named = f"{self.kind}:{self.metric}" if self.metric else self.kind
        named += f",{self.other}" if self.other else ""
        bound = "" if self.bound is None or self.kind != "level" else f"{'>' if self.up else '<'}{self.bound:g}"
        return named + (":" if bound and not self.metric else "") + bound

    @property
    def said(self) -> str:
        """For a person."""
        of = self.metric or "the training loss"
        return {"nonfinite": f"{self.metric or 'the loss or a gradient'} is not finite",
                "error": f"an error{f' with {self.metric!r}' if self.metric else ''}",
                "exit": "an exit code other than 0",
                "hang": f"no output and no step for {self.quiet_seconds:g} s" if self.kind == "hang" else "",
                "level": f"where {of} ends", "fall": f"how far {of} {'rises' if better_high(self.metric) else 'falls'}",
                "rise": f"how far {of} goes back from its best",
                "spike": f"how far {of} jumps at most",
                "gap": f"the gap between {self.other or 'validation'} and {of}",
                "step-time": "seconds a step", "memory-growth": "bytes more after each step"}[self.kind]


def usual_name(metric: str) -> str:
    """The name under which a log's metric is kept: "train_loss" is the loss, "val_acc" the validation accuracy.

    A name that no table knows stays as it is.
    """
    from traindx_tools.on_logs.readers.names import identify

    known = identify(metric)
    if not metric or not known.known:
        return metric
    return known.canonical if known.group in (None, "train") else f"{known.group} {known.canonical}"


def better_high(metric: str) -> bool:
    """Whether a metric of this name is better where it is larger, as usual in the field; `hr_10` is read as hr."""
    return _better_high(metric) or _better_high(usual_name(metric))


def at_most_one(metric: str) -> bool:
    """Whether a metric of this name is a share, at most 1 (100 where it is counted in percent)."""
    return any(n in _AT_MOST_ONE for m in (metric, usual_name(metric)) for n in _names(m))


def _better_high(metric: str) -> bool:
    return any(n in _HIGHER for n in _names(metric))


def _names(metric: str) -> tuple[str, str]:
    name = metric.rsplit(" ", 1)[-1].rsplit("/", 1)[-1]
    return name, re.sub(r"(?:_?at)?[_@]?\d+$", "", name)


def parse_outcome(text: str) -> Outcome:
    """The outcome that a text names. Raises BadUsage for a text of another form."""
    found = _NAMED.fullmatch(text)
    kind = found.group(1) if found else ""
    if found is None or kind not in {*EVENTS, *NUMBERS}:
        raise BadUsage(f"{text!r} names no outcome: expected one of {', '.join((*EVENTS, *NUMBERS))}, where it "
                       "needs one with a metric, as in level:validation loss<0.4")
    rest = found.group(2) or ""
    bound = _BOUND.search(rest) if kind in ("level", "fall") else None
    if bound is None and kind in ("level", "fall") and re.search("[<>]", rest):
        _number(re.split("[<>]", rest)[-1], text)
    metric, _, other = (rest[:bound.start()] if bound else rest).partition(",") if kind == "gap" else (
        rest[:bound.start()] if bound else rest, "", "")
    if kind == "hang" and metric:
        _seconds(metric, text)
    value = _number(bound.group(2), text) if bound else FELL if kind == "fall" else None
    higher = bound.group(1) == ">" if bound and kind == "level" else None
    return Outcome(kind, metric.strip(), other.strip(), value, higher)  # type: ignore[arg-type]


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadUsage(f"{text!r} in the outcome {whole!r} is no number") from None


def _seconds(text: str, whole: str) -> None:
    if not _number(text, whole) > 0:
        raise BadUsage(f"the outcome {whole!r} needs a positive number of seconds")

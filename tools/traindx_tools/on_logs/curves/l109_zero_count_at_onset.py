"""What else was out of the ordinary in the record in which the loss first turned NaN.

Loops often print a count beside the loss: labelled pixels, valid tokens, positives in the batch, the sum of a mask.
Where such a count is exactly 0 in the first bad record and was positive in every record before, the loss was divided by
it (or a mean was taken of nothing): 0/0. The step at which this happens depends on the batch, no other metric moves
before, and a smaller learning rate changes nothing.

An input statistic that is itself NaN or infinite at or before that record says that the data were bad before the model
saw them; one that is ten times beyond all earlier ones names the batch to look at. Outcomes (accuracies, terms of the
loss, gradient norms) are left out: they follow from the NaN, they do not cause it. A line before it that counts missing
values in the data counts as a hint of the same kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.on_logs.curves.l101_nonfinite import is_loss_like
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.shapes import number, place
from traindx_tools.on_logs.run import Note, Run, Series
from traindx_tools.rules import Rule, Threshold

BEFORE, OFTEN, BEYOND, MANY = 2, 0.2, 10.0, 5

RULE = Rule(
    id="L109",
    name="zero-count-at-onset",
    title="A count is zero, or an input is bad, in the first record that is NaN",
    severity=Severity.CRITICAL,
    sees="Every count and input statistic that is logged in the record of the first non-finite loss, against all "
         "records before.",
    matters="It names the batch and the operation: a division by a count of zero, or values that were bad on arrival.",
    alike=("A count that is often zero: then it meets the first NaN by chance.",
           "A metric that falls to zero because the model gives NaN."),
    confirm=("Compute the loss of that batch alone: its denominator must be 0.",
             "Loop over the data once and print the batches whose count is 0 or whose inputs are not finite."),
    thresholds={
        "before": Threshold(BEFORE, "records before", "one positive count shows nothing"),
        "often": Threshold(OFTEN, "share of later records that are zero too", "a coincidence becomes likely"),
        "beyond": Threshold(BEYOND, "times the largest earlier value", "an outlier, not the spread of batches"),
    },
)

_OUTCOME = re.compile(
    r"acc|loss|grad|norm|lr\b|learning|reward|return|score|f1|recall|precision|auc|iou|dice|bleu|rouge|wer|kl\b|entropy|"
    r"perplex|throughput|time|second|speed|memory|mfu|tflops|scale|skipped|nan_|inf_|overflow|elapsed|r2|correct|hits|"
    r"weight|param|update_ratio|epoch|step|iter|patience|best|improve|error|psnr|ssim|fid|std_pred|prediction|"
    r"logit|activation|attn|attention|prob|confidence|sample_idx|worker|rank|seed|utili[sz]ation|usage|queue|gap")
"""Names of what follows from a step, or has nothing to do with its batch."""
_INPUT = re.compile(r"(?:^|_)(?:x|in|inp|input|inputs|feat|feats|feature|features|data|batch|pixel|pixels|img|image|"
                    r"images|audio|signal|wave|obs|target|targets|label|labels|y)(?:_|$)")
_STATISTIC = re.compile(r"(?:^|_)(?:mean|std|var|min|max|absmax|abs|amax|amin|norm|sum|rms|range|scale|median|avg)"
                        r"(?:_|$)")

_COUNT = re.compile(r"(?:^|_)(?:n|num|count|valid|labelled|labeled|target|targets|mask|masked|tokens?|"
                    r"positives?|pixels|px)(?:_|$)")
_MISSING = re.compile(r"\b[1-9][\d,]*\s+(?:missing|nan|null|non-?finite|invalid)\s+"
                      r"(?:values?|entries|rows?|cells?|samples?)"
                      r"|\b(?:missing|nan|null|nans)(?:\s+(?:values?|entries|rows?|cells?))?\s*[:=]\s*[1-9]",
                      re.IGNORECASE)


@dataclass(frozen=True)
class Onset:
    """The first non-finite value of a loss or gradient norm: where it is and how it is told."""

    series: Series
    i: int

    @property
    def kind(self) -> str:
        """ "nan" or "inf"."""
        return "nan" if np.isnan(self.series.values[self.i]) else "inf"

    def __str__(self) -> str:
        return f"{place(self.series, self.i)}, the first record in which {self.series} is {self.kind}"


def check(run: Run) -> Iterator[Finding]:
    """At most two findings: one a kind."""
    onset = _onset(run)
    if onset is None:
        return
    counts = [f for s in run.series if (f := _zero(s, onset)) is not None]
    inputs = [f for s in run.series if (f := _bad_input(s, onset)) is not None]
    yield from counts[:1]
    yield from inputs[:1]
    if not counts:
        yield from islice((f for s in run.series if (f := _always_zero(s, onset)) is not None), 1)
    if not inputs:
        yield from islice((f for n in run.notes if (f := _told_of(n, onset)) is not None), 1)


def _onset(run: Run) -> Onset | None:
    main = main_loss(run)
    judged = [s for s in run.series if s.group == "train" and len(s) and (is_loss_like(s.name) or s is main)]
    breaks = [Onset(s, int(np.argmax(~s.finite))) for s in judged if not s.finite.all()]
    if not breaks:
        return None
    return min(breaks, key=lambda b: (b.series.source != breaks[0].series.source, float(b.series.line[b.i]),
                                      b.series is not main))


def _index_at(s: Series, onset: Onset) -> int | None:
    """The value of `s` that belongs to the record of the onset."""
    home, i = onset.series, onset.i
    if s.rank != home.rank:
        return None
    if s.source == home.source:
        same = np.flatnonzero(s.line == home.line[i])
        if len(same):
            return int(same[0])
    if s.unit == home.unit != "line" and s.group == home.group:
        same = np.flatnonzero(s.position == home.position[i])
        return int(same[0]) if len(same) else None
    return None


def _zero(s: Series, onset: Onset) -> Finding | None:
    if is_loss_like(s.name) or _OUTCOME.search(s.name):
        return None
    i = _index_at(s, onset)
    if i is None or i < BEFORE or s.values[i] != 0.0 or not (s.values[:i] > 0).all():
        return None
    after = s.values[i + 1:]
    often = float((after == 0).mean()) if len(after) else 0.0
    if len(after) >= 3 and often == 1.0:
        return None  # it went to zero for good: a consequence
    least = float(s.values[:i].min())
    told = f"; {100 * often:.3g} % of the {len(after)} later records are 0 too" if often else ""
    return RULE.finding(
        f"{s.name} is 0 at {onset}; it was {number(least)} or more in all {i} records before{told}", s.at(i), s.source,
        bearing=Bearing.SIGN if often <= OFTEN else Bearing.COMPANION,
        severity=Severity.CRITICAL if often <= OFTEN else Severity.HIGH,
        measured=_measured(s, i, onset, "zero-count", least=least, zeros_after=often))


def _always_zero(s: Series, onset: Onset) -> Finding | None:
    """A count of what enters the loss that is 0 from the first record on, as the loss is NaN from there on."""
    if onset.i > 0 or not _COUNT.search(s.name) or len(s) < 2 or s.values.any() or _index_at(s, onset) != 0:
        return None
    return RULE.finding(
        f"{s.name} is 0 in all {len(s)} records, and {onset.series} is {onset.kind} from the first on", s.at(0, -1),
        s.source, bearing=Bearing.SIGN, measured=_measured(s, 0, onset, "zero-always"))


def _told_of(note: Note, onset: Onset) -> Finding | None:
    """A line before the NaN that counts missing values in the data."""
    told = _MISSING.search(note.text)
    if told is None or note.source != onset.series.source or note.line >= onset.series.line[onset.i]:
        return None
    where = Location(file=note.source, line=note.line, quote=note.text[:200])
    return RULE.finding(
        f'the log counts bad values in the data ("{note.text[:100]}"), and {onset.series} is {onset.kind} from '
        f"{place(onset.series, onset.i)} on", where, note.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH, measured={"kind": "missing-told", "told": told.group()[:80],
                                          "broken": onset.series.name, "records_before": onset.i})


def _bad_input(s: Series, onset: Onset) -> Finding | None:
    if s.group != onset.series.group or is_loss_like(s.name) or not (_INPUT.search(s.name) and
                                                                     _STATISTIC.search(s.name)):
        return None
    bad = np.flatnonzero(~s.finite)
    i = _index_at(s, onset)
    if len(bad) and bad[0] > 0 and _not_after(s, int(bad[0]), onset):
        first = int(bad[0])
        kind = "nan" if np.isnan(s.values[first]) else "inf"
        return RULE.finding(
            f"{s.name} is {kind} at {place(s, first)}, and {onset.series} is {onset.kind} from "
            f"{place(onset.series, onset.i)}: the batch was bad before the model saw it", s.at(first), s.source,
            bearing=Bearing.SIGN, measured=_measured(s, first, onset, "input-nonfinite"))
    if i is None or i < MANY or not s.finite[:i + 1].all():
        return None
    largest = float(np.abs(s.values[:i]).max())
    if largest <= 0 or abs(float(s.values[i])) < BEYOND * largest:
        return None
    return RULE.finding(
        f"{s.name} is {number(float(s.values[i]))} at {onset}; it was {number(largest)} at most in all {i} records "
        "before", s.at(i), s.source, bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured=_measured(s, i, onset, "extreme", largest=largest))


def _not_after(s: Series, first: int, onset: Onset) -> bool:
    home = onset.series
    if s.source == home.source:
        return bool(s.line[first] <= home.line[onset.i])
    return s.unit == home.unit != "line" and bool(s.position[first] <= home.position[onset.i])


def _measured(s: Series, i: int, onset: Onset, kind: str, **more: Value) -> dict[str, Value]:
    return {"kind": kind, "metric": s.name, "value": float(s.values[i]), "records_before": i,
            "broken": onset.series.name, "position": float(s.position[i]), "unit": s.unit, **more}

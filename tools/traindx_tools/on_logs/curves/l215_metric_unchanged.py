"""An evaluation gives the same number to the last digit although training goes on.

A model that changes, however little, changes a continuous metric in its last printed digits. One that repeats at every
evaluation, or before and after the training, was measured on parameters that did not change: the optimizer holds no
parameters or others than the model's, the adapter is frozen, the evaluation uses a copy or a checkpoint made before
training, a cache returns old results. Training metrics prove nothing here: loss, reward and gradient norm move with
the batches alone.

`measured.kind`: "series" (a held-out series equal at three records or more; for accuracies and rewards every held-out
metric must be equal, since those have few possible values), "before-after" (two numbers that the log itself calls
before and after, or initial and final), "stopped" (moved at first, and from some record on nearly all held-out metrics
are equal, at five records and more: they broke off instead of coming to rest by their last digits; `measured.training`
says whether the training loss goes on "falling" or is "flat" meanwhile), "weights" (the norm of the parameters is
logged and never changes). An accuracy of exactly 0 or 1 is left alone, and so are evaluations behind the first of
which the log has no learning rate but 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.curves.baselines import Curve, constant, curve, median, tail
from traindx_tools.on_logs.curves.learning import main_loss, number, span
from traindx_tools.on_logs.curves.standing import ABRUPT, Standing, standing, training_since
from traindx_tools.on_logs.curves.standing import RECORDS as STANDING
from traindx_tools.on_logs.run import Note, Run, Series
from traindx_tools.rules import Rule, Threshold

RECORDS = 3
COARSE_RECORDS = 4
DIGITS = 3

RULE = Rule(
    id="L215",
    name="metric-unchanged",
    title="Evaluation gives the same number although training goes on",
    severity=Severity.HIGH,
    sees="held-out metrics, numbers called before and after, the norm of the weights",
    matters="What is evaluated is not what is trained, or nothing is trained.",
    alike=(
        "A held-out set of a few samples: an accuracy has few possible values and may repeat.",
        "A learning rate of zero: the schedule has ended.",
        "A metric that is rounded to one or two digits.",
    ),
    confirm=(
        "Compare one parameter before and after an optimizer step: (p_after - p_before).abs().max().",
        "Print sum(p.numel() for g in optimizer.param_groups for p in g['params']).",
        "Print the learning rate and a hash of the evaluated parameters at each evaluation: equal hashes beside a rate "
        "of 0 are an ended schedule, beside a rate above 0 frozen parameters or a copy; other hashes a cached result.",
    ),
    thresholds={
        "records": Threshold(RECORDS, "evaluations", "equal to the last digit; unchanged tensor 3: sagemaker-debugger"),
        "coarse_records": Threshold(COARSE_RECORDS, "evaluations", "of accuracies and rewards"),
        "standing": Threshold(STANDING, "evaluations", "after which a metric that moved counts as stopped"),
        "abrupt": Threshold(ABRUPT, "units of the last digit", "one that converges comes to rest by smaller steps"),
        "digits": Threshold(DIGITS, "significant digits", "fewer may be the log's rounding"),
    },
)

_COARSE = re.compile(r"accuracy|reward|f1|recall|precision|bleu|rouge|exact|score|auc|iou|map|wer|error")
_NO_OUTCOME = re.compile(r"(?:^|[^a-z])(?:\w*time|elapsed|duration|latency|eta|speed|fps|seconds?|throughput|samples|"
                         r"tokens|memory|runtime|size|epoch|learning|count|num|steps?|best|scale|batch)(?:$|[^a-z])")
_NUMBER = r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_BEFORE_AFTER = re.compile(rf"\b(before|initial|pre)\b[^\d\n+-]{{0,40}}{_NUMBER}[^\n]{{0,60}}?"
                           rf"\b(after|final|post)\b[^\d\n+-]{{0,40}}{_NUMBER}", re.I)


def check(run: Run) -> Iterator[Finding]:
    """A finding of each kind that is there."""
    if not _trains(run):
        return
    yield from _repeated(run)
    yield from _before_after(run)
    yield from _weights(run)


def _trains(run: Run) -> bool:
    """Whether training metrics vary, so that steps were taken, and the learning rate was not zero."""
    rate = run.first("learning_rate")
    if rate is not None and len(curve(rate)) and not curve(rate).values.any():
        return False
    moving = [s for s in run.find("loss", "grad_norm", "reward", "mse", "nll", group="train") if len(s) >= 3]
    other = main_loss(run)
    return any(not constant(curve(s).values) for s in [*moving, *([other] if other is not None else [])])


def _digits(value: float) -> int:
    return len(f"{abs(value):.9e}".split("e")[0].replace(".", "").rstrip("0"))


def _repeated(run: Run) -> Iterator[Finding]:
    held_out = [curve(s) for s in run.series if s.group in ("validation", "test") and len(s) >= RECORDS
                and not _NO_OUTCOME.search(s.name)]
    held_out = [c for c in held_out if len(c) >= RECORDS]
    fine = [c for c in held_out if not _COARSE.search(c.series.name)]
    moved = [c for c in held_out if not constant(c.values)]
    stopped = standing(held_out, [c for c in fine if _digits(float(c.values[-1])) >= DIGITS])
    if stopped is not None:
        if not _rate_is_zero_after(run, stopped.curve, stopped.first):
            yield _stopped(run, stopped)
        return
    for c in held_out:
        coarse = c not in fine
        enough = len(c) >= (COARSE_RECORDS if coarse else RECORDS) and _digits(float(c.values[0])) >= DIGITS
        if not constant(c.values) or not enough or (coarse and moved) or (moved and _few_beside(c, moved)):
            continue
        if _rate_is_zero_after(run, c, 0):
            return
        start, end = c.where(0, len(c) - 1)
        yield _finding(
            run, f"{c.series} is {number(float(c.values[0]))} to the last digit at all {len(c)} evaluations "
                 f"{span(c.series, start, end)}", c.series.at(start, end), c.series.source,
            {"kind": "series", "metric": c.series.name, "value": float(c.values[0]), "records": len(c)})
        return


def _rate_is_zero_after(run: Run, c: Curve, first: int) -> bool:
    """Whether the learning rate is 0 at all records behind that evaluation: the same numbers are due then."""
    rate = run.first("learning_rate")
    if rate is None or not len(rate):
        return False
    at = c.where(first, first)[0]
    for mine, others in ((c.series.step, rate.step), (c.series.epoch, rate.epoch),
                         (c.series.line, rate.line if rate.source == c.series.source else rate.line[:0])):
        if len(others) and np.isfinite(others).all() and np.isfinite(mine[at]):
            behind = rate.values[others > mine[at]]
            return bool(len(behind) and not behind.any())
    return False


def _stopped(run: Run, told: Standing) -> Finding:
    c, training = told.curve, training_since(run, told)
    start, end = c.where(told.first, len(c) - 1)
    count = len(c) - told.first
    others = f", as {told.still - 1} of {told.metrics - 1} other held-out metrics" if told.metrics > 1 else ""
    why = {"falling": "; the training loss goes on falling: a copy or a cached result is evaluated",
           "flat": "; the training loss stands as well: the rate is 0, everything is frozen, or an old state is used",
           "unknown": ": the rate is 0, everything is frozen, a copy is evaluated, or a cached result"}[training]
    return _finding(run, f"{c.series} moved until record {told.first} and is {number(float(c.values[-1]))} to the last "
                         f"digit at the {count} evaluations since{others}, {span(c.series, start, end)}{why}",
                    c.series.at(start, end), c.series.source,
                    {"kind": "stopped", "metric": c.series.name, "value": float(c.values[-1]), "records": count,
                     "first": told.first, "training": training})


def _few_beside(c: Curve, moved: list[Curve]) -> bool:
    """Whether a sibling metric moves at the same evaluations: the model does change then."""
    return any(m.series.source == c.series.source and len(m) >= len(c) for m in moved)


def _before_after(run: Run) -> Iterator[Finding]:
    pairs = [*_pairs_in_notes(run.notes), *_pairs_in_series(run), *_pairs_around_training(run)]
    for text, before, after, place, source in pairs:
        if math.isfinite(before) and before == after and _digits(before) >= DIGITS:
            yield _finding(run, f"{text}: {number(before)} before training and {number(after)} after it", place, source,
                           {"kind": "before-after", "metric": text[:80], "value": before, "records": 2})
            return


def _pairs_in_notes(notes: tuple[Note, ...]) -> Iterator[tuple[str, float, float, Location, str]]:
    for note in notes[:5000]:
        match = _BEFORE_AFTER.search(note.text[:500])
        if match is not None:
            label = note.text[:match.start()].strip(" :=-|\t") or "evaluation"
            yield (label[:80], float(match.group(2)), float(match.group(4)),
                   Location(file=note.source, line=note.line, quote=note.text[:200]), note.source)


def _pairs_around_training(run: Run) -> Iterator[tuple[str, float, float, Location, str]]:
    """Held-out metrics with two records: both in one line ("before 0.5 after 0.5"), or around the whole training."""
    training = [s for s in run.series if s.group == "train" and len(s) >= COARSE_RECORDS]
    for s in run.series:
        if s.group == "train" or len(s) != 2 or _NO_OUTCOME.search(s.name):
            continue
        beside = [t for t in training if t.source == s.source]
        around = any(s.line[0] <= t.line[0] and s.line[1] >= t.line[-1] for t in beside)
        if beside and (around or s.line[0] == s.line[1]):
            yield str(s), float(s.values[0]), float(s.values[1]), s.at(0, 1), s.source


_BEFORE = re.compile(r"(?:^|_)(?:before|initial|pre)(?:$|_)")


def _pairs_in_series(run: Run) -> Iterator[tuple[str, float, float, Location, str]]:
    """Series called alike but for before and after, as free-text readers make of "reward before 0.5 after 0.5"."""
    short = [s for s in run.series if 1 <= len(s) <= 3 and _snake(s.original)]
    for before in short:
        name = _snake(before.original)
        if not _BEFORE.search(name):
            continue
        stem = _BEFORE.sub("_", name).strip("_")
        for after in short:
            other = _snake(after.original)
            if re.search(r"(?:^|_)(?:after|final|post)(?:$|_)", other) and before.source == after.source:
                other_stem = re.sub(r"(?:^|_)(?:after|final|post)(?:$|_)", "_", other).strip("_")
                if stem == other_stem or not other_stem or (not stem):
                    yield (stem or other_stem or "evaluation", float(before.values[-1]), float(after.values[-1]),
                           before.at(-1), before.source)


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _weights(run: Run) -> Iterator[Finding]:
    for s in run.find("weight_norm"):
        c = curve(s)
        if len(c) >= COARSE_RECORDS and constant(c.values) and _digits(float(c.values[0])) >= DIGITS:
            start, end = c.where(0, len(c) - 1)
            yield _finding(run, f"{s.original} is {number(float(c.values[0]))} to the last digit at all "
                                f"{len(c)} records "
                                f"{span(s, start, end)}: the parameters do not change", s.at(start, end), s.source,
                           {"kind": "weights", "metric": s.name, "value": float(c.values[0]), "records": len(c)})
            return


def _finding(run: Run, statement: str, place: Location, source: str,
             measured: dict[str, float | int | str | None]) -> Finding:
    norm, rate = _level(run.first("grad_norm", group="train")), _level(run.first("learning_rate"))
    beside = [f"grad_norm is {number(norm)}" if norm is not None else "",
              f"the learning rate {number(rate)}" if rate is not None else ""]
    said = " and ".join(b for b in beside if b)
    return RULE.finding(f"{statement}, although training goes on{f' ({said})' if said else ''}", place, source,
                        bearing=Bearing.SIGN, severity=Severity.HIGH,
                        measured={**measured, "grad_norm": norm, "learning_rate": rate,
                                  "grad_norm_nonzero": norm is not None and norm > 0})


def _level(series: Series | None) -> float | None:
    if series is None or not len(curve(series)):
        return None
    values = curve(series).values
    return tail(values) if len(values) >= 3 else median(values)

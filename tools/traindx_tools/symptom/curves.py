"""A stated symptom of a metric, looked up in its series."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.curves.shapes import number
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom import measure
from traindx_tools.symptom.answer import NOT_SEEN, SEEN, SymptomAnswer
from traindx_tools.symptom.meaning import SLOWLY
from traindx_tools.symptom.measure import Measured
from traindx_tools.symptom.resolve import HELD_OUT, series_of
from traindx_tools.symptom.stated import StatedSymptom, Subject
from traindx_tools.symptom.window import Window, named_in, resume_in, window_of

ROUNDED = 0.02
"""Share by which a value that somebody names may differ from the recorded one: two digits."""
_WORDS = re.compile(r"[a-z]{2,}")
FEWEST = 5
"""Records below which a recording refutes nothing."""


def on_series(symptom: StatedSymptom, run: Run) -> SymptomAnswer | None:
    """The answer that the series give; None where none of them holds what was spoken of."""
    if symptom.direction == "nonfinite":
        return _nonfinite(symptom, run)
    if symptom.direction in ("gap", "inverted"):
        return _between(symptom, run)
    judge = _JUDGES.get(symptom.direction)
    missed: list[SymptomAnswer] = []
    for series in series_of(symptom.subject, run)[:4] if judge is not None else ():
        window = window_of(series, symptom.place, run, symptom.direction in ("still", "stays"))
        if window is None or judge is None or not len(window.cut):
            continue
        told = _answer(symptom, series, window, judge(symptom, window, run))
        if told.answer == SEEN:
            return told
        missed.append(told)
    if not missed:
        return None
    answer = replace(missed[0], refuted=all(m.refuted for m in missed))
    return _by_its_value(symptom, run, answer) if symptom.value is not None else answer


def _by_its_value(symptom: StatedSymptom, run: Run, missed: SymptomAnswer) -> SymptomAnswer:
    """The answer where the series that was looked at does something else and a value was named.

    A series that ends there and shares a word with it was meant ("AUC falls to 0.60 on new data": holdout_auc); a value
    that the series never took was read off something that is not recorded, and the series refutes nothing.
    """
    value = symptom.value or 0.0
    looked = next(s for s in series_of(symptom.subject, run) if len(s))
    words = set(_WORDS.findall(looked.original.lower()))
    for s in run.series:
        last = float(s.values[-1]) if len(s) else np.nan
        shared = words & set(_WORDS.findall(s.original.lower()))
        if s is not looked and shared and abs(last - value) <= ROUNDED * abs(value):
            return SymptomAnswer(symptom, SEEN, f"{_name(s)} is {number(last)} at its end.", _name(s),
                                 str(s.at(len(s) - 1, len(s) - 1)), {"value": value, "last": last})
    near = np.abs(looked.values[looked.finite] - value) <= ROUNDED * abs(value)
    return replace(missed, refuted=missed.refuted and bool(near.any()))


def _answer(symptom: StatedSymptom, series: Series, window: Window, found: Measured) -> SymptomAnswer:
    name = _name(series)
    t = window.whole
    aside = (
        (
            f" The record goes from {measure.at(t, 0)} to {measure.at(t, len(t) - 1)}: what was said of "
            f"{symptom.place.words!r} lies outside."
        )
        if window.outside
        else ""
    )
    index = found.index if found.index is not None else 0
    until = found.until if found.until is not None else index
    return SymptomAnswer(
        symptom,
        SEEN if found.holds and not window.outside else NOT_SEEN,
        f"{name} {found.statement}.{aside}",
        name,
        str(series.at(min(index, until), max(index, until))),
        found.values,
        refuted=found.against and not window.outside and len(t) >= FEWEST and _can_refute(symptom, series),
    )


def _can_refute(symptom: StatedSymptom, series: Series) -> bool:
    """Whether this record can refute it: it goes through to a finite end, and what was said is said of this run alone.

    A jump at no named place may be one from an earlier run to this one, and another split may be meant.
    """
    if symptom.direction == "jumps" and symptom.place.low is None:
        return False
    if symptom.against.kind in ("run", "others", "before"):
        return False
    if symptom.direction in ("explodes", "rises", "falls", "spikes", "oscillates") and symptom.place.kind in (
        "start",
        "soon",
        "each",
        "sometimes",
    ):
        return False  # what is short may lie between two records
    group = symptom.subject.group if symptom.subject is not None else None
    return bool(np.isfinite(series.values[-1])) and (
        group in (None, series.group) or (group in HELD_OUT and (series.group in HELD_OUT))
    )


def _name(series: Series) -> str:
    """The series as the log names it, with its group where the name does not say it."""
    own = series.original
    return own if series.group == "train" or series.group[:3] in own.lower() else f"{series.group} {own}"


def _nonfinite(symptom: StatedSymptom, run: Run) -> SymptomAnswer | None:
    """The first value that is NaN or infinite, among the series that were named or, where the run was, among all."""
    named = series_of(symptom.subject, run) if _is_metric(symptom.subject) else ()
    others = [s for s in run.series if len(s) and s.group in _groups(symptom.subject, run) and s not in named]
    for pool in (named, _of_kind(symptom.subject, others)):
        bad = [s for s in pool if not s.finite.all()]
        if bad:
            s = min(bad, key=lambda x: x.position[np.flatnonzero(~x.finite)[0]])
            return _not_finite(symptom, s)
    elsewhere = [s for s in others if not s.finite.all()]
    if elsewhere:
        s = min(elsewhere, key=lambda x: x.position[np.flatnonzero(~x.finite)[0]])
        mine = f"{_name(named[0])} is finite in all {len(named[0])} records" if named else "no such metric was recorded"
        other = _not_finite(symptom, s)
        return replace(other, answer=NOT_SEEN, statement=f"{mine}; {other.statement}", question=_WHICH)
    looked = [*named] or [s for s in others if "loss" in s.name or s.name in ("mse", "nll", "grad_norm", "elbo")]
    if not looked:
        return None
    longest = max(looked, key=len)
    window = window_of(longest, symptom.place, run)
    outside = window is not None and window.outside
    told = (
        f"{_name(longest)} is finite in all {len(longest)} records, as are {len(others) + len(named) - 1} other series."
    )
    return SymptomAnswer(
        symptom,
        NOT_SEEN,
        told,
        _name(longest),
        str(longest.at(0, -1)),
        {"records": len(longest)},
        refuted=len(longest) >= FEWEST and not run.errors and not outside,
    )


_WHICH = "Is it this other metric that you mean, or where do you see it: in which file and at which step?"


def _of_kind(subject: Subject | None, others: Sequence[Series]) -> list[Series]:
    """Of the series that were not named those that the words mean: every one for the run, other losses for a loss."""
    if not _is_metric(subject):
        return list(others)
    losses = subject is not None and subject.key == "loss"
    return [s for s in others if losses and "loss" in s.name and s.name != "loss_scale"]


def _not_finite(symptom: StatedSymptom, s: Series) -> SymptomAnswer:
    """Where a series ceases to be finite."""
    first = int(np.flatnonzero(~s.finite)[0])
    count = int((~s.finite).sum())
    before = f" ({number(float(s.values[first - 1]))} before)" if first and s.finite[first - 1] else ""
    told = (
        f"{_name(s)} is {s.values[first]:g} at {s.unit} {s.position[first]:.10g}{before} and not finite in "
        f"{count} of {len(s)} records."
    )
    values = {"first": float(s.position[first]), "records": len(s), "not_finite": count}
    return SymptomAnswer(symptom, SEEN, told, _name(s), str(s.at(first)), values)


def _is_metric(subject: Subject | None) -> bool:
    return subject is not None and subject.family not in ("run", "setting", "output", "weights")


def _groups(subject: Subject | None, run: Run) -> frozenset[str]:
    if subject is not None and subject.group in HELD_OUT:
        return frozenset(HELD_OUT)
    return frozenset({"train", *HELD_OUT})


def _between(symptom: StatedSymptom, run: Run) -> SymptomAnswer | None:
    """The same metric on training and on held-out data, at the end of the run."""
    for key in ("accuracy", "loss"):
        mine = symptom.subject
        if (
            mine is not None
            and _is_metric(mine)
            and mine.key not in ("split", key)
            and mine.family != ("score" if key == "accuracy" else "loss")
        ):
            continue
        pairs = [
            _first(Subject(key, "score" if key == "accuracy" else "loss", key, g), run) for g in ("train", *HELD_OUT)
        ]
        held = pairs[1] or pairs[2]
        if pairs[0] is None or held is None:
            continue
        return _compared(symptom, pairs[0], held, upwards=key == "accuracy")
    return None


def _first(subject: Subject, run: Run) -> Series | None:
    found = [s for s in series_of(subject, run) if s.group == subject.group]
    return found[0] if found else None


def _compared(symptom: StatedSymptom, train: Series, held: Series, upwards: bool) -> SymptomAnswer | None:
    a, b = window_of(train, symptom.place, Run()), window_of(held, symptom.place, Run())
    if a is None or b is None:
        return None
    mine, theirs = measure.ends(a.whole.y)[1], measure.ends(b.whole.y)[1]
    lowest = float(b.whole.y.min() if not upwards else b.whole.y.max())
    worse = (mine - theirs) if upwards else (theirs - mine)
    unit = 100.0 if upwards and max(abs(mine), abs(theirs)) > 1.5 else 1.0
    wide = worse > (0.05 * unit if upwards else 0.2 * abs(mine) + 1e-9)
    under = worse < 0
    seen = under if symptom.direction == "inverted" else wide
    told = (
        f"{_name(train)} ends at {number(float(a.whole.y[-1]))} and {_name(held)} at {number(float(b.whole.y[-1]))} "
        f"({'highest' if upwards else 'lowest'} {number(lowest)})."
    )
    return SymptomAnswer(
        symptom,
        SEEN if seen else NOT_SEEN,
        told,
        _name(held),
        str(held.at(-1)),
        {"train": mine, "held_out": theirs, "best_held_out": lowest},
        refuted=not seen and len(held) >= FEWEST,
    )


def _rises(s: StatedSymptom, w: Window, run: Run) -> Measured:
    return measure.grows(w) if _family(s) == "memory" else measure.moves(w, True)


def _explodes(s: StatedSymptom, w: Window, run: Run) -> Measured:
    found = measure.moves(w, True)
    peak = float(w.whole.y.max())
    first = measure.ends(w.whole.y)[0]
    usual = max(min(abs(first), float(np.median(np.abs(w.whole.y)))), 1e-12)
    if not found.holds and peak > 10 * usual and len(w.whole) >= 3:
        i = int(np.argmax(w.whole.y))
        return Measured(
            True,
            False,
            f"reaches {number(peak)} at {measure.at(w.whole, i)}, {number(first)} at the start",
            {"peak": peak, "first": first},
            int(w.whole.index[i]),
            int(w.whole.index[i]),
        )
    return found


def _valued(s: StatedSymptom, w: Window, run: Run) -> Measured:
    """What was said with a value, else whether it stays where it is."""
    if s.value is None:
        return measure.ending(w) if s.direction in ("poor", "low", "high", "is") else _flat(s, w)
    if s.direction == "still" and s.relation in ("above", "below"):
        return measure.bound(w, s.value, s.relation == "below", _family(s) == "score")
    found = measure.near_value(w, s.value, s.relation, _family(s) == "score")
    if found.holds or s.direction not in ("still", "stays"):
        return found
    level = measure.flat(w)
    told = f"{level.statement} (not {number(s.value)})"
    better = measure.better_throughout(w.cut.y, s.value, _family(s))
    return Measured(level.holds and not better, level.against, told, {**level.values, "said": s.value}, level.index,
                    level.until)


_LEVEL = re.compile(r"plateau|\bflat|\bconstant|\blevel|saturat|stagna|same\b|unchanged|identical", re.IGNORECASE)
"""Words for a level, of which a curve that goes up is none; "does not fall" is one that rises as well."""


def _flat(s: StatedSymptom, w: Window) -> Measured:
    """Whether it stays where it is; one that goes the wrong way does not do what it should either."""
    found = measure.flat(w, slow=SLOWLY.search(s.said) is not None)
    first, last = found.values.get("first"), found.values.get("last")
    if found.holds or not isinstance(first, float) or not isinstance(last, float):
        return found
    better = (last > first) == (w.series.name.split("/")[0] in _UPWARDS)
    judged = _family(s) in ("loss", "score", "reward", "run", "term")
    if judged and not better and (s.asked or _LEVEL.search(s.said)):
        return replace(found, against=False)  # no plateau, and nothing that speaks against a fault
    if judged and not better and s.direction == "still":
        return replace(found, holds=True, against=False)
    return found


_UPWARDS = frozenset(
    {
        "accuracy",
        "accuracy_top5",
        "reward",
        "f1",
        "auc",
        "iou",
        "map",
        "dice",
        "r2",
        "recall",
        "precision",
        "bleu",
        "hits",
        "auprc",
        "psnr",
        "ssim",
        "explained_variance",
    }
)


def _poor(s: StatedSymptom, w: Window, run: Run) -> Measured:
    """How it ends. A score of 0.9 or more is shown and not called poor: whether it suffices, no file says."""
    if s.target is not None:
        return measure.short_of(w, s.target, s.value, s.direction == "low", _family(s) == "score")
    if s.place.kind == "resume" and s.value is None and s.direction in ("low", "high"):
        return measure.jump(w, s.direction == "high", resume_in(w, s.place, run))  # than before it
    found = _valued(s, w, run)
    last = float(w.whole.y[-1])
    share = last / 100 if float(np.max(np.abs(w.whole.y))) > 1.5 else last
    if s.value is None and _family(s) == "score" and w.series.name != "reward" and share >= 0.9:
        return Measured(False, False, found.statement, found.values, found.index, found.until)
    first, end, spread = measure.ends(w.whole.y)
    if s.against.kind == "chance" and _family(s) == "score" and end > 2 * first and end - first > 6 * spread > 0:
        told = f"rises from {number(first)} to {number(end)} at {measure.at(w.whole, len(w.whole) - 1)}"
        return Measured(False, True, told, {"first": first, "last": end}, found.index, found.until)
    return found


def _jumps(s: StatedSymptom, w: Window, run: Run) -> Measured:
    upwards = _family(s) not in ("score", "reward") or w.series.name == "learning_rate"
    found = measure.jump(w, upwards, middle := resume_in(w, s.place, run), named_in(w, s.place))
    peak = measure.spike(w) if upwards and w.told and middle is None else found
    return peak if peak.holds and not found.holds else found


def _spikes(s: StatedSymptom, w: Window, run: Run) -> Measured:
    """A spike, or a step up at the named place: a person who saw it rise there is not told that it did not."""
    found = measure.spike(w)
    step = measure.jump(w, True, named=named_in(w, s.place)) if w.told else found
    return step if step.holds and not found.holds else found


def _unsettled(s: StatedSymptom, w: Window, run: Run) -> Measured:
    found = measure.rough(w)
    level = measure.flat(w)
    return found if found.holds or level.holds else measure.flat(w, slow=True)


def _negative(s: StatedSymptom, w: Window, run: Run) -> Measured:
    t = w.cut
    below = np.flatnonzero(t.y < 0)
    i = int(below[0]) if len(below) else 0
    told = (
        f"is below 0 in {len(below)} of {len(t)} records, first {number(float(t.y[i]))} at {measure.at(t, i)}"
        if len(below)
        else f"is never below 0: its lowest value is {number(float(t.y.min()))}"
    )
    return Measured(
        bool(len(below)), not len(below), told, {"lowest": float(t.y.min())}, int(t.index[i]), int(t.index[-1])
    )


def _family(s: StatedSymptom) -> str:
    return s.subject.family if s.subject is not None else "run"


_JUDGES: Mapping[str, Callable[[StatedSymptom, Window, Run], Measured]] = {
    "rises": _rises,
    "explodes": _explodes,
    "falls": lambda s, w, run: measure.moves(w, False),
    "still": _valued,
    "stays": _valued,
    "is": _valued,
    "poor": _poor,
    "low": _poor,
    "high": _poor,
    "slow-learning": lambda s, w, run: measure.flat(w, slow=True),
    "unstarted": lambda s, w, run: measure.zero(w),
    "spikes": _spikes,
    "jumps": _jumps,
    "oscillates": lambda s, w, run: measure.rough(w),
    "unsettled": _unsettled,
    "negative": _negative,
    "too-good": lambda s, w, run: measure.ending(w),
    "collapse": lambda s, w, run: measure.moves(w, False),
    "unused": lambda s, w, run: measure.ending(w),
}

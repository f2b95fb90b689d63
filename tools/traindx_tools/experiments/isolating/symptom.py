"""The symptom as a condition on a run: what makes a run bad, so that no person has to look at each.

    exit, exit=3        an exit code other than 0, or this one
    output~REGEX        a text in the output
    nan, nan(METRIC)    a loss or gradient norm, or this metric, that is not finite
    METRIC>NUMBER       where a metric ends; also <, >=, <=, and max(METRIC)>NUMBER, min(...), mean(...), first(...)
    timeout             a run that does not end within its time
    nonfinite, error:TEXT, level:METRIC<WELL, fall, ...   an outcome of experiments: its event, or that it is not well

Several conditions: one of them is enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.oracle import Trial
from traindx_tools.experiments.isolating.outcomes import Shown
from traindx_tools.experiments.outcome import EVENTS, NUMBERS, Outcome, parse_outcome
from traindx_tools.experiments.reading import event, number
from traindx_tools.experiments.trace import Trace

MOST_OUTPUT = 64 * 2**20
"""Bytes of the output that are read; the supervisor keeps no more."""
LONGEST_REGEX = 500

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BOUND = re.compile(rf"\s*(?:(last|max|min|mean|first)\((.+)\)|(.+?))\s*(>=|<=|>|<)\s*({_NUMBER})\s*")
_LOSS = r"\w*(?:loss|nll|perplexity|grad_?norm)\w*"
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b}
_TAKEN: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "last": lambda v: float(v[-1]), "first": lambda v: float(v[0]), "max": lambda v: float(np.max(v)),
    "min": lambda v: float(np.min(v)), "mean": lambda v: float(np.mean(v))}

Seen = tuple[Shown, str]


@dataclass(frozen=True)
class Condition:
    """One condition: its text, and what it says of a run."""

    text: str
    judge: Callable[[Trace], Seen]


@dataclass(frozen=True)
class Symptom:
    """Conditions of which one is enough."""

    conditions: tuple[Condition, ...]

    @property
    def text(self) -> str:
        """As typed."""
        return " or ".join(c.text for c in self.conditions)

    def judge(self, trace: Trace) -> Trial:
        """What the run shows: the symptom, its absence, or neither."""
        seen = [c.judge(trace) for c in self.conditions]
        for wanted in (Shown.FAIL, Shown.UNRESOLVED, Shown.PASS):
            for shown, why in seen:
                if shown is wanted:
                    return Trial(shown, why, trace.seconds)
        raise AssertionError("a symptom has a condition")


def parse_symptom(texts: Sequence[str]) -> Symptom:
    """The symptom that these texts name; `exit` where there is none. Raises BadUsage."""
    return Symptom(tuple(map(_condition, texts or ("exit",))))


def _condition(text: str) -> Condition:
    told = text.strip()
    if told == "exit" or re.fullmatch(r"exit\s*==?\s*\d+", told):
        code = re.search(r"\d+", told)
        return Condition(told, partial(_exit, int(code[0]) if code else None))
    if told == "timeout":
        return Condition(told, _timeout)
    if told.startswith("output~"):
        return Condition(told, partial(_output, _regex(told.removeprefix("output~"))))
    named = re.fullmatch(r"nan(?:\((.+)\))?", told)
    if named is not None:
        return Condition(told, partial(_nan, named[1] or ""))
    if re.fullmatch(rf"({'|'.join((*EVENTS, *NUMBERS))})(:.*)?", told, re.DOTALL):
        return Condition(told, partial(_of_outcome, _bounded_outcome(told)))
    bound = _BOUND.fullmatch(told)
    if bound is not None:
        return Condition(told, partial(_bounded, bound[1] or "last", (bound[2] or bound[3]).strip(), bound[4],
                                       float(bound[5])))
    raise BadUsage(f"{text!r} is no condition: expected exit, exit=CODE, output~REGEX, nan, nan(METRIC), timeout, a "
                   "metric with a bound, as in 'loss>1' or 'min(accuracy)<0.9', or an outcome of `traindx experiment`, "
                   "as in nonfinite, error:TEXT or fall")


def _bounded_outcome(text: str) -> Outcome:
    outcome = parse_outcome(text)
    if not outcome.is_event and outcome.bound is None:
        raise BadUsage(f"{text!r} is no condition: nothing says from which value on a run is well; give a bound, as in "
                       "level:validation loss<0.4")
    return outcome


def _of_outcome(outcome: Outcome, trace: Trace) -> Seen:
    """An event that came, or a number that is not well: what experiments measure."""
    if outcome.is_event:
        seen = event(outcome, trace)
        return (Shown.FAIL, seen.said or outcome.said) if seen.there else _absent(trace, f"not seen: {outcome.said}")
    measured = number(outcome, trace)
    stopped = _stopped(trace)
    if measured is None or stopped or outcome.bound is None or math.isnan(measured.value):
        return Shown.UNRESOLVED, stopped or f"it does not record {outcome.said}"
    well = measured.value >= outcome.bound if outcome.up else measured.value <= outcome.bound
    return (Shown.PASS if well else Shown.FAIL), f"{outcome.said}: {measured.value:.6g}"


def _regex(text: str) -> re.Pattern[str]:
    try:
        if not text or len(text) > LONGEST_REGEX:
            raise re.error("it is empty or too long")
        return re.compile(text)
    except re.error as error:
        raise BadUsage(f"{text!r} is no regular expression: {error}") from None


def output_of(trace: Trace) -> str:
    """What the run printed, as far as it was kept."""
    try:
        with Path(trace.folder, "output.log").open("rb") as stream:
            return stream.read(MOST_OUTPUT).decode("utf-8", "replace")
    except OSError:
        return ""


def _stopped(trace: Trace) -> str:
    """Why the run says nothing of what did not come, "" where it came to its end."""
    if trace.stopped:
        return f"the run was stopped ({trace.stopped}) after {trace.seconds:.0f} s"
    if trace.exit_code not in (0, None):
        return f"the run ended with exit code {trace.exit_code}" + (f": {trace.error}" if trace.error else "")
    return "" if trace.ended else "the run did not end"


def _absent(trace: Trace, why: str) -> Seen:
    stopped = _stopped(trace)
    return (Shown.UNRESOLVED, stopped) if stopped else (Shown.PASS, why)


def _exit(code: int | None, trace: Trace) -> Seen:
    if trace.stopped or trace.exit_code is None:
        return Shown.UNRESOLVED, _stopped(trace) or "no exit code"
    ended = f"exit code {trace.exit_code}" + (f": {trace.error}" if trace.error else "")
    if trace.exit_code == 0:
        return Shown.PASS, ended
    return (Shown.FAIL if code in (None, trace.exit_code) else Shown.UNRESOLVED), ended


def _timeout(trace: Trace) -> Seen:
    if trace.stopped == "time":
        return Shown.FAIL, f"not over after {trace.seconds:.0f} s"
    return _absent(trace, f"over after {trace.seconds:.1f} s")


def _output(pattern: re.Pattern[str], trace: Trace) -> Seen:
    found = pattern.search(output_of(trace))
    if found is not None:
        return Shown.FAIL, f"the output has {' '.join(found[0].split())[:120]!r}"
    return _absent(trace, "the output does not have it")


def _nan(metric: str, trace: Trace) -> Seen:
    if metric:
        values = values_of(trace, metric)
        if values is None:
            return Shown.UNRESOLVED, _stopped(trace) or f"it records no {metric}"
        if not np.isfinite(values).all():
            return Shown.FAIL, f"{metric} is {values[~np.isfinite(values)][0]}"
        return _absent(trace, f"{metric} is finite")
    for name, curve in trace.curves.items():
        if re.fullmatch(_LOSS, name.rsplit(" ", 1)[-1].rsplit("/", 1)[-1]) and not np.isfinite(curve.values).all():
            return Shown.FAIL, f"{name} is {curve.values[~np.isfinite(curve.values)][0]}"
    pattern = rf"(?i)(?<![\w.]){_LOSS}[\"']?\s*[=:]?\s*[\"']?[-+]?(?:nan|inf(?:inity)?)(?!\w)"
    found = re.search(pattern, output_of(trace))
    if found is not None:
        return Shown.FAIL, f"the output has {found[0]!r}"
    return _absent(trace, "every loss is finite")


def _bounded(taken: str, metric: str, sign: str, bound: float, trace: Trace) -> Seen:
    values = values_of(trace, metric)
    if values is None or not len(values):
        return Shown.UNRESOLVED, _stopped(trace) or f"it records no {metric}"
    value = _TAKEN[taken](values)
    why = f"{taken} {metric} is {value:.6g}"
    if math.isnan(value):
        return Shown.UNRESOLVED, f"{why}: add the condition nan where that is the symptom"
    final = (taken, sign[0]) in (("max", ">"), ("min", "<"), ("first", sign[0]))
    if _SIGNS[sign](value, bound):
        stopped = "" if final else _stopped(trace)
        return (Shown.UNRESOLVED, stopped) if stopped else (Shown.FAIL, why)
    return _absent(trace, why)


def values_of(trace: Trace, metric: str) -> NDArray[np.float64] | None:
    """The records of a metric: by its own name, by that of the field, or as it stands in the output."""
    wanted = _plain(metric)
    for name, curve in trace.curves.items():
        if name == metric or _plain(name) == wanted:
            return curve.values
    pattern = rf"(?<![\w.]){re.escape(metric)}[\"']?\s*[=:]?\s*[\"']?({_NUMBER}|[-+]?(?:nan|inf(?:inity)?)(?!\w))"
    found = re.findall(pattern, output_of(trace), re.IGNORECASE)
    return np.array([float(f) for f in found]) if found else None


def _plain(name: str) -> str:
    words = re.split(r"[\s_/.-]+", name.lower().removeprefix("live/"))
    return " ".join("validation" if w in ("val", "valid", "dev", "eval") else w for w in words)

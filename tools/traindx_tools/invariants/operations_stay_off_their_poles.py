"""No argument reaches a point where the operation or its derivative is infinite, and what guards it is a number there.

A softmax or sigmoid underflows to exactly 0, a ReLU, a count or a variance is 0 by design: the logarithm is -inf, the
derivative of a root infinite (times the 0 of the square inside: NaN), a division by a deviation 0 / 0. `where` hides it
from the forward pass alone: the branch that is not selected is differentiated too. An epsilon has to stand under the
root, and the dtype has to hold it: `1 - 1e-10` is 1 in float32 (spacing 6e-8 below 1), `x + 1e-8` is x in float16, and
so is Adam's epsilon there. The mean over a mask is 0 / 0 for the first batch in which nothing is valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.finding import Severity, Value
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.constants import Pole, Rounded
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("poles", ("C107", "C111", "C112", "C131", "C138", "C502", "C505"))
_PROBABILITIES = ("softmax", "sigmoid")


def check(program: Program) -> Iterator[Breach]:
    """Look at every operation with a pole, and at every number that its dtype does not hold."""
    told = {"sqrt": _root, "division": _division, "count": _count, "where": _hidden}
    beside: dict[str, list[object]] = {}
    for pole in program.poles:
        if pole.kind == "log" and _is_guardable(pole):
            beside.setdefault(str(pole.at), []).append(pole.origin[:2])
    for pole in program.poles:
        yield _log(pole, beside.get(str(pole.at), [])) if pole.kind == "log" else told[pole.kind](pole)
    yield from map(_rounded, program.rounded)


def _is_guardable(pole: Pole) -> bool:
    """Whether it is a probability that a gradient goes through and nobody has bounded yet."""
    within = pole.of in _PROBABILITIES or (pole.low == 0 and pole.high is not None and pole.high <= 1)
    return within and pole.attached is True and not pole.guard


def _log(pole: Pole, beside: list[object]) -> Breach:
    """`beside`: the logarithms of its line that are guarded together."""
    if pole.low < 0:
        return _log_of_negative(pole)
    attached, known = pole.attached is True, pole.of in _PROBABILITIES
    source = f"{pole.of} output from {pole.made}, which" if pole.of and pole.made else (
        f"a value from {pole.made}, which" if pole.made else "a value that")
    severity = Severity.HIGH if attached else Severity.MEDIUM if known and pole.attached is None else Severity.LOW
    if pole.spread and attached:
        severity = Severity.MEDIUM
    said = f"{pole.text} at {pole.at} takes the logarithm of {source} reaches exactly {pole.low:g}"
    said += "; its gradient is infinite there" if attached else ""
    if pole.guard:
        said += f": {pole.why}, so that the clamp" if pole.why else "; the clamp"
        said += f" {pole.guard} does not prevent it"
    return Breach("C107", said, pole.at, Known.DERIVED if known or attached or pole.why else Known.GUESSED,
        {"kind": "log", "low": pole.low, "high": "unbounded" if pole.high is None else pole.high, "of": pole.of
        or "expression", "dtype": pole.dtype, "in_graph": attached}, severity, _remedy("raise the epsilon", pole)
        if pole.guard else _remedy("guard the logarithm", pole, beside) if _is_guardable(pole) else None)


def _log_of_negative(pole: Pole) -> Breach:
    source = f"the output of the linear layer from {pole.made}" if pole.made else "what a linear layer gives"
    return Breach("C107", f"{pole.text} at {pole.at} takes the logarithm of {source}, which nothing keeps above 0: NaN "
        "where it is negative", pole.at, measured={"kind": "log-of-negative", "of": pole.of, "in_graph": True,
        "dtype": pole.dtype}, severity=Severity.HIGH)


def _root(pole: Pole) -> Breach:
    certain = pole.attached is True
    severity = None if certain and not pole.spread else Severity.MEDIUM if certain else Severity.INFO
    outside = f"; {pole.guard} is added outside the root, where it does not protect" if pole.guard else ""
    return Breach(
        "C111", f"{pole.text} at {pole.at} takes the root of a value that can be exactly 0{outside}: the gradient "
        "there is 0 * inf = NaN", pole.at, Known.DERIVED if certain else Known.GUESSED,
        {"kind": "sqrt", "epsilon_outside": pole.guard, "in_graph": certain, "of": pole.of}, severity,
        _remedy("epsilon under the root", pole))


def _division(pole: Pole) -> Breach:
    return Breach(
        "C131", f"{pole.text} at {pole.at} divides by a spread that is exactly 0 where all values are equal: 0 / 0 is "
        "NaN", pole.at, Known.GUESSED, {"kind": "spread", "in_graph": pole.attached is True},
        remedy=_remedy("epsilon in the divisor", pole))


def _count(pole: Pole) -> Breach:
    stays = ", and goes into what is kept from step to step, where it stays" if pole.spread else ""
    return Breach(
        "C138", f"{pole.text} at {pole.at} divides by the number of True elements of a mask, which is 0 where a batch "
        f"has none: 0 / 0 is NaN{stays}", pole.at, Known.GUESSED, {"kind": "kept" if pole.spread else "count"},
        Severity.MEDIUM if pole.spread else Severity.LOW, _remedy("at least one", pole))


def _hidden(pole: Pole) -> Breach:
    return Breach(
        "C502", f"{pole.text} at {pole.at} differentiates {pole.of} where the condition {pole.guard} excludes it "
        "too: an infinite value there turns the gradient into 0 * inf = NaN", pole.at,
        measured={"kind": "where", "unsafe": pole.of}, remedy=_remedy("safe inside", pole))


def _remedy(kind: str, pole: Pole, origin: Any = None) -> Remedy:
    return Remedy(kind, Act(Moment.FORWARD, pole.at, origin=origin or pole.origin))


def _rounded(one: Rounded) -> Breach:
    measured: dict[str, Value] = {"kind": one.kind, "epsilon": one.value, "eps": one.value, "dtype": one.dtype}
    if one.kind == "clamp":
        return Breach("C112", f"The upper limit of {one.text} at {one.at} is 1 in {one.dtype}: 1 - {one.value:.3g} "
                      "rounds to exactly 1, so a value of 1 is not kept away from 1 and log(1 - x) is log(0)", one.at,
                      measured=measured)
    if one.kind == "addition":
        return Breach("C112", f"{one.value:g} in {one.text} at {one.at} is 0 in {one.dtype}: nothing is added", one.at,
                      measured=measured)
    return Breach("C505", f"{one.text} at {one.at} has eps {one.value:g}, which is 0 in the parameters' dtype "
                  f"{one.dtype}: entries with zero gradient are updated by 0 / 0 = NaN", one.at, measured=measured)

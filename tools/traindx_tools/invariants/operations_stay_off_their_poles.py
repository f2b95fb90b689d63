"""No logarithm is taken of 0, and what keeps its argument away from there is a number in its dtype.

A softmax or sigmoid underflows to exactly 0, a ReLU, a count or a variance is 0 by design: the logarithm is -inf, its
gradient infinite. A clamp whose epsilon the dtype does not hold (`1 - 1e-10` is 1 in float32) keeps nothing away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.constants import Pole
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("poles", ("C107",))
_PROBABILITIES = ("softmax", "sigmoid")


def check(program: Program) -> Iterator[Breach]:
    """Look at every logarithm."""
    beside: dict[str, list[object]] = {}
    for pole in program.poles:
        if pole.kind == "log" and _is_guardable(pole):
            beside.setdefault(str(pole.at), []).append(pole.origin[:2])
    yield from (_log(p, beside.get(str(p.at), [])) for p in program.poles if p.kind == "log")


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


def _remedy(kind: str, pole: Pole, origin: Any = None) -> Remedy:
    return Remedy(kind, Act(Moment.FORWARD, pole.at, origin=origin or pole.origin))

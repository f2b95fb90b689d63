"""One term of the loss is a hundred times all others together.

What is a hundredth of the loss is nearly nothing of its gradient: the small terms are not trained. Usual causes are a
sum where the others are means, a weight that was tuned for another scale, a unit (pixels squared, nats a sequence).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FACTOR, LOOKS = 100.0, 3

RULE = Rule(
    id="T401",
    name="term-dominates",
    title="One term dominates the loss",
    severity=Severity.LOW,
    sees="the weighted value of each term of the loss at sampled steps",
    matters="the other terms are not trained",
    alike=("the surrogate of a policy, which is about 0 by construction: terms that are ever negative are left out",
           "a regulariser that is meant to be small: weight decay, an entropy bonus",
           "terms of unlike units whose gradients are alike: T404 measures those"),
    confirm=("gradient norm of each term on the shared parameters (`--probe loss-pull`)",),
    thresholds={"factor": Threshold(FACTOR, "x all other terms", "two orders of magnitude at every look"),
                "looks": Threshold(LOOKS, "sampled steps in a row", "a first step is not the run")},
)


def check(looks: Sequence[tuple[int, Mapping[str, float]]], factors: Sequence[Mapping[str, float]],
          places: Mapping[str, tuple[str, int]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, weighted value by term), oldest first; `factors`: each look's weights.

    A remark (INFO) where the program itself gives the other terms a weight below 1: they are meant to be small.
    Nothing where a weight changes from look to look: a schedule is at work.
    """
    if len(looks) < LOOKS or any(f != factors[-1] for f in factors[-LOOKS:]):
        return
    signed = {n for _, values in looks for n, v in values.items() if v < 0}
    for name, (file, line) in places.items():
        if signed - {name}:
            continue
        if all(_dominates(name, values) for _, values in looks[-LOOKS:]):
            small = all(abs(f) < 1 for n, f in factors[-1].items() if n != name) and abs(factors[-1][name]) <= 1
            step, values = looks[-1]
            others = sum(abs(v) for n, v in values.items() if n != name)
            yield RULE.finding(
                f"the term {name} is {abs(values[name]):.3g} at step {step} and all others together {others:.3g}: "
                f"{abs(values[name]) / max(others, 1e-30):.0f} times as much at each of the last {LOOKS} looks",
                Location(file=file, line=line, step=step, rank=rank), source, bearing=Bearing.SIGN,
                severity=Severity.INFO if small else None,
                measured={"term": name, "ratio": round(abs(values[name]) / max(others, 1e-30), 1)})


def _dominates(name: str, values: Mapping[str, float]) -> bool:
    """A term that may be negative (a policy objective, an entropy) says nothing by its size: it passes through 0.

    Nor does one that is not finite: T101 says where that comes from.
    """
    others = [v for n, v in values.items() if n != name]
    if name not in values or any(v < 0 for v in others) or not all(map(math.isfinite, values.values())):
        return False
    return any(v > 0 for v in others) and abs(values[name]) >= FACTOR * sum(others)

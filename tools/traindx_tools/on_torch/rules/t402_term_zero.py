"""A term of the loss is exactly zero at every look, or no gradient can flow through it.

An exact zero is no small number: a mask that is empty, a weight of 0, a clamp at its bound, a difference of a value
with itself. A term without a graph (detached, computed under `no_grad`, or from `.item()`) changes the number that is
printed and nothing that is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

LOOKS = 3

RULE = Rule(
    id="T402",
    name="term-zero",
    title="A term of the loss is dead",
    severity=Severity.MEDIUM,
    sees="value, weight and graph of each term of the loss at sampled steps",
    matters="the term is not trained, though it is in the sum",
    alike=("a weight that a schedule raises from 0 later: its value is not 0, its weight is",
           "a hinge that is satisfied: it was positive at earlier looks"),
    confirm=("print the term's inputs: an empty mask, two equal tensors, a clamp", "`term.requires_grad`"),
    thresholds={"looks": Threshold(LOOKS, "sampled steps", "zero at each of them")},
)


def check(looks: Sequence[tuple[int, Mapping[str, float]]], detached: frozenset[str],
          places: Mapping[str, tuple[str, int]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, unweighted value by term). `detached`: terms that never had a graph."""
    if len(looks) < LOOKS:
        return
    last = looks[-1][0]
    for name, (file, line) in places.items():
        values = [v[name] for _, v in looks if name in v]
        if len(values) < LOOKS:
            continue
        where = Location(file=file, line=line, step=looks[0][0], end_step=last, rank=rank)
        if all(v == 0 for v in values):
            yield RULE.finding(f"the term {name} is exactly 0 at each of {len(values)} looks between steps "
                               f"{looks[0][0]} and {last}", where, source, bearing=Bearing.CAUSE,
                               measured={"term": name, "kind": "zero"})
        elif name in detached:
            yield RULE.finding(f"no gradient flows through the term {name} (value {values[-1]:.3g} at step {last}): it "
                               "is in the loss and trains nothing", where, source, bearing=Bearing.CAUSE,
                               measured={"term": name, "kind": "detached"})

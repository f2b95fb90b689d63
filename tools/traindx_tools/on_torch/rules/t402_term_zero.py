"""A term of the loss is exactly zero at every look though nothing switches it off, or no gradient can flow through it.

An exact zero with a gradient path is no small number: a clamp at its bound, a difference of a value with itself, an
index that never matches. It is dead where its gradient is zero as well. A weight of 0 is a decision of the program, a
constant that a sum starts with is no term, and a mask that is empty at every look is a remark: it may be meant. A term
without a graph (detached, computed under `no_grad`) that changes from look to look changes the number that is printed
and nothing that is trained; one that never changes is a constant.

A term with a value and a graph is asked on copies of three steps how hard it pulls: `kind` "no-gradient" where its
value changes and its gradient on everything that is trained is exactly 0 (it passes through a rounding or a comparison,
or reaches what is frozen alone). One that stays at one value is a floor (free bits, a margin), and a remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.term_gradients import TermPull

OFF, MASKED, ALIVE, DEAD, UNKNOWN = "off", "masked", "alive", "dead", "unknown"
"""What `loss_terms.zero.why_zero` says; written out here because rules are read without torch."""
LOOKS = 3

RULE = Rule(
    id="T402",
    name="term-zero",
    title="A term of the loss is dead",
    severity=Severity.MEDIUM,
    sees="value, weight and graph of each term of the loss at sampled steps",
    matters="the term is not trained, though it is in the sum",
    alike=("a weight of 0, configured or raised from 0 later by a schedule: the term is switched off",
           "the 0 that a sum starts with, and what stands in for a term that is not used: no term at all",
           "a difference of a value and its own detached copy: 0, and with a gradient",
           "a hinge that is satisfied: it was positive at earlier looks",
           "free bits: a divergence below its floor has a value and no gradient"),
    confirm=("print the term's inputs: an empty mask, two equal tensors, a clamp",
             "`torch.autograd.grad(term, model.parameters(), allow_unused=True)` is 0 everywhere"),
    thresholds={"looks": Threshold(LOOKS, "sampled steps", "zero at each of them")},
)


def check(looks: Sequence[tuple[int, Mapping[str, float]]], detached: frozenset[str], why: Mapping[str, str],
          places: Mapping[str, tuple[str, int]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, unweighted value by term). `detached`: terms that never had a graph.

    `why`: see `loss_terms.zero`, for terms with a graph that were 0 at looks in a row.
    """
    if len(looks) < LOOKS:
        return
    for name, (file, line) in places.items():
        values = [v[name] for _, v in looks if name in v]
        if len(values) < LOOKS:
            continue
        where = Location(file=file, line=line, step=looks[0][0], end_step=looks[-1][0], rank=rank)
        if name in detached:
            yield from _without_graph(name, values, looks, where, source)
        elif all(v == 0 for v in values):
            yield from _zero(name, len(values), why.get(name, UNKNOWN), where, source)


def _zero(name: str, count: int, why: str, where: Location, source: str) -> Iterator[Finding]:
    said = f"the term {name} is exactly 0 at each of {count} looks between steps {where.step:g} and {where.end_step:g}"
    if why in (DEAD, UNKNOWN):
        also = " and so is its gradient, though nothing multiplies it by 0" if why == DEAD else ""
        yield RULE.finding(said + also, where, source, measured={"term": name, "kind": "zero"},
                           bearing=Bearing.CAUSE if why == DEAD else Bearing.SIGN)
    elif why == MASKED:
        yield RULE.finding(f"{said}: its mask is 0 everywhere", where, source, bearing=Bearing.COMPANION,
                           severity=Severity.LOW, measured={"term": name, "kind": "masked"})


def _without_graph(name: str, values: Sequence[float], looks: Sequence[tuple[int, Mapping[str, float]]],
                   where: Location, source: str) -> Iterator[Finding]:
    """Nothing for a constant, and for the detached copy of a term that is there with its graph."""
    copied = any(other != name and all(v.get(other) == v.get(name) for _, v in looks) for _, v in looks for other in v)
    if len(set(values)) > 1 and not copied:
        yield RULE.finding(f"no gradient flows through the term {name} (value {values[-1]:.3g} at step "
                           f"{where.end_step:g}): it is in the loss and trains nothing", where, source,
                           bearing=Bearing.CAUSE, measured={"term": name, "kind": "detached"})


def check_pulls(looks: Sequence[tuple[int, Mapping[str, TermPull]]], places: Mapping[str, tuple[str, int]], source: str,
                rank: int) -> Iterator[Finding]:
    """`looks`: (step, what each term with a graph pulls on all that is trained)."""
    if len(looks) < LOOKS:
        return
    for name, (file, line) in places.items():
        seen = [pulls[name] for _, pulls in looks if name in pulls]
        if len(seen) < LOOKS or any(t.norm != 0 or t.value == 0 for t in seen):
            continue
        varies = len({t.value for t in seen}) > 1
        still = "" if varies else ", and its value stays the same"
        yield RULE.finding(
            f"the term {name} (value {seen[-1].value:.3g}) has a gradient of exactly 0 on all that is trained, at "
            f"each of {len(seen)} looks between steps {looks[0][0]} and {looks[-1][0]}{still}",
            Location(file=file or None, line=line or None, step=looks[0][0], end_step=looks[-1][0], rank=rank), source,
            bearing=Bearing.CAUSE if varies else Bearing.COMPANION, severity=None if varies else Severity.INFO,
            measured={"term": name, "kind": "no-gradient" if varies else "floor"})

"""One term pulls a hundred times as hard on the shared parameters as another.

The value of a term does not say how hard it pulls: a large constant offset pulls with nothing, a small term with a
sharp gradient with everything. Measured by its gradient on the parameters that several terms reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FACTOR, LOOKS = 100.0, 3

RULE = Rule(
    id="T404",
    name="pull-disparity",
    title="One term pulls a hundred times as hard as another",
    severity=Severity.MEDIUM,
    sees="gradient norms of each term on the parameters that several terms reach, at sampled steps",
    matters="the weaker term's task is not learned by the shared part",
    alike=("a regulariser that is meant to be weak",),
    confirm=("scale the weak term by the ratio: its metric moves",),
    thresholds={"factor": Threshold(FACTOR, "x", "one module 100 times another (Systematic Debugging skill)")},
)


def check(looks: Sequence[tuple[int, Mapping[str, float]]], places: Mapping[str, tuple[str, int]], source: str,
          rank: int) -> Iterator[Finding]:
    """`looks`: (step, gradient norm by term, weights included)."""
    if len(looks) < LOOKS or len(looks[-1][1]) < 2:
        return
    strongest = max(looks[-1][1], key=lambda n: looks[-1][1][n])
    for name, norm in looks[-1][1].items():
        pairs = [(v.get(strongest, 0.0), v.get(name, 0.0)) for _, v in looks[-LOOKS:]]
        if name != strongest and all(weak > 0 and strong >= FACTOR * weak for strong, weak in pairs):
            file, line = places.get(name, ("", 0))
            top = looks[-1][1][strongest]
            yield RULE.finding(
                f"{strongest} pulls with a gradient norm of {top:.3g} on the shared parameters at step {looks[-1][0]}, "
                f"{name} with {norm:.3g}: {top / norm:.0f} times less, at each of the last {LOOKS} looks",
                Location(file=file or None, line=line or None, step=looks[-1][0], rank=rank), source,
                bearing=Bearing.SIGN, measured={"strong": strongest, "weak": name,
                                                            "ratio": round(top / norm, 1)})

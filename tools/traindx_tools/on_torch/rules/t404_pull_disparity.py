"""One term pulls a hundred times as hard on the shared parameters as another.

The value of a term does not say how hard it pulls: a large constant offset pulls with nothing, a small term with a
sharp gradient with everything. Measured by its gradient on the parameters that several terms reach: with the probe
`loss-pull` at each look, else on copies of three steps. On copies it takes a factor of a thousand, and it is a remark
where the weaker term is small by its value as well: it was made so, a regulariser. A weight that changes from look to
look (a warm-up, an annealed divergence) says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.term_gradients import TermPull

FACTOR, LOOKS = 100.0, 3
SWAMPED, ALIKE = 1_000.0, 0.1

RULE = Rule(
    id="T404",
    name="pull-disparity",
    title="One term pulls a hundred times as hard as another",
    severity=Severity.MEDIUM,
    sees="gradient norms of each term on the parameters that several terms reach, at sampled steps",
    matters="the weaker term's task is not learned by the shared part",
    alike=("a regulariser that is meant to be weak",),
    confirm=("scale the weak term by the ratio: its metric moves",),
    thresholds={"factor": Threshold(FACTOR, "x", "one module 100 times another (Systematic Debugging skill)"),
                "swamped": Threshold(SWAMPED, "x, on copies", "three orders of magnitude at every look"),
                "alike": Threshold(ALIKE, "of the stronger term's value", "smaller by its value: meant to be weak")},
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


def check_pulls(looks: Sequence[tuple[int, Mapping[str, TermPull]]], places: Mapping[str, tuple[str, int]], source: str,
                rank: int) -> Iterator[Finding]:
    """`looks`: (step, what each term pulls). One finding a swamped term."""
    if len(looks) < LOOKS:
        return
    everywhere = [n for n in looks[0][1] if all(n in pulls for _, pulls in looks)]
    steady = {n for n in everywhere if len({pulls[n].factor for _, pulls in looks}) == 1}
    step, last = looks[-1]
    for name in sorted(steady):
        strongest = max(steady, key=lambda n: last[n].shared)
        pairs = [(pulls[strongest].shared, pulls[name].shared) for _, pulls in looks]
        if name == strongest or not all(weak > 0 and strong >= SWAMPED * weak for strong, weak in pairs):
            continue
        file, line = places.get(name, ("", 0))
        meant = abs(last[name].weighted) < ALIKE * abs(last[strongest].weighted)
        ratio = pairs[-1][0] / pairs[-1][1]
        yield RULE.finding(
            f"{strongest} pulls with a gradient norm of {pairs[-1][0]:.3g} on the shared parameters at step {step}, "
            f"{name} (weight {last[name].factor:.3g}) with {pairs[-1][1]:.3g}: {ratio:.0f} times less, at each of "
            f"{len(looks)} looks", Location(file=file or None, line=line or None, step=step, rank=rank), source,
            bearing=Bearing.COMPANION if meant else Bearing.SIGN, severity=Severity.INFO if meant else Severity.LOW,
            measured={"strong": strongest, "weak": name, "ratio": round(ratio, 1)})

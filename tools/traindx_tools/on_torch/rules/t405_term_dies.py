"""A term of the loss falls to nothing, and each of its elements counted many times as much as those of the others.

The terms of one bound (a reconstruction and the divergence of a latent code, both per sample) belong on one scale.
Where one is a sum and the other a mean over n elements, the sum weighs n times as much as was meant: it is pressed to
0, and what the other term needed from it is lost. For a divergence that is posterior collapse: the code carries
nothing. The weights are read from the graph of the loss, factors included; a small factor that makes up for n is no
fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SHARE, TINY, RATIO, LOOKS, BETTER = 0.01, 1e-3, 10.0, 3, 0.1

RULE = Rule(
    id="T405",
    name="term-dies",
    title="A term of the loss goes to 0: its elements weigh many times those of the others",
    severity=Severity.HIGH,
    sees="the value of each term at sampled steps, and the reductions (sum, mean over n) in the graph of the loss",
    matters="what the term was meant to balance is lost: a latent code that carries nothing",
    alike=("a penalty that is fulfilled: the other terms go on falling",
           "a weight that was chosen high on purpose (beta)"),
    confirm=("print(reconstruction.numel(), kl.numel()) before the reductions, and both terms summed per sample.",
             "Sum both terms over a sample's elements and average over the batch; the term has to stay above 0."),
    thresholds={"share": Threshold(SHARE, "of its start", "or below `tiny`, at each of the last looks"),
                "tiny": Threshold(TINY, "nats", "a code of that divergence tells nothing of its input"),
                "ratio": Threshold(RATIO, "of the weights of an element", "more than a beta that was chosen"),
                "looks": Threshold(LOOKS, "sampled steps in a row", "it stays there"),
                "better": Threshold(BETTER, "relative fall of the others since", "more is learning")},
)


def check(looks: Sequence[tuple[int, Mapping[str, float]]], weights: Mapping[str, float],
          places: Mapping[str, tuple[str, int]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, value by term without factor), oldest first; `weights`: of one element in the loss, by term."""
    for name, weight in weights.items():
        values = [v.get(name) for _, v in looks]
        told = [v for v in values if v is not None]
        others = {n: w for n, w in weights.items() if n != name}
        if len(told) != len(looks) or len(looks) < LOOKS + 1 or not others or min(told) < 0 or told[0] <= TINY:
            continue
        limit = max(SHARE * told[0], TINY)
        first = next((i for i in range(len(told)) if max(told[i:]) <= limit), len(told))
        other = max(others, key=lambda n: abs(looks[-1][1].get(n, 0.0)))
        start, end = (looks[min(i, len(looks) - 1)][1].get(other, 0.0) for i in (first, len(looks) - 1))
        ratio = weight / others[other]
        if len(told) - first < LOOKS or ratio < RATIO or start <= 0 or (start - end) / start > BETTER:
            continue
        file, line = places.get(name, ("", 0))
        yield RULE.finding(
            f"the term {name} falls from {told[0]:.3g} to {told[-1]:.3g} by step {looks[first][0]} and stays, while "
            f"{other} goes from {start:.3g} to {end:.3g} only; an element of {name} counts {ratio:.4g} times as much "
            f"in the loss as one of {other} ({weight:.3g} and {others[other]:.3g}: a sum beside a mean)",
            Location(file=file or None, line=line or None, step=looks[first][0], rank=rank), source,
            bearing=Bearing.CAUSE,
            measured={"term": name, "other": other, "ratio": ratio, "start": told[0], "end": told[-1],
                      "other_start": start, "other_end": end})

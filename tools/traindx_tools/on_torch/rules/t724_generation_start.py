"""Generations begin with inputs that training never gave the network at that step.

A sampler starts from pure noise at the last step, or at the first; the network was trained there on something else:
the noise schedule leaves a part of the data (a schedule for another number of steps), time runs the other way, inputs
are scaled otherwise, or the step itself lies outside what was trained. What is generated then is wrong however low the
loss.
`kind`: "mean", "scale" or "beyond".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.measures.conditioned import BEYOND, SCALE, SHIFT, SIGMAS, Start
from traindx_tools.rules import Rule, Threshold

SOURCE = "inputs of training and of generation"

RULE = Rule(
    id="T724",
    name="generation-start",
    title="Generation begins from inputs that training never had",
    severity=Severity.HIGH,
    sees="the inputs of the first call of each chain of generation against training inputs with the same step or level",
    matters="the network answers what it was never trained on, and every later step starts from that answer",
    alike=("a generation that starts from a noised example on purpose: noised as in training, it agrees",
           "a network that is evaluated at one step only: no chain"),
    confirm=("Print mean and spread of what training gives at the last step, and of what the sampler starts from.",
             "Print the share of the signal that the schedule leaves at its end: it must be near 0."),
    thresholds={
        "shift": Threshold(SHIFT, "of the input's spread", "above what usual schedules leave: Lin et al. 2024"),
        "scale": Threshold(SCALE, "of the root mean square", "the same share of the signal, in the variance"),
        "sigmas": Threshold(SIGMAS, "standard errors", "no chance among some dozens of columns"),
        "beyond": Threshold(BEYOND, "of the trained range", "a step more than the last is rounding"),
    },
)


def check(seen: Sequence[tuple[str, Start]], rank: int = 0) -> Iterator[Finding]:
    """One finding for each kind of model."""
    for model, s in seen:
        yield RULE.finding(f"generation with {model} begins at {s.value:g}, {_how(s)}",
                           Location(step=s.step, rank=rank), SOURCE, bearing=Bearing.CAUSE,
                           measured={"kind": s.kind, "module": model, "value": s.value, "shift": round(s.shift, 3),
                                     "given": s.given, "trained": s.trained, "low": s.low, "high": s.high})


def _how(s: Start) -> str:
    if s.kind == "beyond":
        return f"and training had {s.low:g} to {s.high:g} only: it was never trained there"
    rows = f"({s.rows:,} rows against {s.trained_rows:,})"
    if s.kind == "mean":
        return (f"with inputs whose mean in column {s.column} is {s.given:.3g}, where training had {s.trained:.3g} at "
                f"that value, {s.shift:.2f} of their spread apart {rows}: what training gives there still holds a part "
                "of the data")
    return (f"with inputs of root mean square {s.given:.3g}, where training had {s.trained:.3g} at that value {rows}: "
            "the two are of another scale")

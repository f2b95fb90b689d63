"""What is evaluated is another object than what is trained, with the values that the trained one began with.

A deep copy that was made before the training, an average that is never updated, a module that was frozen or exported
with its weights: it is called again and again after the optimizer has moved the trained model, holds that model's first
values bit for bit, and never changes. The trained model is never evaluated. `kind`: "copy", or "replaced" where the
trained model itself is evaluated with other tensors in the place of its parameters (`torch.func.functional_call`).

A teacher, a target or a reference (called beside most steps), an average that follows, and a baseline that is evaluated
beside the trained model are left alone. Two objects that share their memory are T341.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: stale"
MOVED, TIMES = 0.001, 2

RULE = Rule(
    id="T343",
    name="stale-model",
    title="A copy of the model from before the training is evaluated",
    severity=Severity.HIGH,
    sees="parameters of the trained model at its first call, and of other models that are called after steps",
    matters="what is evaluated is not what is trained: its result stays where it was at the beginning",
    alike=("a teacher, a target network or a reference policy: called beside the steps",
           "an untrained baseline: the trained model is evaluated as well"),
    confirm=("print(evaluated is model, sum((a - b).abs().sum().item() for a, b in "
             "zip(model.parameters(), evaluated.parameters())))",),
    thresholds={"moved": Threshold(MOVED, "of the first values' norm", "less is a few steps of any optimizer"),
                "times": Threshold(TIMES, "steps after which it was called", "one may be a baseline: a sign")},
)


@dataclass(frozen=True)
class StaleModel:
    """One such pair. `times`: steps after which the copy was called; `calls`: its calls after the first step."""

    evaluated: str
    trained: str
    tensors: int
    of: int
    moved: float
    calls: int
    times: int
    steps: int
    kind: str = "copy"
    line: tuple[str, int] | None = None
    rank: int = 0


def check(these: list[StaleModel]) -> Iterator[Finding]:
    """One finding a pair."""
    for seen in these:
        if seen.moved < MOVED or not seen.times:
            continue
        file, line = seen.line or (None, None)
        often = seen.times >= TIMES
        yield RULE.finding(
            f"{seen.evaluated} is called {seen.calls} times after {seen.times} different steps of {seen.steps}, and "
            f"{seen.tensors} of its tensors hold what {seen.trained} held before the first one; training has moved "
            f"those by {seen.moved:.2g} of their norm since, and nothing else is evaluated",
            Location(file=file, line=line, module=seen.evaluated, step=float(seen.steps), rank=seen.rank), SOURCE,
            bearing=Bearing.CAUSE if often else Bearing.SIGN, severity=None if often else Severity.MEDIUM,
            measured={"kind": seen.kind, "evaluated": seen.evaluated, "trained": seen.trained, "tensors": seen.tensors,
                      "of": seen.of, "moved": round(seen.moved, 5), "calls": seen.calls, "times": seen.times})

"""Prediction and target of a loss have different numbers of axes, and each is stretched along one of the other's.

A prediction of shape (B, 1) against a target of shape (B,) becomes (B, B): every prediction is compared with every
target, and the best answer is the mean of the targets. The shapes are those of the call of an optax loss, which are
known while it is traced. A matrix of pairs that is meant has axes of its own on both sides, and a target that is the
same for all samples stretches one side only: both are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

SOURCE = "jax probe: losses"

RULE = Rule(
    id="J403",
    name="jax-target-broadcast",
    title="The loss broadcasts predictions against targets",
    severity=Severity.CRITICAL,
    sees="shapes of the arguments of optax losses, as they are called or traced",
    matters="the best answer is the mean of all targets: R2 stays at 0 whatever the model could do",
    alike=("a matrix of pairs that is meant: both sides have as many axes",),
    confirm=("print(predictions.shape, targets.shape)  # before the loss",),
)


@dataclass(frozen=True)
class Compared:
    """One call of a loss whose two arguments have these shapes."""

    loss: str
    prediction: tuple[int, ...]
    target: tuple[int, ...]
    file: str | None
    line: int | None

    @property
    def result(self) -> tuple[int, ...] | None:
        """What is compared, where both sides are stretched and have different numbers of axes; else None."""
        if len(self.prediction) == len(self.target) or not self.prediction or not self.target:
            return None
        most = max(len(self.prediction), len(self.target))
        sides = [(1,) * (most - len(s)) + s for s in (self.prediction, self.target)]
        if any(a != b and 1 not in (a, b) for a, b in zip(*sides, strict=True)):
            return None
        both = tuple(max(pair) for pair in zip(*sides, strict=True))
        return both if all(side != both for side in sides) else None


def check(calls: Sequence[Compared]) -> Iterator[Finding]:
    """One finding a line."""
    for call in {(c.loss, c.file, c.line): c for c in calls if c.result is not None}.values():
        assert call.result is not None
        where = (Location(file=call.file, line=call.line) if call.file is not None else
                 Location(module=f"optax.{call.loss}"))
        yield RULE.finding(
            f"{call.loss} compares a prediction of shape {list(call.prediction)} with a target of shape "
            f"{list(call.target)} over {list(call.result)}: each prediction meets every target", where, SOURCE,
            bearing=Bearing.CAUSE,
            measured={"kind": "loss", "loss": call.loss, "prediction": str(list(call.prediction)),
                      "result": str(list(call.result))})

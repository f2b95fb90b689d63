"""What the loss is divided by does not fit the accumulation window.

`backward` is called several times a step, each time on a new batch, and the value it is called on is compared with the
value that the loss function returned. `kind`: "not-divided" where both are equal: the step is that of a sum, as many
times as large as that of one large batch; "twice" where it was divided by the square of the window; "other" where it
was divided by a whole number that is not the window. Sums (`reduction="sum"`), which are normalised elsewhere, and
several losses of one batch are left alone, and so are gradients that are divided by the window before the step; with an
optimizer that divides by the gradient's size (Adam) a factor matters little, so that it is a remark there.

The gradient that a window accumulates is compared with that of the same rows in one batch: `kind` "unequal" where
elements of one pass (tokens of a short micro-batch) weigh more than those of another. To weigh each sequence the same
is a decision that looks alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.course import SOURCE, at_line
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.measures.window import WindowGradient

WINDOWS, NEAR = 3, 0.01
UNEQUAL, CLOSE, MATTERS = 1.1, 0.999, 1.5

RULE = Rule(
    id="T213",
    name="window-divisor",
    title="The loss is not divided by the accumulation window",
    severity=Severity.MEDIUM,
    sees="the value that backward is called on, over the value that the loss returned, and the passes of a step",
    matters="the effective learning rate is another one than with one large batch",
    alike=("a learning rate that was tuned for the sum", "gradients that are divided before the step",
           "losses that are normalised by tokens"),
    confirm=("print(passes_per_step, (loss_given_to_backward / loss_from_criterion).item())",),
    thresholds={"windows": Threshold(WINDOWS, "windows", "one may be the last of an epoch"),
                "unequal": Threshold(UNEQUAL, "times the weight of another element",
                                     "rounding and a shorter last batch"),
                "close": Threshold(CLOSE, "cosine with the gradient of one batch",
                                   "above it the direction is the same"),
                "near": Threshold(NEAR, "relative distance of a ratio", "rounding in 16 bits")},
)


@dataclass(frozen=True)
class Divisor:
    """Over the measured windows of one optimizer."""

    windows: int
    passes: int
    """Of most windows."""
    usual: float
    """Share of the windows with so many."""
    ratio: float
    """Median of the value given to backward over the value of the loss."""
    spread: float
    """Largest relative distance of a ratio from it."""
    adaptive: bool
    clipped: bool
    line: str | None
    step: int
    rank: int = 0


def check(seen: Divisor | None, gradient: WindowGradient | None = None) -> Iterator[Finding]:
    """At most one finding. `gradient`: of the same windows, where it could be measured."""
    if gradient is not None and seen is not None and abs(gradient.stepped * seen.passes - 1) <= NEAR:
        return  # it is divided between the last pass and the step
    if seen is None or seen.windows < WINDOWS or seen.passes < 2 or seen.usual < 0.8 or seen.spread > NEAR:
        return
    divisor = 1 / seen.ratio if seen.ratio > 0 else 0.0
    if abs(divisor - 1) <= NEAR:
        kind, told = "not-divided", "as the loss returned it"
    elif abs(divisor - seen.passes**2) <= NEAR * seen.passes**2:
        kind, told = "twice", f"divided by {divisor:.4g}, the square of that"
    elif divisor >= 1.5 and abs(divisor - round(divisor)) <= NEAR * divisor and round(divisor) != seen.passes:
        kind, told = "other", f"divided by {divisor:.4g}"
    else:
        return
    low = kind == "not-divided" and (seen.adaptive or seen.clipped)
    yield RULE.finding(
        f"a step is made of {seen.passes} backward passes on batches of their own, and backward is called on the loss "
        f"{told} ({seen.windows} windows)", at_line(seen.line, seen.step, seen.rank), SOURCE,
        bearing=Bearing.CAUSE if kind == "twice" else Bearing.SIGN, severity=Severity.LOW if low else RULE.severity,
        measured={"kind": kind, "passes": seen.passes, "divisor": round(divisor, 4), "windows": seen.windows})


def check_weights(seen: WindowGradient, line: str | None, step: int, rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    if seen.windows < WINDOWS or seen.spread < UNEQUAL or seen.cosine > CLOSE:
        return
    yield RULE.finding(
        f"within the {seen.passes} passes of a step, elements of one weigh up to {seen.spread:.3g} times those of "
        f"another: the accumulated gradient has a cosine of {seen.cosine:.3f} with that of one batch of the same rows "
        f"({seen.windows} windows)", at_line(line, step, rank), SOURCE, bearing=Bearing.SIGN,
        title="Elements of one micro-batch weigh more than those of another",
        severity=Severity.LOW if seen.spread >= MATTERS else Severity.INFO,
        measured={"kind": "unequal", "passes": seen.passes, "spread": round(seen.spread, 3),
                  "cosine": round(seen.cosine, 4), "windows": seen.windows})

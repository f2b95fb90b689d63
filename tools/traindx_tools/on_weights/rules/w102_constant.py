"""A tensor is zero, or one constant, where the same tensor of the other blocks is not.

A weight of one constant keeps its units equal for ever; a weight of zeros cuts its block off. What is constant in all
blocks is design (residual branches that start at zero, scales of one, LoRA's B before training), and so is a matrix of
zeros that has no siblings, unless its own bias was trained: then a gradient came this far and the weight got none.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.adapters import pairs
from traindx_tools.on_weights.initialisers import FEWEST, sharply_drawn
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W102",
    name="constant-tensor",
    title="A tensor is one constant and its siblings are not",
    severity=Severity.HIGH,
    sees="Smallest and largest value of each tensor, against those of the same name and shape in other blocks.",
    matters="Equal units get equal gradients and stay equal; zeros pass nothing on.",
    alike=("branches that start at zero in every block", "pruned weights", "a mask that is kept as a float"),
    confirm=("compare the tensor with an earlier checkpoint", "print its smallest and largest value after loading"),
    thresholds={"others": Threshold(0.75, "share of the siblings that are not constant",
                                    "a constant that more than a quarter share is taken for design")},
)
OTHERS = 0.75
_SMALLEST = 64
"""Values of a matrix without siblings below which a constant says nothing."""


def check(seen: Seen) -> Iterator[Finding]:
    """Constant tensors among others that are not."""
    second = {up.name for _, up in pairs(seen.part.tensors).values()}
    for stats in seen.floats:
        if stats.low == 0 and stats.name in second:
            continue  # adapters that are zero are W133's
        if stats.constant and stats.size > 1 and not _recomputed(stats):
            stack = seen.stack_of.get(stats.name)
            if stack is not None:
                varied = sum(not s.constant for s in stack.members)
                if varied >= OTHERS * (len(stack) - 1) and _matters(stats, varied):
                    yield _finding(seen, stats, f"while {varied} of {len(stack) - 1} siblings ({stack.pattern}) are "
                                                "not",
                                   None if stats.tensor.matrix else Severity.MEDIUM)
            elif stats.tensor.matrix and stats.size >= _SMALLEST:
                yield from _alone(seen, stats)


def _recomputed(stats: Stats) -> bool:
    last = stats.name.rpartition(".")[2]
    return last.startswith(("running_", "num_", "mask", "moving_")) or last in ("mean", "var")


def _matters(stats: Stats, varied: int) -> bool:
    """A bias of zeros or a scale of ones is told by W104, together with its block."""
    return stats.tensor.matrix or (stats.low == 0 and not stats.name.endswith(("bias", "beta")))


def _alone(seen: Seen, stats: Stats) -> Iterator[Finding]:
    bias = seen.bias_of(stats.name)
    if stats.low == 0 and bias is not None and not bias.constant and bias.rms > 1e-6 and _trained(seen):
        yield _finding(seen, stats, f"while its bias is not (root mean square {bias.rms:.3g})", Severity.MEDIUM)
    elif stats.low != 0 and bias is not None:  # a weight: it has a bias
        yield _finding(seen, stats, "so that all its units compute the same", None)


def _trained(seen: Seen) -> bool:
    """Whether most matrices of the file have left their initialiser's bounds."""
    known = [sharply_drawn(s) is None for s in seen.weights if s.size >= FEWEST and not s.constant]
    return sum(known) > len(known) / 2


def _finding(seen: Seen, stats: Stats, why: str, severity: Severity | None) -> Finding:
    return RULE.finding(
        f"{stats.name} in {seen.path} is {stats.low:g} in all {stats.size:,} values, {why}",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE, severity=severity,
        measured={"name": stats.name, "value": stats.low, "values": stats.size,
                  "kind": "zero" if stats.low == 0 else "constant"})

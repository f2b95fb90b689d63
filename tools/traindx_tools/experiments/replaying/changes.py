"""What is changed of a step: named like the changes of whole runs where there is one of the kind.

`part` says where it takes hold: in the forward and backward pass ("pass"), or in what the optimizer makes of a gradient
("update"). `broad` ones take many a symptom away that they are not the cause of: a tenth of a wrong step does a tenth
of the harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal["pass", "update"]


@dataclass(frozen=True)
class StepChange:
    """One of them, by name."""

    name: str
    about: str
    part: Part
    broad: bool = False
    only: str = ""
    """The framework that has it, "" where each has."""


NO_UPDATE, ROWS, ZEROED = "last-update-left-out", "rows-left-out", "inputs-zeroed"
PLACING = frozenset({NO_UPDATE, ZEROED})
"""They tell where a symptom comes from, the update or the batch, and nothing of why."""
_ALL = (
    StepChange(NO_UPDATE, "the parameters before the last update", "update", broad=True),
    StepChange("float32", "everything of less precision in float32", "pass"),
    StepChange("no-autocast", "without autocast", "pass", only="torch"),
    StepChange("float64", "everything in float64", "pass", broad=True),
    StepChange("no-dropout", "without dropout", "pass", broad=True, only="torch"),
    StepChange("batch-norm-eval", "BatchNorm with its running statistics", "pass", only="torch"),
    StepChange(ZEROED, "the model's inputs are zeros", "pass", broad=True),
    StepChange("deterministic", "deterministic kernels", "pass", only="torch"),
    StepChange("clear-gradients", "without gradients of earlier steps", "update", only="torch"),
    StepChange("learning-rate:times=0.1", "a tenth of the learning rate", "update", broad=True),
    StepChange("learning-rate:times=10", "ten times the learning rate", "update", broad=True),
    StepChange("no-clipping", "without clipping", "update", only="torch"),
    StepChange("no-decay", "without weight decay", "update", only="torch"),
    StepChange("fresh-state", "the optimizer without its state", "update", broad=True),
    StepChange("matmul-precision", "matrix products in full precision", "pass", only="jax"),
    StepChange("other-key", "another random key", "pass", broad=True, only="jax"),
    StepChange("clip-gradients", "gradients clipped to a norm of 1", "update", broad=True, only="jax"),
    StepChange(ROWS, "the worst rows of the batch left out", "pass"),
    StepChange("no-jit", "each operation by itself, not compiled together", "pass", only="jax"),
)
CHANGES: Mapping[str, StepChange] = {c.name: c for c in _ALL}
"""In the order in which they are tried: what tells most comes first, where time is short."""


def changes_of(framework: str) -> dict[str, StepChange]:
    """Those of a framework ("torch", "jax"), in that order."""
    return {n: c for n, c in CHANGES.items() if c.only in ("", framework)}


NOWHERE: Mapping[str, str] = {
    "float32": "nothing is of less precision",
    "no-autocast": "there is no autocast around the model's call",
    "no-dropout": "nothing is dropped out",
    "batch-norm-eval": "no BatchNorm uses the statistics of this batch",
    ZEROED: "the model is given no numbers that could be zero",
    "deterministic": "it has no part on a GPU",
    "clear-gradients": "there are no gradients of earlier steps",
    "no-clipping": "the gradients were not clipped",
    "no-decay": "there is no weight decay",
    "fresh-state": "the optimizer has no state",
    "matmul-precision": "there is no matrix product of less than full precision",
    "other-key": "it is given no random key",
    "clip-gradients": "its gradients are not larger, or cannot be seen",
}
"""Why a change has nothing to take hold of."""

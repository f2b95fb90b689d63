"""One sample's output depends on another sample of the batch.

A reshape that mixes the batch axis with another, a softmax or a mean over the batch, an attention that runs over
samples instead of positions (`batch_first`): training works on batches and fails on single samples, and the loss can be
lowered by copying from neighbours. BatchNorm in training mode does it by design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T903",
    name="batch-leak",
    title="One sample's output depends on another's input",
    severity=Severity.HIGH,
    sees="the gradient of one sample's output with respect to the whole batch",
    matters="the model learns from its neighbours; on single samples it is another model",
    alike=("BatchNorm in training mode", "contrastive losses, which compare samples: check the encoder, not the loss"),
    confirm=("run one sample alone and in its batch, in evaluation mode: the outputs differ",),
    thresholds={"gradient": Threshold(0.0, "largest absolute gradient of another sample", "independent means zero")},
)


PACKED = ("the rows of the samples lie one behind the other, and an index or a bound (offsets of edges, ends of "
          "sequences) points into another sample")


def check(others: Mapping[int, float], samples: int, sample: int, source: str, module: str = "(model)", *,
          packed: bool = False) -> Iterator[Finding]:
    """`others`: the largest gradient by other sample; key -1 where only a change of the output was seen.

    `packed`: samples are parts of the rows, told apart by an argument.
    """
    if not others:
        return
    if packed:
        what = (f"changes by {others[-1]:.3g} standard deviations when one row takes the place of all rows of the "
                f"other {samples - 1} samples of the pack")
    elif -1 in others:
        what = f"changes by {others[-1]:.3g} when the other {samples - 1} samples are exchanged"
    else:
        index, largest = max(others.items(), key=lambda item: item[1])
        what = (f"has a gradient with respect to {len(others)} of the other {samples - 1} samples (largest "
                f"{largest:.3g}, sample {index})")
    measured: dict[str, Value] = {"samples": len(others), "largest": max(others.values())}
    if packed:
        measured["how"] = PACKED
    yield RULE.finding(f"the output of sample {sample} {what}", Location(module=module), source,
                       bearing=Bearing.CAUSE, measured=measured)

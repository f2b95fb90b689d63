"""Two sides that should agree part at this layer.

Training against evaluation mode, eager against compiled, float32 against bfloat16, a training engine against an
inference engine, your code against a reference: on one batch, layer by layer. Each layer of the second side is also
run on the first side's input, so that the layer that makes the difference is told apart from those that carry it on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.comparison.layers import Sides

RULE = Rule(
    id="T951",
    name="layers-part",
    title="Two sides part at a layer",
    severity=Severity.HIGH,
    sees="outputs of every leaf layer on both sides, and of the second side's layer on the first side's input",
    matters="what is trained is not what is evaluated, sampled from or shipped",
    alike=("dropout: it is switched off on both sides unless asked for",
           "rounding that piles up over many layers: no single layer is beyond its tolerance"),
    confirm=("`comparison.table()`: own difference by layer",
             "replace this one layer's parameters and buffers by the other side's: the outputs agree"),
    thresholds={"relative difference": Threshold("1e-7 / 1.3e-6 / 1e-3 / 1.6e-2", "float64 / 32 / 16 / bfloat16",
                                                 "the defaults of torch.testing.assert_close")},
)

_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d", "InstanceNorm2d")


def check(comparison: Sides, source: str) -> Iterator[Finding]:
    """One finding: the first layer that parts, or the two between which code does, or layers that one side lacks."""
    one, other = comparison.names
    measured: dict[str, Value] = {"sides": f"{one}/{other}", "output_difference": _finite(comparison.output)}
    layer = comparison.first
    if layer is not None:
        own = "has another shape or non-finite values" if math.isinf(layer.own or 0) else f"differs by {layer.own:.2g}"
        statistics = " (its running statistics are not those of the batch)" if layer.kind in _NORMS else ""
        yield RULE.finding(
            f"{one} and {other} part at {layer.path} ({layer.kind}): on identical input its output {own} relative, "
            f"tolerance {layer.tolerance:.1g}{statistics}; the outputs differ by {comparison.output:.2g}",
            Location(module=layer.path), source, bearing=Bearing.CAUSE,
            measured={**measured, "kind": layer.kind, "own": _finite(layer.own or 0.0)})
    elif comparison.between is not None:
        before, after = comparison.between
        yield RULE.finding(
            f"{one} and {other} part between {before} and {after}: every layer agrees on identical input, so the code "
            f"between them differs; the outputs differ by {comparison.output:.2g}", Location(module=after), source,
            bearing=Bearing.SIGN, measured={**measured, "kind": "between"})
    elif comparison.only_first or comparison.only_second:
        missing, side = ((comparison.only_first, other) if comparison.only_first else (comparison.only_second, one))
        yield RULE.finding(f"{side} never calls {', '.join(missing[:4])}, which the other side does",
                           Location(module=missing[0]), source, bearing=Bearing.CAUSE,
                           measured={**measured, "kind": "missing"})


def _finite(value: float) -> Value:
    return value if math.isfinite(value) else str(value)

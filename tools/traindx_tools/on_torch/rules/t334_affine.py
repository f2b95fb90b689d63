"""Several layers are one affine map.

The output of the last linear or convolutional layer of a copy is an affine function of the input: mixtures and
multiples of inputs give the same mixtures and multiples of outputs. No activation stands between the layers, or none
that bends. Where a layer in between bends by itself, its branch is switched off: a gate of zero that is not trained. A
single layer (a linear probe, a regression), a bottleneck that is narrower than input and output (a
factorised layer, a linear autoencoder) and models of ids are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.questions import Affine

RULE = Rule(
    id="T334",
    name="affine-model",
    title="A model of several layers is one affine map",
    severity=Severity.HIGH,
    sees="the output of the last layer for mixtures and multiples of the inputs of one training call",
    matters="depth adds nothing: it fits what one linear layer fits",
    alike=("a factorised layer: its hidden width is below that of both ends", "a deep linear network that is studied"),
    confirm=("f = model; print((f(a / 2 + b / 2) - f(a) / 2 - f(b) / 2).abs().max())",),
    thresholds={"error": Threshold(1e-4, "of the output's range", "rounding in float32, some hundred times")},
)


def check(seen: Affine | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or seen.narrowest < seen.ends:
        return
    said = (f"the {seen.layers} layers of {where.model} are one affine map of its input (departure {seen.error:.1e}; "
            f"narrowest hidden width {seen.narrowest})")
    if seen.bends:
        said += f", though what {seen.bends} computes bends: it does not reach the output (times zero, or left out)"
    yield RULE.finding(said, where.at(), SOURCE, bearing=Bearing.SIGN if seen.bends else Bearing.CAUSE, measured={
        "layers": seen.layers, "narrowest": seen.narrowest, "module": where.model, "bends": seen.bends,
        "kind": "unreached" if seen.bends else "bare"})

"""Half precision changes a step, and this is the first module where it does.

One step of a program that computes in float16 or bfloat16 (autocast, or parameters of that type) is run twice on
copies, from the same weights, inputs and random numbers: as it is, and in single precision. `kind`: "overflow" where a
module's output is not finite in half precision alone; "underflow" where at least half of a module's gradients are
exactly 0 in it and not in single precision (a loss scale, where the program has one, is in both); "parts" where the
output of a module lies further off than rounding takes it. The difference of loss and gradients as a whole is a fact of
the program and stands among its facts also where nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.dependence import Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.half_precision import Half

SOURCE = "torch probe: copy of a step"

RULE = Rule(
    id="T954",
    name="half-parts",
    title="Half precision parts from single precision",
    severity=Severity.MEDIUM,
    sees="outputs and gradients of each module of one step on copies, in half and in single precision",
    matters="what is trained is the rounding: values overflow, or gradients that are too small are 0",
    alike=("bfloat16 in a deep model: outputs differ by some per cent, which training does not mind",
           "gradients that are 0 in both: dead units, masks"),
    confirm=("traindx experiment --change float32",),
    thresholds={"apart": Threshold("0.02 (float16), 0.3 (bfloat16)", "relative difference of an output",
                                   "some twenty roundings of the dtype"),
                "flushed": Threshold(0.5, "of a module's gradients", "a few are lost in every float16 training")},
)

_BEARING = {"overflow": Bearing.CAUSE, "underflow": Bearing.CAUSE, "parts": Bearing.COMPANION}
_SEVERITY = {"overflow": Severity.HIGH, "underflow": Severity.MEDIUM, "parts": Severity.INFO}


def check(half: Half, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if half.kind not in _BEARING:
        return
    what = {
        "overflow": "gives values that are not finite in half precision and finite ones in single precision",
        "underflow": f"gets gradients of which {half.difference:.0%} are exactly 0 in half precision alone",
        "parts": f"gives an output that is {half.difference:.2g} (relative) from that in single precision",
    }[half.kind]
    yield RULE.finding(
        f"{half.module} is the first of {half.modules} modules that {what} ({half.dtype}); the loss differs by "
        f"{half.loss:.2g}, the gradient by {half.gradient:.2g} with a cosine of {half.cosine:.3f}",
        Location(module=half.module, step=float(where.step), rank=where.rank), SOURCE, bearing=_BEARING[half.kind],
        severity=_SEVERITY[half.kind],
        measured={"kind": half.kind, "dtype": half.dtype, "module": half.module, "modules": half.modules,
                  "loss": round(half.loss, 6), "gradient": round(half.gradient, 6), "cosine": round(half.cosine, 4)})


def told(half: Half) -> str:
    """As a fact of the program."""
    return (f"one step in {half.dtype} against single precision, on copies: the loss differs by {half.loss:.2g}, the "
            f"gradient by {half.gradient:.2g} (relative), cosine {half.cosine:.4f}")

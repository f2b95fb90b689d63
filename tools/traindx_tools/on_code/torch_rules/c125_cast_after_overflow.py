"""A value is cast to float32 after the operation that can overflow float16.

Under float16 autocast a matrix product is computed and returned in float16: what exceeds 65504 is inf before
`.float()` sees it. The cast protects what follows, not the product. It is a remark on where an overflow would arise:
whether it does depends on the weights, and a probe or bfloat16 settles it. Loss scaling does not help, since it is
the forward pass that overflows.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C125",
    name="cast-after-overflow",
    title="A float16 product is cast only after it can have overflowed",
    severity=Severity.INFO,
    sees="float() on the output of a linear layer or matrix product under float16 autocast.",
    matters="inf in the forward pass, NaN in the loss, a loss scale that falls to its floor.",
    alike=("loss-scale collapse by gradients", "log of 0"),
    confirm=("print the largest absolute output of the layer", "autocast to bfloat16, whose range is float32's"),
    thresholds={"largest float16": Threshold(65504, "absolute", "IEEE 754 binary16")},
)


def check(project: Project) -> Iterator[Finding]:
    """Look at casts under autocast."""
    for event in project.calls("float", "to"):
        x = event.receiver
        if event.autocast == "float16" and isinstance(x, Tensor) and x.kind == "linear" and event.method == "float":
            yield RULE.finding(
                f"{event.file.segment(event.node)} at {event.file.path}:{event.line} casts a product that "
                "autocast has computed "
                "in float16: what exceeds 65504 is inf already",
                location(event),
                event.file.path,
                bearing=Bearing.COMPANION,
                measured={"kind": "cast", "largest": 65504, "made_at": str(x.kind_site)},
            )

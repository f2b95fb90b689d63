"""A gradient scaler is used with bfloat16.

bfloat16 has the range of float32: gradients do not underflow, and there is nothing to scale. The scaler costs a check
for infinities in every step and doubles its scale until it overflows once in a while, at which a good step is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.arrays import dtype_of
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.values import Const, Thing, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C213",
    name="scaler-with-bfloat16",
    title="A gradient scaler is used with bfloat16",
    severity=Severity.INFO,
    sees="autocast in bfloat16 and nowhere in float16, and a GradScaler that is switched on.",
    matters="Steps are skipped now and then for nothing; a remark.",
    alike=("a script that chooses the type by an option and switches the scaler off for bfloat16",),
    confirm=("print(scaler.get_scale()): it grows until a step is skipped",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at the types of all regions, and at the scalers."""
    types = {_dtype(m) for e in project.calls("autocast") if isinstance(m := e.result, Thing)}
    if types != {"bfloat16"}:
        return
    for event in project.calls("GradScaler"):
        made = event.result
        enabled = made.kwargs.get("enabled", Const(True)) if isinstance(made, Thing) else None
        if enabled is not None and truth(enabled) is True and any(True for _ in project.calls("scale")):
            yield RULE.finding(
                f"The GradScaler made at {event.file.path}:{event.line} scales gradients of a bfloat16 region, which "
                "has the range of float32",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "scaler"},
            )


def _dtype(manager: Thing) -> str | None:
    named = [dtype_of(a) for a in (*manager.args, *manager.kwargs.values())]
    return next((d for d in named if d), None)

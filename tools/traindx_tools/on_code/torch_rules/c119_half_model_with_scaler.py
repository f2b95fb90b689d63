"""The trained model itself is float16 while a GradScaler is used.

Loss scaling is for float32 parameters under autocast: their gradients are float32 and can be unscaled. A model cast by
`.half()` or `.to(torch.float16)` has float16 gradients, and `scaler.unscale_` refuses them ("Attempting to unscale FP16
gradients"). Only frozen modules may be cast; the trained ones stay float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.precision import half_module
from traindx_tools.on_code.project import Project, at, location
from traindx_tools.on_code.training import is_false, is_scaler
from traindx_tools.on_code.values import Thing

(RULE,) = pages("torch", ("C119",))


def check(project: Project) -> Iterator[Finding]:
    """Look at what gradient scalers step."""
    if any(True for _ in project.calls("cast_training_params")) or any(
        e.name == "attribute.data" for e in project.events if e.kind == "store"
    ):
        return
    for event in project.calls("step", "unscale_"):
        scaler = event.receiver
        if (
            not is_scaler(scaler)
            or not event.args
            or (isinstance(scaler, Thing) and is_false(scaler.kwargs.get("enabled")))
        ):
            continue
        found = half_module(event.args[0])
        if found is None or found[1] != "float16":
            continue
        _, dtype, site = found
        yield RULE.finding(
            f"The model that is trained was cast to {dtype} at {site} and is stepped by a GradScaler at "
            f"{event.file.path}:{event.line}: its gradients are float16 and cannot be unscaled",
            at(site, project) if site else location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "half model", "dtype": dtype, "scaler_line": event.line},
        )
        return

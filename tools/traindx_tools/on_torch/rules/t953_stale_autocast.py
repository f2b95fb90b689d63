"""Parameters were changed inside one autocast region that goes on using their old casts.

`torch.autocast` keeps the half-precision copy of each float32 parameter until the outermost region ends. Swapping
weights inside it (EMA weights in and out, a reference policy in the same module, `load_state_dict`, a LoRA adapter
merged) does not refresh the copy: the second forward computes with the first weights. The telltale is a loss or a KL
that is exactly flat, or a reference that equals the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T953",
    name="stale-autocast",
    title="Parameters changed inside an autocast region: old casts are used",
    severity=Severity.HIGH,
    sees="version and storage of each float32 parameter at two forward passes inside one autocast region",
    matters="the second pass computes with the first pass's weights, silently",
    alike=("a region opened for each forward: the copies are dropped at its end",
           "`cache_enabled=False`: nothing is kept"),
    confirm=("`torch.clear_autocast_cache()` after the change: the second output changes",
             "`torch.autocast(..., cache_enabled=False)`"),
    thresholds={"changed parameters": Threshold(1, "parameter", "one is enough: its cast is stale")},
)


def check(changed: Sequence[str], step: int, source: str, rank: int) -> Iterator[Finding]:
    """`changed`: paths of float32 parameters that changed between two forwards of one region."""
    if not changed:
        return
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    yield RULE.finding(
        f"{', '.join(changed[:3])}{more} changed between two forward passes inside one torch.autocast region: the "
        f"second pass used the cached casts of the old values (step {step})",
        Location(module=changed[0], step=step, rank=rank), source, bearing=Bearing.CAUSE,
        measured={"parameters": len(changed)})

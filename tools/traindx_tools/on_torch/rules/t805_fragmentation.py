"""The CUDA caching allocator holds much more than is in use: memory is there, in pieces that do not fit.

Sizes that change from step to step (sequence lengths, sampled boxes) leave blocks that no later request fits into.
`reserved` then lies far above `allocated`, and a request fails although enough bytes are free in sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.memory.breakdown import MemoryBreakdown

MIB = 2**20

IDLE_SHARE = 0.3
IDLE_BYTES = 1024 * MIB

RULE = Rule(
    id="T805",
    name="fragmentation",
    title="Reserved memory lies idle in pieces",
    severity=Severity.MEDIUM,
    sees="bytes reserved by the CUDA caching allocator against bytes allocated, at the failing allocation",
    matters="a request fails although enough bytes are free in sum",
    alike=("a batch that is simply too large: reserved and allocated are then close",
           "memory held after a large validation batch: `empty_cache` once after it gives it back"),
    confirm=("`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` and run again: the error is gone",),
    thresholds={
        "idle": Threshold(IDLE_SHARE, "of reserved", "PyTorch's OOM message advises on fragmentation where reserved "
                          "is much larger than allocated; a third leaves ordinary caching alone"),
        "bytes": Threshold(IDLE_BYTES, "bytes", "less than that is ordinary caching"),
    },
)


def check(breakdown: MemoryBreakdown, step: int, source: str, rank: int, request: int = 0,
          largest_free: int | None = None) -> Iterator[Finding]:
    """A finding where the idle part is large; nothing on a CPU. `request`, `largest_free`: bytes, 0, None: unknown."""
    if breakdown.reserved is None or breakdown.allocated is None:
        return
    idle = breakdown.reserved - breakdown.allocated
    if idle < IDLE_BYTES or idle < IDLE_SHARE * breakdown.reserved:
        return
    measured: dict[str, Value] = {"reserved_mib": round(breakdown.reserved / MIB),
                                  "allocated_mib": round(breakdown.allocated / MIB)}
    pieces, proven = "", False
    if largest_free is not None:
        measured["largest_free_mib"] = round(largest_free / MIB, 1)
        pieces = f", of which the largest is {largest_free / MIB:,.0f} MiB"
        proven = largest_free < request <= idle
        if request:
            measured["request_mib"] = round(request / MIB, 1)
            pieces += f"; the request was for {request / MIB:,.0f} MiB"
    yield RULE.finding(
        f"{breakdown.reserved / MIB:,.0f} MiB are reserved and {breakdown.allocated / MIB:,.0f} MiB in use: "
        f"{idle / MIB:,.0f} MiB lie idle in pieces{pieces}", Location(step=step, rank=rank), source,
        bearing=Bearing.CAUSE if proven else Bearing.SIGN, measured=measured)

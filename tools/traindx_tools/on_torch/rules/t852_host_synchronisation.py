"""The program waits for the device at a line of the training loop, every step.

`.item()`, `.cpu()`, `float(tensor)`, `if tensor:`, `print(tensor)`, `nonzero()` need the value on the host: everything
that was queued on the device must finish first, and it stands idle until the host has queued more. On a CPU the same
lines cost nothing; they are counted for the day the code runs on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

MANY = 3

RULE = Rule(
    id="T852",
    name="host-synchronisation",
    title="The host waits for the device in every step",
    severity=Severity.LOW,
    sees="one traced step: every operation that brings a device value to the host, with the user's line",
    matters="each is a full stop of the device's queue; many small ones halve the speed of a small model",
    alike=("one read of the loss every hundred steps", "gradient clipping with error_if_nonfinite, which must read"),
    confirm=('`torch.cuda.set_sync_debug_mode("warn")` before the step',),
    thresholds={"a step": Threshold(MANY, "synchronisations", "one read of the loss and one of a metric are usual")},
)


def check(lines: Mapping[tuple[str, int], tuple[str, int]], on_device: bool, step: int, source: str,
          rank: int) -> Iterator[Finding]:
    """`lines`: (operation, how often) by (file, line). INFO on a CPU, where nothing has to be waited for."""
    total = sum(n for _, n in lines.values())
    if total < MANY:
        return
    ranked = sorted(lines.items(), key=lambda item: -item[1][1])
    places = ", ".join(f"{file.rsplit('/', 1)[-1]}:{line} ({what}, {n})" for (file, line), (what, n) in ranked[:4])
    file, line = ranked[0][0]
    device = "" if on_device else " (on a CPU they cost nothing; on a GPU each is a full stop)"
    yield RULE.finding(f"{total} times in step {step} the host asks for a value of a tensor: {places}{device}",
                       Location(file=file, line=line, step=step, rank=rank), source, bearing=Bearing.CAUSE,
                       severity=RULE.severity if on_device else Severity.INFO,
                       measured={"per_step": total, "on_device": on_device})

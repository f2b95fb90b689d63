"""CUDA saw an illegal memory access: a kernel read or wrote where it may not.

Three usual causes: an index that no kernel checks (custom kernels, fused attention, advanced indexing), a bug in a
custom or mismatched extension, and a tensor freed or resized while another stream still uses it. Faulty hardware
(ECC, NVLink) is the fourth. The Python line is only where the host noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 30
TOGETHER = True

RULE = Rule(
    id="L502",
    name="illegal-memory-access",
    title="A CUDA kernel accessed memory that it may not",
    severity=Severity.CRITICAL,
    sees="'an illegal memory access was encountered', misaligned address, launch failure, uncorrectable ECC error.",
    matters="The CUDA context is dead; results of the steps before may already be wrong.",
    alike=("A device-side assert (L501) names the kernel that checked.", "cuBLAS errors (L503) after an index error."),
    confirm=("CUDA_LAUNCH_BLOCKING=1 python train.py gives the failing call.",
             "compute-sanitizer --tool memcheck python train.py names the kernel and the address.",
             "The same batch on the CPU: an IndexError means an index, no error points at the kernel or the hardware."),
)

_KINDS = (
    (re.compile(r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS"), "illegal-access"),
    (re.compile(r"misaligned address"), "misaligned"),
    (re.compile(r"unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED"), "launch-failure"),
    (re.compile(r"uncorrectable ECC|uncorrectable NVLink|GPU is lost|fallen off the bus"), "hardware"),
    (re.compile(r"no kernel image is available|invalid device function"), "no-kernel-image"),
)
_MEANING = {
    "illegal-access": "a CUDA kernel accessed memory that is not its own",
    "misaligned": "a CUDA kernel used a misaligned address",
    "launch-failure": "a CUDA kernel failed while it ran",
    "hardware": "the GPU reported a hardware error",
    "no-kernel-image": "the installed build has no kernel for this GPU",
}


def claims(event: ErrorEvent) -> bool:
    """Faults of memory or hardware that CUDA reports."""
    return event.kind != "warning" and any(p.search(event.message) for p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        kind = next(k for p, k in _KINDS if p.search(incident.text))
        known = kind in ("hardware", "no-kernel-image")
        yield report(RULE, incident, _MEANING[kind], bearing=Bearing.SIGN if known else Bearing.COMPANION,
                     measured={"kind": kind}, surfaced="" if known else "CUDA reports errors later than they happen")

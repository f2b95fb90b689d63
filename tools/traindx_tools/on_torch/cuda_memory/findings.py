"""What snapshots of the caching allocator say: a request that failed, and by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location
from traindx_tools.on_torch.cuda_memory.snapshot import DeviceMemory, MemorySnapshot
from traindx_tools.on_torch.rules import t804_out_of_memory, t805_fragmentation, t806_memory_by_line

MIB = 2**20
FREE_SHARE = 0.1
"""Of what is reserved: below it the device is full rather than fragmented."""


def findings_of(snapshots: Sequence[tuple[str, MemorySnapshot]]) -> tuple[Finding, ...]:
    """Findings of one process's snapshots, each with its name: T804, T805 of the last, T806 of all in order of time."""
    ordered = sorted(snapshots, key=lambda item: item[1].taken) if all(s.taken for _, s in snapshots) else snapshots
    return tuple(_findings(ordered)) if ordered else ()


def _findings(ordered: Sequence[tuple[str, MemorySnapshot]]) -> Iterator[Finding]:
    source, last = ordered[-1]
    for device in last.devices:
        course = [d for _, s in ordered for d in s.devices if d.device == device.device]
        yield from _failure(device, source)
        yield from t806_memory_by_line.check(course, source)


def in_pieces(device: DeviceMemory, request: int) -> bool:
    """Whether enough bytes are idle for the request and no piece of them is large enough."""
    return device.largest_free < request <= device.idle and device.idle >= FREE_SHARE * device.reserved


def _failure(device: DeviceMemory, source: str) -> Iterator[Finding]:
    failed = device.failed
    if failed is None:
        return
    site = failed.site
    place = Location(file=source) if site is None else Location(file=site.file, line=site.line or None)
    request = f"a request for {failed.size / MIB:,.0f} MiB failed on device {device.device}"
    figures = (f"{device.reserved / MIB:,.0f} MiB reserved, {device.allocated / MIB:,.0f} MiB in use, largest free "
               f"block {device.largest_free / MIB:,.0f} MiB")
    numbers = {"reserved_mib": round(device.reserved / MIB), "allocated_mib": round(device.allocated / MIB),
               "request_mib": round(failed.size / MIB, 1), "largest_free_mib": round(device.largest_free / MIB, 1)}
    if failed.last and in_pieces(device, failed.size):
        yield t805_fragmentation.RULE.finding(
            f"{request} although {device.idle / MIB:,.0f} MiB lie idle, in pieces that are too small: {figures}", place,
            source, bearing=Bearing.CAUSE, measured=numbers)
        return
    kind = "fixed" if device.states >= t804_out_of_memory.FIXED_SHARE * max(1, device.allocated) else "full"
    what = {"fixed": "parameters and optimizer state alone fill it, so no batch size helps",
            "full": "most of what it holds is in use"}
    said = what[kind] if failed.last else "the snapshot was taken later, after memory was given back"
    yield t804_out_of_memory.RULE.finding(
        f"{request}: {said} ({figures})", place, source,
        bearing=Bearing.SIGN if failed.last else Bearing.COMPANION,
        measured={"kind": kind if failed.last else "unknown", **numbers})

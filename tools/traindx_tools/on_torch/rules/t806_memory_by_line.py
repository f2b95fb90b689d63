"""Which lines of the program hold the device's memory, and which hold more in a later snapshot.

A snapshot of the caching allocator lists every block with the stack that allocated it. A line that holds more blocks in
each later snapshot keeps what it makes; between two snapshots that were taken at different points of a step it may just
be the forward pass, which is why two alone prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.cuda_memory.snapshot import DeviceMemory, Site, Use

MIB = 2**20
BYTES, SHARE, BLOCKS, MORE = 64 * MIB, 0.1, 4, 1.5
SHOWN = 3

RULE = Rule(
    id="T806",
    name="memory-by-line",
    title="Lines that hold the device's memory",
    severity=Severity.INFO,
    sees="blocks in use of a CUDA memory snapshot, by the innermost line of the program's own that allocated them",
    matters="the line that fails is rarely the one that holds the memory",
    alike=("snapshots from different points of a step: activations come and go",
           "the first steps: optimizer state and caches are made once"),
    confirm=("Three snapshots at the same point of steps 10, 20 and 40: what is kept grows each time.",),
    thresholds={
        "bytes": Threshold(BYTES, "bytes of growth", "less rarely decides a run"),
        "share": Threshold(SHARE, "of what is in use", "a tenth: the rest moves by more than that"),
        "blocks": Threshold(BLOCKS, "further blocks, and half as many again",
                            "a cache that is made once is one block or two"),
    },
)


def check(courses: Sequence[DeviceMemory], source: str) -> Iterator[Finding]:
    """One device in snapshots in the order of time: where memory is in the last, and what grew up to it."""
    last = courses[-1]
    if last.allocated:
        yield _by_line(last, source)
    tables = [{u.site: u for u in d.uses if u.site is not None} for d in courses]
    grown = [(site, tables[0].get(site), use) for site, use in tables[-1].items()
             if len(courses) > 1 and _grew([t.get(site) for t in tables], last.allocated)]
    for site, before, use in sorted(grown, key=lambda g: -g[2].bytes)[:SHOWN]:
        yield _growth(site, before, use, len(courses), source)


def _by_line(last: DeviceMemory, source: str) -> Finding:
    shown = [f"{u.bytes / MIB:,.0f} MiB in {u.blocks} blocks at {u.site}" for u in last.uses if u.site][:SHOWN]
    unknown = last.allocated - last.known
    if unknown > SHARE * last.allocated:
        shown.append(f"{unknown / MIB:,.0f} MiB without a line of Python (a backward pass, or nothing was recorded: "
                     "torch.cuda.memory._record_memory_history())")
    first = next((u.site for u in last.uses if u.site), None)
    return RULE.finding(
        f"device {last.device}: {last.allocated / MIB:,.0f} MiB in use of {last.reserved / MIB:,.0f} MiB reserved in "
        f"{last.segments} segments, largest free block {last.largest_free / MIB:,.0f} MiB; {'; '.join(shown)}",
        _where(first, source), source, bearing=Bearing.COMPANION,
        measured={"kind": "lines", "allocated_mib": round(last.allocated / MIB, 1),
                  "reserved_mib": round(last.reserved / MIB, 1), "largest_free_mib": round(last.largest_free / MIB, 1)})


def _grew(uses: Sequence[Use | None], allocated: int) -> bool:
    """More of it from each snapshot to the next, and much more from the first to the last."""
    sizes = [(u.bytes, u.blocks) if u else (0, 0) for u in uses]
    each = all(b > a and m > n for (a, n), (b, m) in pairwise(sizes))
    more, blocks = sizes[-1][0] - sizes[0][0], sizes[-1][1] - sizes[0][1]
    return each and more >= max(BYTES, SHARE * allocated) and blocks >= BLOCKS and sizes[-1][1] >= MORE * sizes[0][1]


def _growth(site: Site, before: Use | None, use: Use, snapshots: int, source: str) -> Finding:
    old, blocks = (before.bytes, before.blocks) if before else (0, 0)
    return RULE.finding(
        f"what {site} allocates went from {old / MIB:,.0f} to {use.bytes / MIB:,.0f} MiB ({blocks} to {use.blocks} "
        f"blocks) over {snapshots} snapshots", _where(site, source), source, severity=Severity.MEDIUM,
        bearing=Bearing.SIGN if snapshots > 2 else Bearing.COMPANION,
        title="A line holds more device memory in each snapshot",
        measured={"kind": "grew", "growth_mib": round((use.bytes - old) / MIB, 1), "blocks": use.blocks,
                  "snapshots": snapshots})


def _where(site: Site | None, source: str) -> Location:
    return Location(file=source) if site is None else Location(file=site.file, line=site.line or None)
